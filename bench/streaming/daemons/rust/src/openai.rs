//! Backend: streamed chat completions of an OpenAI-compatible server over plain HTTP/1.1, a connection a stream.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::handoff::{escaped, Request};
use crate::serve::{event, write_all, Daemon, DONE, HEAD};

/// Between two parts of a response.
const SILENT_WITHIN: Duration = Duration::from_secs(60);
/// A line of a head, a chunk's size or an event.
const MAX_LINE: u64 = 65_536;
const DEFAULT_MODEL: &str = "default";

pub struct Upstream {
    authority: String,
    path: String,
    key: String,
}

impl Upstream {
    /// `base` is http://HOST[:PORT][/PATH].
    pub fn parse(base: &str, key: String) -> Result<Upstream, String> {
        let rest = base
            .strip_prefix("http://")
            .ok_or_else(|| format!("OPENAI_API_BASE={base}: the backend openai needs http://HOST[:PORT][/PATH]"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let has_port = host.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
        Ok(Upstream {
            authority: if has_port { host.to_string() } else { format!("{host}:80") },
            path: format!("{}/chat/completions", if path.is_empty() { String::new() } else { format!("/{}", path.trim_end_matches('/')) }),
            key,
        })
    }

    fn request(&self, message: &[u8]) -> String {
        let asked: Value = serde_json::from_slice(message).unwrap_or_default();
        let messages = asked
            .get("messages")
            .cloned()
            .unwrap_or_else(|| json!([{"role": "user", "content": asked.get("prompt").and_then(Value::as_str).unwrap_or_default()}]));
        let model = asked.get("model").and_then(Value::as_str).unwrap_or(DEFAULT_MODEL);
        let body = json!({"model": model, "messages": messages, "stream": true}).to_string();
        let key = if self.key.is_empty() { String::new() } else { format!("Authorization: Bearer {}\r\n", self.key) };
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n{key}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.path,
            self.authority,
            body.len()
        )
    }

    /// Streams the contents of a completion to the client, and ends with it. A failure after the head has been sent ends
    /// the stream without its last mark; before, the client gets a 502.
    pub async fn stream(&self, daemon: &Daemon, client: &OwnedFd, request: Request, started: Instant) -> io::Result<()> {
        let mut body = match self.open(&request.message).await {
            Ok(body) => body,
            Err(why) => {
                let text = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 15\r\nConnection: close\r\n\r\nbackend failed\n";
                write_all(client, text.as_bytes()).await?;
                return Err(why);
            }
        };
        daemon.write(client, HEAD.as_bytes()).await?;
        let mut is_first = true;
        loop {
            let line = body.line().await?;
            let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
            if data == "[DONE]" {
                return daemon.write(client, DONE.as_bytes()).await;
            }
            let chunk: Value = serde_json::from_str(data).map_err(io::Error::other)?;
            if let Some(content) = chunk["choices"][0]["delta"]["content"].as_str().filter(|text| !text.is_empty()) {
                if is_first {
                    daemon.own.backend_ttfb.observe(started.elapsed());
                    is_first = false;
                }
                daemon.write(client, event(0, 1, &escaped(content)).as_bytes()).await?;
            }
        }
    }

    async fn open(&self, message: &[u8]) -> io::Result<Body> {
        let mut connection = within_limit(TcpStream::connect(&self.authority)).await?;
        connection.set_nodelay(true)?;
        connection.write_all(self.request(message).as_bytes()).await?;
        let mut body = Body { source: BufReader::with_capacity(2048, connection), chunk: None, ended: false };
        let status = body.raw_line().await?;
        if !status.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(format!("the backend answers {}", status.trim())));
        }
        loop {
            let field = body.raw_line().await?.to_ascii_lowercase();
            if field.trim().is_empty() {
                return Ok(body);
            }
            if field.starts_with("transfer-encoding:") && field.contains("chunked") {
                body.chunk = Some(0);
            }
        }
    }
}

async fn within_limit<T>(operation: impl std::future::Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(SILENT_WITHIN, operation).await.unwrap_or_else(|_| Err(io::Error::other("the backend is silent")))
}

struct Body {
    source: BufReader<TcpStream>,
    /// The rest of the current chunk; None where the body is not chunked.
    chunk: Option<usize>,
    ended: bool,
}

impl Body {
    async fn raw_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        let mut limited = (&mut self.source).take(MAX_LINE);
        within_limit(limited.read_line(&mut line)).await?;
        if line.ends_with('\n') {
            Ok(line)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// One line of the body, without the chunks' borders.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            if self.ended || line.len() as u64 > MAX_LINE {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.chunk == Some(0) {
                let size = self.raw_line().await?;
                let size = size.split(';').next().unwrap_or_default().trim();
                let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
                self.ended = size == 0;
                self.chunk = Some(size);
                continue;
            }
            let available = within_limit(self.source.fill_buf()).await?;
            if available.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let most = self.chunk.map_or(available.len(), |left| left.min(available.len()));
            let size = available[..most].iter().position(|byte| *byte == b'\n').map_or(most, |at| at + 1);
            line.extend_from_slice(&available[..size]);
            self.source.consume(size);
            if let Some(left) = &mut self.chunk {
                *left -= size;
                if *left == 0 {
                    self.raw_line().await?; // what ends a chunk
                }
            }
        }
        String::from_utf8(line).map_err(io::Error::other)
    }
}
