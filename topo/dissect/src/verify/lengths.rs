//! Rules of lengths and versions: what a frame says of itself against the octets that are there.

use super::anatomy::Anatomy;
use super::{Family, Findings, Rule, Seen, Tally};
use proto::frame::FrameKind;
use proto::wire::infiniband::envelope::{VCRC_LEN, WORD};
use proto::wire::infiniband::opcode::{OpcodeRow, Operation};
use proto::wire::infiniband::{FlowControlPacket, Grh, LinkNextHeader, Lrh, Opcode};
use proto::wire::roce::notification;

/// The rules of this file.
pub const RULES: &[Rule] =
    &[SHORT, PKTLEN, GRH_LENGTH, NEXT_HEADER, VERSION, PADCNT, PAYLOAD, LINK];

const SHORT: Rule = Rule {
    id: "short",
    title: "the headers that the packet announces are there",
    source: "IBTA Vol 1, 5.2",
};
const PKTLEN: Rule = Rule {
    id: "pktlen",
    title: "PktLen is the words from LRH to ICRC, six at least, five in a raw packet",
    source: "IBTA Vol 1, 7.7.8",
};
const GRH_LENGTH: Rule = Rule {
    id: "grh-paylen",
    title: "PayLen is the octets from behind the GRH to the ICRC",
    source: "IBTA Vol 1, 8.3",
};
const NEXT_HEADER: Rule =
    Rule { id: "grh-nxthdr", title: "a BTH follows the GRH", source: "IBTA Vol 1, 8.3" };
const VERSION: Rule = Rule {
    id: "version",
    title: "LVer 0, IPVer 6, TVer 0",
    source: "IBTA Vol 1, 7.7, 8.3 and 9.2",
};
const PADCNT: Rule = Rule {
    id: "padcnt",
    title: "there is as much payload as PadCnt calls pad",
    source: "IBTA Vol 1, 9.2",
};
const PAYLOAD: Rule = Rule {
    id: "payload",
    title: "no payload where the opcode has none; 0 or 16 octets in a CNP, 16 in one of RoCEv2",
    source: "IBTA Vol 1, 9.4, annexes A10 and A17.9.3",
};
const LINK: Rule =
    Rule { id: "link-length", title: "a link packet has six octets", source: "IBTA Vol 1, 7.9.4" };

/// Smallest PktLen of a packet with a BTH, and of a raw one. Source: IBTA Vol 1, C7-43, C7-44.
const PKTLEN_MIN: usize = 6;
const PKTLEN_MIN_RAW: usize = 5;
/// A payload up to a whole MTU, not a CNP's.
const CNP_BODIES: [usize; 2] = [0, 16];

/// The family.
pub struct Lengths;

impl Family for Lengths {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        match seen.kind {
            FrameKind::Ethernet => {}
            FrameKind::InfinibandLink => {
                tally.checked("lengths", 1);
                if seen.wire_size != FlowControlPacket::LEN {
                    let found = || format!("{} octets", seen.wire_size);
                    findings.report(&LINK, seen, found, || "6 octets".to_owned());
                }
            }
            FrameKind::Infiniband => match &seen.anatomy {
                Some(anatomy) => packet(seen, anatomy, findings, tally),
                None if seen.is_cut() => tally.not_checked("lengths of frames cut in the LRH", 1),
                None => short(seen, "LRH", findings),
            },
        }
    }
}

fn short(seen: &Seen<'_>, what: &str, findings: &mut Findings) {
    let found = || format!("{} octets", seen.wire_size);
    findings.report(&SHORT, seen, found, || format!("a whole {what}"));
}

fn packet(seen: &Seen<'_>, anatomy: &Anatomy, findings: &mut Findings, tally: &mut Tally) {
    tally.checked("lengths", 1);
    let Some(lrh) = &anatomy.lrh else { return };
    if lrh.version != 0 {
        version(seen, "LVer", lrh.version, 0, findings);
    }
    packet_length(seen, lrh, findings);
    if lrh.next_header.is_raw() {
        return;
    }
    if lrh.next_header == LinkNextHeader::Global {
        match &anatomy.grh {
            Some(grh) if grh.next_header != Grh::NEXT_HEADER_BTH => {
                let found = || format!("NxtHdr {:#04x}", grh.next_header);
                return findings.report(&NEXT_HEADER, seen, found, || "0x1b".to_owned());
            }
            Some(grh) => global(seen, grh, findings),
            None if seen.is_cut() => return tally.not_checked("GRH and BTH cut in the file", 1),
            None => return short(seen, "GRH", findings),
        }
    }
    transport(seen, anatomy, findings, tally);
}

/// From the BTH on, whatever carries it.
pub(super) fn transport(
    seen: &Seen<'_>,
    anatomy: &Anatomy,
    findings: &mut Findings,
    tally: &mut Tally,
) {
    match anatomy.bth {
        Some(bth) => {
            if bth.version != 0 {
                version(seen, "TVer", bth.version, 0, findings);
            }
            match anatomy.padded {
                None => short(seen, "packet of that opcode", findings),
                Some(padded) => body(seen, anatomy, padded, findings),
            }
        }
        None if seen.is_cut() => tally.not_checked("BTH cut in the file", 1),
        None => short(seen, "BTH", findings),
    }
}

fn version(seen: &Seen<'_>, field: &str, found: u8, expected: u8, findings: &mut Findings) {
    findings.report(&VERSION, seen, || format!("{field} {found}"), || expected.to_string());
}

fn packet_length(seen: &Seen<'_>, lrh: &Lrh, findings: &mut Findings) {
    let said = usize::from(lrh.packet_length);
    let least = if lrh.next_header.is_raw() { PKTLEN_MIN_RAW } else { PKTLEN_MIN };
    let covered = seen.wire_size.saturating_sub(VCRC_LEN);
    if said * WORD != covered {
        let found = || format!("PktLen {said} ({} octets)", said * WORD);
        let expected = || match covered % WORD {
            0 => format!("{} ({covered} octets there)", covered / WORD),
            _ => format!("whole words, and {covered} octets are there"),
        };
        findings.report(&PKTLEN, seen, found, expected);
    } else if said < least {
        let expected = || format!("at least {least}");
        findings.report(&PKTLEN, seen, || format!("PktLen {said}"), expected);
    }
}

fn global(seen: &Seen<'_>, grh: &Grh, findings: &mut Findings) {
    if grh.version != Grh::VERSION {
        version(seen, "IPVer", grh.version, Grh::VERSION, findings);
    }
    let present = seen.wire_size.saturating_sub(Lrh::LEN + Grh::LEN + VCRC_LEN);
    let said = usize::from(grh.payload_length);
    if said != present {
        let found = || format!("PayLen {said}");
        findings.report(&GRH_LENGTH, seen, found, || format!("{present}"));
    }
}

fn body(seen: &Seen<'_>, anatomy: &Anatomy, padded: usize, findings: &mut Findings) {
    let Some(bth) = anatomy.bth else { return };
    let Some(payload) = anatomy.payload() else {
        let found = || format!("PadCnt {}, {padded} octets of payload and pad", bth.pad_count);
        return findings.report(&PADCNT, seen, found, || format!("at least {}", bth.pad_count));
    };
    let Some(row) = bth.opcode.row() else { return };
    if !may_carry(bth.opcode, row, payload) {
        let found = || format!("{payload} octets in {}", row.name);
        let expected = || match row.operation {
            Operation::Congestion if bth.opcode == Opcode::ROCEV2_CNP => "16".to_owned(),
            Operation::Congestion => "0 or 16".to_owned(),
            _ => "none".to_owned(),
        };
        findings.report(&PAYLOAD, seen, found, expected);
    }
}

fn may_carry(opcode: Opcode, row: &OpcodeRow, payload: usize) -> bool {
    match row.operation {
        _ if opcode == Opcode::ROCEV2_CNP => payload == notification::BODY_LEN,
        Operation::Congestion => CNP_BODIES.contains(&payload),
        _ => payload == 0 || row.carries_payload(),
    }
}
