//! The routes of the administration, and its error responses.

use super::handle::{AdminHandle, CaptureRequest, Refusal};
use super::metrics;
use super::view::Counters;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Query, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, NoContent, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use emulation::cable::impairment::ManualImpairment;
use emulation::driver::account::Account;
use emulation::frame_tap::CaptureStatistics;
use emulation::wiring::{Action, End, FrameFilter, Impairment};
use proto::ids::PortNumber;
use proto::units::{BitRate, Duration, Instant};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The OpenAPI description of this API.
const OPENAPI: &str = include_str!("openapi.json");
/// Media type of the Prometheus text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Calls to an agent that a request carries at most: the worker executes them in one turn.
const CALLS_MAX: usize = 16;
/// Octets of a request with calls.
const CALLS_LENGTH_MAX: usize = 128 * 1024;
/// Probabilities are rounded to a billionth.
const CHANCE_UNIT: u64 = 1_000_000_000;

type At = State<Arc<AdminHandle>>;
type Answer<T> = Result<T, Refusal>;

/// All routes. `body_max` limits the octets of a body.
pub fn router(handle: Arc<AdminHandle>, body_max: usize) -> Router {
    Router::new()
        .route("/status", get(async |State(handle): At| handle.status().await.map(Json)))
        .route("/counters", get(counters))
        .route("/balance", get(balance))
        .route("/outputs", get(async |State(handle): At| handle.outputs().await.map(Json)))
        .route("/metrics", get(exposition))
        .route(
            "/openapi.json",
            get(async || ([(header::CONTENT_TYPE, "application/json")], OPENAPI)),
        )
        .route("/clear", post(async |State(handle): At| handle.clear().await.map(|()| NoContent)))
        .route("/links/{port}", post(link))
        .route("/faults/{port}", post(fault).delete(mend))
        .route("/settings/{name}", post(settings))
        .route("/traffic", post(traffic))
        .route("/agent/{node}", post(agent).layer(DefaultBodyLimit::max(CALLS_LENGTH_MAX)))
        .route("/capture", post(capture).delete(end_capture))
        .layer(DefaultBodyLimit::max(body_max))
        .with_state(handle)
}

/// Which flows to include in counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flows {
    /// All flows.
    #[default]
    All,
    /// No flows, whose number can be the square of that of the adapters.
    None,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    flows: Flows,
}

/// A change of the link at a port, for the frames that this port sends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkChange {
    /// Cut the cable (true) or restore it (false).
    pub down: Option<bool>,
    /// Probability that a frame is lost, from 0 to 1.
    pub loss: Option<f64>,
    /// Limit of the port's rate, at most the rate of its line.
    pub rate: Option<BitRate>,
}

/// A fault at a port, for the frames that it sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What happens to a frame that is hit.
    pub action: Action,
    /// The frames it applies to.
    pub frames: FrameFilter,
    /// Probability that such a frame is hit, from 0 to 1.
    pub chance: f64,
    /// Duration in fabric time; until the port is restored if `None`.
    #[serde(rename = "for")]
    pub length: Option<Duration>,
}

/// A change of traffic: which items may post messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficChange {
    /// Name of the item; all items if `None`.
    pub item: Option<String>,
    /// Whether they may post.
    pub on: bool,
}

/// The effect of a change of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficChanged {
    /// Number of adapters that have such items.
    pub adapters: usize,
}

/// The body of an error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The reason, in one sentence.
    pub error: String,
}

async fn counters(
    State(handle): At,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Answer<Json<Counters>> {
    let Query(Wanted { flows }) = wanted?;
    let mut counters = handle.counters().await?;
    if flows == Flows::None {
        counters.nodes.iter_mut().for_each(|node| node.flows.clear());
    }
    Ok(Json(counters))
}

/// The instant of an account.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AtInstant {
    at_ps: u64,
}

async fn balance(
    State(handle): At,
    wanted: Result<Query<AtInstant>, QueryRejection>,
) -> Answer<Json<Option<Box<Account>>>> {
    let Query(AtInstant { at_ps }) = wanted?;
    handle.account(Instant::from_ps(at_ps)).await.map(Json)
}

async fn exposition(State(handle): At) -> Answer<impl IntoResponse> {
    let (counters, status) = handle.totals().await?;
    let text = metrics::text(&handle.info, &counters, &status);
    Ok(([(header::CONTENT_TYPE, EXPOSITION)], text))
}

async fn link(
    State(handle): At,
    Path(port): Path<String>,
    Body(change): Body<LinkChange>,
) -> Answer<NoContent> {
    if change == LinkChange::default() {
        return Err(Refusal::invalid("nothing is to be changed"));
    }
    let loss = change.loss.map(share).transpose()?;
    if let Some(chance) = loss {
        handle.impair(&port, ManualImpairment::Lossy(chance)).await?;
    }
    if let Some(rate) = change.rate {
        handle.slow_down(&port, rate).await?;
    }
    if let Some(down) = change.down {
        handle.impair(&port, ManualImpairment::Cut(down)).await?;
    }
    Ok(NoContent)
}

async fn fault(
    State(handle): At,
    Path(port): Path<String>,
    Body(Fault { action, frames, chance, length }): Body<Fault>,
) -> Answer<NoContent> {
    let chance = share(chance)?;
    // The handle sets the end that the port's name stands for.
    let unset = End { node: 0, port: PortNumber::from_index(0) };
    let rule = Impairment { from: unset, frames, action, chance };
    handle.impair(&port, ManualImpairment::Rule(rule, length)).await.map(|()| NoContent)
}

async fn mend(State(handle): At, Path(port): Path<String>) -> Answer<NoContent> {
    handle.impair(&port, ManualImpairment::Mend).await.map(|()| NoContent)
}

async fn settings(
    State(handle): At,
    Path(name): Path<String>,
    Body(settings): Body<toml::Table>,
) -> Answer<NoContent> {
    if settings.is_empty() {
        return Err(Refusal::invalid("nothing is to be changed"));
    }
    handle.change(&name, settings).await.map(|()| NoContent)
}

async fn traffic(
    State(handle): At,
    Body(TrafficChange { item, on }): Body<TrafficChange>,
) -> Answer<Json<TrafficChanged>> {
    let adapters = handle.let_post(item, on).await?;
    Ok(Json(TrafficChanged { adapters }))
}

async fn capture(State(handle): At, Body(request): Body<CaptureRequest>) -> Answer<NoContent> {
    handle.capture(request).await.map(|()| NoContent)
}

async fn end_capture(State(handle): At) -> Answer<Json<Option<CaptureStatistics>>> {
    handle.end_capture().await.map(Json)
}

async fn agent(
    State(handle): At,
    Path(node): Path<String>,
    Body(lines): Body<Vec<String>>,
) -> Answer<Json<Vec<String>>> {
    if lines.len() > CALLS_MAX {
        return Err(Refusal::invalid(format!("a request carries at most {CALLS_MAX} calls")));
    }
    handle.ask_agent(&node, lines).await.map(Json)
}

/// A probability as a fraction.
fn share(share: f64) -> Answer<(u64, u64)> {
    if !(0.0..=1.0).contains(&share) {
        return Err(Refusal::invalid(format!("{share} is not between 0 and 1")));
    }
    Ok(((share * CHANCE_UNIT as f64).round() as u64, CHANCE_UNIT))
}

/// A body of JSON; what is wrong with it is the reason of a refusal.
struct Body<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Refusal> {
        let body = Json::from_request(request, state).await;
        body.map(|Json(body)| Body(body))
            .map_err(|error: JsonRejection| Refusal(error.status(), error.body_text()))
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Refusal {
        Refusal(rejection.status(), rejection.body_text())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Refusal(status, error) = self;
        (status, Json(Problem { error })).into_response()
    }
}
