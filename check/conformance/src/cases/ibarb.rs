//! IBARB: InfiniBand: SL/VL and arbitration: a switch with more than one line's worth of packets for a port,
//! read off that line.

use crate::ethernet::RATE;
use crate::prelude::*;
use crate::star::star;
use proto::link::ArbitrationConfig;
use proto::wire::infiniband::Packet as Parsed;
use switchd::switch::Switch;
use testbed::frames::infiniband::Packet;

/// Octets of a full payload.
const MTU: usize = 2048;
/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("IBARB-01", service_levels),
    ("IBARB-02", low_weights),
    ("IBARB-03", high_limit),
    ("IBARB-04", weight_zero),
    ("IBARB-05", super::ibfc::blocked_lane),
    ("IBARB-06", one_reader),
];

/// Octets of a full frame, LRH to VCRC.
const FULL_FRAME: u64 = 2074;
/// When the lines are busy and no queue has run dry.
const BUSY: (Instant, Instant) = (ms(300), ms(1_000));

static MAP: Shared<Record> = Shared::new(map);
static LIMITS: [Shared<Record>; 3] = [
    Shared::new(|on| limited(on, 0)),
    Shared::new(|on| limited(on, 1)),
    Shared::new(|on| limited(on, 255)),
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

fn map(on: Level) -> Result<Record> {
    let stage = Stage::new(on, &star(PORTS, "700 ms", "vls = 4", ""), "s0")?;
    let stage = Stage { switch: |config| config.sl2vl = planned_lanes(PORTS), ..stage };
    stage.play(|script| {
        for (number, from, to, level) in pairs() {
            let shape = Packet::new(from.into(), to.into(), number);
            let packet = Packet { lane: level % LANES, level, ..shape };
            let at = FIRST + us(2_000) * u64::from(number);
            script.at(at, move |bed| bed.send(from, &packet.octets()));
        }
    })
}

/// IBARB-01.
pub fn service_levels(on: Level) -> Finding {
    let record = MAP.on(on)?;
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
        same(format!("{from} to {to} at level {level}"), (first, more), (expected.clone(), 0))?;
        relayed += u64::from(expected.is_some());
        discarded += u64::from(expected.is_none());
    }
    let counted: u64 = (1..=PORTS).map(|port| record.drops(port, DropReason::Lane)).sum();
    same("packets counted under vl", counted, discarded)?;
    Ok(format!("192 pairs and levels: {relayed} on the lane of the table, {discarded} discarded"))
}

/// Backlogs of full frames for port 3: by each port of `sources`, on this lane.
fn backlogged(on: Level, arbitration: &str, sources: &'static [(u8, u8)]) -> Result<Record> {
    let link = format!("vls = 3, arbitration = {arbitration}");
    let rest = "sl2vl = [0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n\
                switch = { buffer = \"72 mtu\" }";
    play(on, &star(4, "1100 ms", &link, rest), "s0", |script| {
        script.at(ms(200), |bed| {
            for (port, lane) in sources.iter().copied() {
                for psn in 0..700 {
                    let shape = Packet::new(port.into(), 3, psn);
                    let packet = Packet { lane, level: lane, payload: 2048, ..shape };
                    bed.enqueue(port, packet.octets());
                }
            }
        });
    })
}

static LOW: Shared<Record> =
    Shared::new(|on| backlogged(on, "{ low = [[0, 64], [1, 192]] }", &[(1, 0), (2, 1)]));

fn limited(on: Level, high_limit: u8) -> Result<Record> {
    let tables = format!("{{ high = [[2, 255]], low = [[0, 4]], high_limit = {high_limit} }}");
    backlogged(on, &tables, &[(1, 2), (2, 2), (4, 0)])
}

/// Inputs 1 and 2 hold packets for outputs 3 and 4, by which credit lets nothing leave until a while apart: input 1 two
/// for output 3 and then one for output 4, input 2 one for output 4. Only one output may read an input, or any.
fn read_by(on: Level, read: &str) -> Result<Record> {
    let rest = format!("switch = {{ buffer = \"36 mtu\", read = \"{read}\" }}");
    play(on, &star(4, "300 ms", "", &rest), "s0", |script| {
        script.at(FIRST, |bed| [3, 4].iter().for_each(|port| bed.offer(*port, 0, 0)));
        script.at(FIRST + us(10_000), |bed| {
            for (from, to) in [(1, 3), (1, 3), (1, 4), (2, 4)] {
                let packet = Packet { payload: 2048, ..Packet::new(from.into(), to, 0) };
                bed.enqueue(from, packet.octets());
            }
        });
        script.at(FIRST + us(30_000), |bed| bed.offer(3, 0, OFFER_MAX));
        script.at(FIRST + us(30_400), |bed| bed.offer(4, 0, OFFER_MAX));
    })
}

/// IBARB-06.
fn one_reader(on: Level) -> Finding {
    let frame = Duration::from_ns(FULL_FRAME * 800);
    for read in ["single", "multi"] {
        let record = read_by(on, read)?;
        let sources = |port| record.packets(port).map(|seen| (seen.frame.octets[7], seen));
        let first: Vec<_> = sources(3).collect();
        let other: Vec<_> = sources(4).collect();
        same("packets by outputs 3 and 4", (first.len(), other.len()), (2, 2))?;
        let [one, two] = [&other[0], &other[1]];
        // Flow control may be on the line.
        let (begun, within) = (one.1.start(RATE), us(50) + record.within(us(200)));
        ensure!(begun < first[0].1.at, "{read}: output 4 waits until {begun}");
        if read == "multi" {
            same("inputs that output 4 reads", [one.0, two.0], [1, 2])?;
            near("its second packet", two.1.start(RATE), one.1.at, within)?;
        } else {
            same("inputs that output 4 reads, one reader each", [one.0, two.0], [2, 1])?;
            // Input 1 is free when output 3 has read both.
            near("its second packet", two.1.start(RATE), first[1].1.at, within)?;
        }
        near("packets of output 3", first[1].1.at, first[0].1.at + frame, within)?;
    }
    Ok("an input that is being read is passed over for the next, and waits for its reader; with any number \
        of readers nothing waits"
        .into())
}

/// Full frames of two lanes that left while all were backlogged.
fn shares(record: &Record, lanes: [u8; 2]) -> Result<[u64; 2]> {
    let shares = lanes.map(|lane| record.on_lane(3, lane, BUSY));
    let line = BUSY.1.since(BUSY.0).as_ps() / us(1).as_ps() * 10 / 8 / FULL_FRAME;
    let both = shares[0] + shares[1];
    ensure!(both * 100 >= line * 97, "{both} frames of {line}: the line was idle");
    Ok(shares)
}

/// IBARB-02.
pub fn low_weights(on: Level) -> Finding {
    let record = LOW.on(on)?;
    let [one, three] = shares(&record, [0, 1])?;
    let (a, b) = (one * FULL_FRAME, three * FULL_FRAME);
    ensure!((270..=330).contains(&(three * 100 / one.max(1))), "{a} and {b} octets, not 1:3");
    on.only_engine(by_weight_exactly)?;
    Ok(format!("weights 64:192, both backlogged: VL0 {a} and VL1 {b} octets"))
}

/// IBARB-03.
pub fn high_limit(on: Level) -> Finding {
    let mut seen = Vec::new();
    for (cached, limit) in LIMITS.iter().zip([0, 1, 255]) {
        let record = cached.on(on)?;
        let [low, high] = shares(&record, [0, 2])?;
        // Octets of high packets for each low one: as the limit requires, in whole packets.
        let holds = match limit {
            0 => (90..=110).contains(&(high * 100 / low.max(1))),
            1 => {
                let each = high * FULL_FRAME / low.max(1);
                (4_096 * 9 / 10..=4_096 * 11 / 10).contains(&each)
            }
            _ => low == 0,
        };
        ensure!(holds, "limit {limit}: {high} high and {low} low packets");
        seen.push(format!("limit {limit}: {high} high and {low} low packets"));
    }
    on.only_engine(by_limit_exactly)?;
    Ok(seen.join("; "))
}

/// The lanes in the order in which `each` packets on every lane of `lanes` leave port 4, all of them
/// waiting before the first does: a management packet holds the line meanwhile.
fn order(
    tables: ArbitrationConfig,
    lanes: &[u8],
    each: u32,
    payload: usize,
) -> Result<(Bench<Switch>, Vec<u8>)> {
    let rest = "sl2vl = [0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n\
                switch = { buffer = \"200 mtu\" }";
    let mut config =
        Stage::new(Level::Engine, &star(PORTS, "1 s", "vls = 4", rest), "s0")?.switch_config()?;
    if let FlowControlConfig::Credit(credits) = &mut config.ports[3].link.control {
        credits.arbitration = tables;
    }
    let switch = Switch::new(config)?;
    let mut bench = Bench::new(switch, LANES).up()?;
    let packet =
        |lane, level, psn, payload| Packet { lane, level, payload, ..Packet::new(1, 4, psn) };
    bench.inject(1, packet(15, 0, 0, 256).frame());
    for psn in 0..each {
        lanes.iter().for_each(|lane| bench.inject(1, packet(*lane, *lane, psn, payload).frame()));
    }
    let size = Bytes::new(payload as u64 + 100);
    bench.run_for(size.time_at(RATE) * (u64::from(each) * (lanes.len() as u64 + 1)));
    let order: Vec<u8> = bench.packets(4).map(|sent| sent.frame.octets[0] >> 4).collect();
    let (first, rest) = order.split_first().ok_or("nothing left port 4")?;
    same("the first lane served", *first, 15)?;
    let rest = rest.to_vec();
    Ok((bench, rest))
}

/// Runs of the same lane, as in "0×2 1×6".
fn runs(order: &[u8]) -> String {
    let runs = order.chunk_by(|a, b| a == b).map(|run| format!("{}×{}", run[0], run.len()));
    runs.collect::<Vec<_>>().join(" ")
}

/// The order of lanes by weight, packet by packet.
fn by_weight_exactly() -> Result<()> {
    for (weights, payload, each) in [((1, 3), 8, 60), ((64, 192), MTU, 36), ((1, 3), MTU, 36)] {
        let low = vec![(0, weights.0), (1, weights.1)];
        let tables = ArbitrationConfig { high: Vec::new(), low, high_limit: 0 };
        let (_, order) = order(tables, &[0, 1], each, payload)?;
        let octets = payload as u64 + 26;
        let share = |weight: u8| (u64::from(weight) * 64).div_ceil(octets) as usize;
        let (zero, one) = (share(weights.0), share(weights.1));
        // As long as both lanes have something to send.
        let rounds = each as usize / one.max(zero);
        let found = &order[..rounds * (zero + one)];
        let round = format!("0×{zero} 1×{one}");
        let expected = vec![round; rounds].join(" ");
        let what = format!("the order at {}:{} with {octets} octets", weights.0, weights.1);
        same(what, runs(found), expected)?;
    }
    Ok(())
}

/// The order of lanes by limit, packet by packet.
fn by_limit_exactly() -> Result<()> {
    const EACH: u32 = 24;
    // Limit, payload, high packets before each low one; none: all of them.
    let rows = [(0, MTU, Some(1)), (1, MTU, Some(2)), (1, 1024, Some(4)), (255, MTU, None)];
    for (high_limit, payload, high_per_low) in rows {
        let tables = ArbitrationConfig { high: vec![(2, 255)], low: vec![(0, 4)], high_limit };
        let (_, order) = order(tables, &[0, 2], EACH, payload)?;
        let (all, per_low) = (EACH as usize, high_per_low.unwrap_or(EACH as usize));
        let rounds = all / per_low;
        let alternating = vec![format!("2×{per_low} 0×1"); rounds].join(" ");
        let found = runs(&order[..all + rounds]);
        let expected = match high_per_low {
            Some(_) => alternating,
            // The low lane gets what the high one leaves: nothing before its last packet.
            None => format!("2×{all} 0×1"),
        };
        same(format!("the order at limit {high_limit}"), found, expected)?;
    }
    Ok(())
}

/// IBARB-04.
fn weight_zero(_: Level) -> Finding {
    let tables =
        ArbitrationConfig { high: vec![(1, 0), (2, 4)], low: vec![(3, 0), (0, 4)], high_limit: 1 };
    let (mut bench, order) = order(tables, &[0, 1, 2, 3], 20, MTU)?;
    let count = |lane: u8| order.iter().filter(|other| **other == lane).count();
    same("packets of VL0 and VL2, weight 4", [count(0), count(2)], [20, 20])?;
    same("packets of VL1 and VL3, weight 0", count(1) + count(3), 0)?;
    same("packets still waiting", bench.reading().balance.buffered, 40)?;
    Ok("20 each of the lanes with weight, none of the 40 without".into())
}

/// The lane that IBARB-01 plans for a service level from a port to a port, counted from 1: 0 to 3,
/// which a switch of four lanes has, 5, which it has not, or 15.
fn planned_lane(input: u8, output: u8, level: u8) -> u8 {
    match (3 * input + 5 * output + level) % 6 {
        4 => 15,
        lane => lane,
    }
}

/// [`planned_lane`] in the order of a switch's configuration.
fn planned_lanes(ports: u8) -> Vec<u8> {
    let pairs = (1..=ports).flat_map(|input| (1..=ports).map(move |output| (input, output)));
    let lanes = pairs
        .flat_map(|(input, output)| (0..16).map(move |level| planned_lane(input, output, level)));
    lanes.collect()
}
