//! What each neighbour of the common run of IBFC does, and when.

use crate::prelude::*;
use proto::wire::infiniband::FlowControlPacket;
use testbed::frames::infiniband::{Packet, damaged};

/// Room for four full frames and a bit. Units: blocks.
const SMALL_OFFER: u16 = 140;

pub fn packet(from: u16, to: u16, psn: u32, lane: u8, payload: usize) -> BytesMut {
    Packet { lane, level: lane, payload, ..Packet::new(from, to, psn) }.octets()
}

pub fn full(from: u16, to: u16, psn: u32, lane: u8) -> BytesMut {
    packet(from, to, psn, lane, 2048)
}

/// How many of each size, and the payloads that make packets of 62, 66, 126 and 130 octets.
pub const SIZES: (u32, [usize; 4]) = (5, [36, 40, 100, 104]);
pub const SIZES_AT: Instant = ms(200);

/// IBFC-04: small packets of sizes on both sides of a block, from port 1 to port 2.
pub fn sizes(script: &mut Script) {
    for payload in SIZES.1 {
        script.at(SIZES_AT, move |bed| {
            (0..SIZES.0).for_each(|psn| bed.send(1, &packet(1, 2, psn, 0, payload)));
        });
    }
}

/// IBFC-05 and IBARB-05: port 2 has no credit for VL0 and unlimited credit for VL1.
pub const WITHHELD: (Instant, Instant) = (ms(320), ms(1_320));
pub const HELD_FRAMES: u32 = 5;

pub fn withheld(script: &mut Script) {
    script.at(ms(300), |bed| {
        bed.offer(2, 0, 0);
        (0..720).for_each(|psn| bed.enqueue(1, full(1, 2, psn, 1)));
    });
    script.at(ms(310), |bed| {
        (0..HELD_FRAMES).for_each(|psn| bed.enqueue(3, full(3, 2, psn, 0)));
    });
    script.at(WITHHELD.1, |bed| bed.offer(2, 0, OFFER_MAX));
}

/// IBFC-12: two ports flood VL15 towards port 2, which gives no credit; then one, beside data.
pub const FLOOD: (Instant, Instant) = (ms(1_700), ms(1_760));
pub const FLOOD_PACKETS: u32 = 100;
pub const BESIDE: u32 = 40;
pub const ELSEWHERE: u32 = 30;

pub fn management(script: &mut Script) {
    script.at(ms(1_690), |bed| {
        bed.offer(2, 0, 0);
        bed.offer(2, 1, 0);
    });
    for port in [1, 4] {
        script.at(FLOOD.0, move |bed| {
            (0..FLOOD_PACKETS).for_each(|psn| bed.send(port, &datagram(port, psn)));
        });
    }
    script.at(FLOOD.0, |bed| {
        (0..3).for_each(|psn| bed.enqueue(3, full(3, 2, 100 + psn, 0)));
    });
    // Data elsewhere is not disturbed.
    script.at(FLOOD.0, |bed| {
        (0..ELSEWHERE).for_each(|psn| bed.enqueue(5, packet(5, 6, 5_000 + psn, 0, 40)));
    });
    script.at(FLOOD.1, |bed| {
        bed.offer(2, 0, OFFER_MAX);
        bed.offer(2, 1, OFFER_MAX);
    });
    // One in 500 µs takes less than half of the line.
    script.every(FLOOD.1, us(500), BESIDE.into(), |bed, psn| {
        bed.send(1, &datagram(1, 1_000 + psn as u32));
    });
}

/// A management datagram from the neighbour at `port` to LID 2.
fn datagram(port: u8, psn: u32) -> BytesMut {
    Packet { lane: 15, payload: 248, ..Packet::new(u16::from(port), 2, psn) }.octets()
}

/// IBFC-07: port 4 receives nothing, then op 1, then op 0; and later op 1 once more.
pub const TRAINING: [Instant; 4] = [ms(60), ms(100), ms(600), ms(650)];

pub fn training(script: &mut Script) {
    script.at(Instant::ZERO, |bed| bed.set_mode(4, FcMode::Off));
    script.at(TRAINING[0], |bed| bed.set_mode(4, FcMode::Initialize));
    script.at(TRAINING[1], |bed| bed.set_mode(4, FcMode::Normal));
    script.at(TRAINING[2], |bed| bed.set_mode(4, FcMode::Initialize));
    script.at(TRAINING[3], |bed| bed.set_mode(4, FcMode::Normal));
    script.at(ms(700), |bed| bed.enqueue(3, packet(3, 4, 50, 0, 40)));
}

/// IBFC-10 and IBFC-11: with port 4 shut, flow-control packets that would open it and must have no effect.
pub const SHUT: (Instant, Instant) = (ms(400), ms(480));
pub const SHUT_FRAMES: u32 = 6;
/// How many words are repeated and how many come late, overtaken by newer ones.
pub const fn old(on: Level) -> (u64, u64) {
    if matches!(on, Level::Live) { (6, 1) } else { (54, 7) }
}

pub const BITS: usize = FlowControlPacket::LEN * 8;

pub fn old_words(script: &mut Script, on: Level) {
    let (repeated, overtaken) = old(on);
    let [repeat_every, late] = if on == Level::Live { [1_000, 3_000] } else { [300, 700] }.map(us);
    let old = Arc::new(AtomicU32::new(0));
    let kept = Arc::clone(&old);
    script.at(ms(395), move |bed| {
        kept.store(bed.sequence(4), Ordering::Relaxed);
        bed.advertise(4, 0);
    });
    script.at(SHUT.0, |bed| {
        bed.offer(4, 0, 0);
        (0..SHUT_FRAMES).for_each(|psn| bed.enqueue(3, packet(3, 4, psn, 0, 64)));
    });
    script.every(SHUT.0 + us(1_000), repeat_every, repeated, move |bed, _| {
        opens(bed, Some(old.load(Ordering::Relaxed)));
    });
    let held = Arc::new(AtomicU32::new(0));
    let kept = Arc::clone(&held);
    script.every(ms(420), us(1_400), overtaken, move |bed, _| {
        let octets = opening(opened(bed)).to_octets();
        let sequence = bed.hold_back(4, FrameKind::InfinibandLink, &octets);
        kept.store(sequence, Ordering::Relaxed);
        bed.advertise(4, 0);
    });
    script.every(ms(420) + late, us(1_400), overtaken, move |bed, _| {
        opens(bed, Some(held.load(Ordering::Relaxed)));
    });
    for bit in 0..BITS {
        script.at(ms(430) + us(500) * bit as u64, move |bed| {
            let octets = BytesMut::from(&opening(opened(bed)).to_octets()[..]);
            let octets = damaged(octets, |octets| octets[bit / 8] ^= 1 << (bit % 8));
            bed.put(4, FrameKind::InfinibandLink, &octets, Label::default());
        });
    }
    script.at(SHUT.1, |bed| bed.offer(4, 0, OFFER_MAX));
}

/// The neighbour of port 4 sends under this number a packet that would open it.
fn opens(bed: &mut dyn Bed, sequence: Option<u32>) {
    let octets = opening(opened(bed)).to_octets();
    bed.put(4, FrameKind::InfinibandLink, &octets, Label { sequence, ..Label::default() });
}

fn opened(bed: &mut dyn Bed) -> FlowControlPacket {
    bed.credits(4).packet(0)
}

/// The flow-control packet of the neighbour of port 4 while it was open; it offers nothing now.
fn opening(packet: FlowControlPacket) -> FlowControlPacket {
    FlowControlPacket { fccl: (packet.fccl + OFFER_MAX) % 4096, ..packet }
}

/// IBFC-08: port 5 receives no flow control of VL1 for a while.
pub const DEAF: (Instant, Instant) = (ms(300), ms(800));

pub fn watchdog(script: &mut Script) {
    script.at(DEAF.0, |bed| bed.credits(5).lanes[1].sends = false);
    script.at(DEAF.1, |bed| bed.credits(5).lanes[1].sends = true);
    script.at(ms(850), |bed| bed.enqueue(3, packet(3, 5, 60, 0, 40)));
}

/// IBFC-09: of port 6's flow-control packets every k-th is lost; a k takes so long.
pub const LOSSES: (Instant, Duration) = (ms(900), us(80_000));
pub const LOSSES_EVERY: std::ops::RangeInclusive<u32> = 2..=10;
pub const LOSSES_FRAMES: u32 = 380;

pub fn losses(script: &mut Script) {
    script.at(LOSSES.0, |bed| {
        bed.credits(6).lanes[0].offer = SMALL_OFFER;
        bed.credits(6).refresh = us(2_000);
        bed.credits(6).due = LOSSES.0;
        (0..LOSSES_FRAMES).for_each(|psn| bed.enqueue(3, full(3, 6, 1_000 + psn, 0)));
    });
    for (place, every) in LOSSES_EVERY.enumerate() {
        let at = LOSSES.0 + LOSSES.1 * place as u64;
        script.at(at, move |bed| bed.credits(6).loses = every);
    }
}
