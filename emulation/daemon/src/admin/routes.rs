//! The routes of the administration, and its error responses.

use super::handle::{AdminHandle, CaptureRequest, Refusal};
use super::metrics;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use emulation::cable::impairment::ManualImpairment;
use emulation::wiring::{Action, End, FrameFilter, Impairment};
use proto::ids::PortNumber;
use proto::units::{BitRate, Duration};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The OpenAPI description of this API.
const OPENAPI: &str = include_str!("openapi.json");
/// Media type of the Prometheus text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Probabilities are rounded to a billionth.
const CHANCE_UNIT: u64 = 1_000_000_000;

type At = State<Arc<AdminHandle>>;
type Answer<T> = Result<T, Refused>;

/// All routes. `body_max` limits the octets of a body.
pub fn router(handle: Arc<AdminHandle>, body_max: usize) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/counters", get(counters))
        .route("/outputs", get(outputs))
        .route("/metrics", get(exposition))
        .route("/openapi.json", get(openapi))
        .route("/clear", post(clear))
        .route("/links/{port}", post(link))
        .route("/faults/{port}", post(fault).delete(mend))
        .route("/traffic", post(traffic))
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
    /// No flows; they can be most of an answer.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// Probability that a frame is lost, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Limit of the port's rate, at most the rate of its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub length: Option<Duration>,
}

/// A change of traffic: which items may post messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficChange {
    /// Name of the item; all items if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

async fn status(State(handle): At) -> Answer<Response> {
    Ok(Json(handle.status().await?).into_response())
}

async fn counters(
    State(handle): At,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Answer<Response> {
    let Query(Wanted { flows }) = wanted?;
    let counters = handle.counters().await?;
    let shown = match flows {
        Flows::All => counters,
        Flows::None => counters.without_flows(),
    };
    Ok(Json(shown).into_response())
}

async fn outputs(State(handle): At) -> Answer<Response> {
    Ok(Json(handle.outputs().await?).into_response())
}

async fn exposition(State(handle): At) -> Answer<Response> {
    let (counters, status) = handle.totals().await?;
    let text = metrics::text(handle.info(), &counters, &status);
    Ok(([(header::CONTENT_TYPE, EXPOSITION)], text).into_response())
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

async fn clear(State(handle): At) -> Answer<StatusCode> {
    handle.clear().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn link(
    State(handle): At,
    Path(port): Path<String>,
    change: Result<Json<LinkChange>, JsonRejection>,
) -> Answer<StatusCode> {
    let Json(change) = change?;
    if change == LinkChange::default() {
        return Err(Refusal::Invalid("nothing is to be changed".to_owned()).into());
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
    Ok(StatusCode::NO_CONTENT)
}

async fn fault(
    State(handle): At,
    Path(port): Path<String>,
    fault: Result<Json<Fault>, JsonRejection>,
) -> Answer<StatusCode> {
    let Json(Fault { action, frames, chance, length }) = fault?;
    let chance = share(chance)?;
    // The handle sets the end that the port's name stands for.
    let nobody = End { node: 0, port: PortNumber::from_index(0) };
    let rule = Impairment { from: nobody, frames, action, chance };
    handle.impair(&port, ManualImpairment::Rule(rule, length)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn mend(State(handle): At, Path(port): Path<String>) -> Answer<StatusCode> {
    handle.impair(&port, ManualImpairment::Mend).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn traffic(
    State(handle): At,
    change: Result<Json<TrafficChange>, JsonRejection>,
) -> Answer<Response> {
    let Json(TrafficChange { item, on }) = change?;
    let adapters = handle.let_post(item, on).await?;
    Ok(Json(TrafficChanged { adapters }).into_response())
}

async fn capture(
    State(handle): At,
    request: Result<Json<CaptureRequest>, JsonRejection>,
) -> Answer<StatusCode> {
    let Json(request) = request?;
    handle.capture(request).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn end_capture(State(handle): At) -> Answer<Response> {
    Ok(Json(handle.end_capture().await?).into_response())
}

/// Converts a probability from 0 to 1.
fn share(share: f64) -> Result<(u64, u64), Refusal> {
    if !(0.0..=1.0).contains(&share) {
        return Err(Refusal::Invalid(format!("{share} is not between 0 and 1")));
    }
    Ok(((share * CHANCE_UNIT as f64).round() as u64, CHANCE_UNIT))
}

/// A refusal as a response.
struct Refused(StatusCode, String);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        match refusal {
            Refusal::Invalid(reason) => Refused(StatusCode::UNPROCESSABLE_ENTITY, reason),
            Refusal::Busy => {
                let reason =
                    "the worker does not answer: the run has not begun, is over, or is late";
                Refused(StatusCode::SERVICE_UNAVAILABLE, reason.to_owned())
            }
        }
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Refused {
        Refused(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Refused {
        Refused(rejection.status(), rejection.body_text())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Refused(status, error) = self;
        (status, Json(Problem { error })).into_response()
    }
}
