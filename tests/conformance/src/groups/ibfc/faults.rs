//! IBFC-09 to IBFC-12: flow-control packets lost, repeated or damaged, and the lane without any.

use super::lossy::{Fabric, run_incast};
use super::mute_all;
use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, FULL_FRAME_BLOCKS, MTU, burst, class, nic, switch};
use crate::bench::packets::{frame, link_packet, send_only};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::device::Departure;
use proto::ids::VirtualLane;
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket, PacketBuilder};
use switchd::switch::Switch;

/// IBFC-09: three senders into one receiver, every k-th flow-control packet lost everywhere.
pub fn lost_flow_control() -> Finding {
    let Fabric { delivered: whole, .. } = run_incast(None)?;
    let mut worst = (whole, 0);
    let mut lost = 0;
    for k in 2..=10 {
        let fabric = run_incast(Some(k))?;
        same(format!("packets lost with every {k}th gone"), fabric.dropped, 0)?;
        same(format!("packets out of order with every {k}th gone"), fabric.reordered, 0)?;
        ensure(fabric.flow_control_lost > 0, || "no flow-control packet was lost".to_owned())?;
        ensure(fabric.delivered_late > 0, || format!("with every {k}th gone traffic has stopped"))?;
        lost += fabric.flow_control_lost;
        worst = worst.min((fabric.delivered, k));
    }
    Ok(format!(
        "{lost} lost in all, no packet lost or out of order; {whole} packets delivered without loss, at \
         worst {} (k = {})",
        worst.0, worst.1
    ))
}

fn normal(lane: u8, fctbs: u16, fccl: u16) -> FlowControlPacket {
    let virtual_lane = VirtualLane::truncate(lane);
    FlowControlPacket { op: FlowControlOp::Normal, fctbs, virtual_lane, fccl }
}

/// IBFC-11: each of the 48 bits of a packet that would open the gate.
pub fn damaged_flow_control() -> Finding {
    let start = Instant::ZERO + Duration::from_us(100);
    let mut config = nic(1, 1);
    config.classes = vec![class(Transport::Uc, 0)];
    config.traffic.push(burst(2, 0, MTU as u64, 4, start));
    let nic = Nic::new(config).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(nic, 1)?;
    bench.offer(1, 0, 0);
    mute_all(&mut bench);
    bench.run_until(start + Duration::from_us(1));
    let (_, told) = bench.flow_control(1, 0).last().ok_or_else(|| "nothing was said".to_owned())?;
    let before = bench.reading();
    for bit in 0..48 {
        let mut damaged = link_packet(&normal(0, 500, 2048));
        damaged.octets[bit / 8] ^= 0x80 >> (bit % 8);
        bench.inject(1, damaged);
        bench.run_for(Duration::from_us(3));
        same(format!("packets out after bit {bit} flipped"), bench.packets(1).count(), 0)?;
    }
    same("losses", bench.lost_since(&before, 1), "lpcrc 48".to_owned())?;
    bench.run_for(Duration::from_us(70));
    let (_, now) = bench.flow_control(1, 0).last().ok_or_else(|| "nothing was said".to_owned())?;
    same("FCTBS said afterwards", now.fctbs, told.fctbs)?;
    same("FCCL said afterwards (ABR unchanged)", now.fccl, told.fccl)?;
    bench.say(1, normal(0, 0, 2048));
    bench.run_for(FRAME_TIME * 5);
    same("packets out after an undamaged one", bench.packets(1).count(), 4)?;
    Ok("48 packets with one bit flipped: lpcrc 48, no counter moved, nothing sent".to_owned())
}

/// Management packets in one flood: more than the buffer of VL15 holds.
const FLOOD: usize = 200;

fn managed(from: u16, to: u16, psn: u32) -> PacketBuilder {
    PacketBuilder { virtual_lane: VirtualLane::MANAGEMENT, ..send_only(from, to, psn) }
}

fn on_lane(lane: u8) -> impl Fn(&&Departure) -> bool {
    move |sent| sent.frame.octets[0] >> 4 == lane
}

/// IBFC-12: VL15 flows without credit, overflows by itself, and takes nothing from data.
pub fn management_has_no_credits() -> Finding {
    let made = Switch::new(switch(4, 1)).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(made, 1)?;
    bench.offer(3, 0, 0);
    bench.send(1, frame(&send_only(1, 3, 0), MTU));
    bench.run_for(FRAME_TIME * 4);
    same("data packets out without credit", bench.packets(3).count(), 0)?;
    // At the line's own pace all of it passes.
    for psn in 0..FLOOD as u32 {
        bench.send(1, frame(&managed(1, 3, psn), 256));
        bench.run_for(Duration::from_ns(300));
    }
    same("VL15 packets out at line rate", bench.packets(3).count(), FLOOD)?;
    // Twice that from two sides does not; data to another port is not disturbed.
    let before = bench.reading();
    bench.forget();
    for psn in 0..FLOOD as u32 {
        for from in 1..=2 {
            bench.send(from, frame(&managed(u16::from(from), 3, psn), 256));
        }
        bench.send(2, frame(&send_only(2, 4, psn), 230));
        bench.run_for(Duration::from_ns(300));
    }
    bench.run_for(Duration::from_us(20));
    let out = bench.packets(3).filter(on_lane(15)).count();
    let lost = [1, 2].map(|port| bench.lost_since(&before, port));
    let overrun = 2 * FLOOD - out;
    ensure(overrun > 0, || "two floods fit into one line".to_owned())?;
    let counted: usize = lost
        .iter()
        .filter_map(|text| text.strip_prefix("management_overrun "))
        .filter_map(|n| n.parse::<usize>().ok())
        .sum();
    same(format!("overruns counted ({lost:?})"), counted, overrun)?;
    same("data packets out of another port", bench.packets(4).count(), FLOOD)?;
    same("data packets out without credit", bench.packets(3).filter(on_lane(0)).count(), 0)?;
    bench.offer(3, 0, FULL_FRAME_BLOCKS);
    bench.run_for(FRAME_TIME * 2);
    same("data packets out once there is credit", bench.packets(3).filter(on_lane(0)).count(), 1)?;
    no_lane_speaks_of_vl15(&bench)?;
    Ok(format!(
        "{FLOOD} at line rate pass without credit; of {} at twice the line {out} pass and {overrun} \
         are management_overrun; data elsewhere undisturbed",
        2 * FLOOD
    ))
}

fn no_lane_speaks_of_vl15(bench: &Bench<Switch>) -> Result<(), Failure> {
    let about: usize = (1..=4).map(|port| bench.flow_control(port, 15).count()).sum();
    same("flow-control packets about VL15", about, 0)
}
