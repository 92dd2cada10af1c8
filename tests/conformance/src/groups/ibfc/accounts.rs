//! IBFC-01 to IBFC-04: what is counted at either end of a link, and what follows from it.

use super::{DEVICE_REFRESH, mute_all, narrow_switch};
use crate::bench::Bench;
use crate::bench::devices::{
    BUFFER_FRAMES, FRAME_TIME, FULL_FRAME_BLOCKS, MTU, burst, class, nic, switch,
};
use crate::bench::packets::{frame, send_only};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::ids::VirtualLane;
use proto::link::credit::{CreditFlow, blocks};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use switchd::switch::Switch;

const LANE: VirtualLane = VirtualLane::ZERO;

fn fcp(op: FlowControlOp, fctbs: u16, fccl: u16) -> FlowControlPacket {
    FlowControlPacket { op, fctbs, virtual_lane: LANE, fccl }
}

/// The engine alone, with a buffer of so many blocks, its link active.
fn active_engine(free: u32) -> CreditFlow {
    let buffer = Bytes::new(u64::from(free) * 64);
    let full = Bytes::new(2074);
    let mut flow = CreditFlow::new(1, buffer, full, BitRate::gbps(8), 4, Instant::ZERO);
    flow.on_control(&fcp(FlowControlOp::Init, 0, 0), Instant::ZERO);
    flow.on_control(&fcp(FlowControlOp::Normal, 0, 0), Instant::ZERO);
    flow
}

/// The limit that the engine announces now.
fn announced(flow: &mut CreditFlow, now: &mut Instant) -> u16 {
    // A refresh is always due within this time.
    *now = *now + DEVICE_REFRESH;
    flow.handle_timeout(*now);
    flow.poll_control(*now).map_or(u16::MAX, |packet| packet.fccl)
}

/// IBFC-01: for every ABR, and in a switch while its buffer fills and drains.
pub fn limit_formula() -> Finding {
    let mut checked = 0u32;
    for free in [0u32, 1, 63, 2047, 2048, 5000] {
        let mut flow = active_engine(free);
        let mut now = Instant::ZERO;
        for received in 0..4096u16 {
            flow.on_control(&fcp(FlowControlOp::Normal, received, 0), now);
            let expected = (u32::from(received) + free.min(2048)) % 4096;
            let what = format!("FCCL with {free} free blocks and ABR {received}");
            same(what, u32::from(announced(&mut flow, &mut now)), expected)?;
            checked += 1;
        }
    }
    let on_the_wire = limits_of_a_filling_switch()?;
    Ok(format!("{checked} combinations of B and ABR; {on_the_wire} packets of a switch in use"))
}

/// Packets of many sizes enter a switch whose exit is slow: in every flow-control packet the limit
/// is ABR plus the free blocks. How many there were.
fn limits_of_a_filling_switch() -> Result<usize, Failure> {
    let capacity = 5000;
    let mut bench = narrow_switch(capacity)?;
    bench.neighbour(3).refresh = Duration::from_us(5);
    mute_all(&mut bench);
    bench.offer(3, 0, 0);
    let (mut entered, mut checked) = (0u32, 0);
    for psn in 0..100 {
        let frame = frame(&send_only(1, 3, psn), psn as usize * 20);
        entered += blocks(Bytes::new(frame.octets.len() as u64));
        bench.send(1, frame);
        bench.forget();
        bench.run_for(DEVICE_REFRESH + Duration::from_us(1));
        let expected = (entered % 4096 + (capacity - entered).min(2048)) % 4096;
        for (_, packet) in bench.flow_control(1, 0) {
            let what = format!("FCCL with {entered} of {capacity} blocks taken");
            same(what, u32::from(packet.fccl), expected)?;
            checked += 1;
        }
        // Nothing may leave, and nobody may think the link dead.
        let packet = bench.neighbour(1).packet(0);
        bench.say(1, packet);
        let packet = bench.neighbour(3).packet(0);
        bench.say(3, packet);
    }
    ensure(checked >= 100, || format!("only {checked} flow-control packets were seen"))?;
    Ok(checked)
}

/// IBFC-02: ABR as a peer can tell it, from FCCL and what it knows to be free.
pub fn received_blocks_rules() -> Finding {
    let capacity = BUFFER_FRAMES * FULL_FRAME_BLOCKS;
    let made = Switch::new(switch(4, 1)).map_err(|error| error.to_string())?;
    let mut bench = Bench::new(made, 1);
    mute_all(&mut bench);
    bench.run_for(Duration::from_us(1));
    same("ABR at link initialization", received_by(&bench, capacity), 0)?;

    let switch = Switch::new(switch(4, 1)).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(switch, 1)?;
    mute_all(&mut bench);
    bench.offer(3, 0, 0);
    for fctbs in [0u16, 1, 77, 4000, 4095] {
        bench.say(1, fcp(FlowControlOp::Normal, fctbs, 2048));
        bench.run_for(DEVICE_REFRESH);
        same(format!("ABR after FCTBS {fctbs}"), received_by(&bench, capacity), u32::from(fctbs))?;
    }
    for count in 1..=BUFFER_FRAMES {
        bench.send(1, frame(&send_only(1, 3, count), MTU));
        if count % 4 == 0 {
            // Silence for longer would look like a dead link.
            let sent = (4095 + bench.neighbour(1).lanes[0].sent) % 4096;
            bench.say(1, fcp(FlowControlOp::Normal, sent as u16, 2048));
            let packet = bench.neighbour(3).packet(0);
            bench.say(3, packet);
        }
        bench.run_for(DEVICE_REFRESH);
        let taken = count * FULL_FRAME_BLOCKS;
        let expected = (4095 + taken) % 4096;
        let what = format!("ABR after {count} packets of {FULL_FRAME_BLOCKS} blocks");
        same(what, received_by(&bench, capacity - taken), expected)?;
    }
    let before = bench.reading();
    bench.send(1, frame(&send_only(1, 3, 99), MTU));
    same("losses", bench.lost_since(&before, 1), "buffer_overrun 1".to_owned())?;
    bench.run_for(DEVICE_REFRESH);
    let expected = (4095 + capacity) % 4096;
    same("ABR after a packet without room", received_by(&bench, 0), expected)?;
    let told = (4095 + bench.neighbour(1).lanes[0].sent) % 4096;
    bench.say(1, fcp(FlowControlOp::Normal, told as u16, 2048));
    bench.run_for(DEVICE_REFRESH);
    same("ABR after the FCTBS that counts it", received_by(&bench, 0), told)?;
    Ok(format!(
        "0 at first; FCTBS taken over; +{FULL_FRAME_BLOCKS} a packet, wrapping at 4096; unchanged by \
         an overrun until the next FCTBS"
    ))
}

/// ABR of port 1 by its latest flow-control packet, with so many blocks free.
fn received_by(bench: &Bench<Switch>, free: u32) -> u32 {
    let last = bench.flow_control(1, 0).last();
    last.map_or(u32::MAX, |(_, packet)| (u32::from(packet.fccl) + 4096 - free) % 4096)
}

/// IBFC-03: all 4096 differences in the engine, the four of the case on a NIC's wire.
pub fn transmit_gate() -> Finding {
    let mut open = 0;
    for sent in [0u32, 33, 2048, 4090] {
        for difference in 0..4096u32 {
            let mut flow = active_engine(64);
            let size = Bytes::new(2074);
            for _ in 0..sent / 33 {
                flow.on_transmit(LANE, size);
            }
            let total = sent / 33 * 33;
            let limit = (total + 33 + difference) % 4096;
            flow.on_control(&fcp(FlowControlOp::Normal, 0, limit as u16), Instant::ZERO);
            let may = flow.may_transmit(LANE, size);
            same(
                format!("FCTBS {total}, difference {difference}: may leave"),
                may,
                difference <= 2048,
            )?;
            open += u32::from(may);
        }
    }
    for (difference, leaves) in
        [(0, true), (2047, true), (2048, true), (2049, false), (4095, false)]
    {
        gate_of_a_nic(difference, leaves)?;
    }
    order_is_kept_behind_a_held_packet()?;
    Ok(format!("{open} of 16384 combinations open, all with a difference up to 2048; order kept"))
}

/// A NIC that has one full packet to send after `start`, and then short ones.
fn sender(short: u64) -> Result<Bench<Nic>, Failure> {
    let start = Instant::ZERO + Duration::from_us(100);
    let mut config = nic(1, 1);
    config.classes = vec![class(Transport::Uc, 0)];
    config.traffic.push(burst(2, 0, MTU as u64, 1, start));
    if short > 0 {
        let later = start + Duration::from_ns(1);
        config.traffic.push(burst(2, 0, 16, short, later));
    }
    let nic = Nic::new(config).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(nic, 1)?;
    mute_all(&mut bench);
    Ok(bench)
}

fn gate_of_a_nic(difference: u16, leaves: bool) -> Result<(), Failure> {
    let mut bench = sender(0)?;
    let limit = (33 + difference) % 4096;
    bench.say(1, fcp(FlowControlOp::Normal, 0, limit));
    bench.run_for(Duration::from_us(200));
    let what = format!("packets that leave with a difference of {difference}");
    same(what, bench.packets(1).count(), usize::from(leaves))
}

/// Credit enough for the short packets behind, not for the full one in front.
fn order_is_kept_behind_a_held_packet() -> Result<(), Failure> {
    let mut bench = sender(5)?;
    bench.say(1, fcp(FlowControlOp::Normal, 0, 32));
    bench.run_for(Duration::from_us(200));
    same("packets that leave past a held one", bench.packets(1).count(), 0)?;
    bench.say(1, fcp(FlowControlOp::Normal, 0, 200));
    bench.run_for(Duration::from_us(50));
    let sizes: Vec<usize> = bench.packets(1).map(|sent| sent.frame.octets.len()).collect();
    same("sizes in their order", format!("{sizes:?}"), "[2074, 42, 42, 42, 42, 42]".to_owned())
}

/// IBFC-04: the formula at 63, 64 and 65 octets; then every packet there is, at both ends.
pub fn block_rounding() -> Finding {
    for (size, expected) in [(62, 1), (63, 1), (64, 1), (65, 2), (66, 2), (2074, 33)] {
        same(format!("blocks of {size} octets"), blocks(Bytes::new(size)), expected)?;
    }
    let made = Switch::new(switch(4, 1)).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(made, 1)?;
    let (mut total, mut at_boundary) = (0u32, 0);
    for size in 0..=MTU {
        let frame = frame(&send_only(1, 3, size as u32), size);
        let octets = frame.octets.len();
        at_boundary += u32::from(octets % 64 == 2);
        total += octets.div_ceil(64) as u32;
        bench.inject(1, frame);
        bench.forget();
        // The device counts as it receives; no FCTBS of the neighbour mends it.
        mute_all(&mut bench);
        bench.run_for(DEVICE_REFRESH + FRAME_TIME);
        both_ends_count(&bench, total % 4096, octets)?;
        // Heard again, so that the link is not given up.
        bench.neighbour(1).lanes[0].sent = total % 4096;
        for port in 1..=4 {
            let packet = bench.neighbour(port).packet(0);
            bench.say(port, packet);
        }
    }
    Ok(format!(
        "{} packets from {} to {} octets, {at_boundary} of them two octets past a block (the VCRC), \
         counted alike on both sides",
        MTU + 1,
        26,
        26 + MTU
    ))
}

fn both_ends_count(bench: &Bench<Switch>, total: u32, octets: usize) -> Result<(), Failure> {
    let out = bench.flow_control(3, 0).last().map(|(_, packet)| u32::from(packet.fctbs));
    same(format!("FCTBS after a packet of {octets} octets"), out.unwrap_or(u32::MAX), total)?;
    let received = received_by(bench, BUFFER_FRAMES * FULL_FRAME_BLOCKS);
    same(format!("ABR after a packet of {octets} octets"), received, total)
}
