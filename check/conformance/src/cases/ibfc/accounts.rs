//! IBFC-01 to IBFC-04 and IBFC-09 on the virtual clock: what is counted at either end of a link, and what
//! follows from it.

use crate::prelude::*;
use proto::counters::ReceptionReading;
use proto::link::credit::{CreditFlow, blocks};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use testbed::deaf;
use testbed::frames::infiniband::Packet;

const LANE: VirtualLane = VirtualLane::ZERO;
/// A device sends a flow-control packet of every lane at least this often: 16 384 symbol times.
const DEVICE_REFRESH: Duration = Duration::from_ns(16_384 * 4);
/// Credit blocks of a full frame, and full frames that one data lane's buffer holds.
const FULL_FRAME_BLOCKS: u32 = 33;
const BUFFER_FRAMES: u32 = 36;
const BUFFER: u32 = BUFFER_FRAMES * FULL_FRAME_BLOCKS;
/// Octets of a full payload.
const MTU: usize = 2048;
/// Time of a full frame.
const FRAME_TIME: Duration = Duration::from_ns(2_074);

/// A device of the star on lines of 8 Gb/s and four lanes: an octet lasts a nanosecond, a symbol four.
fn device(name: &'static str, rest: &str) -> Result<Bench> {
    let star = Star { nics: 4, rest, ..Star::FAST };
    Stage::new(Level::Engine, &star.text(), name)?.bench()
}

/// A switch of four ports whose input buffers hold so many blocks.
fn switch(blocks: u32) -> Result<Bench> {
    device("s0", &format!("switch = {{ buffer = \"{} B\" }}\n", u64::from(blocks) * 64))
}

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
pub fn limit_formula(_: Level) -> Finding {
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
fn limits_of_a_filling_switch() -> Result<usize> {
    let capacity = 5000;
    let mut bench = switch(capacity)?.up()?;
    bench.credits(3).refresh = Duration::from_us(5);
    bench.mute();
    bench.offer(3, 0, 0);
    let (mut entered, mut checked) = (0u32, 0);
    for psn in 0..100 {
        let frame = Packet { payload: psn as usize * 20, ..Packet::new(1, 3, psn) }.frame();
        entered += blocks(Bytes::new(frame.octets.len() as u64));
        bench.inject(1, frame);
        bench.clear();
        bench.run_for(DEVICE_REFRESH + Duration::from_us(1));
        let expected = (entered % 4096 + (capacity - entered).min(2048)) % 4096;
        for (_, packet) in bench.flow_control(1, 0) {
            let what = format!("FCCL with {entered} of {capacity} blocks taken");
            same(what, u32::from(packet.fccl), expected)?;
            checked += 1;
        }
        // Nothing may leave, and the link watchdogs must not expire.
        bench.advertise(1, 0);
        bench.advertise(3, 0);
    }
    ensure!(checked >= 100, "only {checked} flow-control packets were seen");
    Ok(checked)
}

/// IBFC-02: ABR as a peer can compute it, from FCCL and what it knows to be free.
pub fn received_blocks_rules(_: Level) -> Finding {
    let capacity = BUFFER;
    let mut bench = switch(BUFFER)?;
    bench.mute();
    bench.run_for(Duration::from_us(1));
    same("ABR at link initialization", received_by(&bench, capacity), 0)?;

    let mut bench = switch(BUFFER)?.up()?;
    bench.mute();
    bench.offer(3, 0, 0);
    for fctbs in [0u16, 1, 77, 4000, 4095] {
        bench.send_credit(1, &fcp(FlowControlOp::Normal, fctbs, 2048));
        bench.run_for(DEVICE_REFRESH);
        same(format!("ABR after FCTBS {fctbs}"), received_by(&bench, capacity), u32::from(fctbs))?;
    }
    for count in 1..=BUFFER_FRAMES {
        bench.inject(1, Packet::full(1, 3, count).frame());
        if count % 4 == 0 {
            // Silence for longer would look like a dead link.
            let sent = (4095 + bench.credits(1).lanes[0].sent) % 4096;
            bench.send_credit(1, &fcp(FlowControlOp::Normal, sent, 2048));
            bench.advertise(3, 0);
        }
        bench.run_for(DEVICE_REFRESH);
        let taken = count * FULL_FRAME_BLOCKS;
        let expected = (4095 + taken) % 4096;
        let what = format!("ABR after {count} packets of {FULL_FRAME_BLOCKS} blocks");
        same(what, received_by(&bench, capacity - taken), expected)?;
    }
    let before = bench.reading();
    bench.inject(1, Packet::full(1, 3, 99).frame());
    same("losses", bench.lost_since(&before, 1), "buffer_overrun 1")?;
    bench.run_for(DEVICE_REFRESH);
    let expected = (4095 + capacity) % 4096;
    same("ABR after a packet without room", received_by(&bench, 0), expected)?;
    let fctbs = (4095 + bench.credits(1).lanes[0].sent) % 4096;
    bench.send_credit(1, &fcp(FlowControlOp::Normal, fctbs, 2048));
    bench.run_for(DEVICE_REFRESH);
    same("ABR after the FCTBS that counts it", received_by(&bench, 0), u32::from(fctbs))?;
    Ok(format!("0 at first; FCTBS taken over; +{FULL_FRAME_BLOCKS} a packet, wrapping at 4096"))
}

/// ABR of port 1 by its latest flow-control packet, with so many blocks free.
fn received_by(bench: &Bench, free: u32) -> u32 {
    let last = bench.flow_control(1, 0).last();
    last.map_or(u32::MAX, |(_, packet)| (u32::from(packet.fccl) + 4096 - free) % 4096)
}

/// IBFC-03: all 4096 differences in the engine, the four of the case on a NIC's wire.
pub fn transmit_gate(_: Level) -> Finding {
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
            let what = format!("FCTBS {total}, difference {difference}: may leave");
            same(what, may, difference <= 2048)?;
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

/// A NIC that has one full packet to send after 100 µs, and then short ones.
fn sender(short: u64) -> Result<Bench> {
    let mut rest = backlog("full", "h1", "h2", "messages = 1\nstart = \"100 us\"");
    if short > 0 {
        let keys = format!("size = \"16 B\"\nmessages = {short}\nstart = \"100.001 us\"");
        let keys = format!("transport = \"uc\"\narrivals = \"backlog\"\n{keys}");
        rest += &traffic("short", "h1", "h2", &keys);
    }
    let mut bench = device("h1", &rest)?.up()?;
    bench.mute();
    Ok(bench)
}

fn gate_of_a_nic(difference: u16, leaves: bool) -> Result<()> {
    let mut bench = sender(0)?;
    let limit = (33 + difference) % 4096;
    bench.send_credit(1, &fcp(FlowControlOp::Normal, 0, limit));
    bench.run_for(Duration::from_us(200));
    let what = format!("packets that leave with a difference of {difference}");
    same(what, bench.packets(1).count(), usize::from(leaves))
}

/// Credit enough for the short packets behind, not for the full one in front.
fn order_is_kept_behind_a_held_packet() -> Result<()> {
    let mut bench = sender(5)?;
    bench.send_credit(1, &fcp(FlowControlOp::Normal, 0, 32));
    bench.run_for(Duration::from_us(200));
    same("packets that leave past a held one", bench.packets(1).count(), 0)?;
    bench.send_credit(1, &fcp(FlowControlOp::Normal, 0, 200));
    bench.run_for(Duration::from_us(50));
    let sizes: Vec<usize> = bench.packets(1).map(|sent| sent.frame.octets.len()).collect();
    same("sizes in their order", format!("{sizes:?}"), "[2074, 42, 42, 42, 42, 42]".to_owned())
}

/// IBFC-04: the formula at 63, 64 and 65 octets; then every packet there is, at both ends.
pub fn every_size() -> Result<String> {
    for (size, expected) in [(62, 1), (63, 1), (64, 1), (65, 2), (66, 2), (2074, 33)] {
        same(format!("blocks of {size} octets"), blocks(Bytes::new(size)), expected)?;
    }
    let mut bench = switch(BUFFER)?.up()?;
    let (mut total, mut at_boundary) = (0u32, 0);
    for size in 0..=MTU {
        let frame = Packet { payload: size, ..Packet::new(1, 3, size as u32) }.frame();
        let octets = frame.octets.len();
        at_boundary += u32::from(octets % 64 == 2);
        total += octets.div_ceil(64) as u32;
        bench.arrive(1, frame);
        bench.clear();
        // The device counts as it receives; no FCTBS of the neighbour mends it.
        bench.mute();
        bench.run_for(DEVICE_REFRESH + FRAME_TIME);
        both_ends_count(&bench, total % 4096, octets)?;
        // Flow control again, so that the link watchdogs do not expire.
        bench.credits(1).lanes[0].sent = (total % 4096) as u16;
        for port in 1..=4 {
            bench.advertise(port, 0);
        }
    }
    Ok(format!("; {} packets, {at_boundary} of them two octets past a block", MTU + 1))
}

fn both_ends_count(bench: &Bench, total: u32, octets: usize) -> Result<()> {
    let out = bench.flow_control(3, 0).last().map(|(_, packet)| u32::from(packet.fctbs));
    same(format!("FCTBS after a packet of {octets} octets"), out.unwrap_or(u32::MAX), total)?;
    let received = received_by(bench, BUFFER);
    same(format!("ABR after a packet of {octets} octets"), received, total)
}

/// IBFC-09 in a fabric: three senders without end into one receiver by way of a switch, buffers of four full
/// frames, every device deaf to every k-th flow-control packet at each of its ports.
pub fn lossy_fabric() -> Result<String> {
    let (whole, _) = incast(None)?;
    let (mut worst, mut lost) = ((whole, 0), 0);
    for k in 2..=10 {
        let (delivered, missed) = incast(Some(k))?;
        ensure!(missed > 0, "no flow-control packet was lost");
        lost += missed;
        worst = worst.min((delivered, k));
    }
    Ok(format!(
        "; in a fabric {lost} lost, no packet; of {whole} at worst {} are delivered",
        worst.0
    ))
}

/// Messages delivered, and flow-control packets missed, with every k-th gone.
fn incast(every: Option<u64>) -> Result<(u64, u64)> {
    let rest = "nic = { buffer = \"4 mtu\" }\nswitch = { buffer = \"4 mtu\" }\n".to_owned()
        + &backlog("incast", "h[1-3]", "h4", "");
    let star = Star { nics: 4, duration: "10 ms", rest: &rest, ..Star::FAST };
    let missed = Arc::new(AtomicU64::new(0));
    let wrap = |_, device: Box<dyn Device>| {
        let (mut arrived, missed) = (vec![0u64; device.ports()], Arc::clone(&missed));
        let misses = move |port: PortNumber, frame: &Frame| {
            let is_link = frame.kind == FrameKind::InfinibandLink;
            arrived[port.index()] += u64::from(is_link);
            let misses = is_link && every.is_some_and(|k| arrived[port.index()].is_multiple_of(k));
            missed.fetch_add(u64::from(misses), Ordering::Relaxed);
            misses
        };
        deaf(device, Box::new(misses))
    };
    let half = Instant::ZERO + Duration::from_us(2_500);
    let readings = hampered(&star.text(), |_| {}, wrap, &[half, half + Duration::from_us(2_500)])?;
    let what = |what: &str| format!("packets {what} with every {every:?} gone");
    let sum = |readings: &[DeviceReading], of: fn(&ReceptionReading) -> u64| -> u64 {
        readings.iter().flat_map(|reading| &reading.receptions).map(of).sum()
    };
    let drops = readings[1].iter().flat_map(|reading| &reading.ports);
    same(what("lost"), drops.map(|port| port.drops.total()).sum::<u64>(), 0)?;
    same(what("out of order"), sum(&readings[1], |flow| flow.reordered), 0)?;
    let [early, all] = [0, 1].map(|n: usize| sum(&readings[n], |flow| flow.messages));
    ensure!(all > early, "with every {every:?} gone traffic has stopped");
    Ok((all, missed.load(Ordering::Relaxed)))
}
