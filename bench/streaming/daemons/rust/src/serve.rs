//! Streams of one worker: events at their times, on a client's descriptor.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep_until, timeout};

use crate::config::{Backend, Config};
use crate::handoff::Request;
use crate::metrics::{active_connections, Counters};
use crate::system;

pub const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// For how long a client may leave a full socket buffer unread.
const STALLED_WITHIN: Duration = Duration::from_secs(30);
/// Descriptors kept free for metrics and for the runtime.
const RESERVED_DESCRIPTORS: usize = 32;

pub const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\nX-Accel-Buffering: no\r\n\r\n";
pub const DONE: &str = "data: [DONE]\n\n";
const REJECTED: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nRetry-After: 1\r\nConnection: close\r\n\r\ntoo many connections\n";

/// State that the tasks of a worker share, for its whole life.
pub struct Daemon {
    pub config: &'static Config,
    all: &'static [Counters],
    pub own: &'static Counters,
    /// One permit for each descriptor that may be open besides those of the start. A full table would make recvmsg()
    /// drop the client's descriptor (MSG_CTRUNC), so no connection is accepted without two.
    pub descriptors: Arc<Semaphore>,
    pub descriptor_count: u32,
    /// Events 3 to the last; the same in all streams.
    events: Vec<String>,
}

impl Daemon {
    pub fn new(config: &'static Config, all: &'static [Counters], index: usize, file_limit: usize) -> io::Result<Daemon> {
        let open = std::fs::read_dir("/proc/self/fd")?.count();
        // A backend takes one more for each stream.
        let room = file_limit.saturating_sub(open + RESERVED_DESCRIPTORS);
        let room = if matches!(config.backend, Backend::Mock) { room } else { room / 2 };
        if room < 2 {
            return Err(io::Error::other(format!("{file_limit} open files are too few")));
        }
        Ok(Daemon {
            config,
            all,
            own: &all[index],
            descriptors: Arc::new(Semaphore::new(room)),
            descriptor_count: room as u32,
            events: (3..=config.messages)
                .map(|number| event(number, config.messages, &format!("This is message {number} of {}.", config.messages)))
                .collect(),
        })
    }

    pub fn has_upstream(&self) -> bool {
        !matches!(self.config.backend, Backend::Mock)
    }

    /// The task of one client.
    pub fn serve(
        &'static self,
        client: OwnedFd,
        request: Request,
        permit: OwnedSemaphorePermit,
        started: Instant,
    ) -> impl Future<Output = ()> + Send {
        async move {
            self.own.active_connections.fetch_add(1, Relaxed);
            if active_connections(self.all) > self.config.max_connections {
                self.own.rejected.fetch_add(1, Relaxed);
                let _ = write_all(&client, REJECTED.as_bytes()).await;
            } else {
                let streams = self.own.active_streams.fetch_add(1, Relaxed) + 1;
                self.own.peak_streams.fetch_max(streams, Relaxed);
                let result = match &self.config.backend {
                    Backend::Mock => self.stream(&client, request, started).await,
                    Backend::OpenAi(upstream) => Box::pin(upstream.stream(self, &client, request, started)).await,
                };
                if let Err(why) = result {
                    self.own.count_stream_error(&why);
                }
                self.own.active_streams.fetch_sub(1, Relaxed);
                self.own.stream_duration.observe(started.elapsed());
                self.own.backend_duration.observe(started.elapsed());
            }
            drop(client);
            self.own.active_connections.fetch_sub(1, Relaxed);
            drop(permit);
        }
    }

    /// The task of a client whose handoff is refused.
    pub async fn refuse(&'static self, client: OwnedFd, response: &'static str, permit: OwnedSemaphorePermit) {
        let _ = write_all(&client, response.as_bytes()).await;
        drop(client);
        drop(permit);
    }

    /// Writes all events at their times. A client that has gone fails the next write.
    async fn stream(&'static self, client: &OwnedFd, request: Request, started: Instant) -> io::Result<()> {
        let messages = self.config.messages;
        let first = event(1, messages, &format!("Hello from Rust! Prompt: {}", request.prompt));
        let user = event(2, messages, &format!("User ID: {}", request.user_id));
        drop(request);
        self.write(client, format!("{HEAD}{first}").as_bytes()).await?;
        drop(first);
        self.own.backend_ttfb.observe(started.elapsed());
        let mut due = tokio::time::Instant::now();
        if messages > 1 {
            due += self.config.delay;
            sleep_until(due).await;
            self.write(client, user.as_bytes()).await?;
        }
        drop(user);
        for text in &self.events {
            due += self.config.delay;
            sleep_until(due).await;
            self.write(client, text.as_bytes()).await?;
        }
        Ok(())
    }

    /// Writes one event whole, and counts it.
    pub async fn write(&self, client: &OwnedFd, event: &[u8]) -> io::Result<()> {
        write_all(client, event).await?;
        self.own.bytes.fetch_add(event.len() as u64, Relaxed);
        self.own.chunks.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// Writes all, and waits where the socket is full.
pub async fn write_all(client: &OwnedFd, mut data: &[u8]) -> io::Result<()> {
    loop {
        match system::send(client, data) {
            Ok(sent) if sent == data.len() => return Ok(()),
            Ok(sent) => data = &data[sent..],
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Box::pin(writable(client)).await?,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

/// One server-sent event; the last of a stream has the mark of the end with it. `content` is JSON already.
pub fn event(number: usize, messages: usize, content: &str) -> String {
    let end = if number == messages { DONE } else { "" };
    format!("data: {{\"content\":\"{content}\"}}\n\n{end}")
}

/// Waits for room in a client's socket. Sockets are polled only while they are full.
async fn writable(client: &OwnedFd) -> io::Result<()> {
    let polled = system::polled(client.as_fd(), Interest::WRITABLE)?;
    timeout(STALLED_WITHIN, polled.writable()).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??.clear_ready();
    Ok(())
}
