//! The line: one frame after another at the link's rate.

use crate::units::{BitRate, Bytes, Instant};

/// A line that is busy until the last bit of the last frame has left.
///
/// Each frame's time is rounded to a picosecond on its own; at the rates in use an octet is a whole
/// number of picoseconds, so nothing drifts.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: BitRate,
    /// What the line gives at present: its rate, or less.
    given: BitRate,
    overhead: Bytes,
    free_at: Instant,
}

impl Serializer {
    /// A line of `rate` that is free from the beginning. Each frame takes `overhead` beyond its own
    /// octets.
    pub fn new(rate: BitRate, overhead: Bytes) -> Serializer {
        Serializer { rate, given: rate, overhead, free_at: Instant::ZERO }
    }

    /// The line's rate.
    pub fn rate(&self) -> BitRate {
        self.rate
    }

    /// From the next frame on the line gives `rate`, if that is not above its own.
    pub fn slow_down(&mut self, rate: BitRate) -> bool {
        let is_possible = rate <= self.rate;
        if is_possible {
            self.given = rate;
        }
        is_possible
    }

    /// When the last bit of the last frame leaves, or left.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// A frame of `size` that was ready at `ready` takes the line; when it starts and when its last
    /// bit leaves. It starts as soon as the line was free, not when somebody got round to asking.
    pub fn transmit(&mut self, size: Bytes, ready: Instant) -> (Instant, Instant) {
        let start = self.free_at.max(ready);
        self.free_at = start + (size + self.overhead).time_at(self.given);
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
        assert_eq!(line.transmit(Bytes::new(100), ns(5)), (ns(5), ns(105)));
        assert_eq!(line.transmit(Bytes::new(10), ns(6)), (ns(105), ns(115)));
        assert_eq!(line.transmit(Bytes::new(10), ns(500)), (ns(500), ns(510)));
    }

    #[test]
    fn a_line_may_give_less_than_its_rate_and_never_more() {
        let mut line = Serializer::new(BitRate::gbps(8), Bytes::ZERO);
        assert!(!line.slow_down(BitRate::gbps(9)));
        assert!(line.slow_down(BitRate::gbps(4)));
        let (_, end) = line.transmit(Bytes::new(100), Instant::ZERO);
        assert_eq!((end, line.rate()), (Instant::from_ps(200_000), BitRate::gbps(8)));
        assert!(line.slow_down(BitRate::gbps(8)));
        assert_eq!(line.transmit(Bytes::new(100), end).1, Instant::from_ps(300_000));
    }

    #[test]
    fn preamble_and_gap_take_the_line_where_they_count() {
        let mut line = Serializer::new(BitRate::gbps(8), Bytes::new(20));
        let (_, end) = line.transmit(Bytes::new(64), Instant::ZERO);
        assert_eq!(end, Instant::from_ps(84_000));
    }
}
