//! Which address does what, and how a refusal looks.

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

/// What this API is, for those who make clients.
const OPENAPI: &str = include_str!("openapi.json");
/// The text format of Prometheus.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Chances are told to a billionth.
const CHANCE_UNIT: u64 = 1_000_000_000;

type At = State<Arc<AdminHandle>>;
type Answer<T> = Result<T, Refused>;

/// All addresses. No body is longer than `body_max` octets.
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

/// Which flows are wanted with counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flows {
    /// Every one.
    #[default]
    All,
    /// None: they can be most of an answer.
    None,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    flows: Flows,
}

/// A change of the link at a port: of the frames that this port sends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkChange {
    /// The cable is cut, or whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// The share of frames that is lost at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// What the line gives, at most its own rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
}

/// A fault at a port: what happens to frames that it sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What happens to a frame that is hit.
    pub action: Action,
    /// Which frames.
    pub frames: FrameFilter,
    /// The share of them that is hit.
    pub chance: f64,
    /// For how long, in fabric time; until it is mended if left out.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub length: Option<Duration>,
}

/// Which traffic items may post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficChange {
    /// The item's name; all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// They may post.
    pub on: bool,
}

/// Whom a change of traffic reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficChanged {
    /// Adapters that have such items.
    pub adapters: usize,
}

/// Why a request was not granted, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// In one sentence.
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
        return Err(Refusal::Senseless("nothing is to be changed".to_owned()).into());
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
    // The handle knows which end the port's name means.
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

/// A share between none and all as a chance.
fn share(share: f64) -> Result<(u64, u64), Refusal> {
    if !(0.0..=1.0).contains(&share) {
        return Err(Refusal::Senseless(format!("{share} is no share between 0 and 1")));
    }
    Ok(((share * CHANCE_UNIT as f64).round() as u64, CHANCE_UNIT))
}

/// A refusal as a response.
struct Refused(StatusCode, String);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        match refusal {
            Refusal::Senseless(reason) => Refused(StatusCode::UNPROCESSABLE_ENTITY, reason),
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
