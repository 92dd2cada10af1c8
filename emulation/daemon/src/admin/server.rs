//! The limits of an HTTP server that shares its host with a data plane: few connections, at a steady pace, each for one
//! short request.

use axum::Router;
use axum::extract::Request;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Time between two accepted connections, some hundreds a second, which loads a core little.
const ACCEPT_EVERY: Duration = Duration::from_millis(2);
/// A client that has not sent its headers by then (a slow loris) is disconnected.
const HEADERS_WITHIN: Duration = Duration::from_secs(1);
/// Octets of the request line and all headers, and of what waits to be written.
const HEADERS_MAX: usize = 8 * 1024;

/// The limits of one listening socket.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Lifetime of a connection.
    pub lifetime: Duration,
    /// The path of a stream, whose connections live as long as the stream.
    pub stream: Option<&'static str>,
}

/// Accepts connections at a steady pace. A connection beyond the limit is closed at once: its client can retry, whereas
/// a queue would let silent clients block others.
pub async fn accept(mut listener: impl Listener, router: Router, limits: Limits) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut pace = interval(ACCEPT_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let (stream, _) = listener.accept().await;
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let conversation = converse(stream, router.clone(), limits);
        tokio::spawn(async move {
            // A connection that fails or takes too long affects its client only.
            conversation.await;
            drop(permit);
        });
    }
}

/// Serves one request on one connection.
async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router, limits: Limits) {
    let lasts = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&lasts);
    let router = router.layer(axum::middleware::map_request(move |request: Request| {
        let is_stream = Some(request.uri().path()) == limits.stream;
        note.fetch_or(is_stream, Ordering::Relaxed);
        async move { request }
    }));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    within(connection, limits.lifetime, &lasts).await;
}

/// Waits for the end of `work`, but not longer than `lifetime` unless it `lasts`.
async fn within<T>(work: impl Future<Output = T>, lifetime: Duration, lasts: &AtomicBool) {
    let mut work = pin!(work);
    if timeout(lifetime, &mut work).await.is_ok() {
        return;
    }
    if lasts.load(Ordering::Relaxed) {
        let _ = work.await;
    }
}
