//! IBARB live: a switch with more than one line's worth of packets for port 3, read off that line.

use super::cached::Cached;
use super::frames::Packet;
use super::record::Record;
use super::stage::Stage;
use super::tester::Script;
use super::{ms, star, us};
use crate::bench::devices::{planned_lane, planned_lanes};
use crate::case::{Failure, Finding, ensure, same};
use proto::counters::DropReason;
use proto::units::Instant;
use proto::wire::infiniband::Packet as Parsed;

/// Octets of a full frame, LRH to VCRC.
const FULL_FRAME: u64 = 2074;
/// When the lines are busy and no queue has run dry.
const BUSY: (Instant, Instant) = (ms(300), ms(1_000));

static MAP: Cached<Record> = Cached::new(map, |record| record.fidelity.ok);
static LOW: Cached<Record> = Cached::new(low, |record| record.fidelity.ok);
static LIMITS: [Cached<Record>; 3] = [
    Cached::new(|| limited(0), |record| record.fidelity.ok),
    Cached::new(|| limited(1), |record| record.fidelity.ok),
    Cached::new(|| limited(255), |record| record.fidelity.ok),
];

const PORTS: u8 = 4;
const LANES: u8 = 4;
const FIRST: Instant = ms(150);

/// Every level from every port to every other, numbered.
fn pairs() -> impl Iterator<Item = (u32, u8, u8, u8)> {
    let pairs = (1..=PORTS).flat_map(|from| (1..=PORTS).map(move |to| (from, to)));
    let all = pairs.filter(|(from, to)| from != to);
    let all = all.flat_map(|(from, to)| (0..16).map(move |level| (from, to, level)));
    all.enumerate().map(|(number, (from, to, level))| (number as u32, from, to, level))
}

fn map() -> Result<Record, Failure> {
    let stage = Stage::new(&star(PORTS, "700 ms", "vls = 4", ""), "s0")?;
    let stage = Stage { switch: |config| config.sl2vl = planned_lanes(PORTS), ..stage };
    let mut script = Script::default();
    for (number, from, to, level) in pairs() {
        script.at(FIRST + us(2_000) * u64::from(number), move |tester| {
            let packet = Packet {
                lane: level % LANES,
                level,
                ..Packet::new(from.into(), to.into(), number)
            };
            tester.send(from, &packet.octets());
        });
    }
    stage.run(script)
}

/// IBARB-01.
pub fn service_levels() -> Finding {
    let record = MAP.get()?;
    let record = record.trusted()?;
    let (mut relayed, mut discarded) = (0, 0);
    for (number, from, to, level) in pairs() {
        let lane = planned_lane(from, to, level);
        let mut left = record.all_packets().filter_map(|seen| {
            let packet = Parsed::parse(&seen.frame.octets).ok()?;
            let is_it = packet.bth.is_some_and(|bth| bth.psn.get() == number);
            is_it.then(|| format!("port {} VL{}", seen.port, packet.lrh.virtual_lane.get()))
        });
        let (first, more) = (left.next(), left.count());
        let expected = (lane < LANES).then(|| format!("port {to} VL{lane}"));
        ensure(first == expected && more == 0, || {
            format!("from port {from} to {to} at level {level}: {first:?}, expected {expected:?}")
        })?;
        relayed += u64::from(expected.is_some());
        discarded += u64::from(expected.is_none());
    }
    let counted: u64 = (1..=PORTS).map(|port| record.drops(port, DropReason::Lane)).sum();
    same("packets counted under vl", counted, discarded)?;
    Ok(format!(
        "12 pairs of ports × 16 levels: {relayed} on the lane of the table, {discarded} discarded as vl"
    ))
}

/// Backlogs of full frames for port 3: by each port of `sources`, on this lane.
fn backlogged(arbitration: &str, sources: &'static [(u8, u8)]) -> Result<Record, Failure> {
    let link = format!("vls = 3, arbitration = {arbitration}");
    let rest = "sl2vl = [0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n\
                switch = { buffer = \"72 mtu\" }";
    let stage = Stage::new(&star(4, "1100 ms", &link, rest), "s0")?;
    let mut script = Script::default();
    script.at(ms(200), |tester| {
        for (port, lane) in sources.iter().copied() {
            for psn in 0..700 {
                let shape = Packet::new(port.into(), 3, psn);
                let packet = Packet { lane, level: lane, payload: 2048, ..shape };
                tester.enqueue(port, packet.octets());
            }
        }
    });
    stage.run(script)
}

fn low() -> Result<Record, Failure> {
    backlogged("{ low = [[0, 64], [1, 192]] }", &[(1, 0), (2, 1)])
}

fn limited(high_limit: u8) -> Result<Record, Failure> {
    let tables = format!("{{ high = [[2, 255]], low = [[0, 4]], high_limit = {high_limit} }}");
    backlogged(&tables, &[(1, 2), (2, 2), (4, 0)])
}

/// Full frames of two lanes that left while all were backlogged.
fn shares(record: &Record, lanes: [u8; 2]) -> Result<[u64; 2], Failure> {
    let shares = lanes.map(|lane| record.on_lane(3, lane, BUSY.0, BUSY.1) as u64);
    let line = BUSY.1.since(BUSY.0).as_ps() / us(1).as_ps() * 10 / 8 / FULL_FRAME;
    let both = shares[0] + shares[1];
    ensure(both * 100 >= line * 97, || format!("{both} frames of {line}: the line was idle"))?;
    Ok(shares)
}

/// IBARB-02.
pub fn low_weights() -> Finding {
    let record = LOW.get()?;
    let [one, three] = shares(record.trusted()?, [0, 1])?;
    let (a, b) = (one * FULL_FRAME, three * FULL_FRAME);
    ensure((270..=330).contains(&(three * 100 / one.max(1))), || {
        format!("VL0 {a} and VL1 {b} octets, expected 1:3 ± 10 %")
    })?;
    Ok(format!("weights 64:192, both backlogged: VL0 {a} and VL1 {b} octets"))
}

/// IBARB-03.
pub fn high_limit() -> Finding {
    let mut seen = Vec::new();
    for (cached, limit) in LIMITS.iter().zip([0, 1, 255]) {
        let record = cached.get()?;
        let [low, high] = shares(record.trusted()?, [0, 2])?;
        // Octets of high packets for each low one: what the limit says, in whole packets.
        let holds = match limit {
            0 => (90..=110).contains(&(high * 100 / low.max(1))),
            1 => {
                let each = high * FULL_FRAME / low.max(1);
                (4_096 * 9 / 10..=4_096 * 11 / 10).contains(&each)
            }
            _ => low == 0,
        };
        ensure(holds, || format!("limit {limit}: {high} high and {low} low packets"))?;
        seen.push(format!("limit {limit}: {high} high and {low} low packets"));
    }
    Ok(seen.join("; "))
}
