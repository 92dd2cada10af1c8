//! The lines of a channel, and when their next frames arrive at the earliest.

use proto::units::{Duration, Instant};

/// One line of a channel: the stamp of its last frame is a promise, too, since the next one ends later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub index: usize,
    pub delay: Duration,
    pub last: Instant,
}

/// The lines of one direction of a channel.
#[derive(Debug, Default)]
pub(super) struct LineSet(pub Vec<Line>);

impl LineSet {
    /// When the next frame arrives at the earliest, if all later ones leave at or after `until`.
    pub fn bound(&self, until: Instant) -> Instant {
        let bounds = self.0.iter().map(|line| line.last.max(until) + line.delay);
        bounds.min().unwrap_or(Instant::NEVER)
    }

    /// Notes the stamp of a frame of the line `index`.
    pub fn note(&mut self, index: usize, stamp: Instant) {
        if let Some(line) = self.0.iter_mut().find(|line| line.index == index) {
            line.last = line.last.max(stamp);
        }
    }
}
