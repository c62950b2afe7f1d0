//! Counters of each worker in memory that all share, and their sums as Prometheus text (version 0.0.4).

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::config::Config;

#[derive(Clone, Copy)]
pub enum HandoffError {
    NoDescriptor,
    DescriptorTruncated,
    Receive,
    Format,
    TooLarge,
    Timeout,
}

const HANDOFF_REASONS: [&str; 6] = ["no_descriptor", "descriptor_truncated", "receive", "format", "too_large", "timeout"];

impl HandoffError {
    pub fn text(self) -> &'static str {
        HANDOFF_REASONS[self as usize]
    }
}

const STREAM_REASONS: [&str; 4] = ["client_gone", "timeout", "write", "backend"];

/// Upper bounds of a histogram's buckets, in seconds.
const BOUNDS: [f64; 14] = [0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 120.0];

pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let index = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[index].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Relaxed);
    }
}

/// Counters of one worker. Any thread of any process.
pub struct Counters {
    pub active_connections: AtomicI64,
    pub active_streams: AtomicI64,
    pub peak_streams: AtomicI64,
    pub connections: AtomicU64,
    pub rejected: AtomicU64,
    pub handoffs: AtomicU64,
    pub bytes: AtomicU64,
    pub chunks: AtomicU64,
    handoff_errors: [AtomicU64; HANDOFF_REASONS.len()],
    stream_errors: [AtomicU64; STREAM_REASONS.len()],
    pub handoff_duration: Histogram,
    pub stream_duration: Histogram,
    pub backend_duration: Histogram,
    pub backend_ttfb: Histogram,
}

impl Counters {
    pub fn count_handoff_error(&self, reason: HandoffError) {
        self.handoff_errors[reason as usize].fetch_add(1, Relaxed);
    }

    pub fn count_stream_error(&self, why: &io::Error) {
        let index = match why.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => 0,
            io::ErrorKind::TimedOut => 1,
            io::ErrorKind::Other | io::ErrorKind::UnexpectedEof => 3,
            _ => 2,
        };
        self.stream_errors[index].fetch_add(1, Relaxed);
    }
}

fn total(all: &[Counters], of: impl Fn(&Counters) -> &AtomicU64) -> u64 {
    all.iter().map(|one| of(one).load(Relaxed)).sum()
}

pub fn active_connections(all: &[Counters]) -> i64 {
    all.iter().map(|one| one.active_connections.load(Relaxed)).sum()
}

/// The sum of the workers' peaks, which can be of different moments.
pub fn peak_streams(all: &[Counters]) -> i64 {
    all.iter().map(|one| one.peak_streams.load(Relaxed)).sum()
}

type Field = fn(&Counters) -> &AtomicU64;

fn text(all: &[Counters]) -> String {
    let mut out = String::new();
    let active_streams = all.iter().map(|one| one.active_streams.load(Relaxed)).sum::<i64>();
    let gauges = [("active_connections", active_connections(all)), ("active_streams", active_streams), ("peak_streams", peak_streams(all))];
    for (name, value) in gauges {
        let _ = writeln!(out, "# TYPE daemon_{name} gauge\ndaemon_{name} {value}");
    }
    let counters: [(&str, Field); 5] = [
        ("connections_total", |one| &one.connections),
        ("connections_rejected_total", |one| &one.rejected),
        ("handoffs_total", |one| &one.handoffs),
        ("bytes_sent_total", |one| &one.bytes),
        ("chunks_sent_total", |one| &one.chunks),
    ];
    for (name, of) in counters {
        let _ = writeln!(out, "# TYPE daemon_{name} counter\ndaemon_{name} {}", total(all, of));
    }
    let mut reasons = |name: &str, texts: &[&str], of: &dyn Fn(&Counters, usize) -> u64| {
        let _ = writeln!(out, "# TYPE daemon_{name} counter");
        for (index, reason) in texts.iter().enumerate() {
            let value: u64 = all.iter().map(|one| of(one, index)).sum();
            let _ = writeln!(out, "daemon_{name}{{reason=\"{reason}\"}} {value}");
        }
    };
    reasons("handoff_errors_total", &HANDOFF_REASONS, &|one, index| one.handoff_errors[index].load(Relaxed));
    reasons("stream_errors_total", &STREAM_REASONS, &|one, index| one.stream_errors[index].load(Relaxed));
    let histograms: [(&str, fn(&Counters) -> &Histogram); 4] = [
        ("handoff_duration_seconds", |one| &one.handoff_duration),
        ("stream_duration_seconds", |one| &one.stream_duration),
        ("backend_duration_seconds", |one| &one.backend_duration),
        ("backend_ttfb_seconds", |one| &one.backend_ttfb),
    ];
    for (name, of) in histograms {
        let _ = writeln!(out, "# TYPE daemon_{name} histogram");
        let mut below = 0;
        for index in 0..=BOUNDS.len() {
            below += total(all, |one| &of(one).buckets[index]);
            let bound = BOUNDS.get(index).map_or("+Inf".to_string(), f64::to_string);
            let _ = writeln!(out, "daemon_{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let sum = total(all, |one| &of(one).nanoseconds) as f64 / 1e9;
        let _ = writeln!(out, "daemon_{name}_sum {sum}\ndaemon_{name}_count {below}");
    }
    out
}

const SCRAPE_WITHIN: Duration = Duration::from_secs(5);
const MAX_REQUEST: usize = 8192;

/// Answers one request of HTTP/1.1 and closes.
fn answer(mut stream: TcpStream, all: &[Counters]) -> io::Result<()> {
    stream.set_read_timeout(Some(SCRAPE_WITHIN))?;
    stream.set_write_timeout(Some(SCRAPE_WITHIN))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let size = stream.read(&mut buffer)?;
        if size == 0 || request.len() + size > MAX_REQUEST {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..size]);
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", text(all))
    } else if request.starts_with(b"GET /healthz ") {
        ("200 OK", "ok\n".to_string())
    } else {
        ("404 Not Found", "not found\n".to_string())
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Answers at the metrics address from a thread of its own. Where it is taken, the daemon runs without.
pub fn start(config: &'static Config, all: &'static [Counters]) {
    let Some(address) = &config.metrics_addr else { return };
    let listener = match TcpListener::bind(address.as_str()) {
        Ok(listener) => listener,
        Err(why) => {
            eprintln!("streaming-daemon-rs: metrics server: {address}: {why}");
            return;
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream, all);
        }
    });
}
