//! Pacing: after a frame, nothing leaves until the frame's time at the current rate is over.
//!
//! In any window of length w at most rate·w and one frame leave. A flow earns no credit for time in
//! which it was paused or had nothing to send.

use crate::congestion::{Permission, Place, ReactionState};
use crate::units::{BitRate, Bytes, Duration, Instant};

/// The pacing of one limiter on its line.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Highest rate.
    pub line_rate: BitRate,
    full_frame: Bytes,
    last_frame: Bytes,
}

impl Pace {
    /// Pacing before the first frame.
    pub fn new(place: &Place) -> Pace {
        let Place { line_rate, full_frame, .. } = *place;
        Pace { line_rate, full_frame, last_frame: full_frame }
    }

    /// A frame of `size` octets was transmitted.
    pub fn on_transmit(&mut self, size: Bytes) {
        self.last_frame = size;
    }

    /// The state of a limiter at `current` bit/s. The scalar is the rate in thousandths of the line's.
    pub fn state(&self, current: u64) -> ReactionState {
        let scalar = current * 1_000 / self.line_rate.get();
        ReactionState { gap: self.full_gap(current), rate: self.rate(current), scalar }
    }

    /// `current` bit/s as a rate; zero becomes 1 bit/s.
    fn rate(&self, current: u64) -> BitRate {
        BitRate::new(current.max(1)).unwrap_or(self.line_rate)
    }

    /// The gap after a full frame at `current` bit/s.
    pub fn full_gap(&self, current: u64) -> Duration {
        self.gap_after(self.full_frame, current)
    }

    /// The earliest departure of the next frame at `current` bit/s, given the last departure.
    pub fn next(&self, last_departure: Option<Instant>, current: u64) -> Permission {
        let last = last_departure.map(|last| last + self.gap_after(self.last_frame, current));
        Permission::At(last.unwrap_or(Instant::ZERO))
    }

    fn gap_after(&self, size: Bytes, current: u64) -> Duration {
        size.time_at(self.rate(current)) - size.time_at(self.line_rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_and_the_frame_together_take_the_time_of_the_rate() {
        let frame = Bytes::new(1_500);
        let mut pace = Pace { line_rate: BitRate::gbps(10), full_frame: frame, last_frame: frame };
        // 1.2 µs on the line, 12 µs at a tenth of it.
        assert_eq!(pace.full_gap(1_000_000_000), Duration::from_ns(10_800));
        assert_eq!(pace.full_gap(10_000_000_000), Duration::ZERO);
        pace.on_transmit(Bytes::new(150));
        let last = Instant::ZERO + Duration::from_us(7);
        let next = Permission::At(last + Duration::from_ns(1_080));
        assert_eq!(pace.next(Some(last), 1_000_000_000), next);
        assert_eq!(pace.next(None, 1), Permission::At(Instant::ZERO), "nothing has left yet");
    }
}
