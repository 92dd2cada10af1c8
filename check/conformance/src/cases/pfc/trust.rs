//! PFC-24: which priority a frame has, for the pause that holds it, the pause that its buffer
//! sends and the queue it leaves; by DSCP and by PCP.

use crate::ethernet::*;
use crate::prelude::*;
use testbed::frames::ethernet::{frame, plain, roce, tag};

/// Octets of payload.
const MTU: usize = 2048;

static RUNS: [Shared<Record>; 2] =
    [Shared::new(|on| run(on, "dscp")), Shared::new(|on| run(on, "pcp"))];

/// The code points of the frames: different ones in tag and IP header.
const PCP: u8 = 5;
const DSCP: u8 = 3;
/// Frames of which the last ones lead to XOFF.
const FRAMES: u64 = SHARED_FRAMES + 1;
const BEGIN: Instant = ms(120);
const END: Instant = ms(200);

/// What is sent from which port to the next, and its priority by DSCP and by PCP.
fn kinds() -> [(&'static str, u8, Frame, [u8; 2]); 4] {
    let tagged = |to| {
        let mut builder = roce(1, to, DSCP, 0);
        builder.tag = Some(tag(PCP));
        frame(&builder, MTU)
    };
    [
        ("tagged IP", 1, tagged(2), [DSCP, PCP]),
        ("untagged IP", 3, frame(&roce(3, 4, DSCP, 0), MTU), [DSCP, 0]),
        ("tagged frames that are not IP", 5, plain(5, 6, Some(tag(PCP)), MTU), [0, PCP]),
        ("untagged frames that are not IP", 7, plain(7, 8, None, MTU), [0, 0]),
    ]
}

fn run(on: Level, priorities: &str) -> Result<Record> {
    let link = format!("priorities = \"{priorities}\", lossless = [0, 1, 2, 3, 4, 5, 6, 7]");
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "");
    let by = usize::from(priorities == "pcp");
    play(on, &star(8, "450 ms", &link, &room), "s0", |script| {
        for (_, port, frame, of) in kinds() {
            // All others may go: only this priority's pause holds it.
            script.pause((ms(100), END), &[port + 1], 1 << of[by]);
            script.every(BEGIN, Duration::ZERO, FRAMES, move |bed, _| bed.send_frame(port, &frame));
        }
    })
}

/// PFC-24.
pub fn configured_source(on: Level) -> Finding {
    for (by, (cached, name)) in RUNS.iter().zip(["DSCP", "PCP"]).enumerate() {
        let record = cached.on(on)?;
        for (what, port, frame, of) in kinds() {
            let priority = of[by];
            let what = format!("{what} by {name}");
            let early = record.packets(port + 1).filter(|seen| seen.at < END).count();
            same(format!("{what}: frames that pass the pause"), early, 0)?;
            for other in 0..8 {
                let pauses = !record.pauses(port, other).is_empty();
                same(format!("{what}: XOFF for priority {other}"), pauses, other == priority)?;
            }
            let left = record.packets(port + 1).filter(|seen| seen.frame.octets == frame.octets);
            same(format!("{what}: frames that leave unchanged"), left.count() as u64, FRAMES)?;
            let lane = record.port(port + 1).lanes[usize::from(priority)];
            same(format!("{what}: sent of the queue"), lane.counters.tx_frames, FRAMES)?;
            let octets = FRAMES * frame.line_size().get();
            let group = record.lane(port, priority).in_queue.max;
            same(format!("{what}: most octets in the buffer"), group, octets)?;
            let queue = lane.counters.out_queue.max;
            same(format!("{what}: most octets in the queue"), queue, octets)?;
        }
        record.nothing_lost(&[])?;
    }
    Ok("pause, PFC and queue go by one priority, from DSCP or PCP as configured, for tagged and untagged \
        frames of IP and others, which leave as they came"
        .to_owned())
}
