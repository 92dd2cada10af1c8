//! QOS-01 and QOS-02 live: each code point in its queue and its priority group.
//!
//! The way out is shut for all priorities while frames come, then opened for one after the other.

use super::OUT;
use crate::bench::packets::ethernet::{frame, over_ipv6, plain, roce, tag, with_dscp};
use crate::case::{Failure, Finding, ensure, same};
use crate::live::cached::Cached;
use crate::live::ethernet::{LONG, roomy, star};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::Script;
use crate::live::{ms, us};
use proto::frame::Frame;
use proto::units::{Duration, Instant};
use proto::wire::roce::PacketBuilder;

static DSCP: Cached<Record> = Cached::new(|| run("dscp", dscps()), |record| record.fidelity.ok);
static PCP: Cached<Record> = Cached::new(|| run("pcp", pcps()), |record| record.fidelity.ok);

const PAYLOAD: usize = 256;
/// When the way out is shut, when frames come, and when and how long it is open for each priority.
const SHUT: Instant = ms(100);
const COME: Instant = ms(110);
const COME_EVERY: Duration = us(1_000);
const OPEN: Instant = ms(300);
const OPEN_FOR: Duration = us(30_000);

/// Frames that say something, and the priority that this is.
type Said = Vec<(Frame, u8)>;

/// Every DSCP over IPv4 and IPv6, and a frame that has none.
fn dscps() -> Said {
    let of = |dscp: u8| {
        let builder = with_dscp(&roce(1, OUT.into(), 0, 0), dscp);
        [builder, over_ipv6(&builder)].map(|builder| (frame(&builder, PAYLOAD), dscp >> 3))
    };
    let not_ip = (plain(1, OUT.into(), Some(tag(7)), 200), 0);
    (0..64).flat_map(of).chain([not_ip]).collect()
}

/// Every PCP, on IP that says something else and on what is not IP; and frames without a tag.
fn pcps() -> Said {
    let of = |pcp: u8| {
        let ip = PacketBuilder { tag: Some(tag(pcp)), ..roce(1, OUT.into(), 1, 0) };
        [(frame(&ip, PAYLOAD), pcp), (plain(1, OUT.into(), Some(tag(pcp)), 200), pcp)]
    };
    let bare = [frame(&roce(1, OUT.into(), 7, 0), PAYLOAD), plain(1, OUT.into(), None, 200)];
    (0..8).flat_map(of).chain(bare.map(|frame| (frame, 0))).collect()
}

fn run(priorities: &str, said: Said) -> Result<Record, Failure> {
    let link = format!("priorities = \"{priorities}\"");
    let stage = Stage::new(&star(OUT, "600 ms", &link, &roomy("")), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| tester.pfc(OUT, 0xff, LONG));
    for (number, (frame, _)) in (0u64..).zip(said) {
        script.at(COME + COME_EVERY * number, move |tester| tester.send_frame(1, &frame));
    }
    for priority in 0..8u8 {
        let at = OPEN + OPEN_FOR * u64::from(priority);
        script.at(at, move |tester| tester.pfc(OUT, 1 << priority, 0));
    }
    stage.run(script)
}

/// Each frame left by its queue, in order, unchanged, and no other port; how many there were.
fn queues(record: &Record, said: &Said) -> Result<usize, Failure> {
    for priority in 0..8u8 {
        let from = OPEN + OPEN_FOR * u64::from(priority);
        let window = |at: Instant| at >= from && at < from + OPEN_FOR;
        let left = record.packets(OUT).filter(|seen| window(seen.at));
        let left: Vec<_> = left.map(|seen| &seen.frame.octets).collect();
        let expected = said.iter().filter(|(_, of)| *of == priority);
        let expected: Vec<_> = expected.map(|(frame, _)| &frame.octets).collect();
        ensure(left == expected, || {
            format!("queue {priority} sends {} frames, expected {}", left.len(), expected.len())
        })?;
        let counted = record.port(OUT).lanes[usize::from(priority)].counters.tx_frames;
        same(format!("counter of queue {priority}"), counted as usize, expected.len())?;
    }
    for port in 1..OUT {
        same(format!("frames out of port {port}"), record.packets(port).count(), 0)?;
    }
    record.nothing_lost(&[])?;
    Ok(said.len())
}

/// Each frame was in the group of its priority: octets that stood there, and frames counted.
fn groups(record: &Record, said: &Said) -> Result<(), Failure> {
    for priority in 0..8u8 {
        let here = said.iter().filter(|(_, of)| *of == priority);
        let octets: u64 = here.clone().map(|(frame, _)| frame.line_size().get()).sum();
        let lane = record.port(1).lanes[usize::from(priority)].counters;
        same(format!("frames of group {priority}"), lane.rx_frames as usize, here.count())?;
        same(format!("most octets of group {priority}"), lane.in_queue.max, octets)?;
    }
    Ok(())
}

/// QOS-01.
pub fn dscp_to_queue() -> Finding {
    let record = DSCP.get()?;
    let count = queues(record.trusted()?, &dscps())?;
    Ok(format!("{count} frames, 64 DSCPs over IPv4 and IPv6: each in its queue and in no other"))
}

/// QOS-02.
pub fn to_priority_group() -> Finding {
    let record = DSCP.get()?;
    groups(record.trusted()?, &dscps())?;
    let record = PCP.get()?;
    let count = queues(record.trusted()?, &pcps())?;
    groups(record.trusted()?, &pcps())?;
    Ok(format!("64 DSCPs in their groups; {count} frames, 8 PCPs, in their queues and groups"))
}
