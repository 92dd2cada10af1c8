//! The shim of this project's cables: records of a header and a frame, in UDP or behind an EtherType. With exact pace the
//! first record of a datagram is a promise.
//!
//! The layouts are those of `emulation::cable::shim` and `emulation::exact`; tests check that they agree.

use super::body::Body;
use super::headers::{PROMISE, SHIM};
use super::object::{Fault, Object};
use super::part::{Fcs, Part, Rules};
use super::sink::{Sink, wrong};
use super::{decode_part, encode_frame};
use emulation::cable::shim::{MAGIC, VERSION};
use emulation::exact::Promise;
use proto::technology::Technology;

/// True if a shim begins here.
pub(super) fn begins(octets: &[u8]) -> bool {
    octets.len() >= SHIM.octets && octets.starts_with(&MAGIC) && octets[MAGIC.len()] == VERSION
}

/// Records of a header and a frame.
pub(super) struct Records;

impl Body for Records {
    /// The whole records at the front.
    fn lengths(&self, octets: &[u8]) -> [Option<usize>; 2] {
        let mut at = 0;
        while let Some(record) = octets.get(at..).filter(|rest| begins(rest)) {
            at += SHIM.octets + SHIM.get(record, "length") as usize;
        }
        [(at > 0).then_some(at), None]
    }

    fn decode(&self, sink: &mut dyn Sink, part: Part<'_>) -> bool {
        if part.depth == 0 {
            sink.octets("payload", part.octets());
            return false;
        }
        let mut rest = part;
        let mut is_more = begins(part.octets());
        while is_more {
            let record = rest.octets();
            let said = SHIM.get(record, "length") as usize;
            let frame = &record[SHIM.octets..];
            let frame = &frame[..said.min(frame.len())];
            sink.begin_wrapped(record, frame.len(), rest.start == part.start);
            decode_wrapped(sink, record[5], frame, said, part);
            rest = rest.after(SHIM.octets + frame.len());
            is_more = begins(rest.octets());
            sink.end_wrapped(!is_more);
        }
        let (at, left) = (rest.start, rest.len());
        if left == 0 {
            return false;
        }
        let reason = format_args!("no shim of version {VERSION}");
        sink.error("shim", at, reason, rest.octets());
        // A shim that the capture cut is not defective.
        if part.is_whole() || left >= SHIM.octets {
            wrong!(sink, "{left} octets at {at} are not a shim of version {VERSION}");
        }
        true
    }

    fn encode(&self, object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
        for mut record in object.list("shim")?.unwrap_or_default() {
            let shim = record.fields(&SHIM, out)?;
            let begin = out.len();
            match record.object("frame")? {
                Some(frame) if frame.has("promise") => encode_promise(frame, out)?,
                Some(frame) => encode_frame(frame, out)?,
                None => {}
            }
            record.finish()?;
            let length = out.len() - begin;
            shim.fill(out, "length", length)?;
        }
        object.append_rest(out).map(drop)
    }
}

fn encode_promise(mut frame: Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    frame.ignore(&["length"]);
    frame.header(&PROMISE, out)?;
    frame.append_rest(out)?;
    frame.finish()
}

fn decode_wrapped(sink: &mut dyn Sink, kind: u8, frame: &[u8], said: usize, outer: Part<'_>) {
    let missing = said - frame.len();
    if missing > 0 && outer.is_whole() {
        wrong!(sink, "shim.length is {said}, {} octets are there", frame.len());
    }
    // Frames on a cable have no FCS: the socket below has a check of its own.
    let rules = Rules { fcs: Fcs::No, ..outer.rules };
    let depth = outer.depth - 1;
    let inner = Part { frame, start: 0, end: frame.len(), rules, depth, missing };
    match kind {
        1 | 2 => decode_part(sink, Technology::Infiniband, inner),
        3 => decode_part(sink, Technology::Ethernet, inner),
        Promise::KIND => {
            let rest = inner.header(sink, &PROMISE).filter(|rest| rest.len() > 0);
            rest.into_iter().for_each(|rest| sink.octets("payload", rest.octets()));
        }
        _ => {
            wrong!(sink, "shim.kind {kind} is not known");
            sink.octets("payload", frame);
        }
    }
}
