//! The PFC watchdog: it detects pause storms, output queues that stay paused, and their end.
//!
//! Each poll examines every output and priority. A queue is stuck in a poll interval if frames wait in it,
//! none was sent, and it was paused for more than 99 % of the interval. A storm begins when the queue was
//! stuck for the detection time, and ends after the restoration time without any pause. A late poll charges
//! the time that has really passed. The switch acts on the findings.
//!
//! Source: SONiC, sonic-swss (`pfc_detect`, `pfc_restore`; pull request 3036 for the rule).

use crate::config::WatchdogConfig;
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Duration, Instant};

/// The state of a queue at a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Frames wait in the queue.
    pub waiting: bool,
    /// When the last bit of the latest frame leaves, or left.
    pub sent: Option<Instant>,
    /// The total time for which the queue has been paused.
    pub paused: Duration,
}

/// The result of a poll for one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A storm began.
    Storm {
        /// For how long the queue was stuck.
        stuck: Duration,
    },
    /// A storm ended.
    Over {
        /// The time since its detection.
        lasted: Duration,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    last: Sample,
    /// For how long the queue has been stuck; in a storm, for how long without a pause.
    charged: Duration,
    storm: Option<Instant>,
    detected: u64,
    restored: u64,
    dropped: u64,
}

/// The watchdog of one switch.
#[derive(Debug)]
pub struct Watchdog {
    /// The configuration.
    pub numbers: WatchdogConfig,
    lanes: usize,
    /// By port and lane.
    watched: Vec<Watched>,
    polled: Instant,
    /// When the next poll is due.
    pub due: Instant,
}

impl Watchdog {
    /// A watchdog for `lanes` lanes of each of `ports` ports; the run begins now.
    pub fn new(numbers: WatchdogConfig, ports: usize, lanes: usize) -> Watchdog {
        Watchdog {
            numbers,
            lanes,
            watched: vec![Watched::default(); ports * lanes],
            polled: Instant::ZERO,
            due: Instant::ZERO + numbers.poll,
        }
    }

    fn index(&self, port: PortNumber, lane: VirtualLane) -> usize {
        port.index() * self.lanes + lane.index()
    }

    /// Whether the queue is in a storm.
    pub fn is_storm(&self, port: PortNumber, lane: VirtualLane) -> bool {
        self.watched[self.index(port, lane)].storm.is_some()
    }

    /// Counts a frame of the queue that was dropped for a storm.
    pub fn count_drop(&mut self, port: PortNumber, lane: VirtualLane) {
        let index = self.index(port, lane);
        self.watched[index].dropped += 1;
    }

    /// Examines every queue if a poll is due at `now`; returns what changed.
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
        // A late poll does not make up for missed ones.
        self.due = self.due + self.numbers.poll;
        if self.due <= now {
            self.due = now + self.numbers.poll;
        }
        for (index, watched) in self.watched.iter_mut().enumerate() {
            let port = PortNumber::from_index(index / self.lanes);
            let lane = VirtualLane::truncate((index % self.lanes) as u8);
            let found = watched.examine(sample(port, lane), interval, now, &self.numbers);
            findings.extend(found.map(|finding| (port, lane, finding)));
        }
        findings
    }

    /// Adds the totals of the port, under operators' names.
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
    fn examine(
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
