//! PFC-24: which priority a frame has, for the buffer it fills, the queue it waits in and the pause
//! that holds it.

use super::FOUR;
use crate::bench::Bench;
use crate::bench::devices::MTU;
use crate::bench::devices::ethernet::{
    CONTROL_TIME, FRAME_TIME, SHARED_FRAMES, switch, with_pause,
};
use crate::bench::packets::ethernet::{frame, plain, roce, tag};
use crate::case::{Failure, Finding, same};
use proto::frame::Frame;
use proto::wire::classify::PriorityMap;
use switchd::switch::Switch;

/// What frames say: different things in tag and IP header.
const PCP: u8 = 5;
const DSCP: u8 = 3;

type Make = fn() -> Frame;

fn tagged_ip() -> Frame {
    let mut builder = roce(1, 4, DSCP, 0);
    builder.tag = Some(tag(PCP));
    frame(&builder, MTU)
}

fn untagged_ip() -> Frame {
    frame(&roce(1, 4, DSCP, 0), MTU)
}

fn tagged_other() -> Frame {
    plain(1, 4, Some(tag(PCP)), MTU)
}

fn untagged_other() -> Frame {
    plain(1, 4, None, MTU)
}

/// PFC-24.
pub fn configured_source() -> Finding {
    let (by_pcp, by_dscp) = (PriorityMap::BY_PCP, PriorityMap::BY_DSCP);
    let cases: [(&str, PriorityMap, Make, u8); 8] = [
        ("tagged IP by PCP", by_pcp, tagged_ip, PCP),
        ("untagged IP by PCP", by_pcp, untagged_ip, 0),
        ("a tagged frame that is not IP by PCP", by_pcp, tagged_other, PCP),
        ("an untagged frame that is not IP by PCP", by_pcp, untagged_other, 0),
        ("tagged IP by DSCP", by_dscp, tagged_ip, DSCP),
        ("untagged IP by DSCP", by_dscp, untagged_ip, DSCP),
        ("a tagged frame that is not IP by DSCP", by_dscp, tagged_other, 0),
        ("an untagged frame that is not IP by DSCP", by_dscp, untagged_other, 0),
    ];
    for (what, map, make, priority) in cases {
        one_priority(what, map, make, priority)?;
    }
    Ok("buffer, queue, pause and PFC go by one priority, from PCP or DSCP as configured, for tagged and \
        untagged frames of IP and others; tags go on as they came"
        .to_owned())
}

fn one_priority(what: &str, map: PriorityMap, make: Make, priority: u8) -> Result<(), Failure> {
    let config = with_pause(switch(FOUR), |pause| {
        pause.priorities = map;
        pause.lossless = 0xff;
        pause.obeyed = 0xff;
    });
    let mut bench = Bench::ethernet(Switch::new(config).map_err(|error| error.to_string())?);
    // All others may go: only this priority's pause holds it.
    bench.pfc(FOUR, 1 << priority, u16::MAX);
    let size = make().line_size().get();
    for _ in 0..=SHARED_FRAMES {
        bench.send(1, make());
        bench.run_for(FRAME_TIME);
    }
    bench.run_for(CONTROL_TIME);
    let waiting = (SHARED_FRAMES + 1) * size;
    same(format!("{what}: octets in the buffer"), bench.held(1, priority), waiting)?;
    let queue = bench.reading().ports[usize::from(FOUR) - 1].lanes[usize::from(priority)];
    same(format!("{what}: octets in the queue"), queue.counters.out_queue.value, waiting)?;
    for other in 0..8 {
        let asked = usize::from(other == priority);
        same(format!("{what}: XOFFs for priority {other}"), bench.asked(1, other).len(), asked)?;
    }
    bench.pfc(FOUR, 1 << priority, 0);
    bench.run_for(FRAME_TIME * (SHARED_FRAMES + 2));
    let unchanged = bench.packets(FOUR).filter(|sent| sent.frame.octets == make().octets).count();
    same(format!("{what}: frames that leave unchanged"), unchanged as u64, SHARED_FRAMES + 1)
}
