//! Storms short and long, queues that are only slow, and polls that come late.

use super::*;
use crate::config::StormAction;

fn ms(n: u64) -> Duration {
    Duration::from_us(n * 1_000)
}

/// A watchdog over one queue, which sees what a script says of each millisecond.
struct Bench {
    watchdog: Watchdog,
    sample: Sample,
    now: Instant,
}

impl Bench {
    fn new() -> Bench {
        let (detection, restoration, poll) = (ms(4), ms(6), ms(1));
        let action = StormAction::Drop;
        let numbers = WatchdogConfig { detection, restoration, poll, action };
        let watchdog = Watchdog::new(numbers, 1, 1);
        Bench { watchdog, sample: Sample::default(), now: Instant::ZERO }
    }

    /// Some milliseconds pass, of each of which so many tenths of a percent are paused.
    fn pass(&mut self, n: u64, waiting: bool, sent: bool, paused: u64) -> Vec<(u64, Finding)> {
        let mut findings = Vec::new();
        for _ in 0..n {
            self.now = self.now + ms(1);
            self.sample.waiting = waiting;
            if sent {
                self.sample.sent = Some(self.now);
            }
            self.sample.paused += Duration::from_us(paused);
            findings.extend(self.look());
        }
        findings
    }

    fn look(&mut self) -> Option<(u64, Finding)> {
        let sample = self.sample;
        let found = self.watchdog.poll(self.now, |_, _| sample);
        let at = self.now.as_ps() / 1_000_000_000;
        found.first().map(|(_, _, finding)| (at, *finding))
    }
}

/// PFCWD-01, PFCWD-02.
#[test]
fn a_storm_is_found_after_the_detection_time_and_not_before() {
    let mut bench = Bench::new();
    assert_eq!(bench.pass(3, true, false, 1000), []);
    assert_eq!(bench.pass(1, true, true, 0), []);
    assert_eq!(bench.pass(4, true, false, 1000), [(8, Finding::Storm { stuck: ms(4) })]);
    assert!(bench.watchdog.is_storm(PortNumber::from_index(0), VirtualLane::ZERO));
    assert_eq!(bench.pass(20, true, false, 1000), [], "a storm is reported once");
}

/// PFCWD-05.
#[test]
fn an_empty_queue_one_that_drains_and_one_that_is_paused_a_little_less_are_no_storms() {
    let mut bench = Bench::new();
    assert_eq!(bench.pass(10, false, false, 1000), []);
    assert_eq!(bench.pass(10, true, true, 1000), []);
    assert_eq!(bench.pass(10, true, false, 990), []);
    assert_eq!(bench.pass(10, true, false, 991).len(), 1);
}

/// PFCWD-02, PFCWD-07.
#[test]
fn a_storm_is_over_after_the_restoration_time_without_any_pause() {
    let mut bench = Bench::new();
    bench.pass(4, true, false, 1000);
    assert_eq!(bench.pass(5, true, false, 0), []);
    assert_eq!(bench.pass(1, true, false, 1), [], "a single pause begins it anew");
    assert_eq!(bench.pass(6, false, false, 0), [(16, Finding::Over { lasted: ms(12) })]);
    assert!(!bench.watchdog.is_storm(PortNumber::from_index(0), VirtualLane::ZERO));
    let mut named = Vec::new();
    bench.watchdog.read(PortNumber::from_index(0), &mut named);
    assert!(named.contains(&("queue0_deadlock_restored".to_owned(), 1)));
}

/// PFCWD-06.
#[test]
fn late_polls_charge_the_time_that_has_passed() {
    let mut bench = Bench::new();
    bench.pass(4, true, false, 1000);
    bench.sample.waiting = false;
    for polls in 1..=2 {
        bench.now = bench.now + ms(3);
        let found = bench.look();
        assert_eq!(found.is_some(), polls == 2, "two polls of 3 ms are 6 ms");
    }
}
