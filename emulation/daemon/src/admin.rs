//! Administration of a running daemon: HTTP on a Unix socket or TCP. The only module of the daemons that uses
//! HTTP.
//!
//! ```text
//!   socket ── admin thread: accept, limits, routes ── orders ──▶ worker (data-plane thread)
//!   TCP ── token ──▶       ◀── snapshots, answers ──────────────
//! ```
//!
//! Requests cannot disturb the data plane. This thread has the lowest priority of the host. It accepts few
//! connections at once and few a second, each for one short request. The worker reads its devices at most ten
//! times a second for any number of requests ([`handle`]). Permissions of the socket's folder control access to
//! the Unix socket; TCP is opened only if configured, and needs a token ([`gate`]).

mod capture_file;
mod gate;
mod handle;
mod metrics;
mod names;
mod routes;

pub mod families;
pub mod server;
pub mod view;

pub use handle::CaptureRequest;
pub(super) use handle::{AdminHandle, ORDERS_MAX, ProcessInfo};
pub use names::OwnNames;
pub use routes::{Fault, Flows, LinkChange, Problem, TrafficChange, TrafficChanged};

use super::config::AdminConfig;
use crate::privileges;
use axum::serve::Listener;
use emulation::timer::stand_back;
use gate::TokenGate;
use server::Limits;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Connections at once. A person and a scraper need two; the others allow for slow clients.
const CONNECTIONS_MAX: usize = 32;
/// Maximum lifetime of a connection.
const CONNECTION_MAX: Duration = Duration::from_secs(5);
/// Octets of a body; the longest regular one has some hundred.
const BODY_MAX: usize = 16 * 1024;

/// The open sockets, before the run starts.
#[derive(Debug)]
pub(crate) struct AdminSockets {
    /// A Unix socket, whose file is removed at the end.
    file: Option<(UnixListener, PathBuf)>,
    gate: Option<TokenGate>,
}

impl AdminSockets {
    /// Listens as configured; by TCP at a port of `host`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(config: &AdminConfig, host: IpAddr) -> io::Result<AdminSockets> {
        let gate = config.tcp.as_ref().map(|tcp| TokenGate::open(host, tcp)).transpose()?;
        let bind = |file: &PathBuf| -> io::Result<_> {
            let listener = UnixListener::bind(file)?;
            listener.set_nonblocking(true)?;
            Ok((listener, file.clone()))
        };
        let file = config.socket.as_ref().map(bind).transpose()?;
        Ok(AdminSockets { file, gate })
    }

    /// Its TCP address, if it listens by TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.gate.as_ref().map(|gate| gate.address)
    }
}

/// The administration thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct AdminServer {
    file: Option<PathBuf>,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Starts to answer at `socket` for the worker that receives the orders of `handle`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(socket: AdminSockets, handle: AdminHandle) -> io::Result<AdminServer> {
        let (over, ended) = oneshot::channel();
        let runtime = crate::runtime::on_this_thread()?;
        let AdminSockets { file, gate } = socket;
        let (listener, file) = file.unzip();
        let answer = move || {
            stand_back();
            privileges::drop_all();
            runtime.block_on(async {
                tokio::select! {
                    done = serve(listener, gate, handle) => {
                        done.expect("listening sockets belong to this runtime");
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
            // A panic there has been printed, and does not affect the run.
            let _ = thread.join();
        }
        if let Some(file) = &self.file {
            // The folder may have been removed already, with the file.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Answers at both sockets. Each has a connection limit of its own, so that clients of one cannot block the
/// other.
async fn serve(
    listener: Option<UnixListener>,
    gate: Option<TokenGate>,
    handle: AdminHandle,
) -> io::Result<()> {
    let router = routes::router(Arc::new(handle), BODY_MAX);
    let by_token = gate.map(|gate| gate.guard(router.clone())).transpose()?;
    let listener = listener.map(tokio::net::UnixListener::from_std).transpose()?;
    let by_file = listener.map(|listener| (listener, router));
    tokio::join!(accept(by_file), accept(by_token));
    Ok(())
}

/// Accepts connections at a socket, if there is one.
async fn accept(socket: Option<(impl Listener, axum::Router)>) {
    let Some((listener, router)) = socket else { return pending().await };
    let limits = Limits { connections: CONNECTIONS_MAX, lifetime: CONNECTION_MAX, stream: None };
    server::accept(listener, router, limits).await;
}

#[cfg(test)]
mod tests;
