//! Options, all from the environment.

use std::env;
use std::str::FromStr;
use std::time::Duration;

use crate::openai::Upstream;

const MAX_WORKERS: usize = 64;

pub enum Backend {
    Mock,
    /// An OpenAI-compatible server at a base address, http://HOST:PORT/PATH.
    OpenAi(Upstream),
}

pub struct Config {
    pub socket_path: String,
    pub socket_mode: u32,
    pub is_seqpacket: bool,
    /// Limit of all workers together.
    pub max_connections: i64,
    pub backend: Backend,
    pub messages: usize,
    pub delay: Duration,
    pub metrics_addr: Option<String>,
    pub workers: usize,
}

fn text(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_string())
}

fn number<T: FromStr + PartialOrd>(name: &str, default: T, least: T, most: T) -> Result<T, String> {
    let Ok(given) = env::var(name) else { return Ok(default) };
    match given.parse() {
        Ok(value) if least <= value && value <= most => Ok(value),
        _ => Err(format!("{name}={given} is no number in its range")),
    }
}

fn one_of<T>(name: &str, default: &str, values: &[(&str, T)]) -> Result<T, String>
where
    T: Copy,
{
    let given = text(name, default);
    let found = values.iter().find(|(word, _)| *word == given);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = values.iter().map(|(word, _)| *word).collect();
        format!("{name}={given}: it is one of {}", words.join(", "))
    })
}

impl Config {
    pub fn from_environment() -> Result<Config, String> {
        let mode = text("DAEMON_SOCKET_MODE", "0660");
        let is_mock = one_of("DAEMON_BACKEND_PROVIDER", "mock", &[("mock", true), ("openai", false)])?;
        let has_metrics = one_of("DAEMON_METRICS_ENABLED", "true", &[("true", true), ("1", true), ("false", false), ("0", false)])?;
        let is_seqpacket = one_of("DAEMON_SOCKET_TYPE", "stream", &[("stream", false), ("seqpacket", true)])?;
        Ok(Config {
            socket_path: text("DAEMON_SOCKET_PATH", "/var/run/streaming-daemon-rs.sock"),
            socket_mode: u32::from_str_radix(mode.trim_start_matches("0o"), 8)
                .ok()
                .filter(|mode| *mode <= 0o777)
                .ok_or_else(|| format!("DAEMON_SOCKET_MODE={mode} is no octal number of permissions"))?,
            is_seqpacket,
            max_connections: number("DAEMON_MAX_CONNECTIONS", 100_000, 1, i64::MAX)?,
            backend: if is_mock {
                Backend::Mock
            } else {
                Backend::OpenAi(Upstream::parse(&text("OPENAI_API_BASE", ""), text("OPENAI_API_KEY", ""))?)
            },
            messages: number("DAEMON_MESSAGES", 18, 1, 1_000_000)?,
            delay: Duration::from_millis(number("DAEMON_MESSAGE_DELAY_MS", 50, 0, 86_400_000)?),
            metrics_addr: has_metrics.then(|| text("DAEMON_METRICS_ADDR", "127.0.0.1:9090")),
            workers: number("DAEMON_WORKERS", 1, 1, MAX_WORKERS)?,
        })
    }
}
