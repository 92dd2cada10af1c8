//! Rules of Ethernet: the lengths and checksums of IP and UDP, and the frames of MAC control.
//!
//! The rules of InfiniBand cover sequence numbers, messages and the ICRC of RoCE.

use super::Check;
use super::frame::{Carried, EthernetFrame};
use super::lengths;
use super::rule::rules;
use proto::wire::error::{ParseError, Reason};
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Envelope, MacAddress, MacControl, Pause, Pfc};
use proto::wire::infiniband::{Bth, Opcode};
use proto::wire::internet::Udp;
use proto::wire::roce::checks::verify_checksums;
use proto::wire::roce::{Layout, notification};

rules! {
    HEADERS "ethernet-headers" "the headers that the frame announces are there, and of a known version",
        "IEEE 802.3, 3.1.1; RFC 791, 3.1; RFC 8200, 3; IBTA Vol 1, annexes A16 and A17";
    IP_LENGTH "ip-length" "the length in an IP header or GRH is within the frame",
        "RFC 791, 3.1; RFC 8200, 3; IBTA Vol 1, annex A16";
    UDP_LENGTH "udp-length" "the length of UDP is what IP leaves it", "RFC 768";
    IP_CHECKSUM "ip-checksum" "the checksum of an IPv4 header holds", "RFC 791, 3.1";
    UDP_CHECKSUM "udp-checksum" "the checksum of UDP is 0 or holds", "RFC 768; IBTA Vol 1, annex A17";
    CNP "cnp" "a CNP has B, PSN 0, no other flag, and sixteen octets of zeros", "IBTA Vol 1, annex A17.9.3";
    CONTROL_ADDRESS "mac-control-address" "MAC control is untagged, to 01-80-C2-00-00-01, from one port",
        "IEEE 802.3, 31B.1 and 31D.1";
    CONTROL_OPCODE "mac-control-opcode" "MAC control is PAUSE or PFC", "IEEE 802.3, 31A";
    CONTROL_LENGTH "mac-control-length" "a MAC control frame has 60 octets before its FCS", "IEEE 802.3, 31.4.1";
    VECTOR "pfc-vector" "PFC speaks of priorities 0 to 7 alone", "IEEE 802.3, 31D.2; IEEE 802.1Q, 36.1.3";
    RESERVED "mac-control-reserved" "what follows the parameters of PAUSE and PFC is zero",
        "IEEE 802.3, 31B.2 and 31D.2";
}

/// Judges the frames of Ethernet.
pub(super) fn check(check: &mut Check<'_>) {
    let Some(frame) = &check.seen.ethernet else { return };
    if !check.seen.is_sound_on_link() {
        return;
    }
    match frame.carried {
        Carried::Roce(layout) => roce(check, frame, &layout),
        Carried::MacControl => control(check, frame),
        Carried::Refused(error) => refused(check, &error),
        // The family of notifications judges them.
        Carried::Congestion(_) => {}
        Carried::Other => check.not_checked("Ethernet frames without RoCE"),
        Carried::Cut => check.not_checked("Ethernet frames cut in their headers"),
    }
}
/// Reports why a whole frame could not be parsed.
fn refused(check: &mut Check<'_>, error: &ParseError) {
    check.checked("lengths");
    let rule = match (error.layer, error.reason) {
        (Udp::LAYER, Reason::Length { .. }) => &UDP_LENGTH,
        (_, Reason::Length { .. }) => &IP_LENGTH,
        _ => &HEADERS,
    };
    let expected = match error.reason {
        Reason::Length { present: octets, .. } | Reason::Short { needed: octets, .. } => {
            format!("{octets} octets")
        }
        _ => "what the standard allows".to_owned(),
    };
    check.breaks(rule, error, expected);
}

fn roce(check: &mut Check<'_>, frame: &EthernetFrame<'_>, layout: &Layout) {
    let seen = check.seen;
    check.checked("lengths");
    if !seen.is_cut()
        && layout.udp_at().is_some()
        && let Err(error) = verify_checksums(frame.octets)
        && let Reason::Check { computed, present } = error.reason
    {
        let rule = if error.layer == Udp::LAYER { &UDP_CHECKSUM } else { &IP_CHECKSUM };
        check.breaks(rule, format_args!("{present:#06x}"), format_args!("{computed:#06x}"));
    }
    let Some(headers) = seen.headers.filter(|_| seen.is_sound()) else { return };
    lengths::transport(check, &headers);
    let Some(bth) = headers.bth.filter(|bth| bth.opcode == Opcode::ROCEV2_CNP) else { return };
    let right = Bth {
        migration_request: bth.migration_request,
        ..notification::bth(bth.destination, bth.partition_key)
    };
    let body = frame.octets.get(layout.bth_at + Bth::LEN..layout.icrc_at()).unwrap_or_default();
    if bth != right || body.iter().any(|octet| *octet != 0) {
        let (b, f) = (u8::from(bth.becn), u8::from(bth.fecn));
        let found = format_args!("B {b}, F {f}, PSN {}, body {body:02x?}", bth.psn);
        check.breaks(&CNP, found, "B 1, F 0, PSN 0, zeros");
    }
}

fn control(check: &mut Check<'_>, frame: &EthernetFrame<'_>) {
    check.checked("MAC control frames");
    if let Ok(envelope) = Envelope::parse(frame.octets) {
        addresses(check, &envelope);
        if envelope.tag.is_some() {
            return;
        }
    }
    let least = format_args!("{LEAST} octets");
    let rest = match MacControl::parse(frame.octets) {
        Ok(MacControl::Pause(_)) => 16 + Pause::LEN,
        Ok(MacControl::Pfc(pfc)) => {
            if pfc.reserved != 0 {
                check.breaks(&VECTOR, format_args!("high octet {:#04x}", pfc.reserved), "0x00");
            }
            16 + Pfc::LEN
        }
        Ok(MacControl::Unknown(opcode)) => {
            let found = format_args!("{opcode:#06x}");
            return check.breaks(&CONTROL_OPCODE, found, "0x0001 or 0x0101");
        }
        Err(error) => return check.breaks(&CONTROL_LENGTH, error, least),
    };
    if frame.octets.len() != LEAST {
        check.breaks(&CONTROL_LENGTH, format_args!("{} octets", frame.octets.len()), least);
    }
    if let Some(at) = (rest..frame.octets.len()).find(|at| frame.octets[*at] != 0) {
        check.breaks(&RESERVED, format_args!("octet {at} is {:#04x}", frame.octets[at]), "0x00");
    }
}

fn addresses(check: &mut Check<'_>, envelope: &Envelope) {
    let group = MacAddress::MAC_CONTROL;
    let header = &envelope.header;
    if header.destination != group {
        check.breaks(&CONTROL_ADDRESS, format_args!("to {}", header.destination), group);
    }
    if header.source.is_group() || header.source.number() == 0 {
        let found = format_args!("from {}", header.source);
        check.breaks(&CONTROL_ADDRESS, found, "the address of a port");
    }
    if envelope.tag.is_some() {
        check.breaks(&CONTROL_ADDRESS, "a VLAN tag", "no tag");
    }
}

#[cfg(test)]
mod tests;
