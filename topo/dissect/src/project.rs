//! Frames of this project (docs/spec/design.md 3): test frames, the BCN message and its tag.

use super::headers::{BCN, RATE_TAG, TEST_FRAME};
use super::layer::Layer;
use super::object::{Fault, Object};
use super::part::Part;
use super::sink::{Sink, wrong};
use proto::wire::ethernet::ethertype;
use proto::wire::project::{Bcn, ProjectTypes, Subtype};

/// The subtype of `body`, which follows the EtherType `kind`; `None` if that is not the project's.
pub(super) fn subtype(kind: u16, body: &[u8]) -> Option<Subtype> {
    ProjectTypes::DEFAULT.subtype(kind, body)
}

/// Length of the BCN message at the front of `body`, its sample included; `None` for anything else.
pub(super) fn octets(body: &[u8]) -> Option<usize> {
    let is_message = subtype(ethertype::PROJECT, body) == Some(Subtype::Bcn);
    let is_there = is_message && body.len() >= BCN.octets;
    is_there.then(|| BCN.octets + BCN.get(body, "length") as usize)
}

/// Dissects a frame of the project; true if an error was reported.
pub(super) fn decode(sink: &mut dyn Sink, part: Part<'_>) -> bool {
    let body = part.octets();
    let layer: &'static Layer = match subtype(ethertype::PROJECT, body) {
        Some(Subtype::TestFrame) => &TEST_FRAME,
        Some(Subtype::Bcn) => &BCN,
        // A whole tag was dissected before the body; only a second tag comes here.
        Some(Subtype::RateTag) if body.len() < RATE_TAG.octets => &RATE_TAG,
        Some(Subtype::RateTag) | None => {
            sink.octets("payload", body);
            return false;
        }
    };
    let Some(rest) = part.header(sink, layer) else { return true };
    if layer.key == BCN.key {
        sink.judge(&"bcn.version", BCN.get(body, "version") as usize, usize::from(Bcn::VERSION));
        judge_sample(sink, "bcn.length", BCN.get(body, "length") as usize, rest, Bcn::SAMPLE_MAX);
    }
    sink.octets("payload", rest.octets());
    false
}

/// Reports the length of a sample that is not that of `sample`, or above `most`.
pub(super) fn judge_sample(
    sink: &mut dyn Sink,
    field: &str,
    said: usize,
    sample: Part<'_>,
    most: usize,
) {
    if said != sample.len() && sample.is_whole() {
        wrong!(sink, "{field} is {said}, {} octets are there", sample.len());
    }
    if said > most {
        wrong!(sink, "{field} is {said}, at most {most} is allowed");
    }
}

/// Appends a test frame or a BCN message.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    object.header(&TEST_FRAME, out)?;
    let message = object.header(&BCN, out)?;
    let sample = object.append_rest(out)?;
    message.map_or(Ok(()), |message| message.fill(out, "length", sample))
}
