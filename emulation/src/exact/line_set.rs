//! The lines of one direction of a channel, and when the next frame of any of them arrives at the earliest.

use proto::units::{Duration, Instant};

/// One line of a channel: the stamp of its last frame is a promise, too, since the next one ends later.
#[derive(Clone, Copy, Debug)]
struct Line {
    index: usize,
    delay: Duration,
    last: Instant,
}

/// The lines of one direction of a channel.
#[derive(Debug, Default)]
pub(super) struct LineSet(Vec<Line>);

impl LineSet {
    /// When the next frame arrives at the earliest, if all later ones leave at or after `until`.
    pub fn bound(&self, until: Instant) -> Instant {
        let bounds = self.0.iter().map(|line| line.last.max(until) + line.delay);
        bounds.min().unwrap_or(Instant::NEVER)
    }

    /// A frame on the line `index` leaves at `stamp`.
    pub fn note(&mut self, index: usize, stamp: Instant) {
        if let Some(line) = self.0.iter_mut().find(|line| line.index == index) {
            line.last = line.last.max(stamp);
        }
    }

    /// Adds the line with this index and delay.
    pub fn add(&mut self, index: usize, delay: Duration) {
        self.0.push(Line { index, delay, last: Instant::ZERO });
    }
}
