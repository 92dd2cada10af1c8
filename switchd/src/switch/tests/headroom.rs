//! That the headroom a switch asks for is what it takes: a neighbour at line rate at the end of a long
//! cable, which obeys PFC at its arrival, while full frames of the switch delay the PFC.

use super::bench::{DSCP3, Look, P3, bench, config, packet};
use crate::config::SwitchConfig;
use crate::switch::headroom_needed;
use proto::counters::DropReason;
use proto::ids::Ecn;
use proto::units::{BitRate, Bytes, Duration, Instant};
use testbed::{Bed, Sightings};

const CABLE: Duration = Duration::from_us(20);
const MTU: usize = 1500;

/// Octets of a full frame.
const FULL: Bytes = Bytes::new(62 + MTU as u64);

fn far(kind: &str) -> SwitchConfig {
    let mut config = config();
    config.memory.kind = kind.to_owned();
    config.memory.jitter = Duration::ZERO;
    config.memory.params.remove("lossy_queue");
    config.memory.set("size", Bytes::new(20_000_000));
    config.memory.set("threshold", Bytes::new(100_000));
    for port in &mut config.ports {
        (port.delay, port.link.buffer) = (CABLE, Bytes::new(400_000));
    }
    config
}

/// What the neighbour at port 1 lost, if it began to send `phase` later and the switch has so much
/// headroom.
fn lost(mut config: SwitchConfig, headroom: Bytes, phase: Duration) -> u64 {
    config.memory.headroom = headroom;
    let mut bench = bench(config);
    bench.pfc(4, 1 << P3, u16::MAX);
    // In the way of its PFC: full frames that leave by the same port.
    let obstacle = |psn| packet(2, 1, 0, Ecn::NotCapable, psn, MTU);
    (0..20).for_each(|psn| bench.inject(2, obstacle(psn)));
    let time = FULL.time_at(BitRate::gbps(10));
    let (mut psn, mut begins) = (0, Instant::ZERO + phase);
    loop {
        let received = bench.pauses(1, P3).first().map(|(left, _)| *left + CABLE);
        if received.is_some_and(|received| received <= begins) {
            break;
        }
        // A frame that starts now arrives one cable delay later and has no effect before.
        bench.run_for((begins + time + CABLE).since(bench.now()));
        bench.inject(1, packet(1, 4, DSCP3, Ecn::Capable0, psn, MTU));
        bench.inject(2, obstacle(psn));
        (psn, begins) = (psn + 1, begins + time);
        assert!(psn < 1_000, "the neighbour pauses in the end");
    }
    let drops = bench.drops(1, DropReason::HeadroomOverrun);
    assert_eq!(bench.lost(), drops);
    drops
}

/// The most that is lost at sixteen phases of the two lines.
fn worst(kind: &str, headroom: Bytes) -> u64 {
    let phases = (0..16).map(|step| Duration::from_ns(step * 79));
    phases.map(|phase| lost(far(kind), headroom, phase)).max().unwrap_or_default()
}

/// PFC-15, QOS-10.
#[test]
fn the_least_headroom_loses_nothing_and_two_frames_less_do_not_suffice() {
    for kind in ["shared-pool", "per-input"] {
        let needed = headroom_needed(&far(kind));
        assert_eq!(worst(kind, needed), 0, "{kind}");
    }
    let needed = headroom_needed(&far("shared-pool"));
    let mut config = far("shared-pool");
    // The check would refuse this; it gets a shorter cable than the real one.
    config.ports.iter_mut().for_each(|port| port.delay = Duration::ZERO);
    let short = Bytes::new(needed.get() - 2 * FULL.get());
    let phases = (0..16).map(|step| Duration::from_ns(step * 79));
    let lost = phases.map(|phase| lost(config.clone(), short, phase)).max();
    assert!(lost > Some(0), "two frames less than {needed}");
}
