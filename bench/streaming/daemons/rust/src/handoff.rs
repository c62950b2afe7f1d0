//! Handoffs: the accept loop, and one message with one descriptor from each connection.

use std::cell::RefCell;
use std::future::{poll_fn, Future};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::metrics::HandoffError;
use crate::serve::{Daemon, DRAIN_WITHIN};
use crate::system;

/// Largest handoff message; above it the client gets a 413.
const MAX_MESSAGE: usize = 212_992;
/// A connection to the handoff socket that has sent no whole message by then is closed.
const HANDOFF_WITHIN: Duration = Duration::from_secs(5);
const PROMPT_CHARACTERS: usize = 50;

const BAD_FORMAT: &str =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 20\r\nConnection: close\r\n\r\nmessage is not JSON\n";
const TOO_LARGE: &str =
    "HTTP/1.1 413 Content Too Large\r\nContent-Type: text/plain\r\nContent-Length: 20\r\nConnection: close\r\n\r\nmessage is too long\n";

/// The request of a handoff. Texts are the insides of JSON strings.
pub struct Request {
    pub prompt: String,
    pub user_id: String,
    /// The whole message, for a backend; empty otherwise.
    pub message: Vec<u8>,
}

/// A handoff that is not served, with the response for its client.
struct Refused {
    reason: HandoffError,
    client: Option<OwnedFd>,
    response: &'static str,
}

thread_local! {
    /// For one recvmsg() each; only while a message is there to be read.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_MESSAGE]);
}

/// Accepts until SIGTERM or SIGINT, then waits for the last stream's end or the deadline.
pub async fn accept(daemon: &'static Daemon, listener: OwnedFd) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    system::unblock_ending_signals()?;
    let listener = system::polled(listener, Interest::READABLE)?;
    {
        let mut accepting = pin!(accept_all(daemon, &listener));
        poll_fn(|context| {
            if terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            accepting.as_mut().poll(context)
        })
        .await?;
    }
    if daemon.config.workers == 1 {
        let _ = std::fs::remove_file(&daemon.config.socket_path);
    }
    // Queued messages were sent before the signal.
    while let Ok(permit) = daemon.descriptors.clone().try_acquire_many_owned(2) {
        match system::accept(listener.get_ref()) {
            Ok(connection) => start(daemon, connection, permit),
            Err(_) => break,
        }
    }
    drop(listener);
    let all = daemon.descriptors.clone().acquire_many_owned(daemon.descriptor_count);
    let _ = timeout(DRAIN_WITHIN, all).await;
    Ok(())
}

async fn accept_all(daemon: &'static Daemon, listener: &AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        let permit = daemon.descriptors.clone().acquire_many_owned(2).await.map_err(io::Error::other)?;
        let accepted = loop {
            let mut guard = listener.readable().await?;
            match guard.try_io(|listener| system::accept(listener.get_ref())) {
                Ok(result) => break result,
                Err(_would_block) => {}
            }
        };
        match accepted {
            Ok(connection) => start(daemon, connection, permit),
            Err(why) => {
                eprintln!("streaming-daemon-rs: accept: {why}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

fn start(daemon: &'static Daemon, connection: OwnedFd, permit: OwnedSemaphorePermit) {
    tokio::spawn(async move {
        let started = Instant::now();
        // The whole message is mostly there already.
        let mut receiver = Receiver { client: None, message: Vec::new(), is_retry: false };
        let received = match receiver.advance(daemon, &connection) {
            Some(result) => result,
            None => Box::pin(wait_and_receive(daemon, receiver, &connection)).await,
        };
        drop(connection);
        dispatch(daemon, received, permit, started);
    });
}

/// Starts the client's own task, which is small, and counts.
fn dispatch(daemon: &'static Daemon, received: Result<(OwnedFd, Request), Refused>, mut permit: OwnedSemaphorePermit, started: Instant) {
    drop(permit.split(1));
    let counted = |took: Duration| {
        daemon.own.handoffs.fetch_add(1, Relaxed);
        daemon.own.connections.fetch_add(1, Relaxed);
        daemon.own.handoff_duration.observe(took);
    };
    match received {
        Ok((client, request)) => {
            counted(started.elapsed());
            tokio::spawn(daemon.serve(client, request, permit, started));
        }
        Err(refused) => {
            daemon.own.count_handoff_error(refused.reason);
            match refused.client {
                Some(client) => {
                    counted(started.elapsed());
                    tokio::spawn(daemon.refuse(client, refused.response, permit));
                }
                None => eprintln!("streaming-daemon-rs: handoff without a client: {}", refused.reason.text()),
            }
        }
    }
}

async fn wait_and_receive(daemon: &Daemon, mut receiver: Receiver, connection: &OwnedFd) -> Result<(OwnedFd, Request), Refused> {
    let waited = timeout(HANDOFF_WITHIN, async {
        let Ok(polled) = system::polled(connection.as_fd(), Interest::READABLE) else { return None };
        loop {
            let mut guard = polled.readable().await.ok()?;
            if let Some(result) = receiver.advance(daemon, connection) {
                return Some(result);
            }
            guard.clear_ready();
        }
    });
    let reason = match waited.await {
        Ok(Some(result)) => return result,
        Ok(None) => HandoffError::Receive,
        Err(_) => HandoffError::Timeout,
    };
    Err(Refused { reason, client: receiver.client.take(), response: BAD_FORMAT })
}

/// A message as it arrives. Over SOCK_STREAM a long one comes in pieces, until it is whole or the sender has closed.
struct Receiver {
    client: Option<OwnedFd>,
    message: Vec<u8>,
    is_retry: bool,
}

impl Receiver {
    /// Receives what is there. None: more has to come.
    fn advance(&mut self, daemon: &Daemon, connection: &OwnedFd) -> Option<Result<(OwnedFd, Request), Refused>> {
        BUFFER.with_borrow_mut(|buffer| loop {
            let received = match system::receive(connection, buffer) {
                Ok(received) => received,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return None,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return self.refuse(HandoffError::Receive, ""),
            };
            for descriptor in received.descriptors {
                self.client.get_or_insert(descriptor); // the others are closed
            }
            if self.client.is_none() && received.has_lost_descriptors {
                return self.refuse(HandoffError::DescriptorTruncated, "");
            }
            if received.size == 0 {
                // A SOCK_SEQPACKET peer that sends and closes can be seen as closed before its message is: the next
                // call has the message.
                if daemon.config.is_seqpacket && self.client.is_none() && !self.is_retry {
                    self.is_retry = true;
                    continue;
                }
                let reason = if self.client.is_some() { HandoffError::Format } else { HandoffError::NoDescriptor };
                return self.refuse(reason, BAD_FORMAT);
            }
            if received.is_cut || self.message.len() + received.size > MAX_MESSAGE {
                return self.refuse(HandoffError::TooLarge, TOO_LARGE);
            }
            let piece = &buffer[..received.size];
            let request = if self.message.is_empty() {
                parse(piece, daemon)
            } else {
                self.message.extend_from_slice(piece);
                parse(&self.message, daemon)
            };
            match (request, self.client.take()) {
                (Some(request), Some(client)) => return Some(Ok((client, request))),
                (Some(_), None) => return self.refuse(HandoffError::NoDescriptor, ""),
                (None, client) => {
                    self.client = client;
                    if daemon.config.is_seqpacket {
                        return self.refuse(HandoffError::Format, BAD_FORMAT);
                    }
                    if self.message.is_empty() {
                        self.message.extend_from_slice(piece);
                    }
                }
            }
        })
    }

    fn refuse(&mut self, reason: HandoffError, response: &'static str) -> Option<Result<(OwnedFd, Request), Refused>> {
        Some(Err(Refused { reason, client: self.client.take(), response }))
    }
}

/// Reads a handoff message; None where it is not whole, or no JSON object.
fn parse(message: &[u8], daemon: &Daemon) -> Option<Request> {
    let fields = if message == [0] { Value::Object(Default::default()) } else { serde_json::from_slice(message).ok()? };
    let fields = fields.as_object()?;
    let prompt = fields.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let user_id = match fields.get("user_id") {
        Some(Value::Number(number)) if !number.is_f64() => number.to_string(),
        Some(Value::String(text)) if !text.is_empty() => escaped(text),
        _ => "0".to_string(),
    };
    Some(Request {
        prompt: escaped(&prompt.chars().take(PROMPT_CHARACTERS).collect::<String>()),
        user_id,
        message: if daemon.has_upstream() { message.to_vec() } else { Vec::new() },
    })
}

/// The inside of a JSON string.
pub fn escaped(text: &str) -> String {
    let mut quoted = Value::from(text).to_string();
    quoted.pop();
    quoted.remove(0);
    quoted
}
