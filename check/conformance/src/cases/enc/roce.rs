//! ENC-03, ENC-04, ENC-06 and the Ethernet half of ENC-05: what the ICRC of RoCE is, and the CNP.

use crate::prelude::*;
use crate::samples::{blind_bits, crc32, hex, networks, octet, roce_builder, roce_octets};
use proto::ids::Dscp;
use proto::wire::infiniband::{Bth, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::checks::{icrc, verify_checksums, verify_icrc};
use proto::wire::roce::{Layout, NetworkHeaders, Packet, PacketBuilder, notification};
use std::ops::Range;

/// A CNP of a ConnectX-4 Lx, up to the ICRC. Source: scapy, test/contrib/roce.uts.
const CAPTURED: [u8; 54] = [
    0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08,
    0x00, // Ethernet
    0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, // IPv4
    0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, //
    0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, // UDP
    0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, // BTH
];
const CAPTURED_ICRC: [u8; 4] = [0x82, 0xfd, 0x00, 0x2a];

fn parse(octets: &[u8]) -> Result<Packet<'_>> {
    let packet = Packet::parse(octets)?;
    packet.ok_or_else(|| Failure::Failed("no RoCE was seen".to_owned()))
}

fn layout(octets: &[u8]) -> Result<Layout> {
    let layout = Layout::find(octets)?;
    layout.ok_or_else(|| Failure::Failed("no RoCE was seen".to_owned()))
}

fn verified(octets: &[u8]) -> Result<()> {
    verify_icrc(octets)?;
    Ok(verify_checksums(octets)?)
}

/// The CRC bit by bit of the IPv4 packet at 14, masked by hand.
fn icrc_by_hand(frame: &[u8]) -> [u8; 4] {
    let mut covered = frame[14..frame.len() - 4].to_vec();
    for at in [1, 8, 10, 11, 26, 27, 32] {
        covered[at] = 0xff;
    }
    crc32(&[&[0xff; 8][..], &covered].concat()).to_le_bytes()
}

/// ENC-03: the ICRC that an adapter sent, and the same frame encoded from its fields.
pub fn icrc_of_a_captured_notification(_: Level) -> Finding {
    let frame = [&CAPTURED[..], &[0; 16], &CAPTURED_ICRC].concat();
    same("ICRC", hex(&icrc(&frame, &layout(&frame)?).to_le_bytes()), hex(&CAPTURED_ICRC))?;
    same("ICRC bit by bit", hex(&icrc_by_hand(&frame)), hex(&CAPTURED_ICRC))?;
    verified(&frame)?;
    let packet = parse(&frame)?;
    let bth = packet.transport.bth;
    same("BECN", bth.becn, true)?;
    same("FECN", bth.fecn, false)?;
    same("destination", bth.destination.get(), 0x118)?;
    let builder = PacketBuilder {
        destination: packet.ethernet.header.destination,
        source: packet.ethernet.header.source,
        tag: packet.ethernet.tag,
        network: packet.network,
        bth,
        extended: packet.transport.extended,
    };
    let anew = roce_octets(&builder, packet.transport.payload);
    same("the frame encoded anew", hex(&anew), hex(&frame))?;
    Ok(format!("{} on the wire; B 1, F 0; all 74 octets agree", hex(&CAPTURED_ICRC)))
}

/// ENC-04: a vendor's example whose ICRC no masking gives.
pub fn a_published_sample_that_is_wrong(_: Level) -> Finding {
    const PUBLISHED: [u8; 4] = [0xe4, 0x2d, 0xad, 0x81];
    let ip = Ipv4 {
        dscp: Dscp::truncate(0x89 >> 2),
        ecn: Ecn::from_bits(0x89),
        identification: 0x98c6,
        time_to_live: 0x20,
        source: [22, 22, 22, 8].into(),
        destination: [22, 22, 22, 7].into(),
        ..Ipv4::default()
    };
    let network = NetworkHeaders::Ipv4(ip, &[], Udp::roce(56_238));
    let bth = notification::bth(QueuePairNumber::truncate(0xd2), Bth::DEFAULT_PARTITION);
    let builder = PacketBuilder { bth, ..roce_builder(Opcode::ROCEV2_CNP, network) };
    let frame = roce_octets(&builder, &[0; notification::BODY_LEN]);
    verified(&frame)?;
    let computed = icrc_by_hand(&frame);
    same("ICRC by the masking rules", hex(&frame[70..]), hex(&computed))?;
    ensure!(computed != PUBLISHED, "the published ICRC is right after all");
    Ok(format!("{}, where the example has {}", hex(&computed), hex(&PUBLISHED)))
}

/// ENC-06: a CNP to any queue pair, over IPv4 and IPv6.
pub fn notification_layout(_: Level) -> Finding {
    let queue_pairs = [0, 1, 2, 0x118, 0x7f_ffff, 0x80_0000, 0xff_fffe, 0xff_ffff];
    for (name, network) in &networks()[..2] {
        for queue_pair in queue_pairs {
            let bth = notification::bth(QueuePairNumber::truncate(queue_pair), 0xffff);
            let builder = PacketBuilder { bth, ..roce_builder(Opcode::ROCEV2_CNP, *network) };
            let frame = roce_octets(&builder, &[0; notification::BODY_LEN]);
            check_notification(name, &frame, queue_pair)?;
        }
    }
    Ok(format!("{} queue pairs over IPv4 and IPv6, octet for octet", queue_pairs.len()))
}

fn check_notification(name: &str, frame: &[u8], queue_pair: u32) -> Result<()> {
    let number = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let udp_at = if name.ends_with("IPv4") {
        same("total length of IPv4", number(16), 60)?;
        34
    } else {
        same("payload length of IPv6", number(18), 40)?;
        54
    };
    same("UDP destination port", number(udp_at + 2), 4791)?;
    same("UDP length", number(udp_at + 4), 40)?;
    let [_, high, middle, low] = queue_pair.to_be_bytes();
    let headers = [0x81, 0x00, 0xff, 0xff, 0x40, high, middle, low, 0, 0, 0, 0];
    let bth_at = udp_at + 8;
    same(format!("BTH over {name}"), hex(&frame[bth_at..bth_at + 12]), hex(&headers))?;
    same("reserved octets", hex(&frame[bth_at + 12..bth_at + 28]), hex(&[0; 16]))?;
    same("octets of the frame", frame.len(), bth_at + 32)?;
    verified(frame)
}

/// What may change on the way: Ethernet's header, what routers and switches write, and Resv8a.
fn variant(name: &str) -> Vec<Range<usize>> {
    let mut free: Vec<Range<usize>> = (0..14).map(octet).collect();
    match name {
        "RoCEv2/IPv4" => free.extend([15, 22, 24, 25, 40, 41, 46].map(octet)),
        "RoCEv2/IPv6" => {
            // Traffic class and flow label begin in the middle of an octet.
            free.push(14 * 8 + 4..18 * 8);
            free.extend([21, 60, 61, 66].map(octet));
        }
        _ => {
            free.push(14 * 8 + 4..18 * 8);
            free.extend([21, 58].map(octet));
        }
    }
    free
}

/// ENC-05 on Ethernet: every single bit before the ICRC flipped in turn.
pub fn blind_bits_on_ethernet() -> Finding {
    let mut details = Vec::new();
    for (name, network) in networks() {
        let frame = roce_octets(&roce_builder(Opcode::RC_WRITE_ONLY, network), &[0x5a; 30]);
        let layout = layout(&frame)?;
        let bits = layout.icrc_at() * 8;
        let of = |octets: &[u8]| Some(icrc(octets, &layout));
        details.push(format!("{name} {}", blind_bits(name, &frame, bits, &variant(name), of)?));
    }
    Ok(details.join(", "))
}
