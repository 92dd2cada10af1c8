//! Whether tester and device kept time in an attempt. Only then does a fault say something about the device.
//!
//! The rule: a FAIL or a DEVIATION stands if in the attempt
//!
//! 1. the tester's thread was never late by more than its limit, so what came was read in time, and what was due was sent in
//!    time;
//! 2. the device answered every echo within its limit. Echoes are sent before the script and after it, and to NICs during
//!    waits and behind every quiet time as well. A device that answers none within the patience while the tester is on time
//!    is silent, not slow, and the fault stands;
//! 3. the agent answered every call within a quarter of the patience, or the device is silent as well. Agents have no place
//!    in the real-time part of a device, and between two calls that are slow its timers may fire.
//!
//! Otherwise the case is INCONCLUSIVE and is tried again. A case is `timed` in the register if its script compares times of
//! the device with the clause: its limits are half the quiet time, and the quiet time. All other cases wait for what must
//! come as long as the patience lasts, and learn from an echo or a broadcast that nothing more comes: their limits are a
//! quarter of the patience.

use super::file::Tolerance;
use proto::units::Duration;

/// What the cores of this host have done, in ticks: all of it, and what of it was idle.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreTime {
    all: u64,
    idle: u64,
}

impl CoreTime {
    /// Until now, as Linux counts it; nothing elsewhere.
    pub fn now() -> CoreTime {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        CoreTime::read(text.lines().next().unwrap_or_default())
    }

    /// From the line of all cores: user, nice, system, idle, iowait, irq, softirq and steal. Source: proc(5).
    fn read(line: &str) -> CoreTime {
        let ticks: Vec<u64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let sum = |ticks: &[u64]| ticks.iter().sum();
        CoreTime {
            all: sum(&ticks[..ticks.len().min(8)]),
            idle: sum(ticks.get(3..5).unwrap_or(&[])),
        }
    }

    /// Whether the cores have been busy for most of the time since `earlier`.
    pub fn is_busy_since(self, earlier: CoreTime) -> bool {
        (self.idle - earlier.idle) * 2 < self.all - earlier.all
    }
}

/// What was measured about time in an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// The longest time by which the tester's thread woke too late.
    late: Option<Duration>,
    /// The longest time that the device took for an echo.
    slow: Option<Duration>,
    /// The longest time that the agent took for a call, or until the tester gave it up.
    agent: Option<Duration>,
    agent_is_silent: bool,
}

impl Pace {
    /// The tester's thread woke so long after the instant that it asked for.
    pub fn woke(&mut self, late: Duration) {
        self.late = self.late.max(Some(late));
    }

    /// The device answered an echo after so long.
    pub fn answered(&mut self, took: Duration) {
        self.slow = self.slow.max(Some(took));
    }

    /// The agent took so long for a call, and has answered or not.
    pub fn called(&mut self, took: Duration, is_answered: bool) {
        self.agent = self.agent.max(Some(took));
        self.agent_is_silent |= !is_answered;
    }

    /// By how much a time that the tester measured between two frames may be too short.
    pub fn doubt(&self) -> Duration {
        self.late.max(self.slow).unwrap_or(Duration::ZERO)
    }

    /// Why a fault of this attempt says nothing about the device; none if tester and device kept time. `is_alive`: the device
    /// has answered an echo behind the fault.
    pub fn excuse(&self, is_timed: bool, is_alive: bool, tolerance: &Tolerance) -> Option<String> {
        let part = |time: Duration, of: u64| Duration::from_ps(time.as_ps() / of);
        let (late, slow) = match is_timed {
            true => (part(tolerance.quiet, 2), tolerance.quiet),
            false => (part(tolerance.patience, 4), part(tolerance.patience, 4)),
        };
        let over = |time: Option<Duration>, limit: Duration| {
            time.filter(|time| *time > limit).map(|time| time.as_ps() / 1_000_000_000)
        };
        let excuse = over(self.late, late).map(|ms| format!("the tester was {ms} ms late"));
        let excuse = excuse.or_else(|| {
            over(self.slow, slow).map(|ms| format!("the device took {ms} ms for an echo"))
        });
        let agent = match self.agent_is_silent {
            true => Some("the device answers an echo".to_owned()),
            false => over(self.agent, part(tolerance.patience, 4))
                .map(|ms| format!("the agent took {ms} ms for a call")),
        };
        excuse.or_else(|| agent.filter(|_| is_alive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_busy_if_most_of_its_time_is_not_idle() {
        let [began, quiet, busy] = [
            "cpu  10 0 10 100 0 0 0 0 7 7",
            "cpu  11 0 11 117 1 0 0 0 9 9",
            "cpu  20 0 10 105 0 1 0 4 7 7",
        ]
        .map(CoreTime::read);
        assert!(!quiet.is_busy_since(began));
        assert!(busy.is_busy_since(began));
        assert!(!CoreTime::read("").is_busy_since(CoreTime::default()));
    }
    use crate::file::DutFile;
    use std::path::PathBuf;

    #[test]
    fn a_late_tester_and_a_slow_device_excuse_a_fault_and_a_silent_device_does_not() {
        let ms = |count: u64| Duration::from_us(count * 1_000);
        let file = DutFile::parse(
            "[dut]\nname = \"x\"\nkind = \"ethernet-switch\"\n[device]\nreach = \"interfaces\"\n\
             ports = [\"a\", \"b\", \"c\"]\n[tolerance]\nquiet = \"20 ms\"\npatience = \"400 ms\"\n",
            PathBuf::new(),
        );
        let tolerance = file.map_err(|faults| faults.in_file("x")).expect("it is good").tolerance;
        let pace = |late: u64, slow: &[u64]| {
            let mut pace = Pace::default();
            pace.woke(ms(late));
            slow.iter().for_each(|slow| pace.answered(ms(*slow)));
            pace
        };
        let late = Some("the tester was 11 ms late");
        let slow = Some("the device took 21 ms for an echo");
        for (pace, is_timed, expected) in [
            (pace(10, &[]), true, None),
            (pace(10, &[20]), true, None),
            (pace(10, &[21, 1]), true, slow),
            (pace(11, &[]), true, late),
            (pace(11, &[21]), false, None),
            (pace(0, &[101]), false, Some("the device took 101 ms for an echo")),
            (pace(101, &[]), false, Some("the tester was 101 ms late")),
        ] {
            assert_eq!(pace.excuse(is_timed, true, &tolerance).as_deref(), expected, "{pace:?}");
        }
        for (took, is_answered, is_excused) in
            [(1, true, false), (100, true, false), (101, true, true), (1, false, true)]
        {
            let mut pace = pace(0, &[1]);
            pace.called(ms(took), is_answered);
            assert_eq!(pace.excuse(false, true, &tolerance).is_some(), is_excused, "{pace:?}");
            assert_eq!(pace.excuse(false, false, &tolerance), None, "the device is silent, too");
        }
    }
}
