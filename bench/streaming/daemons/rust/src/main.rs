//! Streaming daemon in Rust: a task of tokio for each client that a web server hands over.
//!
//! A handoff is one connection to a Unix socket that brings one message: JSON, or one NUL byte, with the client's
//! descriptor (SCM_RIGHTS). The answer is a stream of server-sent events on that descriptor.
//!
//! One process, or with DAEMON_WORKERS several that accept from one listener, since each process has a descriptor
//! table, and thus a limit of open files, of its own. They are forked before tokio starts.

mod config;
mod handoff;
mod metrics;
mod openai;
mod serve;
mod system;
mod workers;

use std::process::ExitCode;

fn main() -> ExitCode {
    match config::Config::from_environment().map_err(std::io::Error::other).and_then(workers::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("streaming-daemon-rs: {why}");
            ExitCode::FAILURE
        }
    }
}
