//! The line: it carries one frame after another at the link's rate.

use crate::departure::Step;
use crate::units::{BitRate, Bytes, Instant};

/// A line that is busy until the last bit of the latest frame has left.
///
/// Each frame's duration is rounded to a picosecond. At the rates in use an octet takes a whole number of
/// picoseconds, so rounding errors do not add up.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: BitRate,
    /// The present rate: that of the line, or less.
    present: BitRate,
    overhead: Bytes,
    free_at: Instant,
}

impl Serializer {
    /// A free line. Each frame takes `overhead` octets of time beyond its own.
    pub fn new(rate: BitRate, overhead: Bytes) -> Serializer {
        Serializer { rate, present: rate, overhead, free_at: Instant::ZERO }
    }

    /// The line's rate.
    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// Sends at `rate` from the next frame on; false, and no effect, if that is above the line's rate.
    pub fn slow_down(&mut self, rate: BitRate) -> bool {
        let is_possible = rate <= self.rate;
        if is_possible {
            self.present = rate;
        }
        is_possible
    }

    /// When the last bit of the latest frame leaves, or left.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// When a frame that was ready at `ready` would start: when it was ready and the line free, and not before the
    /// input of `step`.
    pub fn start(&self, ready: Instant, step: Step) -> Instant {
        self.free_at.max(ready).max(step.since)
    }

    /// Transmits a frame of `size` octets that was ready at `ready`; returns when its first and its last bit
    /// leave.
    pub fn transmit(&mut self, size: Bytes, ready: Instant, step: Step) -> (Instant, Instant) {
        let start = self.start(ready, step);
        self.free_at = start + (size + self.overhead).time_at(self.present);
        (start, self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_without_gap_and_idle_time_is_not_banked() {
        let mut line = Serializer::new(BitRate::gbps(8), Bytes::ZERO);
        let ns = |n: u64| Instant::from_ps(n * 1000);
        let step = Step::at(ns(5));
        assert_eq!(line.transmit(Bytes::new(100), ns(5), step), (ns(5), ns(105)));
        assert_eq!(line.transmit(Bytes::new(10), ns(6), step), (ns(105), ns(115)));
        assert_eq!(line.transmit(Bytes::new(10), ns(500), step), (ns(500), ns(510)));
    }

    #[test]
    fn a_frame_permitted_since_the_past_starts_with_the_input_that_permits_it() {
        let mut line = Serializer::new(BitRate::gbps(8), Bytes::ZERO);
        let ns = |n: u64| Instant::from_ps(n * 1000);
        let frame = Bytes::new(10);
        assert_eq!(line.transmit(frame, ns(20), Step::at(ns(300))), (ns(300), ns(310)));
        // A frame that is handled late counts from its stamp.
        let step = Step::late(ns(320), ns(900));
        assert_eq!(line.transmit(frame, ns(20), step), (ns(320), ns(330)));
        assert_eq!(step.resume(ns(900)), step);
        assert_eq!(step.resume(ns(901)), Step::at(ns(901)));
    }

    #[test]
    fn a_line_may_give_less_than_its_rate_and_never_more() {
        let mut line = Serializer::new(BitRate::gbps(8), Bytes::ZERO);
        assert!(!line.slow_down(BitRate::gbps(9)));
        assert!(line.slow_down(BitRate::gbps(4)));
        let (_, end) = line.transmit(Bytes::new(100), Instant::ZERO, Step::default());
        assert_eq!((end, line.rate()), (Instant::from_ps(200_000), BitRate::gbps(8)));
        assert!(line.slow_down(BitRate::gbps(8)));
        assert_eq!(
            line.transmit(Bytes::new(100), end, Step::default()).1,
            Instant::from_ps(300_000)
        );
    }

    #[test]
    fn preamble_and_gap_take_the_line_where_they_count() {
        let mut line = Serializer::new(BitRate::gbps(8), Bytes::new(20));
        let (_, end) = line.transmit(Bytes::new(64), Instant::ZERO, Step::default());
        assert_eq!(end, Instant::from_ps(84_000));
    }
}
