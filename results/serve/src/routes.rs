//! The HTTP server of the live page. Clients on this host can read; others need the token. Actions on a lab always
//! need the token.

use super::lab_action::LabAction;
use super::live_state::LiveState;
use super::{exposition, stream};
use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use daemon::admin::OwnNames;
use daemon::admin::server::{self, Limits};
use daemon::token::Token;
use emulation::clock::Stopwatch;
use futures_util::stream::unfold;
use launch::lab::LabRecord;
use launch::lab::client::{self, ClientError};
use launch::with_sources;
use nix::sys::socket::{setsockopt, sockopt};
use serde::Deserialize;
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Semaphore};

/// The number of clients at once, so that the load of the page does not disturb the run.
pub(crate) const CLIENTS_MAX: usize = 32;

/// The keep-alive interval of an idle stream, so that a disconnected client is noticed.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// The limits of the server, which shares its process with the run. A stream is bounded by the number of clients.
const LIMITS: Limits =
    Limits { connections: 2 * CLIENTS_MAX, lifetime: Duration::from_secs(5), stream: Some(STREAM) };
/// The path of the stream of events.
const STREAM: &str = "/api/live";
/// A client that has taken nothing for so long is disconnected.
const TAKES_WITHIN: Duration = Duration::from_secs(20);
/// Answers with all bins at once: each has some megabytes.
const COLUMNS_MAX: usize = 2;
/// How long the metrics of a lab serve further requests, in seconds: every daemon is asked for them.
const METRICS_SERVE_S: f64 = 0.5;

/// The longest body of a request, in octets: an action is one line.
const BODY_MAX: usize = 4_096;
/// The media type of the text format of Prometheus.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The address, the access control and the update rate of the server.
#[derive(Clone, Debug)]
pub struct Access {
    /// The address to listen at.
    pub listen: SocketAddr,
    /// The token that actions need; without a token there are no actions.
    pub token: Option<Token>,
    /// Whether reading needs no token.
    pub is_open: bool,
    /// Updates for each client in a second.
    pub rate: u32,
}

impl Access {
    /// Whether `asked` is the token.
    fn is_token(&self, asked: Option<&str>) -> bool {
        self.token.as_ref().zip(asked).is_some_and(|(token, asked)| token.is(asked))
    }
}

/// The content of the page.
#[derive(Clone, Debug)]
pub struct Content {
    /// The HTML page.
    pub page: String,
    /// The description of the run.
    pub run: Value,
    /// The content of `topology.json`.
    pub topology: Value,
    /// The lab, if the page is about one.
    pub lab: Option<LabRecord>,
}

/// The state of the server.
struct Site {
    state: Arc<LiveState>,
    access: Access,
    names: OwnNames,
    content: Content,
    slots: Arc<Semaphore>,
    columns: Arc<Semaphore>,
    /// The latest metrics. A lock, so that concurrent requests ask the daemons once.
    metrics: Mutex<Option<(Stopwatch, String)>>,
}

impl Site {
    /// The lab, or the answer that there is none.
    fn lab(&self) -> Result<LabRecord, (StatusCode, &'static str)> {
        let missing = (StatusCode::NOT_FOUND, "this is a run, not a lab\n");
        self.content.lab.clone().ok_or(missing)
    }
}

type At = State<Arc<Site>>;

/// A server in the background, which stops when it is dropped.
pub struct Server {
    /// The address at which it listens.
    pub address: SocketAddr,
    slots: Arc<Semaphore>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// If it cannot listen at the address.
    pub fn start(state: Arc<LiveState>, access: Access, content: Content) -> io::Result<Server> {
        daemon::runtime::check_descriptors()?;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().thread_name("page").build()?;
        let listener = runtime.block_on(TcpListener::bind(access.listen))?;
        let address = listener.local_addr()?;
        let slots = Arc::new(Semaphore::new(CLIENTS_MAX));
        let names = OwnNames::new(address, None);
        let site = Arc::new(Site {
            state,
            access,
            names,
            content,
            slots: Arc::clone(&slots),
            columns: Arc::new(Semaphore::new(COLUMNS_MAX)),
            metrics: Mutex::default(),
        });
        let listener = listener.tap_io(|stream| {
            // Without it a connection that is not read stays for minutes.
            let within = TAKES_WITHIN.as_millis() as u32;
            let _ = setsockopt(&*stream, sockopt::TcpUserTimeout, &within);
        });
        runtime.spawn(server::accept(listener, router(site), LIMITS));
        Ok(Server { address, slots, runtime: Some(runtime) })
    }

    /// The number of connected pages.
    pub fn clients(&self) -> usize {
        CLIENTS_MAX - self.slots.available_permits()
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
        .route("/api/run", get(async |State(site): At| Json(&site.content.run).into_response()))
        .route(
            "/api/topology",
            get(async |State(site): At| Json(&site.content.topology).into_response()),
        )
        .route("/api/columns", get(columns))
        .route(STREAM, get(live))
        .route("/api/act", post(perform))
        .route("/metrics", get(metrics))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(Arc::clone(&site), check_access))
        .with_state(site)
}

#[derive(Deserialize)]
struct Parameters {
    token: Option<String>,
    #[serde(default)]
    from: u64,
}

/// Refuses host names of others (against DNS rebinding), and clients without the token.
async fn check_access(
    State(site): At,
    Query(parameters): Query<Parameters>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    if !site.names.are_in(&headers) {
        return (StatusCode::MISDIRECTED_REQUEST, "not a name of this server\n").into_response();
    }
    if !site.access.is_open && !site.access.is_token(parameters.token.as_deref()) {
        return forbidden();
    }
    next.run(request).await
}

async fn page(State(site): At) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, site.content.page.clone()).into_response()
}

/// Rows from a bin on: a head of three numbers of 32 bits (first bin, bins, outputs), then for each bin its end in
/// picoseconds (64 bits) and its octets. Numbers are little-endian.
async fn columns(State(site): At, Query(parameters): Query<Parameters>) -> Response {
    let Ok(permit) = Arc::clone(&site.columns).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "others read all bins: again later\n")
            .into_response();
    };
    let rows = site.state.rows_from(parameters.from);
    let first = rows.first().map_or(parameters.from, |row| row.number);
    let mut octets = Vec::new();
    for number in [first, rows.len() as u64, site.state.outputs.all.len() as u64] {
        octets.extend((number as u32).to_le_bytes());
    }
    for row in rows {
        octets.extend(row.end_ps.to_le_bytes());
        octets.extend(row.octets);
    }
    // The permit is given back when the octets have been taken.
    let parts = unfold((Some(octets), permit), |(octets, permit)| async {
        Some((Ok::<_, Infallible>(octets?), (None, permit)))
    });
    let body = Body::from_stream(parts);
    ([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response()
}

async fn live(State(site): At) -> Response {
    let Ok(slot) = Arc::clone(&site.slots).try_acquire_owned() else {
        let text = format!("{CLIENTS_MAX} pages show this run already\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let events = stream::of(Arc::clone(&site.state), &site.content.run, site.access.rate, slot);
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    Sse::new(events).keep_alive(alive).into_response()
}

/// The metrics of all daemons of the lab, for Prometheus.
async fn metrics(State(site): At) -> Result<Response, Response> {
    let record = site.lab().map_err(IntoResponse::into_response)?;
    let mut latest = site.metrics.lock().await;
    let text = match &*latest {
        Some((at, text)) if at.seconds() <= METRICS_SERVE_S => text.clone(),
        _ => {
            let pages = apart(move || client::metrics(&record)).await?;
            let (_, text) = latest.insert((Stopwatch::start(), exposition::merge(&pages)));
            text.clone()
        }
    };
    Ok(([(header::CONTENT_TYPE, EXPOSITION)], text).into_response())
}

/// Performs an action on the lab, and adds a note about it.
async fn perform(
    State(site): At,
    Query(parameters): Query<Parameters>,
    action: Result<Json<LabAction>, JsonRejection>,
) -> Result<String, Response> {
    if !site.access.is_token(parameters.token.as_deref()) {
        return Err(forbidden());
    }
    let record = site.lab().map_err(IntoResponse::into_response)?;
    let Json(action) = action.map_err(IntoResponse::into_response)?;
    let done = apart(move || action.perform(&record)).await?;
    site.state.add_note("act", &done);
    Ok(done)
}

/// Calls daemons on a thread that may wait.
async fn apart<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, ClientError> + Send + 'static,
) -> Result<T, Response> {
    let called = tokio::task::spawn_blocking(call).await;
    let called = called.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())?;
    called.map_err(|error| {
        let status = match error {
            ClientError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ClientError::Silent { .. } => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{}\n", with_sources(&error))).into_response()
    })
}

fn forbidden() -> Response {
    (StatusCode::FORBIDDEN, "the token is missing or wrong\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_only_as_a_whole_and_without_one_nothing_matches() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 1));
        let access = |token: Option<&str>| Access {
            listen,
            token: token.map(Token::new),
            is_open: true,
            rate: 4,
        };
        let own = access(Some("secret"));
        assert!(own.is_token(Some("secret")));
        for other in [None, Some(""), Some("secre"), Some("secret1"), Some("Secret")] {
            assert!(!own.is_token(other), "{other:?}");
        }
        assert!(!access(None).is_token(None) && !access(None).is_token(Some("")));
    }
}
