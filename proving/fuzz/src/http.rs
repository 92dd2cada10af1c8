//! A connection to the HTTP server of daemons and of `serve`: its answer is one whole response, or the connection ends.

use axum::extract::{DefaultBodyLimit, Path, Query};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::serve::Listener;
use axum::{Json, Router};
use daemon::admin::server::{Limits, accept};
use daemon::admin::{CaptureRequest, Fault, LinkChange, OwnNames, TrafficChange};
use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::{Builder, Runtime};

/// Octets of a body.
const BODY_MAX: usize = 1_024;
/// Octets that a side may write before the other reads.
const ROOM: usize = 1 << 16;
const LIMITS: Limits = Limits { connections: 2, lifetime: Duration::from_secs(5), stream: None };

thread_local! {
    static RUNTIME: Runtime =
        Builder::new_current_thread().enable_time().build().expect("no system object is needed");
}

/// A listener that has one client.
struct Once(Option<DuplexStream>);

impl Listener for Once {
    type Io = DuplexStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (DuplexStream, SocketAddr) {
        match self.0.take() {
            Some(stream) => (stream, address()),
            None => pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(address())
    }
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4700))
}

/// Routes of the forms that daemons have: bodies of each type are read, and written back.
fn router() -> Router {
    let names = async |headers: HeaderMap| {
        OwnNames::new(address(), Some("lab".to_owned())).are_in(&headers).to_string()
    };
    Router::new()
        .route("/names", get(names))
        .route("/query", get(async |Query(all): Query<HashMap<String, String>>| Json(all)))
        .route(
            "/links/{port}",
            post(async |Path(_): Path<String>, Json(it): Json<LinkChange>| Json(it)),
        )
        .route(
            "/faults/{port}",
            post(async |Path(_): Path<String>, Json(it): Json<Fault>| Json(it)),
        )
        .route("/traffic", post(async |Json(it): Json<TrafficChange>| Json(it)))
        .route("/capture", post(async |Json(it): Json<CaptureRequest>| Json(it)))
        .layer(DefaultBodyLimit::max(BODY_MAX))
}

/// The octets are what the client sends before it closes its side.
pub fn check(octets: &[u8]) {
    let talk = async {
        let (mut client, server) = duplex(ROOM);
        let serving = tokio::spawn(accept(Once(Some(server)), router(), LIMITS));
        let mut answer = Vec::new();
        // The server may end the connection before it has read everything.
        let _ = client.write_all(octets).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut answer).await;
        serving.abort();
        answer
    };
    let answer = RUNTIME.with(|runtime| runtime.block_on(talk));
    if answer.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
    let status: u16 = head[9..12].parse().expect("a status");
    assert!(head.starts_with("HTTP/1.") && (200..=505).contains(&status), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length.filter(|_| !octets.starts_with(b"HEAD")) {
        assert_eq!(Ok(body.len()), length.parse(), "{text}");
    }
}
