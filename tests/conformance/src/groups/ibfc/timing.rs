//! IBFC-05 to IBFC-08: silence, refreshes, training and the watchdog.

use super::mute_all;
use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, MTU, SYMBOL, burst, class, nic, switch};
use crate::bench::packets::{frame, send_only};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::device::Device;
use proto::events::EventKind;
use proto::ids::VirtualLane;
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use switchd::switch::Switch;

/// Flow control at least this often, in symbol times. Source: IBTA Vol 1, 7.9.4.
const REFRESH_MAX: u64 = 65_536;
/// The watchdog, in symbol times. Source: IBTA Vol 1, 7.9.4 (400 000, +3 %/-51 %).
const WATCHDOG: (u64, u64) = (400_000 * 49 / 100, 400_000 * 103 / 100);

/// A NIC with an endless supply for each of two lanes from `start` on.
fn two_lanes_of_backlog(start: Instant) -> Result<Bench<Nic>, Failure> {
    let mut config = nic(1, 2);
    config.classes = vec![class(Transport::Uc, 0), class(Transport::Uc, 1)];
    config.traffic = (0..2).map(|lane| burst(2, lane, MTU as u64, 0, start)).collect();
    let nic = Nic::new(config).map_err(|error| error.to_string())?;
    Bench::up(nic, 2)
}

/// Data frames that left, and time waited for credit, by lane.
fn sent_and_held<D: Device>(bench: &mut Bench<D>) -> [(u64, u64); 2] {
    let reading = bench.reading();
    let lane = |index: usize| reading.ports[0].lanes[index].counters;
    [0, 1].map(|index| (lane(index).tx_frames, lane(index).hold_ps))
}

/// IBFC-05: for one second nothing on VL0, as much as fits on VL1.
pub fn no_credit_no_data() -> Finding {
    let start = Instant::ZERO + Duration::from_us(100);
    let mut bench = two_lanes_of_backlog(start)?;
    bench.offer(1, 0, 0);
    bench.run_until(start);
    let before = sent_and_held(&mut bench);
    let second = Duration::from_us(1_000_000);
    for _ in 0..1_000 {
        bench.run_for(Duration::from_us(1_000));
        bench.forget();
    }
    let after = sent_and_held(&mut bench);
    let [(sent, held), (other, other_held)] =
        [0, 1].map(|lane| (after[lane].0 - before[lane].0, after[lane].1 - before[lane].1));
    same("data frames on the lane without credit", sent, 0)?;
    same("picoseconds that lane waited", held, second.as_ps())?;
    same("picoseconds the other lane waited", other_held, 0)?;
    let busy = other * FRAME_TIME.as_ps();
    ensure(busy >= second.as_ps() / 100 * 99, || {
        format!("the other lane sent {other} frames in a second, fewer than 99 % of the line")
    })?;
    bench.offer(1, 0, 2048);
    bench.run_for(Duration::from_us(20));
    ensure(sent_and_held(&mut bench)[0].0 > after[0].0, || {
        "credit came and nothing left".to_owned()
    })?;
    Ok(format!("0 frames on VL0, its wait grew by 1 s exactly; {other} frames on VL1"))
}

/// The longest time between two flow-control packets that `port` sends for `lane`, in symbols.
fn longest_gap<D: Device>(bench: &Bench<D>, port: u8, lane: u8) -> u64 {
    let at: Vec<Instant> = bench.flow_control(port, lane).map(|(at, _)| at).collect();
    let gaps = at.windows(2).map(|pair| pair[1].since(pair[0]).as_ps());
    // A rest without any counts too.
    let rest = bench.now().since(at.last().copied().unwrap_or(Instant::ZERO)).as_ps();
    gaps.chain([rest]).max().unwrap_or(u64::MAX) / SYMBOL.as_ps()
}

/// IBFC-06: idle, and with the line full of packets.
pub fn refresh_interval() -> Finding {
    let made = Switch::new(switch(2, 4)).map_err(|error| error.to_string())?;
    let mut idle = Bench::up(made, 4)?;
    idle.forget();
    idle.run_for(Duration::from_us(10_000));
    let mut longest = 0;
    for port in 1..=2 {
        for lane in 0..4 {
            let gap = longest_gap(&idle, port, lane);
            ensure(gap <= REFRESH_MAX, || {
                format!("port {port} says nothing about VL {lane} for {gap} symbol times")
            })?;
            longest = longest.max(gap);
        }
    }
    let start = Instant::ZERO + Duration::from_us(100);
    let mut loaded = two_lanes_of_backlog(start)?;
    loaded.run_for(Duration::from_us(10_000));
    let mut longest_loaded = 0;
    for lane in 0..2 {
        let gap = longest_gap(&loaded, 1, lane);
        ensure(gap <= REFRESH_MAX, || {
            format!("under load VL {lane} hears nothing for {gap} symbol times")
        })?;
        longest_loaded = longest_loaded.max(gap);
    }
    Ok(format!(
        "at most {longest} symbol times apart when idle, {longest_loaded} under load; {REFRESH_MAX} \
         are allowed"
    ))
}

/// IBFC-07: Op 1 and zero counters until the peer is heard, Op 0 from then on; the same upon a
/// second training, whatever was counted before.
pub fn initialization() -> Finding {
    let made = Switch::new(switch(4, 2)).map_err(|error| error.to_string())?;
    let mut bench = Bench::new(made, 2);
    mute_all(&mut bench);
    bench.run_for(Duration::from_us(1_000));
    let alone = all_say(&bench, FlowControlOp::Init)?;
    bench.forget();
    (1..=4).for_each(|port| bench.neighbour(port).speaks = true);
    bench.run_for(Duration::from_us(200));
    ends_with_normal(&bench)?;

    for psn in 0..8 {
        bench.send(1, frame(&send_only(1, 3, psn), MTU));
        bench.run_for(FRAME_TIME);
    }
    bench.run_for(Duration::from_us(100));
    let counted = bench.flow_control(3, 0).last().map_or(0, |(_, packet)| packet.fctbs);
    same("FCTBS after eight packets", counted, 8 * 33)?;
    bench.forget();
    mute_all(&mut bench);
    let account = &mut bench.neighbour(3).lanes[0];
    (account.sent, account.received) = (0, 0);
    for lane in 0..2 {
        let virtual_lane = VirtualLane::truncate(lane);
        let op = FlowControlOp::Init;
        bench.say(3, FlowControlPacket { op, fctbs: 0, virtual_lane, fccl: 2048 });
    }
    bench.run_for(Duration::from_us(1));
    let first = bench.flow_control(3, 0).next();
    let (_, first) = first.ok_or_else(|| "nothing was said upon a second training".to_owned())?;
    same("FCTBS upon a second training", first.fctbs, 0)?;
    same("FCCL upon a second training", first.fccl, 36 * 33)?;
    (1..=4).for_each(|port| bench.neighbour(port).speaks = true);
    bench.run_for(Duration::from_us(200));
    ends_with_normal(&bench)?;
    Ok(format!(
        "{alone} packets with Op 1 and FCTBS 0 to a silent peer; Op 0 once it is heard; zero again"
    ))
}

/// All flow-control packets so far say `op` with FCTBS 0; how many there were.
fn all_say(bench: &Bench<Switch>, op: FlowControlOp) -> Result<usize, Failure> {
    let mut seen = 0;
    for port in 1..=4 {
        for lane in 0..2 {
            for (at, packet) in bench.flow_control(port, lane) {
                ensure(packet.op == op && packet.fctbs == 0, || {
                    format!("port {port} says {packet:?} at {} ps", at.as_ps())
                })?;
                seen += 1;
            }
        }
    }
    ensure(seen >= 8 * 10, || format!("only {seen} packets in a millisecond on eight lanes"))?;
    Ok(seen)
}

/// Once a port has said Op 0 it does not say Op 1 again, and it has said Op 0.
fn ends_with_normal(bench: &Bench<Switch>) -> Result<(), Failure> {
    for port in 1..=4 {
        for lane in 0..2 {
            let ops: Vec<_> = bench.flow_control(port, lane).map(|(_, packet)| packet.op).collect();
            let first = ops.iter().position(|op| *op == FlowControlOp::Normal);
            let settled = first
                .is_some_and(|first| ops[first..].iter().all(|op| *op == FlowControlOp::Normal));
            ensure(settled, || format!("port {port} says {ops:?} about VL {lane}"))?;
        }
    }
    Ok(())
}

/// IBFC-08: one lane of two falls silent while the other goes on.
pub fn watchdog() -> Finding {
    let start = Instant::ZERO + Duration::from_us(100);
    let mut bench = two_lanes_of_backlog(start)?;
    bench.run_for(Duration::from_us(500));
    let before = bench.reading();
    bench.neighbour(1).lanes[1].speaks = false;
    let silent_since = bench.now();
    bench.forget();
    let limit = silent_since + SYMBOL * (WATCHDOG.1 + 1_000);
    while bench.now() < limit && !has_retrained(&bench) {
        bench.run_for(Duration::from_us(1));
    }
    let event = bench.events.iter().find(|event| event.kind == EventKind::Watchdog);
    let event = event.ok_or_else(|| "no watchdog ran out".to_owned())?;
    // The last packet of that lane came up to one repetition before.
    let symbols = event.at.since(silent_since).as_ps() / SYMBOL.as_ps();
    let slack = bench.neighbour(1).refresh.as_ps() / SYMBOL.as_ps();
    ensure((WATCHDOG.0..=WATCHDOG.1).contains(&symbols) && symbols + slack >= 400_000, || {
        format!("the link was retrained after {symbols} symbol times, not {WATCHDOG:?}")
    })?;
    let after = bench.reading();
    same("watchdogs counted", after.ports[0].watchdogs - before.ports[0].watchdogs, 1)?;
    bench.forget();
    bench.run_for(Duration::from_us(2));
    let said = bench.flow_control(1, 1).next().map(|(_, packet)| (packet.op, packet.fctbs));
    ensure(said == Some((FlowControlOp::Init, 0)), || format!("it then says {said:?}"))?;
    comes_back(bench)?;
    Ok(format!(
        "retrained {symbols} symbol times after the lane fell silent; counted, told, and over"
    ))
}

fn has_retrained(bench: &Bench<Nic>) -> bool {
    bench.events.iter().any(|event| event.kind == EventKind::Watchdog)
}

/// The neighbour speaks again, from zero: data flows on both lanes.
fn comes_back(mut bench: Bench<Nic>) -> Result<(), Failure> {
    for lane in &mut bench.neighbour(1).lanes {
        (lane.sent, lane.received, lane.speaks) = (0, 0, true);
    }
    bench.forget();
    bench.run_for(Duration::from_us(200));
    let by_lane = |lane: u8| {
        let of_lane = |sent: &&proto::device::Departure| sent.frame.octets[0] >> 4 == lane;
        bench.packets(1).filter(of_lane).count()
    };
    ensure(by_lane(0) > 10 && by_lane(1) > 10, || {
        format!("after training {} and {} packets left", by_lane(0), by_lane(1))
    })
}
