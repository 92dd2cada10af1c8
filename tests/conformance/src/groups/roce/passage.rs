//! ROCE-05: marked packets on a long way, and what protects them at each hop.

use super::marking::{MARKS_ALL, through};
use super::{OUT, bench_of_nic, bench_of_switch};
use crate::bench::devices::ethernet::{LOSSLESS, nic};
use crate::bench::packets::ethernet::{ecn, frame, over_ipv6, roce};
use crate::case::{Failure, Finding, same};
use crate::groups::enc::scapy;
use proto::frame::Frame;
use proto::ids::Ecn;
use proto::wire::ethernet::{EthernetHeader, ethertype};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{Packet, PacketBuilder};

const HOPS: usize = 3;

/// ROCE-05: marked at the first, second or last of three switches, or at all, TTL lowered or not.
pub fn integrity() -> Finding {
    let mut witnessed = Vec::new();
    let mut packets = 0;
    for marks in [0b001, 0b010, 0b100, 0b111] {
        for (lowered, ipv6) in [(false, false), (true, false), (false, true), (true, true)] {
            witnessed.extend(walk(marks, lowered, ipv6)?);
            packets += PAYLOADS.len();
        }
    }
    let judged = match scapy::judged(&witnessed) {
        Ok(icrcs) => format!("scapy finds {icrcs} ICRCs and checksums right"),
        Err(Failure::Skipped(why)) => why,
        Err(failure) => return Err(failure),
    };
    Ok(format!(
        "{packets} packets over IPv4 and IPv6 through {HOPS} switches, marked at any of them, TTL lowered \
         between them or not: the ICRC never changes, each checksum holds, the receiver takes all; {judged}"
    ))
}

const PAYLOADS: [usize; 4] = [0, 1, 255, 2_048];

/// Packets past the switches of which those in `marks` (bit n: the n-th) mark, to an adapter; their
/// octets behind each switch.
fn walk(marks: u8, lowered: bool, ipv6: bool) -> Result<Vec<Vec<u8>>, Failure> {
    let mut switches = Vec::new();
    for hop in 0..HOPS {
        let marks = marks >> hop & 1 == 1;
        switches.push(bench_of_switch(if marks {
            MARKS_ALL
        } else {
            "kmin = \"1 MB\"\nkmax = \"1 MB\""
        })?);
    }
    let mut receiver = bench_of_nic(nic(OUT.into()), "")?;
    let before = receiver.reading();
    let mut witnessed = Vec::new();
    for (psn, payload) in (0..).zip(PAYLOADS) {
        let builder = roce(1, OUT.into(), LOSSLESS, psn);
        let builder = if ipv6 { over_ipv6(&builder) } else { builder };
        let sent = frame(&PacketBuilder { ..builder }, payload);
        let icrc = icrc(&sent)?;
        let mut passing = sent;
        for (hop, bench) in switches.iter_mut().enumerate() {
            passing = through(bench, passing)?;
            if lowered {
                lower(&mut passing);
            }
            let what = format!("the packet behind switch {}", hop + 1);
            let is_marked = ecn(&passing) == Ecn::CongestionExperienced;
            same(format!("CE of {what}"), is_marked, marks & ((2 << hop) - 1) != 0)?;
            verify_icrc(&passing.octets).map_err(|error| format!("{what}: {error}"))?;
            verify_checksums(&passing.octets).map_err(|error| format!("{what}: {error}"))?;
            same(format!("the ICRC of {what}"), self::icrc(&passing)?, icrc)?;
            witnessed.push(without_trailer(&passing)?);
        }
        receiver.inject(1, passing);
    }
    same("what the receiver loses", receiver.lost_since(&before, 1), "nothing".to_owned())?;
    let reading = receiver.reading();
    let flow = reading.receptions.first().ok_or_else(|| "nothing was received".to_owned())?;
    same("messages received", flow.messages as usize, PAYLOADS.len())?;
    same("of them marked", flow.marked as usize, PAYLOADS.len())?;
    Ok(witnessed)
}

fn icrc(frame: &Frame) -> Result<u32, Failure> {
    let packet = Packet::parse(&frame.octets).map_err(|error| error.to_string())?;
    Ok(packet.ok_or_else(|| "no RoCE is left of a packet".to_owned())?.icrc)
}

/// Without the zeros of a frame of the least size: scapy would count them in.
fn without_trailer(frame: &Frame) -> Result<Vec<u8>, Failure> {
    let packet = Packet::parse(&frame.octets).map_err(|error| error.to_string())?;
    let trailer = packet.map_or(0, |packet| packet.trailer.len());
    Ok(frame.octets[..frame.octets.len() - trailer].to_vec())
}

/// What a router does besides: one less to live, and the checksum of IPv4 summed anew.
fn lower(frame: &mut Frame) {
    let is_ipv6 = frame.octets[12..14] == ethertype::IPV6.to_be_bytes();
    let header = &mut frame.octets[EthernetHeader::LEN..];
    if is_ipv6 {
        header[7] -= 1;
        return;
    }
    header[8] -= 1;
    header[10..12].fill(0);
    let words = header[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}
