//! IBRX-01, IBRX-02, IBRX-08, IBRX-09: what CRCs and the mark of a bad packet decide, where.

use super::{adapter, fresh_switch, good_packet_still_passes};
use crate::bench::Bench;
use crate::bench::devices::{BUFFER_FRAMES, FRAME_TIME, FULL_FRAME_BLOCKS, MTU, scheme, switch};
use crate::bench::packets::{frame, send_only, with_opcode};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::Transport;
use proto::device::Device;
use proto::frame::{Frame, Integrity};
use proto::ids::VirtualLane;
use proto::units::Duration;
use proto::wire::infiniband::{Opcode, Packet, PacketBuilder, crc, set_fecn};
use std::collections::BTreeMap;
use switchd::switch::Switch;

/// A frame whose VCRC is complemented.
fn with_bad_vcrc(mut frame: Frame) -> Frame {
    let covered = frame.octets.len() - 2;
    frame.octets[covered..].iter_mut().for_each(|octet| *octet = !*octet);
    frame
}

/// IBRX-01: neither a switch nor a NIC lets it through, and its credit comes back.
pub fn bad_vcrc() -> Finding {
    let mut bench = fresh_switch(1)?;
    discards_and_returns_credit(&mut bench, 3, "switch")?;
    good_packet_still_passes(&mut bench)?;
    let mut bench = adapter(3, Transport::Rc)?;
    discards_and_returns_credit(&mut bench, 1, "NIC")?;
    bench.send(1, frame(&send_only(1, 3, 0), MTU));
    bench.run_for(FRAME_TIME);
    same("answers to the good packet after it", bench.packets(1).count(), 1)?;
    Ok("switch and NIC: vcrc 1, nothing forwarded or answered, all credit back".to_owned())
}

fn discards_and_returns_credit<D: Device>(
    bench: &mut Bench<D>,
    out: u8,
    name: &str,
) -> Result<(), Failure> {
    let before = bench.reading();
    bench.send(1, with_bad_vcrc(frame(&send_only(1, 3, 0), MTU)));
    bench.run_for(Duration::from_us(200));
    same(format!("losses of the {name}"), bench.lost_since(&before, 1), "vcrc 1".to_owned())?;
    same(format!("packets out of the {name}"), bench.packets(out).count(), 0)?;
    let sent = bench.neighbour(1).lanes[0].sent;
    same("blocks that the sender counts", sent, FULL_FRAME_BLOCKS)?;
    let last = bench.flow_control(1, 0).last().map(|(_, packet)| u32::from(packet.fccl));
    let credit = last.map_or(0, |limit| (limit + 4096 - sent) % 4096);
    same(format!("credit from the {name} afterwards"), credit, BUFFER_FRAMES * FULL_FRAME_BLOCKS)
}

/// IBRX-02: a switch carries it as it is, a NIC drops it without an answer of any kind.
pub fn bad_icrc() -> Finding {
    for (opcode, transport) in
        [(Opcode::RC_SEND_ONLY, Transport::Rc), (Opcode::UC_SEND_ONLY, Transport::Uc)]
    {
        let mut bad = frame(&with_opcode(opcode, 1, 3, 0), 256);
        set_fecn(&mut bad.octets);
        let place = bad.octets.len() - 6;
        bad.octets[place] ^= 0x01;
        crc::refresh_vcrc(&mut bad.octets);

        let mut bench = fresh_switch(1)?;
        let before = bench.reading();
        bench.send(1, bad.clone());
        bench.run_for(FRAME_TIME);
        same("losses of the switch", bench.lost_since(&before, 1), "nothing".to_owned())?;
        let out: Vec<_> = bench.packets(3).collect();
        same("packets out of the switch", out.len(), 1)?;
        ensure(out[0].frame.octets == bad.octets, || "the switch changed the packet".to_owned())?;

        let mut bench = adapter(3, transport)?;
        let before = bench.reading();
        bench.send(1, bad);
        bench.run_for(Duration::from_us(50));
        same("losses of the NIC", bench.lost_since(&before, 1), "icrc 1".to_owned())?;
        same("packets from the NIC (ACK or CN)", bench.packets(1).count(), 0)?;
    }
    Ok("switch: octets untouched; NIC: icrc 1, no ACK (RC), no CN (UC with FECN)".to_owned())
}

/// IBRX-08: the mark counts even though every CRC holds.
pub fn aborted_packet() -> Finding {
    let aborted = || Frame { integrity: Integrity::Aborted, ..frame(&send_only(1, 3, 0), MTU) };
    let mut bench = fresh_switch(1)?;
    let before = bench.reading();
    bench.send(1, aborted());
    bench.run_for(FRAME_TIME);
    same("losses of the switch", bench.lost_since(&before, 1), "aborted 1".to_owned())?;
    same("packets out of the switch", bench.packets(3).count(), 0)?;
    good_packet_still_passes(&mut bench)?;
    let mut bench = adapter(3, Transport::Rc)?;
    let before = bench.reading();
    bench.send(1, aborted());
    bench.run_for(FRAME_TIME);
    same("losses of the NIC", bench.lost_since(&before, 1), "aborted 1".to_owned())?;
    same("packets from the NIC", bench.packets(1).count(), 0)?;
    Ok("switch and NIC: aborted 1, though both CRCs hold".to_owned())
}

/// Frames each of two sources sends at once to one output: twice what a buffer marks at.
const CONGESTING: u32 = BUFFER_FRAMES;

/// IBRX-09: FECN and lane change, so does the VCRC; nothing else does.
pub fn switch_changes_vcrc_alone() -> Finding {
    let mut config = switch(4, 2);
    config.scheme = scheme("ib-cca");
    let made = Switch::new(config).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(made, 2)?;
    let mut sent = BTreeMap::new();
    for psn in 0..CONGESTING {
        for from in 1..=2 {
            // Service level 0 leaves by lane 0, wherever it came in.
            let lane = VirtualLane::truncate(from as u8 - 1);
            let builder = PacketBuilder { virtual_lane: lane, ..send_only(from, 3, psn) };
            let frame = frame(&builder, MTU);
            sent.insert((from, psn), frame.octets.to_vec());
            bench.send(from as u8, frame);
        }
    }
    bench.run_for(FRAME_TIME * u64::from(3 * CONGESTING));
    let out: Vec<Frame> = bench.packets(3).map(|sent| sent.frame.clone()).collect();
    same("packets out", out.len(), 2 * CONGESTING as usize)?;
    let (mut marked, mut moved) = (0, 0);
    for frame in &out {
        let change = change_of(&sent, &frame.octets)?;
        marked += u32::from(change.marked);
        moved += u32::from(change.moved);
    }
    ensure(marked > 0, || "nothing was marked: the case shows nothing".to_owned())?;
    same("packets moved to another lane", moved, CONGESTING)?;
    accepted_by_adapter(out)?;
    Ok(format!("{marked} marked and {moved} moved of {} packets, all good", 2 * CONGESTING))
}

struct Change {
    marked: bool,
    moved: bool,
}

/// What a switch changed in a packet; fails if it was more than lane, FECN and VCRC.
fn change_of(sent: &BTreeMap<(u16, u32), Vec<u8>>, octets: &[u8]) -> Result<Change, Failure> {
    crc::verify_vcrc(octets).map_err(|error| error.to_string())?;
    let packet = Packet::parse(octets).map_err(|error| error.to_string())?;
    let bth = packet.bth.ok_or_else(|| "a raw packet came out".to_owned())?;
    let key = (packet.lrh.slid.get(), bth.psn.get());
    let before = sent.get(&key).ok_or_else(|| format!("nobody sent {key:?}"))?;
    let icrc = octets.len() - 6..octets.len() - 2;
    ensure(octets[icrc.clone()] == before[icrc], || format!("the ICRC of {key:?} changed"))?;
    let mut restored = octets.to_vec();
    restored[0] = restored[0] & 0x0f | before[0] & 0xf0;
    restored[12] = restored[12] & 0x7f | before[12] & 0x80;
    let covered = octets.len() - 2;
    ensure(restored[..covered] == before[..covered], || format!("more of {key:?} changed"))?;
    Ok(Change { marked: bth.fecn, moved: octets[0] >> 4 != before[0] >> 4 })
}

fn accepted_by_adapter(frames: Vec<Frame>) -> Result<(), Failure> {
    let mut bench = adapter(3, Transport::Rc)?;
    let before = bench.reading();
    let expected = frames.len() as u64;
    for frame in frames {
        bench.send(1, frame);
        bench.run_for(FRAME_TIME);
    }
    same("losses of the NIC", bench.lost_since(&before, 1), "nothing".to_owned())?;
    let delivered = bench.reading().balance.delivered - before.balance.delivered;
    same("packets the NIC accepted", delivered, expected)
}
