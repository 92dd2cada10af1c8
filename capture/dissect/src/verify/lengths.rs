//! Rules of lengths and versions: what a frame states of itself against the octets that are there.

use super::Check;
use super::packet::PacketHeaders;
use super::rule::rules;
use proto::frame::FrameKind;
use proto::wire::infiniband::envelope::{VCRC_LEN, WORD};
use proto::wire::infiniband::opcode::{OpcodeRow, Operation};
use proto::wire::infiniband::{FlowControlPacket, Grh, LinkNextHeader, Lrh, Opcode};
use proto::wire::roce::notification;

rules! {
    SHORT "short" "the headers that the packet announces are there", "IBTA Vol 1, 5.2";
    PKTLEN "pktlen" "PktLen is the words from LRH to ICRC, six at least, five in a raw packet", "IBTA Vol 1, 7.7.8";
    GRH_LENGTH "grh-paylen" "PayLen is the octets from behind the GRH to the ICRC", "IBTA Vol 1, 8.3";
    NEXT_HEADER "grh-nxthdr" "a BTH follows the GRH", "IBTA Vol 1, 8.3";
    VERSION "version" "LVer 0, IPVer 6, TVer 0", "IBTA Vol 1, 7.7, 8.3 and 9.2";
    PADCNT "padcnt" "there is as much payload as PadCnt calls pad", "IBTA Vol 1, 9.2";
    PAYLOAD "payload" "no payload where the opcode has none; 0 or 16 octets in a CNP, 16 in one of RoCEv2",
        "IBTA Vol 1, 9.4, annexes A10 and A17.9.3";
    LINK "link-length" "a link packet has six octets", "IBTA Vol 1, 7.9.4";
}

/// Smallest PktLen of a packet with a BTH, and of a raw one. Source: IBTA Vol 1, C7-43, C7-44.
const PKTLEN_MIN: usize = 6;
const PKTLEN_MIN_RAW: usize = 5;
/// Payloads of a CNP on InfiniBand, octets.
const CNP_BODIES: [usize; 2] = [0, 16];

/// Judges the frames of InfiniBand; those of Ethernet are judged by their own family.
pub(super) fn check(check: &mut Check<'_>) {
    let seen = check.seen;
    match (seen.kind, &seen.headers) {
        (FrameKind::Ethernet, _) => {}
        (FrameKind::InfinibandLink, _) => {
            check.checked("lengths");
            if seen.wire_size != FlowControlPacket::LEN {
                check.breaks(&LINK, format_args!("{} octets", seen.wire_size), "6 octets");
            }
        }
        (FrameKind::Infiniband, Some(headers)) => packet(check, headers),
        (FrameKind::Infiniband, None) if seen.is_cut() => {
            check.not_checked("lengths of frames cut in the LRH");
        }
        (FrameKind::Infiniband, None) => short(check, "LRH"),
    }
}
fn short(check: &mut Check<'_>, what: &str) {
    let found = format_args!("{} octets", check.seen.wire_size);
    check.breaks(&SHORT, found, format_args!("a whole {what}"));
}

fn packet(check: &mut Check<'_>, headers: &PacketHeaders) {
    check.checked("lengths");
    let Some(lrh) = &headers.lrh else { return };
    version(check, "LVer", lrh.version, 0);
    packet_length(check, lrh);
    if lrh.next_header.is_raw() {
        return;
    }
    if lrh.next_header == LinkNextHeader::Global {
        match &headers.grh {
            Some(grh) if grh.next_header != Grh::NEXT_HEADER_BTH => {
                let found = format_args!("NxtHdr {:#04x}", grh.next_header);
                return check.breaks(&NEXT_HEADER, found, "0x1b");
            }
            Some(grh) => global(check, grh),
            None if check.seen.is_cut() => return check.not_checked("GRH and BTH cut in the file"),
            None => return short(check, "GRH"),
        }
    }
    transport(check, headers);
}

/// Checks the packet from the BTH on, on either technology.
pub(super) fn transport(check: &mut Check<'_>, headers: &PacketHeaders) {
    match headers.bth {
        Some(bth) => {
            version(check, "TVer", bth.version, 0);
            match headers.padded {
                None => short(check, "packet of that opcode"),
                Some(padded) => body(check, headers, padded),
            }
        }
        None if check.seen.is_cut() => check.not_checked("BTH cut in the file"),
        None => short(check, "BTH"),
    }
}

fn version(check: &mut Check<'_>, field: &str, found: u8, expected: u8) {
    if found != expected {
        check.breaks(&VERSION, format_args!("{field} {found}"), expected);
    }
}

fn packet_length(check: &mut Check<'_>, lrh: &Lrh) {
    let said = usize::from(lrh.packet_length);
    let least = if lrh.next_header.is_raw() { PKTLEN_MIN_RAW } else { PKTLEN_MIN };
    let covered = check.seen.wire_size.saturating_sub(VCRC_LEN);
    if said * WORD != covered {
        let expected = match covered % WORD {
            0 => format!("{} ({covered} octets there)", covered / WORD),
            _ => format!("whole words, and {covered} octets are there"),
        };
        check.breaks(&PKTLEN, format_args!("PktLen {said} ({} octets)", said * WORD), expected);
    } else if said < least {
        check.breaks(&PKTLEN, format_args!("PktLen {said}"), format_args!("at least {least}"));
    }
}

fn global(check: &mut Check<'_>, grh: &Grh) {
    version(check, "IPVer", grh.version, Grh::VERSION);
    let present = check.seen.wire_size.saturating_sub(Lrh::LEN + Grh::LEN + VCRC_LEN);
    let said = usize::from(grh.payload_length);
    if said != present {
        check.breaks(&GRH_LENGTH, format_args!("PayLen {said}"), present);
    }
}

fn body(check: &mut Check<'_>, headers: &PacketHeaders, padded: usize) {
    let Some(bth) = headers.bth else { return };
    let Some(payload) = headers.payload() else {
        let pad = bth.pad_count;
        let found = format_args!("PadCnt {pad}, {padded} octets of payload and pad");
        return check.breaks(&PADCNT, found, format_args!("at least {pad}"));
    };
    let Some(row) = bth.opcode.row() else { return };
    if !may_carry(bth.opcode, row, payload) {
        let expected = match row.operation {
            Operation::Congestion if bth.opcode == Opcode::ROCEV2_CNP => "16",
            Operation::Congestion => "0 or 16",
            _ => "none",
        };
        check.breaks(&PAYLOAD, format_args!("{payload} octets in {}", row.name), expected);
    }
}

fn may_carry(opcode: Opcode, row: &OpcodeRow, payload: usize) -> bool {
    match row.operation {
        _ if opcode == Opcode::ROCEV2_CNP => payload == notification::BODY_LEN,
        Operation::Congestion => CNP_BODIES.contains(&payload),
        _ => payload == 0 || row.carries_payload(),
    }
}
