//! QOS-01 and QOS-02: each code point in its queue and its priority group.
//!
//! The way out is shut for all priorities while frames come, then opened for one after the other.

use super::OUT;
use crate::ethernet::*;
use crate::prelude::*;
use proto::wire::classify::PriorityMap;
use proto::wire::roce::PacketBuilder;
use switchd::config::SwitchConfig;
use testbed::frames::ethernet::{frame, over_ipv6, plain, roce, tag, with_dscp};

static RUNS: [Shared<Record>; 2] =
    [Shared::new(|on| run(on, &MAPS[0])), Shared::new(|on| run(on, &MAPS[1]))];

const PAYLOAD: usize = 256;
/// When the way out is shut, when frames come, and when and how long it is open for each priority.
const SHUT: Instant = ms(100);
const COME: Instant = ms(110);
const COME_EVERY: Duration = us(1_000);
const OPEN: Instant = ms(300);
const OPEN_FOR: Duration = us(36_000);
/// The priority of what a map of a case's own does not name.
const OTHER: u8 = 6;

/// A map of 64 DSCPs or of 8 PCPs to priorities.
struct Map {
    /// The scenario's name of what priorities come from.
    source: &'static str,
    /// The priority of each code point.
    of: fn(u8) -> u8,
    /// The priority of frames without one.
    other: u8,
    /// What a switch is configured with, where no scenario can express it.
    switch: fn(&mut SwitchConfig),
}

/// The maps of a scenario, and on the virtual clock three others: one DSCP alone in its queue, no two
/// neighbours in one queue, and PCPs turned around.
static MAPS: [Map; 5] = [
    Map { source: "dscp", of: |dscp| dscp >> 3, other: 0, switch: |_| {} },
    Map { source: "pcp", of: |pcp| pcp, other: 0, switch: |_| {} },
    Map { source: "dscp", of: alone, other: OTHER, switch: |config| set(config, by_dscp(alone)) },
    Map { source: "dscp", of: spread, other: OTHER, switch: |config| set(config, by_dscp(spread)) },
    Map { source: "pcp", of: |pcp| 7 - pcp, other: OTHER, switch: |config| set(config, turned()) },
];

fn alone(dscp: u8) -> u8 {
    if dscp == 26 { 3 } else { 0 }
}

fn spread(dscp: u8) -> u8 {
    (5 * (dscp & 7) + (dscp >> 3) + 3) % 8
}

fn by_dscp(of: fn(u8) -> u8) -> PriorityMap {
    let table = std::array::from_fn(|dscp| Priority::truncate(of(dscp as u8)));
    PriorityMap::Dscp { table, other: Priority::truncate(OTHER) }
}

fn turned() -> PriorityMap {
    let table = std::array::from_fn(|pcp| Priority::truncate(7 - pcp as u8));
    PriorityMap::Pcp { table, untagged: Priority::truncate(OTHER) }
}

fn set(config: &mut SwitchConfig, map: PriorityMap) {
    for port in &mut config.ports {
        if let FlowControlConfig::Pause(pause) = &mut port.link.control {
            pause.priorities = map;
        }
    }
}

/// Frames with their code points, and the priority of each: every DSCP over IPv4 and IPv6, and a frame
/// without one; or every PCP, on IP with another DSCP and on other frames, and frames without a tag.
fn entries(map: &Map) -> Vec<(Frame, u8)> {
    let Map { source, of, other, .. } = map;
    if *source == "dscp" {
        let dscps = |dscp: u8| {
            let builder = with_dscp(&roce(1, OUT.into(), 0, 0), dscp);
            [builder, over_ipv6(&builder)].map(|builder| (frame(&builder, PAYLOAD), of(dscp)))
        };
        let not_ip = (plain(1, OUT.into(), Some(tag(7)), 200), *other);
        return (0..64).flat_map(dscps).chain([not_ip]).collect();
    }
    let pcps = |pcp: u8| {
        let ip = PacketBuilder { tag: Some(tag(pcp)), ..roce(1, OUT.into(), 1, 0) };
        let both = [frame(&ip, PAYLOAD), plain(1, OUT.into(), Some(tag(pcp)), 200)];
        both.map(|frame| (frame, of(pcp)))
    };
    let bare = [frame(&roce(1, OUT.into(), 7, 0), PAYLOAD), plain(1, OUT.into(), None, 200)];
    (0..8).flat_map(pcps).chain(bare.map(|frame| (frame, *other))).collect()
}

fn run(on: Level, map: &Map) -> Result<Record> {
    let link = format!("priorities = \"{}\"", map.source);
    let stage = Stage::new(on, &star(OUT, "600 ms", &link, &roomy("")), "s0")?;
    Stage { switch: map.switch, ..stage }.play(|script| {
        script.at(SHUT, |bed| bed.pfc(OUT, 0xff, LONG));
        for (number, (frame, _)) in (0u64..).zip(entries(map)) {
            script.at(COME + COME_EVERY * number, move |bed| bed.send_frame(1, &frame));
        }
        script.every(OPEN, OPEN_FOR, 8, |bed, priority| bed.pfc(OUT, 1 << priority, 0));
    })
}

/// Each frame left by its queue, in order, unchanged, and no other port; how many there were.
fn queues(record: &Record, map: &Map) -> Result<usize> {
    let entries = entries(map);
    for priority in 0..8u8 {
        let from = OPEN + OPEN_FOR * u64::from(priority);
        let left = record.packets(OUT).within((from, from + OPEN_FOR));
        let left: Vec<_> = left.map(|seen| &seen.frame.octets).collect();
        let expected = entries.iter().filter(|(_, of)| *of == priority);
        let expected: Vec<_> = expected.map(|(frame, _)| &frame.octets).collect();
        ensure!(left == expected, "queue {priority} sends {} frames", left.len());
        let counted = record.lane(OUT, priority).tx_frames;
        same(format!("counter of queue {priority}"), counted as usize, expected.len())?;
    }
    for port in 1..OUT {
        same(format!("frames out of port {port}"), record.packets(port).count(), 0)?;
    }
    record.nothing_lost(&[])?;
    Ok(entries.len())
}

/// Each frame was in the group of its priority: octets that stood there, and frames counted.
fn groups(record: &Record, map: &Map) -> Result<()> {
    let entries = entries(map);
    for priority in 0..8u8 {
        let here = entries.iter().filter(|(_, of)| *of == priority);
        let octets: u64 = here.clone().map(|(frame, _)| frame.line_size().get()).sum();
        let lane = record.lane(1, priority);
        same(format!("frames of group {priority}"), lane.rx_frames as usize, here.count())?;
        same(format!("most octets of group {priority}"), lane.in_queue.max, octets)?;
    }
    Ok(())
}

/// QOS-01 and QOS-02: a scenario's maps on both levels, all on the virtual clock.
fn judge(on: Level, look: fn(&Record, &Map) -> Result<()>) -> Result<usize> {
    for (map, shared) in MAPS.iter().zip(&RUNS) {
        look(&*shared.on(on)?, map)?;
    }
    let others = on.swept(&MAPS[RUNS.len()..]);
    for map in others {
        look(&run(on, map)?, map)?;
    }
    Ok(RUNS.len() + others.len())
}

/// QOS-01.
pub fn dscp_to_queue(on: Level) -> Finding {
    let maps = judge(on, |record, map| queues(record, map).map(drop))?;
    Ok(format!("64 DSCPs, 8 PCPs, {maps} maps: each in its queue and in no other"))
}

/// QOS-02.
pub fn to_priority_group(on: Level) -> Finding {
    let maps = judge(on, groups)?;
    Ok(format!("64 DSCPs and 8 PCPs under {maps} maps, frames without either: each in its group"))
}
