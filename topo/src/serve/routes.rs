//! What the server answers, and to whom: the page and its data, to this host or to who has the token.

use super::board::Board;
use super::stream;
use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Clients that are told of a run at once: more would be a second experiment on this host.
pub const CLIENTS_MAX: usize = 32;

/// How often an idle stream says something, so that a client that is gone is noticed and its seat free.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// Who may ask, and how often each is told.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What other hosts must know; needed unless only this host is listened to.
    pub token: Option<String>,
    /// Times a second.
    pub rate: u32,
}

/// All that answers are made of.
struct Site {
    board: Arc<Board>,
    access: Access,
    page: String,
    run: Value,
    topology: Value,
    seats: Arc<Semaphore>,
}

/// A server that runs beside a run, until it is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the address is taken or not ours.
    pub fn start(
        board: Arc<Board>,
        access: Access,
        page: String,
        run: Value,
        topology: Value,
    ) -> io::Result<Server> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().thread_name("page").build()?;
        let listener = runtime.block_on(TcpListener::bind(access.listen))?;
        let address = listener.local_addr()?;
        let access = Access { listen: address, ..access };
        let seats = Arc::new(Semaphore::new(CLIENTS_MAX));
        let site = Arc::new(Site { board, access, page, run, topology, seats });
        runtime.spawn(async move { axum::serve(listener, router(site)).await });
        Ok(Server { address, runtime: Some(runtime) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/api/run", get(run))
        .route("/api/topology", get(topology))
        .route("/api/columns", get(columns))
        .route("/api/live", get(live))
        .layer(from_fn_with_state(Arc::clone(&site), admit))
        .with_state(site)
}

#[derive(Deserialize)]
struct Asked {
    token: Option<String>,
    #[serde(default)]
    from: u64,
}

/// Refuses names that are not ours (a foreign page may point a name of its own at this host) and who
/// lacks the token.
async fn admit(
    State(site): State<Arc<Site>>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if !is_own_name(host, &site.access) {
        return (StatusCode::MISDIRECTED_REQUEST, "not a name of this server\n").into_response();
    }
    if site.access.token.is_some() && site.access.token != asked.token {
        return (StatusCode::FORBIDDEN, "the token is missing or wrong\n").into_response();
    }
    next.run(request).await
}

/// Whether a Host field names this server: an address, or `localhost`, with its port.
fn is_own_name(host: &str, access: &Access) -> bool {
    let port = access.listen.port().to_string();
    let Some(name) = host.strip_suffix(&port).and_then(|name| name.strip_suffix(':')) else {
        return false;
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) if access.listen.ip().is_unspecified() => !address.is_multicast(),
        Ok(address) => address == access.listen.ip(),
        Err(_) => name == "localhost" && access.listen.ip().is_loopback(),
    }
}

async fn page(State(site): State<Arc<Site>>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, site.page.clone()).into_response()
}

async fn run(State(site): State<Arc<Site>>) -> Response {
    axum::Json(&site.run).into_response()
}

async fn topology(State(site): State<Arc<Site>>) -> Response {
    axum::Json(&site.topology).into_response()
}

/// Rows from a bin on: a head of three numbers of 32 bits (first bin, bins, outputs), then for each bin its
/// end in picoseconds (64 bits) and its octets; the least octet of a number first.
async fn columns(State(site): State<Arc<Site>>, Query(asked): Query<Asked>) -> Response {
    let rows = site.board.rows_from(asked.from);
    let first = rows.first().map_or(asked.from, |row| row.number);
    let mut octets = Vec::new();
    for number in [first, rows.len() as u64, site.board.outputs().all.len() as u64] {
        octets.extend((number as u32).to_le_bytes());
    }
    for row in rows {
        octets.extend(row.end_ps.to_le_bytes());
        octets.extend(row.octets);
    }
    ([(header::CONTENT_TYPE, "application/octet-stream")], Body::from(octets)).into_response()
}

async fn live(State(site): State<Arc<Site>>) -> Response {
    let Ok(seat) = Arc::clone(&site.seats).try_acquire_owned() else {
        let text = format!("{CLIENTS_MAX} pages follow this run already\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let events = stream::of(Arc::clone(&site.board), &site.run, site.access.rate, seat);
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    Sse::new(events).keep_alive(alive).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_answered_to() {
        let access = |listen: &str| Access {
            listen: listen.parse().expect("an address"),
            token: None,
            rate: 4,
        };
        let own = access("127.0.0.1:8086");
        for name in ["127.0.0.1:8086", "localhost:8086"] {
            assert!(is_own_name(name, &own), "{name}");
        }
        for name in
            ["", "127.0.0.1", "localhost", "evil.example:8086", "127.0.0.1:80", "[::1]:8086"]
        {
            assert!(!is_own_name(name, &own), "{name}");
        }
        assert!(is_own_name("[::1]:9", &access("[::1]:9")));
        assert!(is_own_name("198.18.0.1:9", &access("0.0.0.0:9")));
        assert!(!is_own_name("evil.example:9", &access("0.0.0.0:9")));
    }
}
