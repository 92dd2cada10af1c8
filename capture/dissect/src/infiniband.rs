//! InfiniBand packets, LRH to VCRC, and link packets.
//!
//! CRCs are looked for at the end of the octets, as a port does, not where PktLen says. A damaged length is thus
//! reported as such, beside CRCs that do not hold. LNH alone decides which ICRC a packet has.

use super::headers::{FLOW_CONTROL, GRH, LRH};
use super::object::{Fault, Object};
use super::part::Part;
use super::sink::{Check, Sink, wrong};
use super::transport;
use proto::wire::infiniband::{FlowControlPacket, Grh, LinkNextHeader, Lrh, crc};

/// Length of the ICRC, octets.
pub(super) const ICRC: usize = 4;
const VCRC: usize = 2;
const LPCRC_AT: usize = 4;

/// Dissects a packet; true if an error was reported.
pub(super) fn decode(sink: &mut dyn Sink, part: Part<'_>) -> bool {
    let (all, missing) = (part.frame, part.missing);
    let present = all.len();
    if present + missing == FlowControlPacket::LEN {
        return decode_flow_control(sink, part);
    }
    let Some(rest) = part.header(sink, &LRH) else { return true };
    let next = LinkNextHeader::from_bits(all[1]);
    judge_lrh(sink, all, present + missing);
    let room = if missing > 0 { 0 } else { rest.len() };
    let vcrc = if room >= VCRC { VCRC } else { 0 };
    let icrc = if room >= ICRC + VCRC && !next.is_raw() { ICRC } else { 0 };
    let end = present - icrc - vcrc;
    let body = rest.up_to(end);
    let broken = if missing == 0 && (vcrc == 0 || icrc == 0 && !next.is_raw()) {
        let reason = format_args!("the CRCs do not fit into {room} octets");
        sink.error("CRCs", Lrh::LEN, reason, body.octets());
        wrong!(sink, "too short: after the LRH only {room} octets are left");
        true
    } else if next.is_raw() {
        sink.octets("payload", body.octets());
        false
    } else if next == LinkNextHeader::Global {
        decode_global(sink, body)
    } else {
        transport::decode(sink, body)
    };
    if icrc > 0 {
        let expected = crc::icrc_by_link_header(all).unwrap_or_default();
        sink.check(Check::new("icrc", &all[end..end + ICRC], expected));
    }
    if vcrc > 0 {
        let check = Check::new("vcrc", &all[present - VCRC..], crc::vcrc(all));
        sink.check(check);
        if !check.holds() && reads_like_ethernet(all) {
            wrong!(sink, "it reads like an Ethernet frame: --link ethernet");
        }
        if !check.holds() && reads_like_internet(all) {
            wrong!(
                sink,
                "it reads like an IP packet without its Ethernet header: tcpdump -xx prints both"
            );
        }
    }
    broken
}

fn decode_flow_control(sink: &mut dyn Sink, part: Part<'_>) -> bool {
    let Some(rest) = part.header(sink, &FLOW_CONTROL) else { return true };
    let all = part.frame;
    let (op, lane) = (all[0] >> 4, all[2] >> 4);
    if op > 1 {
        wrong!(sink, "flow_control.op is {op}, should be 0 (normal) or 1 (init)");
    }
    if lane == 15 {
        wrong!(sink, "flow_control.vl is 15, which has no credits: 0 to 14 have");
    }
    if part.is_whole() {
        sink.check(Check::new("lpcrc", rest.octets(), crc::lpcrc(all)));
        return false;
    }
    let reason = format_args!("{} octets are missing", part.missing);
    sink.error("LPCRC", LPCRC_AT, reason, rest.octets());
    true
}

/// Dissects a GRH and what follows it up to the ICRC; true if an error was reported.
pub(super) fn decode_global(sink: &mut dyn Sink, part: Part<'_>) -> bool {
    let Some(rest) = part.header(sink, &GRH) else { return true };
    let octets = part.octets();
    sink.judge(&"grh.ipver", usize::from(octets[0] >> 4), usize::from(Grh::VERSION));
    if octets[6] != Grh::NEXT_HEADER_BTH {
        wrong!(sink, "grh.nxthdr is {}, a BTH is 27", octets[6]);
    }
    if part.is_whole() {
        sink.judge(&"grh.paylen", GRH.get(octets, "paylen") as usize, rest.len() + ICRC);
    }
    transport::decode(sink, rest)
}

/// True if a known EtherType is where a frame would have one; a packet has reserved bits and the BTH's flags there.
pub(super) fn reads_like_ethernet(all: &[u8]) -> bool {
    use proto::wire::ethernet::ethertype::*;
    let Some(octets) = all.get(12..14) else { return false };
    let known = [IPV4, IPV6, VLAN, MAC_CONTROL, CNM, CN_TAG, ROCE_V1, CABLE_SHIM, PROJECT];
    known.iter().any(|kind| kind.to_be_bytes() == *octets)
}

/// True if it begins like an IPv4 or IPv6 packet of exactly this length.
fn reads_like_internet(all: &[u8]) -> bool {
    let word = |at: usize| usize::from(u16::from_be_bytes([all[at], all[at + 1]]));
    match all[0] >> 4 {
        4 => all[0] == 0x45 && word(2) == all.len(),
        6 => word(4) + 40 == all.len(),
        _ => false,
    }
}

/// True if the length or the VCRC fits.
pub(super) fn reads_like_packet(all: &[u8]) -> bool {
    let Some((before, vcrc)) = all.split_last_chunk::<VCRC>() else { return false };
    let fits = |lrh: Lrh| usize::from(lrh.packet_length) * 4 == before.len();
    Lrh::parse(all).is_ok_and(fits) || crc::vcrc(all).to_le_bytes() == *vcrc
}

fn judge_lrh(sink: &mut dyn Sink, all: &[u8], length: usize) {
    sink.judge(&"lrh.lver", usize::from(all[0] & 0xf), 0);
    let words = LRH.get(all, "pktlen") as usize;
    let said = words * 4 + VCRC;
    if said != length {
        let (off, how) =
            (said.abs_diff(length), if said > length { "missing" } else { "too many" });
        wrong!(
            sink,
            "lrh.pktlen {words} says {said} octets with the VCRC, {length} are there: {off} {how}"
        );
    }
}

/// Appends a packet or a link packet.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    if object.header(&FLOW_CONTROL, out)?.is_some() {
        let lpcrc = |packet: &[u8]| u32::from(crc::lpcrc(&packet[start..]));
        object.append_unread(out);
        return object.check("lpcrc", 2, out, lpcrc);
    }
    let lrh = object.header(&LRH, out)?;
    let grh = object.header(&GRH, out)?;
    let has_bth = transport::encode(object, out)?;
    let Some(lrh) = lrh else {
        // Too few octets for an LRH, or a wrapped frame of an unknown kind.
        let is_bare = object.is_broken || grh.is_none() && !has_bth && out.len() > start;
        let hint = "\"lrh\" begins a packet, \"flow_control\" a link packet, \"ethernet\" a frame";
        return if is_bare { Ok(()) } else { Err(object.fault("lrh", "is missing", hint)) };
    };
    lrh.fill(out, "lnh", if grh.is_some() { 3 } else { 2 * usize::from(has_bth) })?;
    let is_raw = LinkNextHeader::from_bits(out[start + 1]).is_raw();
    let end = out.len() + if is_raw { 0 } else { ICRC };
    if let Some(grh) = grh {
        grh.fill(out, "paylen", end - grh.at - Grh::LEN)?;
    }
    lrh.fill(out, "pktlen", (end - start).div_ceil(4))?;
    let with_room =
        |octets: &[u8], room: usize| [&octets[start..], &[0; ICRC + VCRC][..room]].concat();
    if !is_raw || object.has("icrc") {
        object.check("icrc", ICRC, out, |octets| {
            crc::icrc_by_link_header(&with_room(octets, ICRC + VCRC)).unwrap_or_default()
        })?;
    }
    object.check("vcrc", VCRC, out, |octets| crc::vcrc(&with_room(octets, VCRC)).into())
}
