//! What the server answers, and to whom: the page and its data, to this host or to who has the token;
//! who wants to change a lab needs the token everywhere.

use super::act::Act;
use super::board::Board;
use super::{exposition, stream};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use daemon::admin::OwnNames;
use daemon::token::Token;
use launch::lab::Record;
use launch::lab::client::{self, ClientError};
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Clients that are told of a run at once: more would be a second experiment on this host.
pub const CLIENTS_MAX: usize = 32;

/// How often an idle stream says something, so that a client that is gone is noticed and its seat free.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// Octets of a body: what may be done to a lab takes a line.
const BODY_MAX: usize = 4_096;
/// The text format of Prometheus.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Who may ask, and how often each is told.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What must be known to change something; without it nobody may.
    pub token: Option<Token>,
    /// Whoever reaches the server may look; else they need the token for that, too.
    pub is_open: bool,
    /// Times a second.
    pub rate: u32,
}

impl Access {
    /// Whether `asked` is the token.
    fn is_token(&self, asked: Option<&str>) -> bool {
        self.token.as_ref().zip(asked).is_some_and(|(token, asked)| token.is(asked))
    }
}

/// What is shown.
#[derive(Clone, Debug)]
pub struct Content {
    /// The page.
    pub page: String,
    /// What is told of the run.
    pub run: Value,
    /// As `topology.json`.
    pub topology: Value,
    /// The lab, if it is one that is up.
    pub lab: Option<Record>,
}

/// All that answers are made of.
struct Site {
    board: Arc<Board>,
    access: Access,
    names: OwnNames,
    content: Content,
    seats: Arc<Semaphore>,
}

/// A server that runs beside a run, until it is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    seats: Arc<Semaphore>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the address is taken or not ours.
    pub fn start(board: Arc<Board>, access: Access, content: Content) -> io::Result<Server> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().thread_name("page").build()?;
        let listener = runtime.block_on(TcpListener::bind(access.listen))?;
        let address = listener.local_addr()?;
        let seats = Arc::new(Semaphore::new(CLIENTS_MAX));
        let names = OwnNames::new(address, None);
        let site = Arc::new(Site { board, access, names, content, seats: Arc::clone(&seats) });
        runtime.spawn(async move { axum::serve(listener, router(site)).await });
        Ok(Server { address, seats, runtime: Some(runtime) })
    }

    /// How many pages are being told.
    pub fn listeners(&self) -> usize {
        CLIENTS_MAX - self.seats.available_permits()
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
        .route("/api/act", post(act))
        .route("/metrics", get(metrics))
        .layer(DefaultBodyLimit::max(BODY_MAX))
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
    if !site.names.are_in(&headers) {
        return (StatusCode::MISDIRECTED_REQUEST, "not a name of this server\n").into_response();
    }
    if !site.access.is_open && !site.access.is_token(asked.token.as_deref()) {
        return (StatusCode::FORBIDDEN, "the token is missing or wrong\n").into_response();
    }
    next.run(request).await
}

async fn page(State(site): State<Arc<Site>>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, site.content.page.clone()).into_response()
}

async fn run(State(site): State<Arc<Site>>) -> Response {
    axum::Json(&site.content.run).into_response()
}

async fn topology(State(site): State<Arc<Site>>) -> Response {
    axum::Json(&site.content.topology).into_response()
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
    let events = stream::of(Arc::clone(&site.board), &site.content.run, site.access.rate, seat);
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    Sse::new(events).keep_alive(alive).into_response()
}

/// What all daemons of the lab count, for Prometheus.
async fn metrics(State(site): State<Arc<Site>>) -> Response {
    let Some(record) = site.content.lab.clone() else { return no_lab() };
    let pages = tokio::task::spawn_blocking(move || client::metrics(&record)).await;
    match pages {
        Ok(Ok(pages)) => {
            ([(header::CONTENT_TYPE, EXPOSITION)], exposition::together(&pages)).into_response()
        }
        Ok(Err(error)) => refused(&error),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Does something to the lab, and tells every page of it.
async fn act(
    State(site): State<Arc<Site>>,
    Query(asked): Query<Asked>,
    wish: Result<axum::Json<Act>, JsonRejection>,
) -> Response {
    if !site.access.is_token(asked.token.as_deref()) {
        return (StatusCode::FORBIDDEN, "the token is missing or wrong\n").into_response();
    }
    let Some(record) = site.content.lab.clone() else { return no_lab() };
    let wish = match wish {
        Ok(axum::Json(wish)) => wish,
        Err(rejection) => return rejection.into_response(),
    };
    match tokio::task::spawn_blocking(move || wish.perform(&record)).await {
        Ok(Ok(done)) => {
            site.board.tell("act", &done);
            done.into_response()
        }
        Ok(Err(error)) => refused(&error),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn no_lab() -> Response {
    (StatusCode::NOT_FOUND, "this is a run, and no lab that is up\n").into_response()
}

fn refused(error: &ClientError) -> Response {
    let status = match error {
        ClientError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
        ClientError::Silent(..) => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{error}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_all_of_it_and_no_token_is_nobodys() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 1));
        let access = |token: Option<&str>| Access {
            listen,
            token: token.map(Token::told),
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
