//! ROCE-05 and ROCE-14: marks on their way through three switches, and two senders that share a line.

use super::{OUT, bench_of_switch};
use crate::cases::enc::scapy;
use crate::ethernet::*;
use crate::prelude::*;
use proto::wire::ethernet::{EthernetHeader, ethertype};
use proto::wire::roce::Packet;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use testbed::frames::ethernet::{ecn, frame, over_ipv6, roce};

/// Where packets are caught, one switch after the other.
const HOPS: [&str; 3] = ["s0:2", "s1:2", "s2:2"];
const MESSAGES: u64 = 100;
const CHAIN_FABRIC: &str = include_str!("chain.toml");

static CHAIN: Shared<Fabric> = Shared::new(|on| {
    let keys = format!("arrivals = \"backlog\"\nsize = \"2048 B\"\nmessages = {MESSAGES}");
    let text = format!(
        "schema = 1\nname = \"chain\"\nsource = \"live conformance cases\"\n\
         [run]\nseed = 7\nduration = \"600 ms\"\nbackend = \"udp\"\ncapture = {HOPS:?}\n{CHAIN_FABRIC}{}{}{}",
        roomy(""),
        dcqcn("kmin = \"0 B\"\nkmax = \"0 B\"\nreaction = \"frozen\""),
        traffic("marked", "h1", "h2", &keys)
    );
    Fabric::run(on, &text, 1)
});

/// The ICRCs of the data that left `port`, by PSN, each packet marked and all that protects it right.
fn passed(fabric: &Fabric, port: &str) -> Result<BTreeMap<u32, u32>> {
    let mut icrcs = BTreeMap::new();
    for captured in fabric.captured(port, Direction::Tx)? {
        let octets = &captured.frame.octets;
        let Ok(Some(packet)) = Packet::parse(octets) else { continue };
        let psn = packet.transport.bth.psn.get();
        let what = format!("packet {psn} behind {port}");
        same(format!("CE of {what}"), ecn(&captured.frame) == Ecn::CongestionExperienced, true)?;
        verify_icrc(octets).map_err(|error| format!("{what}: {error}"))?;
        verify_checksums(octets).map_err(|error| format!("{what}: {error}"))?;
        icrcs.insert(psn, packet.icrc);
    }
    Ok(icrcs)
}

/// ROCE-05.
pub fn integrity(on: Level) -> Finding {
    let fabric = CHAIN.on(on)?;
    let [first, second, third] = HOPS.map(|port| passed(&fabric, port));
    let first = first?;
    ensure!(
        first.len() as u64 == MESSAGES && first == second? && first == third?,
        "of {MESSAGES} packets {} leave the first switch, others elsewhere",
        first.len()
    );
    let reading = fabric.reading("h2")?;
    let marked: u64 = reading.receptions.iter().map(|flow| flow.marked).sum();
    same("packets that h2 takes with their mark", marked, MESSAGES)?;
    same("frames dropped", fabric.dropped(), 0)?;
    let walks = on.only_engine(walks)?;
    Ok(format!("{MESSAGES} packets marked at the first of 3 switches: ICRC the same{walks}"))
}

/// Marked at the first, second or last of three switches, or at all, TTL lowered or not.
fn walks() -> Result<String> {
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
    Ok(format!("; {packets} packets marked at any of them, TTL lowered or not; {judged}"))
}

/// Octets of payload of the packets that walk.
const PAYLOADS: [usize; 4] = [0, 1, 255, 2_048];

/// Packets past the switches of which those in `marks` (bit n: the n-th) mark, to an adapter; their
/// octets behind each switch.
fn walk(marks: u8, lowered: bool, ipv6: bool) -> Result<Vec<Vec<u8>>> {
    let mut switches = Vec::new();
    for hop in 0..HOPS.len() {
        let marks = marks >> hop & 1 == 1;
        let size = if marks { "0 B" } else { "1 MB" };
        switches.push(bench_of_switch(&format!("kmin = \"{size}\"\nkmax = \"{size}\""))?);
    }
    let keys = "arrivals = \"backlog\"\nmessages = 1\nsize = \"64 B\"";
    let rest = roomy("") + &dcqcn("") + &traffic("class", "h1", "h4", keys);
    let mut receiver = Stage::new(Level::Engine, &star(OUT, "1 s", "", &rest), "h4")?.bench()?;
    let before = receiver.reading();
    let mut witnessed = Vec::new();
    for (psn, payload) in (0..).zip(PAYLOADS) {
        let builder = roce(1, OUT.into(), LOSSLESS, psn);
        let builder = if ipv6 { over_ipv6(&builder) } else { builder };
        let sent = frame(&builder, payload);
        let icrc = icrc_of(&sent)?;
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
            same(format!("the ICRC of {what}"), icrc_of(&passing)?, icrc)?;
            witnessed.push(without_trailer(&passing)?);
        }
        receiver.inject(1, passing);
    }
    same("what the receiver loses", receiver.lost_since(&before, 1), "nothing")?;
    let reading = receiver.reading();
    let flow = reading.receptions.first().ok_or("nothing was received")?;
    same("messages received", flow.messages as usize, PAYLOADS.len())?;
    same("of them marked", flow.marked as usize, PAYLOADS.len())?;
    Ok(witnessed)
}

fn icrc_of(frame: &Frame) -> Result<u32> {
    let packet = Packet::parse(&frame.octets)?;
    Ok(packet.ok_or("no RoCE is left of a packet")?.icrc)
}

/// Without the zeros of a frame of the least size: scapy would count them in.
fn without_trailer(frame: &Frame) -> Result<Vec<u8>> {
    let packet = Packet::parse(&frame.octets)?;
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

/// What becomes of a frame on its way through the switch.
fn through(bench: &mut Bench, sent: Frame) -> Result<Frame> {
    bench.clear();
    let time = sent.line_size().time_at(RATE);
    bench.inject(1, sent);
    bench.run_for(time);
    let left = bench.packets(OUT).next().map(|sent| sent.frame.clone());
    Ok(left.ok_or("a frame does not leave the switch")?)
}

/// A frame of 1 KiB at 40 Gb/s is 0.22 µs; so much slowed down, 0.87 ms.
const SLOWED: u64 = 4_000;
/// Kmax of the paper.
const KMAX: u64 = 200_000;

static PAIR: Shared<Fabric> = Shared::new(|on| {
    // The virtual clock has time for the second sender to join half a millisecond later.
    let (length, from, sample, joins) = match on {
        Level::Live => ("8 ms", "4 ms", "4500 us", "0 ms"),
        _ => ("60 ms", "10 ms", "5 ms", "500 us"),
    };
    let keys = "arrivals = \"backlog\"\nsize = \"1 MB\"\ntransport = \"uc\"";
    let rest = [
        "mtu = \"1024 B\"\n".to_owned(),
        "switch = { memory = \"shared-pool\", headroom = \"72 KB\", jitter = \"10 us\" }\n"
            .to_owned(),
        dcqcn("profile = \"paper\""),
        traffic("first", "h1", "h3", keys),
        traffic("second", "h2", "h3", &format!("{keys}\nstart = \"{joins}\"")),
        measure("queue", "queue", "s0:3", from, "reduce = \"max\""),
        measure("h1", "share", "h1>h3", from, ""),
        measure("h2", "share", "h2>h3", from, ""),
        measure("pauses", "count", "*", from, "counter = \"pauses\"\nreduce = \"sum\""),
    ];
    let text = Star {
        nics: 3,
        duration: length,
        rate: "40 Gbps",
        delays: &["1 us"; 3],
        run: &format!("sample = \"{sample}\""),
        rest: &rest.concat(),
        ..STAR
    }
    .text();
    Fabric::run(on, &text, SLOWED)
});

/// ROCE-14.
pub fn two_flows(on: Level) -> Finding {
    let fabric = PAIR.on(on)?;
    let shares = [fabric.measure("h1")?, fabric.measure("h2")?];
    let sum = shares[0] + shares[1];
    let jain = sum * sum / (2.0 * (shares[0] * shares[0] + shares[1] * shares[1]));
    ensure!(jain >= 0.95, "Jain's index is {jain:.3} of {shares:?}");
    ensure!(sum > if on == Level::Live { 0.9 } else { 0.95 }, "only {sum:.2} of the line is used");
    let pauses = fabric.measure("pauses")?;
    ensure!(pauses == 0.0, "{pauses} frames of PFC after convergence");
    let queue = fabric.measure("queue")? as u64;
    ensure!(queue < KMAX, "the queue reached {queue} octets, Kmax is {KMAX}");
    same("frames dropped", fabric.dropped(), 0)?;
    let notices = fabric.named("h3", 1, "np_cnp_sent")?;
    ensure!(notices > 0, "no CNP was sent: the case proves nothing");
    Ok(format!("shares {shares:.3?}, index {jain:.3}; queue {queue} of {KMAX}; {notices} CNPs"))
}
