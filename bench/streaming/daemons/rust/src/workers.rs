//! Processes: one that does all, or workers and a parent that passes signals on and sums the peaks.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::metrics::{self, Counters};
use crate::system::{self, check};
use crate::{handoff, serve};

const LISTEN_BACKLOG: libc::c_int = 4096;
/// After a worker's own deadline, before it is killed.
const DRAIN_MARGIN: Duration = Duration::from_secs(2);

pub fn run(config: Config) -> io::Result<()> {
    let file_limit = system::raise_file_limit()?;
    let counters: &'static [Counters] = system::shared_slice(config.workers)?;
    let listener = system::listen(&config.socket_path, config.socket_mode, config.is_seqpacket, LISTEN_BACKLOG)?;
    let config: &'static Config = Box::leak(Box::new(config));
    let result = if config.workers == 1 {
        metrics::start(config, counters);
        work(config, listener, counters, 0, file_limit)
    } else {
        supervise(config, listener, counters, file_limit)
    };
    let _ = std::fs::remove_file(&config.socket_path);
    eprintln!("Peak concurrent streams: {}", metrics::peak_streams(counters));
    result
}

fn work(config: &'static Config, listener: OwnedFd, counters: &'static [Counters], index: usize, file_limit: usize) -> io::Result<()> {
    // On one core, threads would only take it from each other.
    let runtime = if std::thread::available_parallelism().map_or(1, usize::from) == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?
    } else {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?
    };
    let result = runtime.block_on(async {
        let daemon = serve::Daemon::new(config, counters, index, file_limit)?;
        handoff::accept(Box::leak(Box::new(daemon)), listener).await
    });
    runtime.shutdown_background();
    result
}

fn supervise(config: &'static Config, listener: OwnedFd, counters: &'static [Counters], file_limit: usize) -> io::Result<()> {
    let awaited = system::signals(&[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD]);
    // SAFETY: the process has one thread until all workers are forked; sets of signals are ours.
    unsafe {
        let parent = libc::getpid();
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const awaited, ptr::null_mut()))?;
        let mut running = Vec::new();
        for index in 0..config.workers {
            match check(libc::fork())? {
                0 => {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                    if libc::getppid() != parent {
                        libc::_exit(1);
                    }
                    let status = match work(config, listener, counters, index, file_limit) {
                        Ok(()) => 0,
                        Err(why) => {
                            eprintln!("streaming-daemon-rs: worker {index}: {why}");
                            1
                        }
                    };
                    libc::_exit(status);
                }
                pid => running.push(pid),
            }
        }
        drop(listener);
        metrics::start(config, counters);
        wait_for(&mut running, &awaited, &config.socket_path)
    }
}

/// Waits for a signal or a worker's early end, then ends all workers and waits for them.
fn wait_for(running: &mut Vec<libc::pid_t>, awaited: &libc::sigset_t, socket_path: &str) -> io::Result<()> {
    let mut result = Ok(());
    let mut end: Option<Instant> = None;
    while !running.is_empty() {
        let mut status = 0;
        // SAFETY: plain system calls on processes that this one has forked.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if ended > 0 {
            running.retain(|pid| *pid != ended);
            if status != 0 || end.is_none() {
                result = Err(io::Error::other(format!("a worker has ended with wait status {status}")));
            }
            if end.is_some() {
                continue;
            }
        }
        let mut is_stopping = ended > 0;
        if !is_stopping {
            let longest = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let limit = if end.is_some() { &raw const longest } else { ptr::null() };
            // SAFETY: a null timeout waits for ever.
            let number = unsafe { libc::sigtimedwait(awaited, ptr::null_mut(), limit) };
            is_stopping = number == libc::SIGTERM || number == libc::SIGINT;
        }
        let kill_all = |number| {
            for pid in running.iter() {
                // SAFETY: they are this process's children and have not been waited for.
                unsafe { libc::kill(*pid, number) };
            }
        };
        match end {
            None if is_stopping => {
                end = Some(Instant::now() + serve::DRAIN_WITHIN + DRAIN_MARGIN);
                let _ = std::fs::remove_file(socket_path);
                kill_all(libc::SIGTERM);
            }
            Some(time) if Instant::now() > time => kill_all(libc::SIGKILL),
            _ => {}
        }
    }
    result
}
