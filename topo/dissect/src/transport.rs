//! BTH, extended headers, payload and pad: what InfiniBand and RoCE share.

use super::layer::{Layer, layer};
use super::object::{Fault, Object};
use super::sink::Sink;
use super::{Broken, Rules, judge, tell, too_short};
use proto::wire::infiniband::extended_headers::ExtendedHeader;
use proto::wire::infiniband::{Bth, Opcode, Syndrome};

layer! {
    /// Base Transport Header.
    BTH "bth" "BTH" 12 named opcode_name; {
        "opcode" 8 Number Required;
        "se" 1 Number Or(0);
        "m" 1 Number Or(0);
        "padcnt" 2 Number Computed;
        "tver" 4 Number Or(0);
        "p_key" 16 Code Or(0xffff);
        "f" 1 Number Or(0);
        "b" 1 Number Or(0);
        "reserved6" 6 Number Or(0);
        "destqp" 24 Code Required;
        "a" 1 Number Or(0);
        "reserved7" 7 Number Or(0);
        "psn" 24 Number Required;
    }
}

layer! {
    /// Reliable Datagram Extended Transport Header.
    RDETH "rdeth" "RDETH" 4 {
        "reserved8" 8 Number Or(0);
        "ee_context" 24 Number Required;
    }
}

layer! {
    /// XRC Extended Transport Header.
    XRCETH "xrceth" "XRCETH" 4 {
        "reserved8" 8 Number Or(0);
        "srqn" 24 Number Required;
    }
}

layer! {
    /// Datagram Extended Transport Header.
    DETH "deth" "DETH" 8 {
        "q_key" 32 Code Required;
        "reserved8" 8 Number Or(0);
        "srcqp" 24 Code Required;
    }
}

layer! {
    /// RDMA Extended Transport Header.
    RETH "reth" "RETH" 16 {
        "va" 64 Wide Required;
        "r_key" 32 Code Required;
        "dmalen" 32 Number Required;
    }
}

layer! {
    /// Atomic Extended Transport Header.
    ATOMICETH "atomiceth" "AtomicETH" 28 {
        "va" 64 Wide Required;
        "r_key" 32 Code Required;
        "swapdt" 64 Wide Required;
        "cmpdt" 64 Wide Required;
    }
}

layer! {
    /// ACK Extended Transport Header.
    AETH "aeth" "AETH" 4 named syndrome_name; {
        "syndrome" 8 Number Required;
        "msn" 24 Number Required;
    }
}

layer! {
    /// Atomic ACK Extended Transport Header.
    ATOMICACKETH "atomicacketh" "AtomicAckETH" 8 {
        "origremdt" 64 Wide Required;
    }
}

layer! {
    /// Immediate data.
    IMMDT "immdt" "ImmDt" 4 {
        "data" 32 Number Required;
    }
}

layer! {
    /// Invalidate Extended Transport Header.
    IETH "ieth" "IETH" 4 {
        "r_key" 32 Code Required;
    }
}

/// The table of an extended header.
pub(super) fn extended(header: ExtendedHeader) -> &'static Layer {
    match header {
        ExtendedHeader::Rdeth => &RDETH,
        ExtendedHeader::XrcEth => &XRCETH,
        ExtendedHeader::Deth => &DETH,
        ExtendedHeader::Reth => &RETH,
        ExtendedHeader::AtomicEth => &ATOMICETH,
        ExtendedHeader::Aeth => &AETH,
        ExtendedHeader::AtomicAckEth => &ATOMICACKETH,
        ExtendedHeader::ImmDt => &IMMDT,
        ExtendedHeader::Ieth => &IETH,
    }
}

fn opcode_name(code: u64) -> Option<&'static str> {
    Opcode(u8::try_from(code).ok()?).row().map(|row| row.name)
}

fn syndrome_name(code: u64) -> Option<&'static str> {
    use proto::wire::infiniband::NakCode;
    Some(match Syndrome::from_octet(u8::try_from(code).ok()?) {
        Syndrome::Ack { .. } => "ACK",
        Syndrome::Rnr { .. } => "RNR NAK",
        Syndrome::Nak(NakCode::PsnSequence) => "NAK PSN sequence error",
        Syndrome::Nak(NakCode::InvalidRequest) => "NAK invalid request",
        Syndrome::Nak(NakCode::RemoteAccess) => "NAK remote access error",
        Syndrome::Nak(NakCode::RemoteOperational) => "NAK remote operational error",
        Syndrome::Nak(NakCode::InvalidRdRequest) => "NAK invalid RD request",
        Syndrome::Nak(NakCode::Unknown(_)) | Syndrome::Unknown(_) => return None,
    })
}

/// Walks from a BTH at `at` to the last octet of pad before `end`; true if an error was told.
pub(super) fn decode(
    sink: &mut impl Sink,
    all: &[u8],
    at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    if end - at < Bth::LEN {
        return too_short(sink, &BTH, all, at..end, rules);
    }
    let bth = &all[at..end];
    tell(sink, &BTH, bth);
    judge_bth(sink, bth);
    let opcode = Opcode(bth[0]);
    let set = opcode.extended_headers();
    let mut at = at + Bth::LEN;
    for header in ExtendedHeader::ALL.iter().filter(|header| set.contains(**header)) {
        let layer = extended(*header);
        if end - at < layer.octets {
            return too_short(sink, layer, all, at..end, rules);
        }
        tell(sink, layer, &all[at..end]);
        at += layer.octets;
    }
    let pad_count = usize::from(bth[1] >> 4 & 0b11);
    // The end of a packet that was cut is payload as far as anybody can tell.
    let is_whole = rules.missing == 0;
    let pad = if is_whole { end - pad_count.min(end - at) } else { end };
    if is_whole {
        judge_payload(sink, opcode, &all[at..end], pad - at, pad_count, rules);
    }
    sink.octets("payload", &all[at..pad]);
    if pad_count > 0 {
        sink.octets("pad", &all[pad..end]);
    }
    false
}

fn judge_bth(sink: &mut impl Sink, bth: &[u8]) {
    let opcode = bth[0];
    if Opcode(opcode).row().is_none() {
        sink.wrong(format_args!(
            "bth.opcode {opcode} ({opcode:#04x}) is reserved: no operation has it, so what follows \
             the BTH is shown as payload"
        ));
    }
    judge(sink, "bth.tver", usize::from(bth[1] & 0xf), 0);
}

fn judge_payload(
    sink: &mut impl Sink,
    opcode: Opcode,
    padded: &[u8],
    payload: usize,
    pad_count: usize,
    rules: Rules,
) {
    if pad_count > padded.len() {
        let present = padded.len();
        sink.wrong(format_args!("bth.padcnt is {pad_count}, but {present} octets are there"));
    }
    if !padded.len().is_multiple_of(4) {
        let odd = padded.len() % 4;
        sink.wrong(format_args!("payload and pad are no whole words: {odd} octets too many"));
    }
    if payload > rules.mtu {
        sink.wrong(format_args!("{payload} octets of payload are beyond the MTU, {}", rules.mtu));
    }
    let empty = opcode.row().is_some_and(|row| !row.carries_payload());
    if empty && payload > 0 {
        sink.wrong(format_args!(
            "{} carries no payload, {payload} octets are there",
            opcode.name()
        ));
    }
}

/// Appends what the object has of BTH, extended headers, unreadable octets, payload and pad; true if
/// there is a BTH.
pub(super) fn encode(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<bool, Fault> {
    let bth = object.header(&BTH, out)?;
    let set = bth.as_ref().map(|bth| Opcode(out[bth.at]).extended_headers()).unwrap_or_default();
    for header in ExtendedHeader::ALL {
        let layer = extended(*header);
        let wanted = set.contains(*header);
        let written = object.header(layer, out)?.is_some();
        if written && !wanted {
            return Err(object.fault(layer.key, "the opcode has no such header", "leave it out"));
        }
        if wanted && !written && error.is_none() {
            return Err(object.fault(layer.key, "is missing", "the opcode calls for this header"));
        }
    }
    let mut pad = object.hex("pad")?;
    if let Some(Broken(octets)) = error {
        out.extend(octets);
        pad.get_or_insert_default();
    }
    let payload = object.hex("payload")?.unwrap_or_default();
    out.extend_from_slice(&payload);
    if let Some(bth) = bth {
        let pad_count = pad.as_ref().map_or(payload.len().wrapping_neg() % 4, Vec::len);
        bth.fill(out, "padcnt", pad_count)?;
        let pad_count = usize::from(out[bth.at + 1] >> 4 & 0b11);
        out.extend(pad.unwrap_or_else(|| vec![0; pad_count]));
        return Ok(true);
    }
    if let Some(pad) = pad {
        out.extend(pad);
    }
    Ok(false)
}

/// Appends unreadable octets and payload, where no BTH can be.
pub(super) fn encode_rest(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<(), Fault> {
    if let Some(Broken(octets)) = error {
        out.extend(octets);
    }
    out.extend(object.hex("payload")?.unwrap_or_default());
    Ok(())
}
