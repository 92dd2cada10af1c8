//! BTH, extended headers, payload and pad: the transport that InfiniBand and RoCE share.

use super::headers::{BTH, EXTENDED};
use super::object::{Fault, Object};
use super::part::Part;
use super::sink::{Sink, wrong};
use proto::wire::infiniband::Opcode;
use proto::wire::infiniband::extended_headers::ExtendedHeader;

/// Dissects a BTH and everything up to the last octet of the pad; true if an error was reported.
pub(super) fn decode(sink: &mut dyn Sink, part: Part<'_>) -> bool {
    let Some(mut rest) = part.header(sink, &BTH) else { return true };
    let bth = part.octets();
    let opcode = Opcode(bth[0]);
    if opcode.row().is_none() {
        wrong!(
            sink,
            "bth.opcode {0} ({0:#04x}) is reserved: no operation has it, so what follows the BTH is shown as payload",
            bth[0]
        );
    }
    sink.judge(&"bth.tver", usize::from(bth[1] & 0xf), 0);
    let set = opcode.extended_headers();
    for (header, layer) in ExtendedHeader::ALL.iter().zip(EXTENDED) {
        if set.contains(*header) {
            let Some(after) = rest.header(sink, layer) else { return true };
            rest = after;
        }
    }
    let pad_count = usize::from(bth[1] >> 4 & 0b11);
    let padded = rest.octets();
    // In a frame that was cut the pad cannot be distinguished from payload.
    let pad = if part.is_whole() { pad_count.min(padded.len()) } else { 0 };
    let (payload, pad) = padded.split_at(padded.len() - pad);
    if part.is_whole() {
        judge_payload(sink, opcode, [padded.len(), payload.len(), pad_count], part.rules.mtu);
    }
    sink.octets("payload", payload);
    if pad_count > 0 {
        sink.octets("pad", pad);
    }
    false
}

/// Judges octets behind the headers: all, those of the payload, and those of the pad that the BTH declares.
fn judge_payload(sink: &mut dyn Sink, opcode: Opcode, octets: [usize; 3], mtu: usize) {
    let [present, payload, pad_count] = octets;
    if pad_count > present {
        wrong!(sink, "bth.padcnt is {pad_count}, but {present} octets are there");
    }
    if !present.is_multiple_of(4) {
        let odd = present % 4;
        wrong!(sink, "payload and pad are not whole words: {odd} octets too many");
    }
    if payload > mtu {
        wrong!(sink, "{payload} octets of payload are beyond the MTU, {mtu}");
    }
    if payload > 0 && opcode.row().is_some_and(|row| !row.carries_payload()) {
        wrong!(sink, "{} carries no payload, {payload} octets are there", opcode.name());
    }
}

/// Appends the BTH, extended headers, unreadable octets, payload and pad of `object`; true if it has a BTH.
///
/// # Errors
/// If a header is missing, or present without the opcode calling for it.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<bool, Fault> {
    let bth = object.header(&BTH, out)?;
    let set = bth.as_ref().map(|bth| Opcode(out[bth.at]).extended_headers()).unwrap_or_default();
    for (header, layer) in ExtendedHeader::ALL.iter().zip(EXTENDED) {
        let fault = match (object.header(layer, out)?.is_some(), set.contains(*header)) {
            (true, false) => ("the opcode has no such header", "leave it out"),
            (false, true) if !object.is_broken => {
                ("is missing", "the opcode calls for this header")
            }
            _ => continue,
        };
        return Err(object.fault(layer.key, fault.0, fault.1));
    }
    let pad = object.hex("pad")?.or(object.is_broken.then(Vec::new));
    let payload = object.append_rest(out)?;
    let Some(bth) = bth else {
        out.extend(pad.unwrap_or_default());
        return Ok(false);
    };
    let pad_count = pad.as_ref().map_or(payload.wrapping_neg() % 4, Vec::len);
    bth.fill(out, "padcnt", pad_count)?;
    let pad_count = usize::from(out[bth.at + 1] >> 4 & 0b11);
    out.extend(pad.unwrap_or_else(|| vec![0; pad_count]));
    Ok(true)
}
