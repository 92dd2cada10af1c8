//! Rules of Ethernet: what IP and UDP say of themselves, and the frames that govern a link.
//!
//! Sequence numbers, messages and the ICRC of RoCE are judged where those of InfiniBand are.

use super::frame::{Carried, EthernetFrame};
use super::lengths;
use super::{Family, Findings, Rule, Seen, Tally};
use proto::wire::error::{ParseError, Reason};
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Envelope, MacAddress, MacControl, Pause, Pfc};
use proto::wire::infiniband::{Bth, Opcode};
use proto::wire::internet::Udp;
use proto::wire::roce::checks::verify_checksums;
use proto::wire::roce::{Layout, notification};

/// The rules of this file.
pub const RULES: &[Rule] = &[
    HEADERS,
    IP_LENGTH,
    UDP_LENGTH,
    IP_CHECKSUM,
    UDP_CHECKSUM,
    CNP,
    CONTROL_ADDRESS,
    CONTROL_OPCODE,
    CONTROL_LENGTH,
    VECTOR,
    RESERVED,
];

const HEADERS: Rule = Rule {
    id: "ethernet-headers",
    title: "the headers that the frame announces are there, and of a known version",
    source: "IEEE 802.3, 3.1.1; RFC 791, 3.1; RFC 8200, 3; IBTA Vol 1, annexes A16 and A17",
};
const IP_LENGTH: Rule = Rule {
    id: "ip-length",
    title: "the length in an IP header or GRH is within the frame",
    source: "RFC 791, 3.1; RFC 8200, 3; IBTA Vol 1, annex A16",
};
const UDP_LENGTH: Rule =
    Rule { id: "udp-length", title: "the length of UDP is what IP leaves it", source: "RFC 768" };
const IP_CHECKSUM: Rule = Rule {
    id: "ip-checksum",
    title: "the checksum of an IPv4 header holds",
    source: "RFC 791, 3.1",
};
const UDP_CHECKSUM: Rule = Rule {
    id: "udp-checksum",
    title: "the checksum of UDP is 0 or holds",
    source: "RFC 768; IBTA Vol 1, annex A17",
};
const CNP: Rule = Rule {
    id: "cnp",
    title: "a CNP has B, PSN 0, no other flag, and sixteen octets of zeros",
    source: "IBTA Vol 1, annex A17.9.3",
};
const CONTROL_ADDRESS: Rule = Rule {
    id: "mac-control-address",
    title: "MAC control is untagged, to 01-80-C2-00-00-01, from one port",
    source: "IEEE 802.3, 31B.1 and 31D.1",
};
const CONTROL_OPCODE: Rule = Rule {
    id: "mac-control-opcode",
    title: "MAC control is PAUSE or PFC",
    source: "IEEE 802.3, 31A",
};
const CONTROL_LENGTH: Rule = Rule {
    id: "mac-control-length",
    title: "a MAC control frame has 60 octets before its FCS",
    source: "IEEE 802.3, 31.4.1",
};
const VECTOR: Rule = Rule {
    id: "pfc-vector",
    title: "PFC speaks of priorities 0 to 7 alone",
    source: "IEEE 802.3, 31D.2; IEEE 802.1Q, 36.1.3",
};
const RESERVED: Rule = Rule {
    id: "mac-control-reserved",
    title: "what follows the parameters of PAUSE and PFC is zero",
    source: "IEEE 802.3, 31B.2 and 31D.2",
};

/// The family.
pub struct Ethernet;

impl Family for Ethernet {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        let Some(frame) = &seen.ethernet else { return };
        if !seen.is_sound_on_link() {
            return;
        }
        match frame.carried {
            Carried::Roce(layout) => roce(seen, frame, &layout, findings, tally),
            Carried::MacControl => control(seen, frame, findings, tally),
            Carried::Refused(error) => refused(seen, &error, findings, tally),
            // Their own family judges them.
            Carried::Congestion(_) => {}
            Carried::Other => tally.not_checked("Ethernet frames without RoCE", 1),
            Carried::Cut => tally.not_checked("Ethernet frames cut in their headers", 1),
        }
    }
}

/// Whatever is told here was found in a whole frame.
fn refused(seen: &Seen<'_>, error: &ParseError, findings: &mut Findings, tally: &mut Tally) {
    tally.checked("lengths", 1);
    let rule = match (error.layer, error.reason) {
        (Udp::LAYER, Reason::Length { .. }) => &UDP_LENGTH,
        (_, Reason::Length { .. }) => &IP_LENGTH,
        _ => &HEADERS,
    };
    let expected = match error.reason {
        Reason::Length { present, .. } => format!("{present} octets"),
        Reason::Short { needed, .. } => format!("{needed} octets"),
        _ => "what the standard allows".to_owned(),
    };
    findings.report(rule, seen, || error.to_string(), || expected);
}

fn roce(
    seen: &Seen<'_>,
    frame: &EthernetFrame<'_>,
    layout: &Layout,
    findings: &mut Findings,
    tally: &mut Tally,
) {
    tally.checked("lengths", 1);
    if !seen.is_cut()
        && layout.udp_at().is_some()
        && let Err(error) = verify_checksums(frame.octets)
        && let Reason::Check { computed, present } = error.reason
    {
        let rule = if error.layer == Udp::LAYER { &UDP_CHECKSUM } else { &IP_CHECKSUM };
        findings.report(rule, seen, || format!("{present:#06x}"), || format!("{computed:#06x}"));
    }
    let Some(anatomy) = seen.anatomy.filter(|_| seen.is_sound()) else { return };
    lengths::transport(seen, &anatomy, findings, tally);
    let Some(bth) = anatomy.bth.filter(|bth| bth.opcode == Opcode::ROCEV2_CNP) else { return };
    let right = Bth {
        migration_request: bth.migration_request,
        ..notification::bth(bth.destination, bth.partition_key)
    };
    let body = frame.octets.get(layout.bth_at + Bth::LEN..layout.icrc_at()).unwrap_or_default();
    if bth != right || body.iter().any(|octet| *octet != 0) {
        let found = || {
            let marks = (u8::from(bth.becn), u8::from(bth.fecn));
            format!("B {}, F {}, PSN {}, body {body:02x?}", marks.0, marks.1, bth.psn)
        };
        findings.report(&CNP, seen, found, || "B 1, F 0, PSN 0, zeros".to_owned());
    }
}

fn control(seen: &Seen<'_>, frame: &EthernetFrame<'_>, findings: &mut Findings, tally: &mut Tally) {
    tally.checked("MAC control frames", 1);
    if let Ok(envelope) = Envelope::parse(frame.octets) {
        addresses(seen, &envelope, findings);
        if envelope.tag.is_some() {
            return;
        }
    }
    let rest = match MacControl::parse(frame.octets) {
        Ok(MacControl::Pause(_)) => 16 + Pause::LEN,
        Ok(MacControl::Pfc(pfc)) => {
            if pfc.reserved != 0 {
                let found = || format!("high octet {:#04x}", pfc.reserved);
                findings.report(&VECTOR, seen, found, || "0x00".to_owned());
            }
            16 + Pfc::LEN
        }
        Ok(MacControl::Unknown(opcode)) => {
            let expected = || "0x0001 or 0x0101".to_owned();
            return findings.report(&CONTROL_OPCODE, seen, || format!("{opcode:#06x}"), expected);
        }
        Err(error) => {
            let expected = || format!("{LEAST} octets");
            return findings.report(&CONTROL_LENGTH, seen, || error.to_string(), expected);
        }
    };
    if frame.octets.len() != LEAST {
        let found = || format!("{} octets", frame.octets.len());
        findings.report(&CONTROL_LENGTH, seen, found, || format!("{LEAST} octets"));
    }
    if let Some(at) = (rest..frame.octets.len()).find(|at| frame.octets[*at] != 0) {
        let found = || format!("octet {at} is {:#04x}", frame.octets[at]);
        findings.report(&RESERVED, seen, found, || "0x00".to_owned());
    }
}

fn addresses(seen: &Seen<'_>, envelope: &Envelope, findings: &mut Findings) {
    let group = MacAddress::MAC_CONTROL;
    let header = &envelope.header;
    if header.destination != group {
        let found = || format!("to {}", header.destination);
        findings.report(&CONTROL_ADDRESS, seen, found, || group.to_string());
    }
    if header.source.is_group() || header.source.number() == 0 {
        let found = || format!("from {}", header.source);
        findings.report(&CONTROL_ADDRESS, seen, found, || "the address of a port".to_owned());
    }
    if envelope.tag.is_some() {
        let expected = || "no tag".to_owned();
        findings.report(&CONTROL_ADDRESS, seen, || "a VLAN tag".to_owned(), expected);
    }
}

#[cfg(test)]
mod tests;
