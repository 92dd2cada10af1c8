//! InfiniBand packets, LRH to VCRC, and link packets.
//!
//! CRCs are looked for at the end of the octets, where a port finds them, and not where PktLen says:
//! damage to a length is then told as such, beside CRCs that do not hold. Which ICRC a packet owes
//! follows from LNH alone.

use super::layer::layer;
use super::object::{Fault, Object};
use super::sink::{Check, Sink};
use super::{Rules, encode_check, encode_error, transport};
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
    let missing = rules.missing;
    if all.len() == FlowControlPacket::LEN && missing == 0 {
        sink.header(&FLOW_CONTROL, all);
        sink.check(Check::of_16("lpcrc", &all[LPCRC_AT..], crc::lpcrc(all)));
        if all[0] >> 4 > 1 {
            sink.wrong(format_args!(
                "flow control op {} is reserved, 0 and 1 are not",
                all[0] >> 4
            ));
        }
        return false;
    }
    let present = all.len();
    if present < Lrh::LEN {
        let reason = format_args!("needs {} octets, {present} are there", Lrh::LEN);
        sink.error("LRH", 0, reason, all);
        sink.wrong(format_args!("too short: {present} octets, an LRH alone has {}", Lrh::LEN));
        return true;
    }
    sink.header(&LRH, all);
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
    }
    broken
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
        let (present, needed) = (end - at, Grh::LEN);
        sink.error(
            "GRH",
            at,
            format_args!("needs {needed} octets, {present} are left"),
            &all[at..end],
        );
        sink.wrong(format_args!("too short for its GRH: {} octets are missing", needed - present));
        return true;
    }
    let octets = &all[at..];
    sink.header(&GRH, octets);
    let version = octets[0] >> 4;
    if version != Grh::VERSION {
        sink.wrong(format_args!("grh.ipver is {version}, should be {}", Grh::VERSION));
    }
    if octets[6] != Grh::NEXT_HEADER_BTH {
        sink.wrong(format_args!("grh.nxthdr is {}, a BTH is 27", octets[6]));
    }
    let said = GRH.get(octets, "paylen") as usize;
    let present = end + ICRC - at - Grh::LEN;
    if said != present && rules.missing == 0 {
        sink.wrong(format_args!("grh.paylen is {said}, should be {present}"));
    }
    transport::decode(sink, all, at + Grh::LEN, end, rules)
}

/// An EtherType stands where one would; in a packet those are bits that are zero as a rule.
fn reads_like_ethernet(all: &[u8]) -> bool {
    use proto::wire::ethernet::ethertype::*;
    let Some(octets) = all.get(12..14) else { return false };
    let known = [IPV4, IPV6, VLAN, MAC_CONTROL, CNM, CN_TAG, ROCE_V1, CABLE_SHIM];
    known.iter().any(|kind| kind.to_be_bytes() == *octets)
}

fn judge_lrh(sink: &mut impl Sink, all: &[u8], length: usize) {
    if all[0] & 0xf != 0 {
        sink.wrong(format_args!("lrh.lver is {}, should be 0", all[0] & 0xf));
    }
    if all[1] >> 2 & 0b11 != 0 {
        sink.wrong(format_args!("lrh.reserved2 is {}, should be 0", all[1] >> 2 & 0b11));
    }
    if all[4] >> 3 != 0 {
        sink.wrong(format_args!("lrh.reserved5 is {}, should be 0", all[4] >> 3));
    }
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
