//! Frames of this project: test frames, the message of BCN and its tag.

use super::layer::{Layer, layer};
use super::object::{Fault, Object};
use super::sink::Sink;
use super::{Broken, Rules, judge, tell, too_short, transport};
use proto::wire::ethernet::ethertype;
use proto::wire::project::{Bcn, ProjectTypes, Subtype};

layer! {
    /// A test frame, before its pattern. Source: `proto::wire::project`.
    TEST_FRAME "test_frame" "test frame" 18 {
        "subtype" 8 Number Or(1);
        "reserved8" 8 Number Or(0);
        "flow" 32 Number Required;
        "sequence" 32 Number Or(0);
        "departure" 64 Number Or(0);
    }
}

layer! {
    /// A BCN message, before its sample. Source: `proto::wire::project`.
    BCN "bcn" "BCN" 20 {
        "subtype" 8 Number Or(2);
        "version" 8 Number Or(1);
        "cpid" 64 Wide Required;
        "qoffset" 16 Signed Required;
        "qdelta" 16 Signed Required;
        "timestamp" 32 Number Or(0);
        "mild" 1 Number Or(0);
        "severe" 1 Number Or(0);
        "stop" 1 Number Or(0);
        "reserved5" 5 Number Or(0);
        "length" 8 Number Computed;
    }
}

layer! {
    /// A rate-regulated tag, with the EtherType that follows. Source: `proto::wire::project`.
    RATE_TAG "rate_tag" "RRT" 16 {
        "subtype" 8 Number Or(3);
        "reserved8" 8 Number Or(0);
        "cpid" 64 Wide Required;
        "timestamp" 32 Number Or(0);
        "type" 16 Code Computed;
    }
}

/// What `body`, behind this EtherType, is by its subtype.
pub(super) fn subtype(kind: u16, body: &[u8]) -> Option<Subtype> {
    ProjectTypes::DEFAULT.subtype(kind, body)
}

/// Octets of the BCN message at the front of `body`, its sample included; of nothing else is it known.
pub(super) fn octets(body: &[u8]) -> Option<usize> {
    let is_message = subtype(ethertype::PROJECT, body) == Some(Subtype::Bcn);
    let is_there = is_message && body.len() >= BCN.octets;
    is_there.then(|| BCN.octets + BCN.get(body, "length") as usize)
}

/// Walks over a frame of the project; true if an error was told.
pub(super) fn decode(
    sink: &mut impl Sink,
    all: &[u8],
    at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    let body = &all[at..end];
    let layer: &'static Layer = match subtype(ethertype::PROJECT, body) {
        Some(Subtype::TestFrame) => &TEST_FRAME,
        Some(Subtype::Bcn) => &BCN,
        // A whole one is a tag and was told as such, unless it is a second one.
        Some(Subtype::RateTag) if body.len() < RATE_TAG.octets => &RATE_TAG,
        Some(Subtype::RateTag) | None => {
            sink.octets("payload", body);
            return false;
        }
    };
    if body.len() < layer.octets {
        return too_short(sink, layer, all, at..end, rules);
    }
    tell(sink, layer, body);
    let rest = &body[layer.octets..];
    if layer.key == BCN.key {
        judge_message(sink, body, rest.len(), rules);
    }
    sink.octets("payload", rest);
    false
}

fn judge_message(sink: &mut impl Sink, body: &[u8], present: usize, rules: Rules) {
    judge(sink, "bcn.version", BCN.get(body, "version") as usize, usize::from(Bcn::VERSION));
    let said = BCN.get(body, "length") as usize;
    if said != present && rules.missing == 0 {
        sink.wrong(format_args!("bcn.length is {said}, {present} octets are there"));
    }
    if said > Bcn::SAMPLE_MAX {
        sink.wrong(format_args!("bcn.length is {said}, at most {} is allowed", Bcn::SAMPLE_MAX));
    }
}

/// Appends a test frame or a BCN message.
pub(super) fn encode(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<(), Fault> {
    object.header(&TEST_FRAME, out)?;
    let message = object.header(&BCN, out)?;
    let begin = out.len();
    transport::encode_rest(object, out, error)?;
    let sample = out.len() - begin;
    message.map_or(Ok(()), |message| message.fill(out, "length", sample))
}
