//! The watchdog in its switch: what becomes of frames in a storm of pauses, and after it.

use super::bench::{Bench, Look, P3, bench, config, data, lossy};
use crate::config::{StormAction, SwitchConfig, WatchdogConfig};
use crate::switch::{ConfigError, Switch};
use proto::counters::DropReason;
use proto::events::{DeviceEvent, EventKind};
use proto::units::Duration;
use testbed::Bed;

const POLL: Duration = Duration::from_us(500);

fn guarded(action: StormAction) -> SwitchConfig {
    let (detection, restoration) = (Duration::from_us(2_000), Duration::from_us(2_000));
    let watchdog = WatchdogConfig { detection, restoration, poll: POLL, action };
    SwitchConfig { watchdog: Some(watchdog), ..config() }
}

/// The neighbour at port 4 pauses priority 3 for so many half milliseconds without a gap.
fn storm(bench: &mut Bench, polls: u64) {
    for _ in 0..polls {
        bench.pfc(4, 1 << P3, u16::MAX);
        bench.run_for(POLL);
    }
}

fn told(bench: &Bench) -> Vec<&str> {
    let name = |event: &DeviceEvent| match event.kind {
        EventKind::Storm { .. } => Some("storm"),
        EventKind::StormOver { .. } => Some("over"),
        _ => None,
    };
    bench.events.iter().filter_map(name).collect()
}

/// PFCWD-01.
#[test]
fn a_short_storm_only_delays() {
    let mut bench = bench(guarded(StormAction::Drop));
    bench.pfc(4, 1 << P3, u16::MAX);
    bench.inject(1, data(1, 4, 0));
    storm(&mut bench, 3);
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(POLL);
    assert_eq!((bench.sent(4).len(), bench.lost()), (1, 0));
    assert!(told(&bench).is_empty());
}

/// PFCWD-02, PFCWD-07.
#[test]
fn a_storm_empties_its_queue_and_no_other_until_it_is_over() {
    let mut bench = bench(guarded(StormAction::Drop));
    bench.pfc(4, 1 << P3, u16::MAX);
    for psn in 0..25 {
        bench.inject(1, data(1, 4, psn));
    }
    storm(&mut bench, 5);
    assert_eq!(told(&bench), ["storm"]);
    assert_eq!(bench.drops(4, DropReason::PauseStorm), 25);
    assert!(bench.is_empty());
    assert_eq!(bench.times(1).last(), Some(&0), "its sender may resume");
    bench.inject(1, data(1, 4, 25));
    bench.inject(1, lossy(1, 4, 0));
    bench.inject(1, data(1, 3, 0));
    storm(&mut bench, 1);
    assert_eq!((bench.drops(4, DropReason::PauseStorm), bench.lost()), (26, 26));
    assert_eq!((bench.sent(4).len(), bench.sent(3).len()), (1, 1));
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(Duration::from_us(3_000));
    assert_eq!(told(&bench), ["storm", "over"]);
    bench.inject(1, data(1, 4, 26));
    bench.run_for(POLL);
    assert_eq!((bench.sent(4).len(), bench.lost()), (2, 26));
    assert_eq!(bench.named(4, "queue3_deadlock_detected"), 1);
    assert_eq!(bench.named(4, "queue3_deadlock_restored"), 1);
    assert_eq!(bench.named(4, "queue3_deadlock_dropped_packets"), 26);
}

/// PFCWD-03.
#[test]
fn a_queue_that_forwards_in_a_storm_goes_on_from_then_and_obeys_again_after_it() {
    let mut bench = bench(guarded(StormAction::Forward));
    bench.pfc(4, 1 << P3, u16::MAX);
    for psn in 0..10 {
        bench.inject(1, data(1, 4, psn));
    }
    storm(&mut bench, 4);
    assert_eq!(bench.sent(4).len(), 1, "the first starts when the watchdog has spoken");
    storm(&mut bench, 2);
    assert_eq!((bench.sent(4).len(), bench.lost()), (10, 0));
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(Duration::from_us(3_000));
    assert_eq!(told(&bench), ["storm", "over"]);
    bench.pfc(4, 1 << P3, u16::MAX);
    bench.inject(1, data(1, 4, 10));
    bench.run_for(POLL);
    assert_eq!(bench.sent(4).len(), 10, "it is paused");
}

#[test]
fn an_alert_changes_nothing_else() {
    let mut bench = bench(guarded(StormAction::Alert));
    bench.pfc(4, 1 << P3, u16::MAX);
    bench.inject(1, data(1, 4, 0));
    storm(&mut bench, 6);
    assert_eq!(told(&bench), ["storm"]);
    assert_eq!((bench.sent(4).len(), bench.lost()), (0, 0));
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(POLL);
    assert_eq!(bench.sent(4).len(), 1);
}

/// PFCWD-05.
#[test]
fn pauses_without_a_backlog_are_no_storm() {
    let mut bench = bench(guarded(StormAction::Drop));
    storm(&mut bench, 10);
    assert!(told(&bench).is_empty());
}

#[test]
fn a_watchdog_that_never_looks_is_refused() {
    let mut config = guarded(StormAction::Drop);
    if let Some(watchdog) = &mut config.watchdog {
        watchdog.poll = Duration::ZERO;
    }
    assert_eq!(Switch::new(config).err(), Some(ConfigError::Watchdog));
}
