//! ROCE-15 and ROCE-16: damaged packets at a receiver, and packets that are not quite RoCE, anywhere.

use super::{OUT, bench_of_nic, bench_of_switch};
use crate::bench::Bench;
use crate::bench::devices::ethernet::{FRAME_TIME, LOSSLESS, nic};
use crate::bench::packets::ethernet::{frame, roce, with_ecn};
use crate::case::{Failure, Finding, same};
use nicd::nic::Nic;
use proto::frame::Frame;
use proto::ids::Ecn;
use proto::units::Duration;
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};

/// Longer than a NIC takes for all answers it owes.
const A_WHILE: Duration = Duration::from_us(60);
/// Octets of payload of the packets here.
pub const PAYLOAD: usize = 64;

/// A marked packet from adapter 1 to adapter 4.
pub fn marked(psn: u32) -> PacketBuilder<'static> {
    with_ecn(&roce(1, OUT.into(), LOSSLESS, psn), Ecn::CongestionExperienced)
}

fn receiver() -> Result<Bench<Nic>, Failure> {
    bench_of_nic(nic(OUT.into()), "")
}

/// Nothing of what came was taken or answered; then a good packet is, with a CNP.
fn untouched(bench: &mut Bench<Nic>) -> Result<(), Failure> {
    bench.run_for(A_WHILE);
    same("answers", bench.packets(1).count(), 0)?;
    same("CNPs counted", bench.named(1, "np_cnp_sent"), 0)?;
    same("marks counted", bench.named(1, "np_ecn_marked_roce_packets"), 0)?;
    same("flows received", bench.reading().receptions.len(), 0)?;
    bench.inject(1, frame(&marked(0), PAYLOAD));
    bench.run_for(A_WHILE);
    same("answers to a good packet", bench.packets(1).count(), 2)?;
    same("messages of it", bench.reading().receptions.iter().map(|flow| flow.messages).sum(), 1u64)
}

/// ROCE-15: each bit of a marked packet's payload and ICRC.
pub fn bad_icrc() -> Finding {
    let good = frame(&marked(0), PAYLOAD);
    let mut bench = receiver()?;
    let before = bench.reading();
    let end = good.octets.len();
    let bits = (end - PAYLOAD - 4) * 8..end * 8;
    let flipped = bits.len();
    for bit in bits {
        let mut bad = good.clone();
        bad.octets[bit / 8] ^= 0x80 >> (bit % 8);
        bench.inject(1, bad);
    }
    same("losses", bench.lost_since(&before, 1), format!("icrc {flipped}"))?;
    untouched(&mut bench)?;
    Ok(format!(
        "{flipped} packets with CE and a bit of payload or ICRC flipped: as many icrc drops, no CNP, no ACK; \
         the good one is taken and draws both"
    ))
}

/// A frame that is not quite RoCE: what it is, what a NIC calls it, and a switch, if it does not pass.
pub struct Odd {
    /// What it is.
    pub what: &'static str,
    /// Its octets.
    pub frame: Frame,
    /// What a NIC drops it for.
    pub at_nic: &'static str,
    /// What a switch drops it for, if it does.
    pub at_switch: Option<&'static str>,
}

fn ipv4(change: impl FnOnce(&mut Ipv4, &mut Udp)) -> Frame {
    let builder = marked(0);
    let NetworkHeaders::Ipv4(mut ip, options, mut udp) = builder.network else {
        return frame(&builder, PAYLOAD);
    };
    change(&mut ip, &mut udp);
    frame(&PacketBuilder { network: NetworkHeaders::Ipv4(ip, options, udp), ..builder }, PAYLOAD)
}

/// The length in the UDP header, changed by so much.
fn with_length(by: i16) -> Frame {
    let mut frame = frame(&marked(0), PAYLOAD);
    let place = 14 + Ipv4::LEN + 4;
    let length = u16::from_be_bytes([frame.octets[place], frame.octets[place + 1]]);
    let length = length.wrapping_add_signed(by);
    frame.octets[place..place + 2].copy_from_slice(&length.to_be_bytes());
    frame
}

fn cut(octets: usize) -> Frame {
    let mut frame = frame(&marked(0), PAYLOAD);
    frame.octets.truncate(octets);
    frame
}

/// All of them, from adapter 1 to adapter 4.
pub fn odd() -> Vec<Odd> {
    let length = Some("pktlen");
    let plain = |what, frame| Odd { what, frame, at_nic: "not_roce", at_switch: None };
    let wrong = |what, frame| Odd { what, frame, at_nic: "pktlen", at_switch: length };
    vec![
        plain("to UDP port 4792", ipv4(|_, udp| udp.destination_port = 4_792)),
        plain(
            "from UDP port 4791 to 4790",
            ipv4(|_, udp| {
                (udp.source_port, udp.destination_port) = (4_791, 4_790);
            }),
        ),
        plain("with MF", ipv4(|ip, _| ip.more_fragments = true)),
        plain("a last fragment", ipv4(|ip, _| ip.fragment_offset = 100)),
        plain("of TCP", ipv4(|ip, _| ip.protocol = 6)),
        wrong("with a UDP length beyond IP's", with_length(4)),
        wrong("with a UDP length below IP's", with_length(-4)),
        wrong("with a UDP length of less than its header", with_length(-(PAYLOAD as i16 + 17))),
        wrong("cut within its payload", cut(80)),
    ]
}

/// ROCE-16.
pub fn not_roce() -> Finding {
    let mut told = Vec::new();
    for Odd { what, frame, at_nic, at_switch } in odd() {
        let mut bench = receiver()?;
        let before = bench.reading();
        bench.inject(1, frame.clone());
        same(
            format!("what a NIC loses of a packet {what}"),
            bench.lost_since(&before, 1),
            format!("{at_nic} 1"),
        )?;
        untouched(&mut bench)?;
        let mut bench = bench_of_switch(super::marking::MARKS_ALL)?;
        let before = bench.reading();
        bench.send(1, frame.clone());
        bench.run_for(FRAME_TIME);
        let lost = at_switch.map_or("nothing".to_owned(), |reason| format!("{reason} 1"));
        same(
            format!("what a switch loses of a packet {what}"),
            bench.lost_since(&before, 1),
            lost,
        )?;
        let left = bench.packets(OUT).filter(|sent| sent.frame.octets == frame.octets).count();
        same(
            format!("packets {what} that a switch lets through unchanged"),
            left,
            usize::from(at_switch.is_none()),
        )?;
        let fate = if at_switch.is_none() { "passes a switch" } else { "ends in a switch too" };
        told.push(format!("{what}: {at_nic}, {fate}"));
    }
    Ok(format!("{}; never a CNP, and a good packet afterwards is taken", told.join("; ")))
}
