//! PFC-24 live: which priority a frame has, for the pause that holds it, the silence that its buffer
//! asks for and the queue it leaves; by DSCP and by PCP.

use super::super::ethernet::{HEADROOM_FRAMES, LONG, SHARED_FRAMES, memory, star};
use crate::bench::devices::MTU;
use crate::bench::packets::ethernet::{frame, plain, roce, tag};
use crate::case::{Failure, Finding, same};
use crate::live::cached::Cached;
use crate::live::ms;
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::Script;
use proto::frame::Frame;
use proto::units::Instant;

static RUNS: [Cached<Record>; 2] = [
    Cached::new(|| run("dscp"), |record| record.fidelity.ok),
    Cached::new(|| run("pcp"), |record| record.fidelity.ok),
];

/// What frames say: different things in tag and IP header.
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

fn run(priorities: &str) -> Result<Record, Failure> {
    let link = format!("priorities = \"{priorities}\", lossless = [0, 1, 2, 3, 4, 5, 6, 7]");
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "");
    let stage = Stage::new(&star(8, "450 ms", &link, &room), "s0")?;
    let by = usize::from(priorities == "pcp");
    let mut script = Script::default();
    for (_, port, frame, of) in kinds() {
        // All others may go: only this priority's pause holds it.
        script.at(ms(100), move |tester| tester.pfc(port + 1, 1 << of[by], LONG));
        script.at(BEGIN, move |tester| {
            (0..FRAMES).for_each(|_| tester.send_frame(port, &frame));
        });
        script.at(END, move |tester| tester.pfc(port + 1, 1 << of[by], 0));
    }
    stage.run(script)
}

/// PFC-24.
pub fn configured_source() -> Finding {
    for (by, (cached, name)) in RUNS.iter().zip(["DSCP", "PCP"]).enumerate() {
        let record = cached.get()?;
        let record = record.trusted()?;
        for (what, port, frame, of) in kinds() {
            let priority = of[by];
            let what = format!("{what} by {name}");
            let early = record.packets(port + 1).filter(|seen| seen.at < END).count();
            same(format!("{what}: frames that pass the pause"), early, 0)?;
            for other in 0..8 {
                let asked = !record.asked(port, other).is_empty();
                same(format!("{what}: XOFF for priority {other}"), asked, other == priority)?;
            }
            let left = record.packets(port + 1).filter(|seen| seen.frame.octets == frame.octets);
            same(format!("{what}: frames that leave unchanged"), left.count() as u64, FRAMES)?;
            let lane = record.port(port + 1).lanes[usize::from(priority)];
            same(format!("{what}: sent of the queue"), lane.counters.tx_frames, FRAMES)?;
        }
        record.nothing_lost(&[])?;
    }
    Ok("pause, PFC and queue go by one priority, from DSCP or PCP as configured, for tagged and untagged \
        frames of IP and others, which leave as they came"
        .to_owned())
}
