//! Frames of this project (docs/spec/design.md 3): test frames, the BCN message and its tag.

use super::body::Body;
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

/// Test frames and BCN messages.
pub(super) struct ProjectFrame;

impl Body for ProjectFrame {
    fn lengths(&self, octets: &[u8]) -> [Option<usize>; 2] {
        match subtype(ethertype::PROJECT, octets) {
            Some(Subtype::Bcn) => BCN_MESSAGE.lengths(octets),
            _ => [None, None],
        }
    }

    fn decode(&self, sink: &mut dyn Sink, part: Part<'_>) -> bool {
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

    fn encode(&self, object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
        object.header(&TEST_FRAME, out)?;
        BCN_MESSAGE.encode(object, out)
    }
}
