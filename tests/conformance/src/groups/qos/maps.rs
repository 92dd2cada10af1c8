//! QOS-01 and QOS-02: the queue and the priority group of each DSCP and each PCP.

use super::{OUT, bench};
use crate::bench::Bench;
use crate::bench::devices::ethernet::{FRAME_TIME, roomy, switch, with_pause};
use crate::bench::packets::ethernet::{frame, over_ipv6, plain, roce, tag, with_dscp};
use crate::case::{Failure, Finding, ensure, same};
use proto::frame::Frame;
use proto::ids::Priority;
use proto::wire::classify::PriorityMap;
use proto::wire::roce::PacketBuilder;
use switchd::switch::Switch;

/// Octets of payload, so that frames are small.
const PAYLOAD: usize = 64;
/// The priority of what a map does not speak of.
const OTHER: u8 = 6;

/// A map of 64 DSCPs, and what it is meant to say.
type DscpMap = (&'static str, PriorityMap, fn(u8) -> u8);

fn by_dscp(of: fn(u8) -> u8) -> PriorityMap {
    let table = std::array::from_fn(|dscp| Priority::truncate(of(dscp as u8)));
    PriorityMap::Dscp { table, other: Priority::truncate(OTHER) }
}

/// One DSCP alone in its queue.
const ALONE: fn(u8) -> u8 = |dscp| if dscp == 26 { 3 } else { 0 };
/// No two neighbours in one queue.
const SPREAD: fn(u8) -> u8 = |dscp| (5 * (dscp & 7) + (dscp >> 3) + 3) % 8;

fn dscp_maps() -> [DscpMap; 3] {
    [
        ("class selectors", PriorityMap::BY_DSCP, |dscp| dscp >> 3),
        ("one DSCP alone", by_dscp(ALONE), ALONE),
        ("neighbours apart", by_dscp(SPREAD), SPREAD),
    ]
}

fn saying(dscp: u8, ipv6: bool) -> Frame {
    let builder = roce(1, OUT.into(), 0, 0);
    let builder = if ipv6 { over_ipv6(&builder) } else { builder };
    frame(&with_dscp(&builder, dscp), PAYLOAD)
}

/// QOS-01: a frame a DSCP, over IPv4 and IPv6, under three maps.
pub fn dscp_to_queue() -> Finding {
    for (what, map, of) in dscp_maps() {
        let frames = (0..64).flat_map(|dscp| [(dscp, false), (dscp, true)]);
        let frames = frames.map(|(dscp, ipv6)| (saying(dscp, ipv6), of(dscp)));
        walk(what, map, frames, Side::Queue)?;
    }
    Ok("64 DSCPs over IPv4 and IPv6, 3 maps: each in its queue and in no other".to_owned())
}

/// The priority of a code point.
type Expected = fn(u8) -> u8;

/// QOS-02: the same frames in the buffer of their input; tags in both.
pub fn to_priority_group() -> Finding {
    for (what, map, of) in dscp_maps() {
        let frames = (0..64).map(|dscp| (saying(dscp, false), of(dscp)));
        let other = if map == PriorityMap::BY_DSCP { 0 } else { OTHER };
        let not_ip = (plain(1, OUT.into(), Some(tag(7)), 200), other);
        walk(what, map, frames.chain([not_ip]), Side::Group)?;
    }
    let turned = PriorityMap::Pcp {
        table: std::array::from_fn(|pcp| Priority::truncate(7 - pcp as u8)),
        untagged: Priority::truncate(OTHER),
    };
    let maps: [(&str, PriorityMap, Expected, u8); 2] =
        [("PCP", PriorityMap::BY_PCP, |pcp| pcp, 0), ("PCP turned", turned, |pcp| 7 - pcp, OTHER)];
    for (what, map, of, untagged) in maps {
        for side in [Side::Queue, Side::Group] {
            let tagged = |pcp: u8| {
                // The DSCP says something else.
                let ip = PacketBuilder { tag: Some(tag(pcp)), ..roce(1, OUT.into(), 1, 0) };
                [frame(&ip, PAYLOAD), plain(1, OUT.into(), Some(tag(pcp)), 200)]
            };
            let frames = (0..8).flat_map(|pcp| tagged(pcp).map(|frame| (frame, of(pcp))));
            let bare = [saying(63, false), plain(1, OUT.into(), None, 200)];
            walk(what, map, frames.chain(bare.map(|frame| (frame, untagged))), side)?;
        }
    }
    Ok("64 DSCPs under 3 maps, 8 PCPs under 2, frames without either: each in its priority group \
        (those with PCPs in their queues too) and in no other"
        .to_owned())
}

/// Which end of the way through the switch is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Queue,
    Group,
}

/// Octets by priority.
fn held(bench: &mut Bench<Switch>, side: Side) -> [u64; 8] {
    match side {
        Side::Queue => bench.queued(OUT),
        Side::Group => std::array::from_fn(|priority| bench.held(1, priority as u8)),
    }
}

/// Frames with the priorities that they should have, one after the other into a switch that lets none
/// out; then all at once out of it.
fn walk(
    what: &str,
    map: PriorityMap,
    frames: impl Iterator<Item = (Frame, u8)>,
    side: Side,
) -> Result<(), Failure> {
    let config = with_pause(roomy(switch(OUT)), |pause| {
        pause.priorities = map;
        pause.obeyed = 0xff;
    });
    let mut bench = bench(config)?;
    let before = bench.reading();
    bench.pfc(OUT, 0xff, u16::MAX);
    let (mut expected, mut counts) = ([0; 8], [0u64; 8]);
    for (number, (frame, priority)) in frames.enumerate() {
        expected[usize::from(priority)] += frame.line_size().get();
        counts[usize::from(priority)] += 1;
        bench.send(1, frame);
        let found = held(&mut bench, side);
        ensure(found == expected, || {
            format!("{what}: after frame {number} {side:?} holds {found:?}, expected {expected:?}")
        })?;
        for other in 1..OUT {
            ensure(bench.queued(other) == [0; 8], || format!("{what}: port {other} has a queue"))?;
        }
    }
    bench.pfc(OUT, 0xff, 0);
    bench.run_for(FRAME_TIME * 200);
    let reading = bench.reading();
    let sent = |p: usize| reading.ports[usize::from(OUT) - 1].lanes[p].counters.tx_frames;
    for (priority, count) in counts.into_iter().enumerate() {
        same(format!("{what}: frames sent of priority {priority}"), sent(priority), count)?;
    }
    bench.nothing_lost(&before)
}
