//! IBFC live: one switch whose neighbours play with their credits, each at a port of its own.
//!
//! ```text
//!  port 1, 3   sources                     port 4   old, late and damaged flow control; trains anew
//!  port 2      withholds credit            port 5   silent on VL1 until the watchdog bites
//!                                          port 6   loses every k-th flow-control packet
//! ```

use super::cached::Cached;
use super::frames::{Packet, damaged};
use super::neighbour::{OFFER_MAX, Voice, cost};
use super::record::Record;
use super::stage::Stage;
use super::tester::{Label, Script, Tester};
use super::{ms, star, us};
use crate::check::case::{Failure, Finding, ensure, same};
use bytes::BytesMut;
use proto::counters::DropReason;
use proto::events::EventKind;
use proto::frame::FrameKind;
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket, Packet as Parsed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A symbol of one lane at 10 Mb/s.
const SYMBOL: Duration = Duration::from_ns(800);
/// Source: IBTA Vol 1, 7.9.4.
const REFRESH_SYMBOLS: u64 = 65_536;
/// Source: IBTA Vol 1, 7.9.4.
const WATCHDOG_SYMBOLS: u64 = 400_000;
/// Room for four full frames and a bit. Units: blocks.
const SMALL_OFFER: u16 = 140;

const REST: &str = "\
sl2vl = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
switch = { buffer = \"72 mtu\" }
";

static RUN: Cached<Record> = Cached::new(run, |record| record.fidelity.ok);

fn run() -> Result<Record, Failure> {
    let stage = Stage::new(&star(6, "1900 ms", "vls = 2", REST), "s0")?;
    let mut script = Script::default();
    sizes(&mut script);
    withheld(&mut script);
    management(&mut script);
    training(&mut script);
    old_words(&mut script);
    watchdog(&mut script);
    losses(&mut script);
    stage.run(script)
}

fn packet(from: u16, to: u16, psn: u32, lane: u8, payload: usize) -> BytesMut {
    Packet { lane, level: lane, payload, ..Packet::new(from, to, psn) }.octets()
}

fn full(from: u16, to: u16, psn: u32, lane: u8) -> BytesMut {
    packet(from, to, psn, lane, 2048)
}

/// How many of each size, and the payloads that make packets of 62, 66, 126 and 130 octets.
const SIZES: (u32, [usize; 4]) = (5, [36, 40, 100, 104]);
const SIZES_AT: Instant = ms(200);

/// IBFC-04: small packets of sizes on both sides of a block, from port 1 to port 2.
fn sizes(script: &mut Script) {
    for payload in SIZES.1 {
        script.at(SIZES_AT, move |tester| {
            (0..SIZES.0).for_each(|psn| tester.send(1, &packet(1, 2, psn, 0, payload)));
        });
    }
}

/// IBFC-05 and IBARB-05: port 2 has no credit for VL0 and all it wants for VL1.
pub const WITHHELD: (Instant, Instant) = (ms(320), ms(1_320));
const HELD_FRAMES: u32 = 5;

fn withheld(script: &mut Script) {
    script.at(ms(300), |tester| {
        tester.offer(2, 0, 0);
        (0..720).for_each(|psn| tester.enqueue(1, full(1, 2, psn, 1)));
    });
    script.at(ms(310), |tester| {
        (0..HELD_FRAMES).for_each(|psn| tester.enqueue(3, full(3, 2, psn, 0)));
    });
    script.at(WITHHELD.1, |tester| tester.offer(2, 0, OFFER_MAX));
}

/// IBFC-12: two ports flood VL15 towards port 2, which gives no credit; then one, beside data.
const FLOOD: (Instant, Instant) = (ms(1_700), ms(1_760));
const FLOOD_PACKETS: u32 = 100;
const BESIDE: u32 = 40;

fn management(script: &mut Script) {
    script.at(ms(1_690), |tester| {
        tester.offer(2, 0, 0);
        tester.offer(2, 1, 0);
    });
    for port in [1, 4] {
        script.at(FLOOD.0, move |tester| {
            (0..FLOOD_PACKETS).for_each(|psn| tester.send(port, &datagram(port, psn)));
        });
    }
    script.at(FLOOD.0, |tester| {
        (0..3).for_each(|psn| tester.enqueue(3, full(3, 2, 100 + psn, 0)));
    });
    script.at(FLOOD.1, |tester| {
        tester.offer(2, 0, OFFER_MAX);
        tester.offer(2, 1, OFFER_MAX);
    });
    for psn in 0..BESIDE {
        // One in 500 µs takes less than half of the line.
        let at = FLOOD.1 + us(500) * u64::from(psn);
        script.at(at, move |tester| tester.send(1, &datagram(1, 1_000 + psn)));
    }
}

/// A management datagram from the neighbour at `port` to LID 2.
fn datagram(port: u8, psn: u32) -> BytesMut {
    Packet { lane: 15, payload: 248, ..Packet::new(u16::from(port), 2, psn) }.octets()
}

/// IBFC-07: port 4 hears nothing, then op 1, then op 0; and later op 1 once more.
const TRAINING: [Instant; 4] = [ms(60), ms(100), ms(600), ms(650)];

fn training(script: &mut Script) {
    script.at(Instant::ZERO, |tester| tester.speak(4, Voice::Silent));
    script.at(TRAINING[0], |tester| tester.speak(4, Voice::Initialize));
    script.at(TRAINING[1], |tester| tester.speak(4, Voice::Normal));
    script.at(TRAINING[2], |tester| tester.speak(4, Voice::Initialize));
    script.at(TRAINING[3], |tester| tester.speak(4, Voice::Normal));
    script.at(ms(700), |tester| tester.enqueue(3, packet(3, 4, 50, 0, 40)));
}

/// IBFC-10 and IBFC-11: with port 4 shut, words that would open it and must not be believed.
const SHUT: (Instant, Instant) = (ms(400), ms(480));
const SHUT_FRAMES: u32 = 6;
/// Milliseconds after the newer word at which the old one comes again.
const REPLAYS: [u64; 5] = [1, 2, 3, 4, 5];
const BITS: usize = FlowControlPacket::LEN * 8;

fn old_words(script: &mut Script) {
    let old = Arc::new(AtomicU32::new(0));
    let kept = Arc::clone(&old);
    script.at(ms(395), move |tester| {
        kept.store(tester.sequence(4), Ordering::Relaxed);
        tester.say(4, 0);
    });
    script.at(SHUT.0, |tester| {
        tester.offer(4, 0, 0);
        (0..SHUT_FRAMES).for_each(|psn| tester.enqueue(3, packet(3, 4, psn, 0, 64)));
    });
    for after in REPLAYS {
        let old = Arc::clone(&old);
        script.at(SHUT.0 + us(1_000) * after, move |tester| {
            let label = Label { sequence: Some(old.load(Ordering::Relaxed)), ..tester.label() };
            let octets = opening(tester_packet(tester)).to_octets();
            tester.put(4, FrameKind::InfinibandLink, &octets, label);
        });
    }
    let late = Arc::new(AtomicU32::new(0));
    let kept = Arc::clone(&late);
    script.at(ms(420), move |tester| {
        let octets = opening(tester_packet(tester)).to_octets();
        let sequence = tester.hold_back(4, FrameKind::InfinibandLink, &octets);
        kept.store(sequence, Ordering::Relaxed);
        tester.say(4, 0);
    });
    script.at(ms(423), move |tester| {
        let label = Label { sequence: Some(late.load(Ordering::Relaxed)), ..tester.label() };
        let octets = opening(tester_packet(tester)).to_octets();
        tester.put(4, FrameKind::InfinibandLink, &octets, label);
    });
    for bit in 0..BITS {
        script.at(ms(430) + us(500) * bit as u64, move |tester| {
            let octets = BytesMut::from(&opening(tester_packet(tester)).to_octets()[..]);
            let octets = damaged(octets, |octets| octets[bit / 8] ^= 1 << (bit % 8));
            tester.put(4, FrameKind::InfinibandLink, &octets, tester.label());
        });
    }
    script.at(SHUT.1, |tester| tester.offer(4, 0, OFFER_MAX));
}

fn tester_packet(tester: &mut Tester) -> FlowControlPacket {
    tester.neighbour(4).packet(0)
}

/// What port 4 said when it was open, for it offers nothing now.
fn opening(packet: FlowControlPacket) -> FlowControlPacket {
    FlowControlPacket { fccl: (packet.fccl + OFFER_MAX) % 4096, ..packet }
}

/// IBFC-08: port 5 says nothing about VL1 for a while.
const DEAF: (Instant, Instant) = (ms(300), ms(800));

fn watchdog(script: &mut Script) {
    script.at(DEAF.0, |tester| tester.neighbour(5).lanes[1].speaks = false);
    script.at(DEAF.1, |tester| tester.neighbour(5).lanes[1].speaks = true);
    script.at(ms(850), |tester| tester.enqueue(3, packet(3, 5, 60, 0, 40)));
}

/// IBFC-09: of port 6's flow-control packets every k-th is lost; a k takes so long.
const LOSSES: (Instant, Duration) = (ms(900), us(80_000));
const LOSSES_EVERY: std::ops::RangeInclusive<u32> = 2..=10;
const LOSSES_FRAMES: u32 = 380;

fn losses(script: &mut Script) {
    script.at(LOSSES.0, |tester| {
        tester.neighbour(6).lanes[0].offer = SMALL_OFFER;
        tester.neighbour(6).refresh = us(2_000);
        tester.neighbour(6).due = LOSSES.0;
        (0..LOSSES_FRAMES).for_each(|psn| tester.enqueue(3, full(3, 6, 1_000 + psn, 0)));
    });
    for (place, every) in LOSSES_EVERY.enumerate() {
        let at = LOSSES.0 + LOSSES.1 * place as u64;
        script.at(at, move |tester| tester.neighbour(6).loses = every);
    }
}

/// The sequence numbers of what left by `port` on `lane` in `[from, to)`, in order.
fn numbers(record: &Record, port: u8, lane: u8, from: Instant, to: Instant) -> Vec<u32> {
    let packets = record.packets(port).filter(|seen| seen.at >= from && seen.at < to);
    let parsed = packets.filter_map(|seen| Parsed::parse(&seen.frame.octets).ok());
    let of_lane = parsed.filter(|packet| packet.lrh.virtual_lane.get() == lane);
    of_lane.filter_map(|packet| packet.bth.map(|bth| bth.psn.get())).collect()
}

/// Nothing was sent beyond a limit and nothing was lost for want of room, whatever was done.
fn lossless(record: &Record) -> Result<(), Failure> {
    for (index, neighbour) in record.neighbours.iter().enumerate() {
        let port = index as u8 + 1;
        for (lane, account) in neighbour.lanes.iter().enumerate() {
            same(
                format!("packets beyond the credit of port {port} VL{lane}"),
                account.overruns,
                0,
            )?;
        }
        same(format!("overruns of port {port}"), record.drops(port, DropReason::BufferOverrun), 0)?;
    }
    Ok(())
}

/// IBFC-04.
pub fn block_rounding() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let cost: u32 = SIZES
        .1
        .iter()
        .map(|payload| SIZES.0 * u32::from(cost(&packet(1, 2, 0, 0, *payload))))
        .sum();
    let last = |port| record.flow_control(port, 0).filter(|(seen, _)| seen.at < WITHHELD.0).last();
    let first = |port| record.flow_control(port, 0).next();
    let ([Some((_, sent)), Some((_, room))], Some((_, at_first))) = ([last(2), last(1)], first(1))
    else {
        return Err(Failure::Failed("a port has said nothing".to_owned()));
    };
    same("blocks that port 2 counts as sent (FCTBS)", u32::from(sent.fctbs), cost)?;
    let risen = (room.fccl + 4096 - at_first.fccl) % 4096;
    same("blocks that port 1 counts as received (FCCL)", u32::from(risen), cost)?;
    Ok(format!(
        "packets of 62, 66, 126 and 130 octets take 1, 2, 2 and 3 blocks at both ends ({cost})"
    ))
}

/// IBFC-05.
pub fn no_credit() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let (from, to) = WITHHELD;
    same("packets on VL0 without credit", record.on_lane(2, 0, from, to), 0)?;
    let beside = record.on_lane(2, 1, from, to);
    let after = record.on_lane(2, 0, to, FLOOD.0);
    same("packets on VL0 once there is credit", after as u32, HELD_FRAMES)?;
    // It was ready some milliseconds before the window, and left after it.
    let waited = record.held(2, 0);
    let least = to.since(from);
    ensure(waited >= least, || {
        format!("port_xmit_wait of VL0 is {waited}, at least {least} is due")
    })?;
    lossless(record)?;
    Ok(format!("1 s without credit: 0 packets on VL0, {beside} on VL1, PortXmitWait {waited}"))
}

/// IBARB-05.
pub fn blocked_lane() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let (from, to) = WITHHELD;
    let octets = record.on_lane(2, 1, from, to) as u64 * 2074;
    let line = to.since(from).as_ps() / Duration::from_ns(800).as_ps();
    let permille = octets * 1_000 / line;
    ensure(permille >= 970, || format!("VL1 had {permille} ‰ of the line beside a blocked VL0"))?;
    Ok(format!("VL1 had {permille} ‰ of the line beside a blocked VL0"))
}

/// IBFC-06.
pub fn refresh() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let late = Duration::from_ns(record.report.lateness.wall_ns.p99());
    let most = SYMBOL * (REFRESH_SYMBOLS + REFRESH_SYMBOLS / 20) + late * 2;
    let mut longest = Duration::ZERO;
    for port in 1..=6 {
        for lane in 0..2 {
            let told: Vec<Instant> = record.flow_control(port, lane).map(|(s, _)| s.at).collect();
            ensure(told.len() > 20, || format!("port {port} spoke {} times", told.len()))?;
            let gap = told.windows(2).map(|pair| pair[1].since(pair[0])).max();
            longest = longest.max(gap.unwrap_or_default());
            ensure(longest <= most, || {
                format!("port {port} VL{lane} was silent for {longest}, {most} is allowed")
            })?;
        }
    }
    Ok(format!("six ports, idle and loaded: never silent for longer than {longest} of {most}"))
}

/// IBFC-07.
pub fn initialization() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let told = |from: Instant, to: Instant| {
        let here =
            record.flow_control(4, 0).filter(move |(seen, _)| seen.at >= from && seen.at < to);
        here.map(|(_, packet)| (packet.op, packet.fctbs)).collect::<Vec<_>>()
    };
    let slack = us(3_000);
    let windows = [
        ("before anybody speaks", Instant::ZERO, TRAINING[0], FlowControlOp::Init),
        ("once op 1 was heard", TRAINING[0] + slack, TRAINING[1], FlowControlOp::Normal),
        ("when Active", TRAINING[1] + slack, TRAINING[2], FlowControlOp::Normal),
    ];
    for (when, from, to, op) in windows {
        let told = told(from, to);
        ensure(!told.is_empty() && told.iter().all(|(other, _)| *other == op), || {
            format!("{when} it says {told:?}, expected {op:?}")
        })?;
    }
    let zero = told(Instant::ZERO, TRAINING[1]).iter().all(|(_, fctbs)| *fctbs == 0);
    ensure(zero, || "FCTBS is not 0 before Active".to_owned())?;
    let before = told(Instant::ZERO, TRAINING[2]).last().map_or(0, |(_, fctbs)| *fctbs);
    ensure(before > 0, || "nothing was sent before it trained anew".to_owned())?;
    let anew = told(TRAINING[2] + slack, TRAINING[3]);
    let restarted = !anew.is_empty() && anew.iter().all(|(_, fctbs)| *fctbs == 0);
    ensure(restarted, || format!("told to train anew, it says {anew:?}"))?;
    same("what passes after that", numbers(record, 4, 0, ms(700), ms(1_600)).len(), 1)?;
    Ok(format!("op 1 with FCTBS 0, then op 0; FCTBS {before} restarts at 0 when it trains anew"))
}

/// IBFC-08.
pub fn watchdog_bites() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let bites: Vec<Instant> = record
        .events(5, Instant::ZERO, Instant::NEVER)
        .filter(|event| event.kind == EventKind::Watchdog)
        .map(|event| event.at)
        .collect();
    same("watchdog events", bites.len(), 1)?;
    same("watchdogs counted", record.port(5).watchdogs, 1)?;
    // The last word about VL1 left at most a repetition before the silence.
    let after = bites[0].since(DEAF.0);
    let most = SYMBOL * (WATCHDOG_SYMBOLS * 113 / 100);
    let least = SYMBOL * (WATCHDOG_SYMBOLS * 39 / 100);
    ensure((least..=most).contains(&after), || {
        format!("the link is trained anew after {after} of silence, {least} to {most} is allowed")
    })?;
    let trains = record.flow_control(5, 1).filter(|(seen, _)| seen.at >= bites[0]);
    let says = trains.take(1).any(|(_, packet)| packet.op == FlowControlOp::Init);
    ensure(says, || "it does not say op 1 after that".to_owned())?;
    same("what passes when VL1 speaks again", numbers(record, 5, 0, ms(850), ms(1_600)).len(), 1)?;
    Ok(format!(
        "trained anew {after} after the silence began, one event, counted once; then up again"
    ))
}

/// IBFC-09.
pub fn lost_flow_control() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let passed = numbers(record, 6, 0, LOSSES.0, Instant::NEVER);
    let expected: Vec<u32> = (0..LOSSES_FRAMES).map(|psn| 1_000 + psn).collect();
    ensure(passed == expected, || {
        format!("{} of {LOSSES_FRAMES} packets passed, or not in order", passed.len())
    })?;
    lossless(record)?;
    Ok(format!("every k-th lost, k = 2 to 10: all {LOSSES_FRAMES} packets once and in order"))
}

/// IBFC-10.
pub fn old_flow_control() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let counts = record.line(4);
    same("repeated words counted", counts.duplicates, REPLAYS.len() as u64)?;
    same("late words counted", counts.stale, 1)?;
    remains_shut(record)?;
    Ok("a word repeated 1 to 5 ms later (5 duplicates) and one overtaken (1 stale) open nothing"
        .into())
}

fn remains_shut(record: &Record) -> Result<(), Failure> {
    let slack = us(300);
    let early = numbers(record, 4, 0, SHUT.0 + slack, SHUT.1).len();
    same("packets that leave by the shut port", early, 0)?;
    let late = numbers(record, 4, 0, SHUT.1, TRAINING[2]).len();
    same("packets that leave once it is open", late as u32, SHUT_FRAMES)
}

/// IBFC-11.
pub fn damaged_flow_control() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    same("damaged words counted", record.drops(4, DropReason::Lpcrc), BITS as u64)?;
    remains_shut(record)?;
    Ok(format!("each of {BITS} bits flipped once: {BITS} counted under lpcrc, no credit taken"))
}

/// IBFC-12.
pub fn management_lane() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let (from, to) = FLOOD;
    let flooded = record.on_lane(2, 15, from, to) as u64;
    let lost: u64 =
        [1, 4].map(|port| record.drops(port, DropReason::ManagementOverrun)).iter().sum();
    same("VL15 packets sent or counted", flooded + lost, 2 * u64::from(FLOOD_PACKETS))?;
    ensure(flooded >= u64::from(FLOOD_PACKETS), || format!("only {flooded} passed the flood"))?;
    ensure(lost > 0, || "two lines went into one, and nothing was counted as overrun".to_owned())?;
    same("data packets without credit", numbers(record, 2, 0, from, to).len(), 0)?;
    let beside = record.on_lane(2, 15, to, Instant::NEVER) as u32;
    same("VL15 packets beside data", beside, BESIDE)?;
    let soon = to + us(20_000);
    same("data packets beside VL15", numbers(record, 2, 0, to, soon).len(), 3)?;
    Ok(format!(
        "without credit for data: {flooded} sent, {lost} counted as overrun; then beside data"
    ))
}
