// Rival of run_http.py: hyper on one thread of tokio. It echoes a query as JSON.
use std::convert::Infallible;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() != "/echo" {
        let mut missing = Response::new(Full::new(Bytes::new()));
        *missing.status_mut() = StatusCode::NOT_FOUND;
        return Ok(missing);
    }
    let query = request.uri().query().unwrap_or("");
    let value = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("hello="))
        .unwrap_or("");
    let body = format!("{{\"hello\":\"{}\"}}", value);
    let mut response = Response::new(Full::new(Bytes::from(body)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip_while(|word| word != "--port");
    let port: u16 = words.nth(1).and_then(|text| text.parse().ok()).unwrap_or(8080);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async move {
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                tokio::task::spawn_local(async move {
                    let _ = http1::Builder::new()
                        .pipeline_flush(true)
                        .serve_connection(TokioIo::new(stream), service_fn(answer))
                        .await;
                });
            }
        })
        .await
}
