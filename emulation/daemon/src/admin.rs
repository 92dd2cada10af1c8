//! Administration of a daemon while it runs: HTTP on a Unix socket, the one room that knows HTTP.
//!
//! ```text
//!   socket ── admin thread: accept, limits, routes ── orders ──▶ worker (data-plane thread)
//!   TCP ── token ──▶       ◀── snapshots, answers ──────────────
//! ```
//!
//! Whoever asks cannot disturb the data plane. This thread stands behind all others of the host; it
//! takes few connections at once and few a second, each for one request and not for long; and however
//! many ask, the worker reads its devices only a few times a second ([`handle`]). Who may connect is told
//! by the rights of the socket's folder, and at TCP, which is open only where it was asked for, by a
//! token ([`gate`]).

mod gate;
mod handle;
mod metrics;
mod names;
mod routes;

pub mod families;
pub mod view;

pub(super) use handle::{AdminHandle, OrderReceiver, orders};
pub use handle::{CaptureRequest, ProcessInfo};
pub use names::OwnNames;
pub use routes::{Fault, Flows, LinkChange, Problem, TrafficChange, TrafficChanged};

use super::config::AdminConfig;
use crate::privileges;
use axum::serve::Listener;
use emulation::timer::stand_back;
use gate::TokenGate;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Connections at once. A person and a scraper need two; the rest are for those who were slow.
const CONNECTIONS_MAX: usize = 32;
/// One connection is taken in so long: some hundreds a second, which a core hardly feels.
const ACCEPT_EVERY: Duration = Duration::from_millis(2);
/// Who has not said by then what he wants (a slow loris) is let go.
const HEADERS_WITHIN: Duration = Duration::from_secs(1);
/// No connection lives longer, whoever it is that takes his time.
const CONNECTION_MAX: Duration = Duration::from_secs(5);
/// Octets of the request line and all headers.
const HEADERS_MAX: usize = 8 * 1024;
/// Octets of a body: the longest sensible one has some hundred.
const BODY_MAX: usize = 16 * 1024;

/// The sockets before there is a run to administer.
#[derive(Debug)]
pub(crate) struct AdminSockets {
    file: Option<BoundSocket>,
    gate: Option<TokenGate>,
}

/// A Unix socket, whose file goes with it.
#[derive(Debug)]
struct BoundSocket {
    listener: UnixListener,
    file: PathBuf,
}

impl BoundSocket {
    /// Listens at `file`, which must not be there.
    fn open(file: &Path) -> io::Result<BoundSocket> {
        let listener = UnixListener::bind(file)?;
        listener.set_nonblocking(true)?;
        Ok(BoundSocket { listener, file: file.to_owned() })
    }
}

impl AdminSockets {
    /// Listens where `told` says, by TCP at a port of `host`.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(told: &AdminConfig, host: IpAddr) -> io::Result<AdminSockets> {
        let gate = told.tcp.as_ref().map(|tcp| TokenGate::open(host, tcp)).transpose()?;
        let file = told.socket.as_deref().map(BoundSocket::open).transpose()?;
        Ok(AdminSockets { file, gate })
    }

    /// Where it listens by TCP, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.gate.as_ref().map(|gate| gate.address)
    }
}

/// A thread that answers, until this is dropped.
#[derive(Debug)]
pub(crate) struct AdminServer {
    file: Option<PathBuf>,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Answers at `socket` for the worker whose other end of the orders has been given to it.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub(super) fn start(socket: AdminSockets, handle: AdminHandle) -> io::Result<AdminServer> {
        let (over, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let AdminSockets { file, gate } = socket;
        let (listener, file) = file.map(|bound| (bound.listener, bound.file)).unzip();
        let answer = move || {
            stand_back();
            privileges::drop_all().expect("less is always permitted");
            runtime.block_on(async {
                tokio::select! {
                    done = serve(listener, gate, handle) => {
                        done.expect("sockets that listen belong to this runtime");
                    }
                    _ = ended => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(answer)?;
        Ok(AdminServer { file, over: Some(over), thread: Some(thread) })
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and is nothing to the run.
            let _ = thread.join();
        }
        if let Some(file) = &self.file {
            // Whoever removed the folder has removed it already.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Answers at both sockets; each has its own permits, so that strangers at the one keep nobody from the other.
async fn serve(
    listener: Option<UnixListener>,
    gate: Option<TokenGate>,
    handle: AdminHandle,
) -> io::Result<()> {
    let router = routes::router(Arc::new(handle), BODY_MAX);
    let by_token = gate.map(|gate| gate.guard(router.clone())).transpose()?;
    let listener = listener.map(tokio::net::UnixListener::from_std).transpose()?;
    let by_file = listener.map(|listener| (listener, router));
    tokio::join!(accept_at(by_file), accept_at(by_token));
    Ok(())
}

/// Takes connections at a socket, if there is one.
async fn accept_at(door: Option<(impl Listener, axum::Router)>) {
    match door {
        Some((listener, router)) => accept(listener, router).await,
        None => pending().await,
    }
}

/// Takes connections at a steady pace. One too many is closed at once: its owner may come again, while
/// waiting would let those who never speak keep out those who do.
async fn accept(mut listener: impl Listener, router: axum::Router) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut pace = interval(ACCEPT_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let (stream, _) = listener.accept().await;
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let router = router.clone();
        tokio::spawn(async move {
            // A connection that fails or takes too long is its owner's affair.
            let _ = timeout(CONNECTION_MAX, converse(stream, router)).await;
            drop(permit);
        });
    }
}

/// One request, one answer.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: axum::Router,
) -> hyper::Result<()> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}

#[cfg(test)]
mod tests;
