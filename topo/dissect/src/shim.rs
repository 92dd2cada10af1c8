//! The shim of this project's cables: records of a header and a frame, in UDP or in an EtherType.
//!
//! The layout is `emulation::cable::shim`'s; a test holds that both agree.

use super::layer::layer;
use super::object::{Fault, Object};
use super::sink::Sink;
use super::{Broken, Fcs, Link, Rules, decode_part, encode_frame, transport};
use emulation::cable::shim::{MAGIC, VERSION};

layer! {
    /// One record's header.
    SHIM "shim" "shim" 32 {
        "magic" 32 Number Or(0x7062_6564);
        "version" 8 Number Or(1);
        "kind" 8 Number Required;
        "flags" 8 Number Or(0);
        "end" 8 Number Or(0);
        "link" 32 Number Or(0);
        "epoch" 32 Number Or(0);
        "sequence" 32 Number Or(0);
        "length" 32 Number Computed;
        "stamp" 64 Number Or(0);
    }
}

/// A shim begins here.
pub(super) fn begins(octets: &[u8]) -> bool {
    octets.len() >= SHIM.octets && octets.starts_with(&MAGIC) && octets[MAGIC.len()] == VERSION
}

/// Octets of the whole records at the front of `octets`; `None` if there is none.
pub(super) fn octets(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(record) = octets.get(at..).filter(|rest| begins(rest)) {
        at += SHIM.octets + SHIM.get(record, "length") as usize;
    }
    (at > 0).then_some(at)
}

/// Walks over the records from `at` to `end`; true if an error was told.
pub(super) fn decode(
    sink: &mut impl Sink,
    all: &[u8],
    mut at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    if rules.depth == 0 {
        sink.octets("payload", &all[at..end]);
        return false;
    }
    if begins(&all[at..end]) {
        sink.begin_list("shim");
        while begins(&all[at..end]) {
            let record = &all[at..end];
            let said = SHIM.get(record, "length") as usize;
            let frame = &record[SHIM.octets..];
            let frame = &frame[..said.min(frame.len())];
            sink.begin_wrapped(&SHIM, record, frame.len());
            decode_wrapped(sink, record[5], frame, said, rules);
            sink.end_wrapped();
            at += SHIM.octets + frame.len();
        }
        sink.end_list();
    }
    if at == end {
        return false;
    }
    let reason = format_args!("no shim of version {VERSION}");
    sink.error("shim", at, reason, &all[at..end]);
    // The first octets of a shim that was not captured are no fault.
    if rules.missing == 0 || end - at >= SHIM.octets {
        sink.wrong(format_args!("{} octets at {at} are no shim of version {VERSION}", end - at));
    }
    true
}

fn decode_wrapped(sink: &mut impl Sink, kind: u8, frame: &[u8], said: usize, rules: Rules) {
    // Frames on a cable have no FCS: the socket below has a check of its own.
    let missing = said - frame.len();
    if missing > 0 && rules.missing == 0 {
        sink.wrong(format_args!("shim.length is {said}, {} octets are there", frame.len()));
    }
    let inner = Rules { depth: rules.depth - 1, fcs: Fcs::No, missing, ..rules };
    match kind {
        1 | 2 => decode_part(sink, Link::Infiniband, frame, inner),
        3 => decode_part(sink, Link::Ethernet, frame, inner),
        _ => {
            sink.wrong(format_args!("shim.kind {kind} is not known"));
            sink.octets("payload", frame);
        }
    }
}

/// Appends records.
pub(super) fn encode(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<(), Fault> {
    for mut record in object.list("shim")?.unwrap_or_default() {
        let shim = record.fields(&SHIM, out)?;
        let begin = out.len();
        if let Some(frame) = record.object("frame")? {
            encode_frame(frame, out)?;
        }
        record.finish()?;
        let length = out.len() - begin;
        shim.fill(out, "length", length)?;
    }
    transport::encode_rest(object, out, error)
}
