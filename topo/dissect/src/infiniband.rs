//! InfiniBand packets, LRH to VCRC, and link packets.
//!
//! CRCs are looked for at the end of the octets, where a port finds them, and not where PktLen says:
//! damage to a length is then told as such, beside CRCs that do not hold. Which ICRC a packet owes
//! follows from LNH alone.

use super::layer::layer;
use super::object::{Fault, Object};
use super::sink::{Check, Sink};
use super::{Broken, Rules, encode_check, encode_error, judge, tell, too_short, transport};
use proto::wire::infiniband::{FlowControlPacket, Grh, LinkNextHeader, Lrh, crc};

layer! {
    /// Local Route Header.
    LRH "lrh" "LRH" 8 {
        "vl" 4 Number Or(0);
        "lver" 4 Number Or(0);
        "sl" 4 Number Or(0);
        "reserved2" 2 Number Or(0);
        "lnh" 2 Number Computed;
        "dlid" 16 Number Required;
        "reserved5" 5 Number Or(0);
        "pktlen" 11 Number Computed;
        "slid" 16 Number Required;
    }
}

layer! {
    /// Global Route Header, of RoCEv1 too.
    GRH "grh" "GRH" 40 {
        "ipver" 4 Number Or(6);
        "tclass" 8 Number Or(0);
        "flowlabel" 20 Number Or(0);
        "paylen" 16 Number Computed;
        "nxthdr" 8 Number Or(0x1b);
        "hoplmt" 8 Number Or(64);
        "sgid" 128 Ipv6 Required;
        "dgid" 128 Ipv6 Required;
    }
}

layer! {
    /// Flow control packet, without its LPCRC.
    FLOW_CONTROL "flow_control" "flow control" 4 named flow_control_op; {
        "op" 4 Number Or(0);
        "fctbs" 12 Number Required;
        "vl" 4 Number Required;
        "fccl" 12 Number Required;
    }
}

fn flow_control_op(op: u64) -> Option<&'static str> {
    ["normal", "init"].get(usize::try_from(op).ok()?).copied()
}

/// Octets of the CRCs at the end of a packet.
pub const ICRC: usize = 4;
const VCRC: usize = 2;
const LPCRC_AT: usize = 4;

/// Walks over a packet; true if an error was told.
pub(super) fn decode(sink: &mut impl Sink, all: &[u8], rules: Rules) -> bool {
    let (present, missing) = (all.len(), rules.missing);
    if present + missing == FlowControlPacket::LEN {
        return decode_flow_control(sink, all, rules);
    }
    if present < Lrh::LEN {
        return too_short(sink, &LRH, all, 0..present, rules);
    }
    tell(sink, &LRH, all);
    let next = LinkNextHeader::from_bits(all[1]);
    judge_lrh(sink, all, present + missing);
    let room = if missing > 0 { 0 } else { present - Lrh::LEN };
    let vcrc = if room >= VCRC { VCRC } else { 0 };
    let icrc = if room >= ICRC + VCRC && !next.is_raw() { ICRC } else { 0 };
    let end = present - icrc - vcrc;
    let without_crcs = missing == 0 && (vcrc == 0 || icrc == 0 && !next.is_raw());
    let broken = if without_crcs {
        let reason = format_args!("the CRCs do not fit into {room} octets");
        sink.error("CRCs", Lrh::LEN, reason, &all[Lrh::LEN..end]);
        sink.wrong(format_args!("too short: after the LRH only {room} octets are left"));
        true
    } else if next.is_raw() {
        sink.octets("payload", &all[Lrh::LEN..end]);
        false
    } else if next == LinkNextHeader::Global {
        decode_global(sink, all, Lrh::LEN, end, rules)
    } else {
        transport::decode(sink, all, Lrh::LEN, end, rules)
    };
    if icrc > 0 {
        let expected = crc::icrc_by_link_header(all).unwrap_or_default();
        sink.check(Check::of_32("icrc", &all[end..end + ICRC], expected));
    }
    if vcrc > 0 {
        let check = Check::of_16("vcrc", &all[present - VCRC..], crc::vcrc(all));
        sink.check(check);
        if !check.holds() && reads_like_ethernet(all) {
            sink.wrong(format_args!("it reads like an Ethernet frame: --link ethernet"));
        }
        if !check.holds() && reads_like_internet(all) {
            sink.wrong(format_args!(
                "it reads like an IP packet without its Ethernet header: tcpdump -xx prints both"
            ));
        }
    }
    broken
}

fn decode_flow_control(sink: &mut impl Sink, all: &[u8], rules: Rules) -> bool {
    if all.len() < FLOW_CONTROL.octets {
        return too_short(sink, &FLOW_CONTROL, all, 0..all.len(), rules);
    }
    sink.header(&FLOW_CONTROL, all);
    let (op, lane) = (all[0] >> 4, all[2] >> 4);
    if op > 1 {
        sink.wrong(format_args!("flow_control.op is {op}, should be 0 (normal) or 1 (init)"));
    }
    if lane == 15 {
        sink.wrong(format_args!("flow_control.vl is 15, which has no credits: 0 to 14 have"));
    }
    if rules.missing == 0 {
        sink.check(Check::of_16("lpcrc", &all[LPCRC_AT..], crc::lpcrc(all)));
        return false;
    }
    let reason = format_args!("{} octets are missing", rules.missing);
    sink.error("LPCRC", LPCRC_AT, reason, &all[LPCRC_AT..]);
    true
}

/// A GRH at `at` and what follows it up to the ICRC at `end`; true if an error was told.
pub(super) fn decode_global(
    sink: &mut impl Sink,
    all: &[u8],
    at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    if end - at < Grh::LEN {
        return too_short(sink, &GRH, all, at..end, rules);
    }
    let octets = &all[at..];
    tell(sink, &GRH, octets);
    judge(sink, "grh.ipver", usize::from(octets[0] >> 4), usize::from(Grh::VERSION));
    if octets[6] != Grh::NEXT_HEADER_BTH {
        sink.wrong(format_args!("grh.nxthdr is {}, a BTH is 27", octets[6]));
    }
    if rules.missing == 0 {
        let said = GRH.get(octets, "paylen") as usize;
        judge(sink, "grh.paylen", said, end + ICRC - at - Grh::LEN);
    }
    transport::decode(sink, all, at + Grh::LEN, end, rules)
}

/// An EtherType stands where one would; in a packet those are bits that are zero as a rule.
pub(super) fn reads_like_ethernet(all: &[u8]) -> bool {
    use proto::wire::ethernet::ethertype::*;
    let Some(octets) = all.get(12..14) else { return false };
    let known = [IPV4, IPV6, VLAN, MAC_CONTROL, CNM, CN_TAG, ROCE_V1, CABLE_SHIM, PROJECT];
    known.iter().any(|kind| kind.to_be_bytes() == *octets)
}

/// It begins like IPv4 or IPv6 of that length.
fn reads_like_internet(all: &[u8]) -> bool {
    let word = |at: usize| usize::from(u16::from_be_bytes([all[at], all[at + 1]]));
    match all[0] >> 4 {
        4 => all[0] == 0x45 && word(2) == all.len(),
        6 => word(4) + 40 == all.len(),
        _ => false,
    }
}

/// The length or the VCRC fits.
pub(super) fn reads_like_packet(all: &[u8]) -> bool {
    let Some((before, vcrc)) = all.split_last_chunk::<VCRC>() else { return false };
    let fits = |lrh: Lrh| usize::from(lrh.packet_length) * 4 == before.len();
    Lrh::parse(all).is_ok_and(fits) || crc::vcrc(all).to_le_bytes() == *vcrc
}

fn judge_lrh(sink: &mut impl Sink, all: &[u8], length: usize) {
    judge(sink, "lrh.lver", usize::from(all[0] & 0xf), 0);
    let words = usize::from(u16::from_be_bytes([all[4], all[5]]) & Lrh::PACKET_LENGTH_MAX);
    let said = words * 4 + VCRC;
    if said > length {
        let short = said - length;
        sink.wrong(format_args!(
            "lrh.pktlen {words} says {said} octets with the VCRC, {length} are there: {short} missing"
        ));
    } else if said < length {
        let more = length - said;
        sink.wrong(format_args!(
            "lrh.pktlen {words} says {said} octets with the VCRC, {length} are there: {more} too many"
        ));
    }
}

/// Appends a packet or a link packet.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    let error = encode_error(object)?;
    let broken = error.is_some();
    if object.header(&FLOW_CONTROL, out)?.is_some() {
        let lpcrc = |packet: &[u8]| u32::from(crc::lpcrc(&packet[start..]));
        out.extend(error.map_or(Vec::new(), |Broken(octets)| octets));
        return encode_check(object, "lpcrc", 2, broken, out, lpcrc);
    }
    let lrh = object.header(&LRH, out)?;
    let grh = object.header(&GRH, out)?;
    let has_bth = transport::encode(object, out, error)?;
    let Some(lrh) = lrh else {
        // Octets too few for an LRH, or wrapped ones of a kind that nobody knows.
        let is_bare = broken || grh.is_none() && !has_bth && out.len() > start;
        return if is_bare { Ok(()) } else { Err(without_a_beginning(object)) };
    };
    lrh.fill(out, "lnh", if grh.is_some() { 3 } else { 2 * usize::from(has_bth) })?;
    let is_raw = LinkNextHeader::from_bits(out[start + 1]).is_raw();
    let icrc = if is_raw { 0 } else { ICRC };
    let end = out.len() + icrc;
    if let Some(grh) = grh {
        grh.fill(out, "paylen", end - grh.at - Grh::LEN)?;
    }
    lrh.fill(out, "pktlen", (end - start).div_ceil(4))?;
    let with_room =
        |octets: &[u8], room: usize| [&octets[start..], &[0; ICRC + VCRC][..room]].concat();
    if !is_raw || object.has("icrc") {
        encode_check(object, "icrc", ICRC, broken, out, |octets| {
            crc::icrc_by_link_header(&with_room(octets, ICRC + VCRC)).unwrap_or_default()
        })?;
    }
    encode_check(object, "vcrc", VCRC, broken, out, |octets| {
        u32::from(crc::vcrc(&with_room(octets, VCRC)))
    })
}

fn without_a_beginning(object: &Object) -> Fault {
    let hint = "\"lrh\" begins a packet, \"flow_control\" a link packet, \"ethernet\" a frame";
    object.fault("lrh", "is missing", hint)
}
