//! The state of a script: which steps may post, and which conditions the others wait for.

use crate::config::{AfterConfig, StepConfig};
use proto::ids::Lid;
use proto::units::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Progress of the two flows between this adapter and a peer, in one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The connection class.
    pub class: u8,
    /// The peer.
    pub peer: Lid,
    /// Messages to the peer that are complete.
    pub sent: u64,
    /// Messages from the peer that have been delivered.
    pub received: u64,
}

/// A message of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptMessage {
    /// The receiver.
    pub to: Lid,
    /// Octets of the message.
    pub size: u32,
    /// When the script's next message may be posted, if it waits for time alone.
    pub next: Option<Instant>,
}

/// The steps of a script and their state.
#[derive(Clone, Debug)]
pub struct Script {
    steps: Vec<StepConfig>,
    /// Per step: the number of conditions that do not hold yet.
    missing: Vec<usize>,
    /// Per peer and direction (true: received): message count and waiting step, lowest count first.
    waits: BTreeMap<(Lid, bool), VecDeque<(u64, usize)>>,
    /// Steps whose conditions hold, by the instant at which they may begin.
    ready: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The step in progress: since when it may post, its index, and how many messages it has posted.
    current: Option<(Instant, usize, u64)>,
}

impl Script {
    /// The script before its first step.
    pub fn new(steps: &[StepConfig]) -> Script {
        let mut script = Script {
            steps: steps.to_vec(),
            missing: steps.iter().map(|step| step.after.len()).collect(),
            waits: BTreeMap::new(),
            ready: BinaryHeap::new(),
            current: None,
        };
        for (index, step) in steps.iter().enumerate() {
            for after in &step.after {
                let (key, count) = match *after {
                    AfterConfig::Sent(peer, count) => ((peer, false), count),
                    AfterConfig::Received(peer, count) => ((peer, true), count),
                };
                script.waits.entry(key).or_default().push_back((count, index));
            }
            if step.after.is_empty() {
                script.ready.push(Reverse((step.at, index)));
            }
        }
        for waits in script.waits.values_mut() {
            waits.make_contiguous().sort_unstable();
        }
        script
    }

    /// When the next message may be posted, if no further condition changes.
    pub fn next(&self) -> Option<Instant> {
        let current = self.current.map(|(at, ..)| at);
        current.or_else(|| self.ready.peek().map(|Reverse((at, _))| *at))
    }

    /// Returns the next message that may be posted at `now`. A step in progress ends before another one
    /// begins.
    pub fn poll(&mut self, now: Instant) -> Option<ScriptMessage> {
        self.next().filter(|at| *at <= now)?;
        let (at, index, posted) = match self.current.take() {
            Some(current) => current,
            None => self.ready.pop().map(|Reverse((at, index))| (at, index, 0))?,
        };
        let step = &self.steps[index];
        let is_last = posted + 1 >= step.messages;
        let (to, size) = (step.to, if is_last { step.last } else { step.size });
        if !is_last {
            self.current = Some((at, index, posted + 1));
        }
        Some(ScriptMessage { to, size: size.get() as u32, next: self.next() })
    }

    /// Applies progress: steps become ready when their last condition holds.
    pub fn on_progress(&mut self, progress: &Progress, now: Instant) {
        for (is_received, count) in [(false, progress.sent), (true, progress.received)] {
            let Some(waits) = self.waits.get_mut(&(progress.peer, is_received)) else { continue };
            while waits.front().is_some_and(|(needed, _)| *needed <= count) {
                let Some((_, index)) = waits.pop_front() else { break };
                self.missing[index] -= 1;
                if self.missing[index] == 0 {
                    self.ready.push(Reverse((self.steps[index].at.max(now), index)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::units::{Bytes, Duration};

    const A: Lid = Lid::new(1);
    const B: Lid = Lid::new(2);

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    fn step(to: Lid, messages: u64, us: u64, after: &[AfterConfig]) -> StepConfig {
        let (size, last) = (Bytes::new(1500), Bytes::new(100));
        StepConfig { to, messages, size, last, at: at(us), after: after.to_vec() }
    }

    fn sizes(script: &mut Script, now: Instant) -> Vec<(u16, u32)> {
        std::iter::from_fn(|| script.poll(now)).map(|m| (m.to.get(), m.size)).collect()
    }

    #[test]
    fn steps_begin_at_their_time_when_all_conditions_hold() {
        let after = [AfterConfig::Sent(A, 2), AfterConfig::Received(A, 3)];
        let mut script = Script::new(&[step(A, 2, 5, &[]), step(B, 1, 0, &after)]);
        assert_eq!(script.next(), Some(at(5)));
        assert_eq!(sizes(&mut script, at(4)), []);
        assert_eq!(sizes(&mut script, at(5)), [(1, 1500), (1, 100)]);
        assert_eq!(script.next(), None);
        let progress = |sent, received| Progress { class: 0, peer: A, sent, received };
        script.on_progress(&progress(2, 2), at(6));
        script.on_progress(&progress(2, 2), at(7));
        assert_eq!(script.next(), None, "one condition does not hold yet");
        script.on_progress(&progress(2, 4), at(8));
        assert_eq!(script.next(), Some(at(8)));
        assert_eq!(sizes(&mut script, at(8)), [(2, 100)]);
    }
}
