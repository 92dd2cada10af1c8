//! The PFC watchdog: finds output queues that somebody pauses for ever, and says when that is over.
//!
//! It looks at every output and priority once a poll. A queue is stuck in that interval if frames
//! wait in it, none was sent, and it was paused for more than 99 % of the time. Stuck for the
//! detection time, it is in a storm; without any pause for the restoration time, it is out of it.
//! The time charged is the time that has passed, however late a poll comes. What is done about a
//! storm is the switch's business.
//!
//! Source: SONiC, sonic-swss (`pfc_detect`, `pfc_restore`; pull request 3036 for the rule).

use crate::config::WatchdogConfig;
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Duration, Instant};

/// What the watchdog looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Frames wait.
    pub waiting: bool,
    /// When the last bit of the latest frame sent has left, or will.
    pub sent: Option<Instant>,
    /// How long the queue has been paused so far, up to now.
    pub paused: Duration,
}

/// What it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The queue is in a storm.
    Storm {
        /// For how long it has been stuck.
        stuck: Duration,
    },
    /// The storm is over.
    Over {
        /// How long it lasted, from its detection.
        lasted: Duration,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    last: Sample,
    /// For how long it has been stuck, or in a storm: quiet.
    charged: Duration,
    storm: Option<Instant>,
    detected: u64,
    restored: u64,
    dropped: u64,
}

/// One switch's watchdog.
#[derive(Debug)]
pub struct Watchdog {
    numbers: WatchdogConfig,
    lanes: usize,
    /// By port and lane.
    watched: Vec<Watched>,
    polled: Instant,
    due: Instant,
}

impl Watchdog {
    /// Watches so many lanes of so many ports from the beginning of the run.
    pub fn new(numbers: WatchdogConfig, ports: usize, lanes: usize) -> Watchdog {
        Watchdog {
            numbers,
            lanes,
            watched: vec![Watched::default(); ports * lanes],
            polled: Instant::ZERO,
            due: Instant::ZERO + numbers.poll,
        }
    }

    /// What was configured.
    pub fn numbers(&self) -> WatchdogConfig {
        self.numbers
    }

    /// When it looks next.
    pub fn due(&self) -> Instant {
        self.due
    }

    fn index(&self, port: PortNumber, lane: VirtualLane) -> usize {
        port.index() * self.lanes + lane.index()
    }

    /// Whether the queue is in a storm.
    pub fn is_storm(&self, port: PortNumber, lane: VirtualLane) -> bool {
        self.watched[self.index(port, lane)].storm.is_some()
    }

    /// A frame of the queue was dropped for a storm.
    pub fn count_drop(&mut self, port: PortNumber, lane: VirtualLane) {
        let index = self.index(port, lane);
        self.watched[index].dropped += 1;
    }

    /// Looks at every queue, if it is time to.
    pub fn poll(
        &mut self,
        now: Instant,
        mut sample: impl FnMut(PortNumber, VirtualLane) -> Sample,
    ) -> Vec<(PortNumber, VirtualLane, Finding)> {
        let mut findings = Vec::new();
        if now < self.due {
            return findings;
        }
        let interval = now.since(self.polled);
        self.polled = now;
        // One that comes late does not make up for those it missed.
        self.due = self.due + self.numbers.poll;
        if self.due <= now {
            self.due = now + self.numbers.poll;
        }
        for (index, watched) in self.watched.iter_mut().enumerate() {
            let port = PortNumber::from_index(index / self.lanes);
            let lane = VirtualLane::truncate((index % self.lanes) as u8);
            let found = watched.look(sample(port, lane), interval, now, &self.numbers);
            findings.extend(found.map(|finding| (port, lane, finding)));
        }
        findings
    }

    /// Adds totals of the port, under operators' names.
    pub fn read(&self, port: PortNumber, named: &mut Vec<(String, u64)>) {
        let first = port.index() * self.lanes;
        for (lane, watched) in self.watched[first..first + self.lanes].iter().enumerate() {
            if watched.detected > 0 {
                named.push((format!("queue{lane}_deadlock_detected"), watched.detected));
                named.push((format!("queue{lane}_deadlock_restored"), watched.restored));
                named.push((format!("queue{lane}_deadlock_dropped_packets"), watched.dropped));
            }
        }
    }
}

impl Watched {
    fn look(
        &mut self,
        sample: Sample,
        interval: Duration,
        now: Instant,
        numbers: &WatchdogConfig,
    ) -> Option<Finding> {
        let paused = sample.paused - self.last.paused;
        let sent = sample.sent != self.last.sent;
        self.last = sample;
        let Some(since) = self.storm else {
            let stuck = sample.waiting && !sent && paused * 100 > interval * 99;
            self.charged = if stuck { self.charged + interval } else { Duration::ZERO };
            if self.charged < numbers.detection || !stuck {
                return None;
            }
            self.storm = Some(now);
            self.detected += 1;
            return Some(Finding::Storm { stuck: std::mem::take(&mut self.charged) });
        };
        let quiet = paused == Duration::ZERO;
        self.charged = if quiet { self.charged + interval } else { Duration::ZERO };
        if self.charged < numbers.restoration || !quiet {
            return None;
        }
        (self.storm, self.charged) = (None, Duration::ZERO);
        self.restored += 1;
        Some(Finding::Over { lasted: now.since(since) })
    }
}

#[cfg(test)]
mod tests;
