//! ROCE-06 to ROCE-08: notifications, how they travel, what draws them and how often.

use super::{OUT, bench_of_nic, bench_of_switch};
use crate::bench::Bench;
use crate::bench::devices::ethernet::{FRAME_TIME, LOSSLESS, nic};
use crate::bench::devices::{MTU, RATE, burst, class};
use crate::bench::line::line;
use crate::bench::packets::ethernet::{CNP, cnp, data, ecn, frame, roce, with_ecn};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::{Encapsulation, NicConfig, RoceConfig, RoceVersion, Transport};
use nicd::nic::Nic;
use proto::frame::Frame;
use proto::ids::{Dscp, Ecn};
use proto::units::{Duration, Instant};
use proto::wire::classify::{PriorityMap, classify_ethernet};
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{NetworkHeaders, Packet, PacketBuilder};

/// Longer than a NIC takes for an answer it owes at once.
const A_WHILE: Duration = Duration::from_us(4);
/// Some part of what a frame takes.
const INTO_A_FRAME: Duration = Duration::from_ns(500);

/// A marked packet from adapter `from` to adapter 1.
fn marked(from: u16, psn: u32, payload: usize) -> Frame {
    frame(&with_ecn(&roce(from, 1, LOSSLESS, psn), Ecn::CongestionExperienced), payload)
}

fn opcode(frame: &Frame) -> Option<Opcode> {
    Packet::parse(&frame.octets).ok().flatten().map(|packet| packet.transport.bth.opcode)
}

/// Whether it is a CNP of RoCEv2.
pub fn is_cnp(frame: &Frame) -> bool {
    opcode(frame) == Some(Opcode::ROCEV2_CNP)
}

/// What a CNP says, field by field.
pub fn described(frame: &Frame) -> Result<String, Failure> {
    verify_icrc(&frame.octets)
        .and_then(|()| verify_checksums(&frame.octets))
        .map_err(|e| e.to_string())?;
    let packet = Packet::parse(&frame.octets).map_err(|error| error.to_string())?;
    let packet = packet.ok_or_else(|| "no RoCE".to_owned())?;
    let (dscp, ecn, from, to, port) = match packet.network {
        NetworkHeaders::Ipv4(ip, _, udp) => {
            (ip.dscp, ip.ecn, ip.source.to_string(), ip.destination.to_string(), udp.source_port)
        }
        NetworkHeaders::Ipv6(ip, udp) => {
            (ip.dscp, ip.ecn, ip.source.to_string(), ip.destination.to_string(), udp.source_port)
        }
        NetworkHeaders::Global(_) => return Err(Failure::Failed("a CNP of RoCEv1".to_owned())),
    };
    let (bth, body) = (packet.transport.bth, packet.transport.payload);
    let low = if port < 0xc000 { " below 0xC000" } else { "" };
    Ok(format!(
        "{from} to {to}{low}, DSCP {}, {ecn:?}, QP {:#08x}, PSN {}, B {}, F {}, A {}, P_Key {:#06x}, body {}",
        dscp.get(),
        bth.destination.get(),
        bth.psn,
        u8::from(bth.becn),
        u8::from(bth.fecn),
        u8::from(bth.ack_request),
        bth.partition_key,
        if body == [0; 16] { "16 zeros".to_owned() } else { format!("{body:02x?}") },
    ))
}

/// ROCE-06: as a NIC sends it, and as a switch lets it pass.
pub fn class_of_cnp() -> Finding {
    for (version, dscp, ends) in [
        (RoceVersion::V2Ipv4, 48, "198.18.0.1 to 198.18.0.2"),
        (RoceVersion::V2Ipv4, 26, "198.18.0.1 to 198.18.0.2"),
        (RoceVersion::V2Ipv6, 40, "2001:db8::1 to 2001:db8::2"),
    ] {
        let cnp_dscp = Dscp::truncate(dscp);
        let roce = RoceConfig { version, cnp_dscp, ..RoceConfig::default() };
        let mut bench = bench_of_nic(NicConfig { wire: Encapsulation::Roce(roce), ..nic(1) }, "")?;
        bench.inject(1, marked(2, 0, 256));
        bench.run_for(A_WHILE);
        let sent: Vec<_> = bench.packets(1).filter(|sent| is_cnp(&sent.frame)).collect();
        same("CNPs for a marked packet", sent.len(), 1)?;
        let expected = format!(
            "{ends}, DSCP {dscp}, NotCapable, QP 0x010001, PSN 0, B 1, F 0, A 0, P_Key 0xffff, body 16 zeros"
        );
        same("the CNP", described(&sent[0].frame)?, expected)?;
    }
    let from_nic = beside_data()?;
    let from_switch = through_switch()?;
    Ok(format!(
        "Not-ECT with the DSCP configured and sixteen zeros; behind data of a NIC it waits for the frame \
         on the line ({from_nic} ns), for none if data is paused; behind a switch's {from_switch} ns; \
         never marked"
    ))
}

/// How long a CNP of a NIC that is sending data waits, in ns.
fn beside_data() -> Result<u64, Failure> {
    let mut config = nic(1);
    config.classes = vec![class(Transport::Uc, 0)];
    config.traffic = vec![burst(2, 0, MTU as u64, 0, Instant::ZERO)];
    let mut bench = bench_of_nic(config, "")?;
    bench.run_for(FRAME_TIME * 9 + INTO_A_FRAME);
    let came = bench.now();
    // The class has a UC queue pair: so must what it is sent.
    bench.inject(1, unreliable(2, 0));
    bench.run_for(FRAME_TIME * 3);
    let begin = |bench: &Bench<Nic>| {
        let sent = line(bench.line(1), RATE);
        let found = sent.iter().rev().find(|sent| is_cnp(sent.frame)).map(|sent| sent.start);
        found.ok_or_else(|| Failure::Failed("no CNP beside data".to_owned()))
    };
    let waited = begin(&bench)?.since(came);
    let rest = FRAME_TIME - INTO_A_FRAME;
    ensure(waited == rest, || format!("a CNP waits {waited} beside data, expected {rest}"))?;
    // Data is paused: the line is free.
    bench.pfc(1, 1 << LOSSLESS, u16::MAX);
    bench.run_for(Duration::from_us(60));
    let came = bench.now();
    bench.inject(1, unreliable(2, 1));
    bench.run_for(A_WHILE);
    let late = begin(&bench)?.since(came);
    ensure(late == Duration::ZERO, || format!("a CNP waits {late} while data is paused"))?;
    Ok(waited.as_ps() / 1_000)
}

/// A marked packet of UC from adapter `from` to adapter 1.
fn unreliable(from: u16, psn: u32) -> Frame {
    let builder = with_ecn(&roce(from, 1, LOSSLESS, psn), Ecn::CongestionExperienced);
    let bth = Bth { opcode: Opcode::UC_SEND_ONLY, ack_request: false, ..builder.bth };
    frame(&PacketBuilder { bth, ..builder }, 64)
}

/// CNPs through a port that marks all data and has a backlog of it; the longest wait, in ns.
fn through_switch() -> Result<u64, Failure> {
    let mut bench = bench_of_switch(super::marking::MARKS_ALL)?;
    for psn in 0..60 {
        bench.send(1, data(1, OUT.into(), LOSSLESS, psn));
    }
    let mut capable = cnp(2, OUT.into());
    capable.octets[15] |= Ecn::Capable0.bits();
    capable.octets[24..26].fill(0);
    let checksum = proto::wire::internet::checksum::ipv4_header(&capable.octets[14..34]);
    capable.octets[24..26].copy_from_slice(&checksum.to_be_bytes());
    let sent = [cnp(2, OUT.into()), capable];
    let mut came = Vec::new();
    for turn in 0..20 {
        bench.run_for(FRAME_TIME + INTO_A_FRAME);
        came.push(bench.now());
        bench.send(2, sent[turn % 2].clone());
    }
    // A queue of CNPs alone is congested as well.
    bench.run_for(FRAME_TIME * 80);
    let left = line(bench.line(OUT), RATE);
    let notices: Vec<_> = left.iter().filter(|sent| is_cnp(sent.frame)).collect();
    same("CNPs that leave", notices.len(), came.len())?;
    let marks = left.iter().filter(|sent| ecn(sent.frame) == Ecn::CongestionExperienced).count();
    same("marked data beside them", marks, 60)?;
    let mut longest = Duration::ZERO;
    for (turn, (notice, came)) in notices.iter().zip(&came).enumerate() {
        ensure(*notice.frame == sent[turn % 2], || format!("CNP {turn} leaves changed"))?;
        longest = longest.max(notice.start.since(*came));
    }
    ensure(longest <= FRAME_TIME, || format!("a CNP waits {longest} in the switch"))?;
    let mut bench = bench_of_switch(super::marking::MARKS_ALL)?;
    (0..50).for_each(|turn| bench.send(2, sent[turn % 2].clone()));
    bench.run_for(FRAME_TIME * 10);
    let kept =
        bench.data(OUT, CNP).zip(sent.iter().cycle()).filter(|(a, b)| a.frame == **b).count();
    same("CNPs of a queue of 50 that leave unchanged", kept, 50)?;
    Ok(longest.as_ps() / 1_000)
}

/// ROCE-07: marks on what answers, then on data.
pub fn marks_on_answers() -> Finding {
    let traffic = vec![burst(2, 0, 256, 2, Instant::ZERO)];
    let mut bench = bench_of_nic(NicConfig { traffic, ..nic(1) }, "")?;
    bench.run_for(A_WHILE);
    same("packets sent at first", bench.packets(1).count(), 2)?;
    bench.forget();
    let ce = Ecn::CongestionExperienced;
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 2 });
    let plain = with_ecn(&roce(2, 1, LOSSLESS, 1), ce);
    let ack = PacketBuilder {
        bth: Bth { opcode: Opcode::RC_ACKNOWLEDGE, ack_request: false, ..plain.bth },
        extended: ExtendedHeaders { aeth, ..ExtendedHeaders::NONE },
        ..plain
    };
    let bth = Bth { opcode: Opcode::ROCEV2_CNP, becn: true, ack_request: false, ..plain.bth };
    let notice = PacketBuilder { bth, ..with_ecn(&roce(2, 1, CNP, 0), ce) };
    let before = bench.reading();
    for (what, sent) in [("ACK", frame(&ack, 0)), ("CNP", blank(&notice))] {
        bench.inject(1, sent);
        bench.run_for(Duration::from_us(100));
        same(format!("what CE on a {what} draws"), bench.packets(1).count(), 0)?;
        same(
            format!("marks counted with a {what}"),
            bench.named(1, "np_ecn_marked_roce_packets"),
            0,
        )?;
    }
    same("what was lost of them", bench.lost_since(&before, 1), "nothing".to_owned())?;
    same("CNPs obeyed", bench.named(1, "rp_cnp_handled"), 1)?;
    bench.inject(1, marked(2, 0, 256));
    bench.run_for(A_WHILE);
    let drawn: Vec<_> = bench.packets(1).filter_map(|sent| opcode(&sent.frame)).collect();
    let both = [Opcode::ROCEV2_CNP, Opcode::RC_ACKNOWLEDGE];
    let all = drawn.len() == 2 && both.iter().all(|opcode| drawn.contains(opcode));
    ensure(all, || format!("CE on data draws {drawn:?}"))?;
    let acks = bench.packets(1).filter(|sent| !is_cnp(&sent.frame));
    let codes: Vec<_> = acks.map(|sent| classified(&sent.frame)).collect::<Result<_, _>>()?;
    ensure(codes == [Ecn::NotCapable], || format!("the ACK says {codes:?}"))?;
    Ok("CE on an ACK and on a CNP draws nothing in 100 µs and is no mark on data; on data it draws a CNP \
        beside the ACK, which says Not-ECT"
        .to_owned())
}

fn blank(builder: &PacketBuilder<'_>) -> Frame {
    crate::bench::packets::ethernet::blank(builder, 16)
}

fn classified(frame: &Frame) -> Result<Ecn, Failure> {
    let read = classify_ethernet(&frame.octets, &PriorityMap::BY_DSCP);
    Ok(read.map_err(|error| error.to_string())?.ecn)
}

/// ROCE-08: a second of marks on two flows, an interval of 50 µs, and one of 4 µs.
pub fn pacing() -> Finding {
    let mut told = Vec::new();
    for (interval, spacings) in [(50, [10, 35]), (4, [3, 7])] {
        let length = Duration::from_us(if interval == 50 { 1_000_000 } else { 50_000 });
        let counts = paced(Duration::from_us(interval), spacings.map(Duration::from_us), length)?;
        told.push(format!("N = {interval} µs: {} and {} CNPs", counts[0], counts[1]));
    }
    Ok(format!(
        "{}; the first at once, each next with the first mark N or more after the one before, each flow by \
         itself",
        told.join("; ")
    ))
}

/// Marks on the flows of adapters 2 and 3, so far apart each; how many CNPs each drew.
fn paced(
    interval: Duration,
    spacings: [Duration; 2],
    length: Duration,
) -> Result<[usize; 2], Failure> {
    let mut config = nic(1);
    config.classes = vec![class(Transport::Uc, 0)];
    let params = format!("cnp_interval = \"{} us\"", interval.as_ps() / 1_000_000);
    let mut bench = bench_of_nic(config, &params)?;
    let mut next = [Instant::ZERO, Instant::ZERO + Duration::from_ns(1_500)];
    let (mut expected, mut psn): ([Vec<Instant>; 2], _) = (Default::default(), [0, 0]);
    let mut found: [Vec<Instant>; 2] = Default::default();
    let end = Instant::ZERO + length;
    while next[0].min(next[1]) < end {
        let flow = usize::from(next[1] < next[0]);
        let at = next[flow];
        bench.run_until(at);
        bench.inject(1, unreliable(flow as u16 + 2, psn[flow]));
        if expected[flow].last().is_none_or(|last| at.since(*last) >= interval) {
            expected[flow].push(at);
        }
        psn[flow] += 1;
        next[flow] = at + spacings[flow];
        if psn[0] % 1_000 == 0 {
            collect(&mut bench, &mut found)?;
        }
    }
    bench.run_for(A_WHILE);
    collect(&mut bench, &mut found)?;
    for flow in 0..2 {
        let differs = found[flow].iter().zip(&expected[flow]).position(|(a, b)| a != b);
        ensure(differs.is_none(), || {
            let at = differs.unwrap_or_default();
            format!(
                "CNP {at} of flow {flow} leaves at {}, expected {}",
                found[flow][at], expected[flow][at]
            )
        })?;
        same(format!("CNPs of flow {flow}"), found[flow].len(), expected[flow].len())?;
    }
    Ok([found[0].len(), found[1].len()])
}

/// When the CNPs that have left began to, by flow.
fn collect(bench: &mut Bench<Nic>, found: &mut [Vec<Instant>; 2]) -> Result<(), Failure> {
    for sent in line(bench.line(1), RATE) {
        ensure(is_cnp(sent.frame), || "something other than CNPs was sent".to_owned())?;
        let last = sent.frame.octets[5];
        found[usize::from(last == 3)].push(sent.start);
    }
    bench.forget();
    Ok(())
}
