//! Frames of this project (docs/spec/design.md 3): test frames, the BCN message and its tag.

use super::control::BCN_MESSAGE;
use super::headers::{RATE_TAG, TEST_FRAME};
use super::object::{Fault, Object};
use super::part::Part;
use super::sink::Sink;
use proto::wire::ethernet::ethertype;
use proto::wire::project::{ProjectTypes, Subtype};

/// The subtype of `body`, which follows the EtherType `kind`; `None` if that is not the project's.
pub(super) fn subtype(kind: u16, body: &[u8]) -> Option<Subtype> {
    ProjectTypes::DEFAULT.subtype(kind, body)
}

/// Length of the BCN message at the front of `body`, its sample included; `None` for anything else.
pub(super) fn octets(body: &[u8]) -> Option<usize> {
    let is_message = subtype(ethertype::PROJECT, body) == Some(Subtype::Bcn);
    is_message.then(|| BCN_MESSAGE.octets(body)).flatten()
}

/// Dissects a frame of the project; true if an error was reported.
pub(super) fn decode(sink: &mut dyn Sink, part: Part<'_>) -> bool {
    let layer = match subtype(ethertype::PROJECT, part.octets()) {
        Some(Subtype::Bcn) => return BCN_MESSAGE.decode(sink, part),
        Some(Subtype::TestFrame) => Some(&TEST_FRAME),
        // A whole tag was dissected before the body; only a second tag comes here.
        Some(Subtype::RateTag) if part.len() < RATE_TAG.octets => Some(&RATE_TAG),
        Some(Subtype::RateTag) | None => None,
    };
    let rest = layer.map_or(Some(part), |layer| part.header(sink, layer));
    let Some(rest) = rest else { return true };
    sink.octets("payload", rest.octets());
    false
}

/// Appends a test frame or a BCN message.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    object.header(&TEST_FRAME, out)?;
    BCN_MESSAGE.encode(object, out)
}
