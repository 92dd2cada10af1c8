//! The receive buffer of a host that is slower than its line. A priority that fills it is paused.
//!
//! ```text
//!   port ──▶ | frame  frame  frame | ──▶ channel adapter
//!              all priorities          one rate, in order of arrival
//!
//!   octets of one priority:   0 ───── xON ─────────── xOFF ───── …
//!                             resume                  pause
//! ```

use crate::config::DrainConfig;
use proto::frame::{Frame, FrameHeaders};
use proto::ids::VirtualLane;
use proto::units::{Bytes, Instant};
use std::collections::VecDeque;

/// The number of Ethernet priorities. Source: IEEE 802.1Q, 9.6 (PCP).
const PRIORITIES: usize = 8;

/// A frame in the buffer.
#[derive(Debug)]
pub struct BufferedFrame {
    /// The frame.
    pub frame: Frame,
    /// The header fields, as the port classified them.
    pub headers: FrameHeaders,
    /// When the host has drained its last octet. The adapter sees this as the frame's arrival.
    pub drained_at: Instant,
}

/// The buffer and its drain. Lanes are priorities.
#[derive(Debug)]
pub struct RxBuffer {
    config: DrainConfig,
    /// Free octets.
    free: Bytes,
    held: [Bytes; PRIORITIES],
    frames: VecDeque<BufferedFrame>,
    /// When the last frame in the buffer will have been drained.
    free_at: Instant,
    /// The priorities to pause: bit n is priority n.
    pub paused: u8,
}

impl RxBuffer {
    /// An empty buffer of `capacity` octets.
    pub fn new(config: DrainConfig, capacity: Bytes) -> RxBuffer {
        RxBuffer {
            config,
            free: capacity,
            held: [Bytes::ZERO; PRIORITIES],
            frames: VecDeque::new(),
            free_at: Instant::ZERO,
            paused: 0,
        }
    }

    /// Stores a frame that arrived at `arrived`.
    ///
    /// # Errors
    /// The frame, if the buffer has not enough free octets.
    pub fn admit(
        &mut self,
        frame: Frame,
        headers: FrameHeaders,
        arrived: Instant,
    ) -> Result<(), Frame> {
        if headers.size > self.free {
            return Err(frame);
        }
        self.free = self.free - headers.size;
        let lane = headers.lane.index() % PRIORITIES;
        self.held[lane] += headers.size;
        if self.held[lane] > self.config.xoff {
            self.paused |= 1 << lane;
        }
        self.free_at = self.free_at.max(arrived) + headers.size.time_at(self.config.rate);
        self.frames.push_back(BufferedFrame { frame, headers, drained_at: self.free_at });
        Ok(())
    }

    /// Removes and returns the next frame that has been drained by `now`.
    pub fn poll(&mut self, now: Instant) -> Option<BufferedFrame> {
        if self.poll_timeout() > now {
            return None;
        }
        let waiting = self.frames.pop_front()?;
        self.free += waiting.headers.size;
        let lane = waiting.headers.lane.index() % PRIORITIES;
        self.held[lane] = self.held[lane] - waiting.headers.size;
        if self.held[lane] <= self.config.xon {
            self.paused &= !(1 << lane);
        }
        Some(waiting)
    }

    /// When the next frame will have been drained; [`Instant::NEVER`] if the buffer is empty.
    pub fn poll_timeout(&self) -> Instant {
        self.frames.front().map_or(Instant::NEVER, |first| first.drained_at)
    }

    /// Octets of `lane` in the buffer.
    pub fn held(&self, lane: VirtualLane) -> Bytes {
        self.held[lane.index() % PRIORITIES]
    }

    /// The number of frames in the buffer.
    pub fn frames(&self) -> u64 {
        self.frames.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::frame::FrameKind;
    use proto::ids::{MacAddress, ServiceLevel};
    use proto::units::BitRate;

    /// A frame of 1000 octets takes 2 µs.
    const SLOW: DrainConfig =
        DrainConfig { rate: BitRate::gbps(4), xoff: Bytes::new(2_000), xon: Bytes::new(1_000) };

    fn us(n: u64) -> Instant {
        Instant::from_ps(n * 1_000_000)
    }

    fn headers(lane: u8) -> FrameHeaders {
        FrameHeaders {
            size: Bytes::new(1_000),
            source: MacAddress::from_number(1).into(),
            destination: MacAddress::from_number(2).into(),
            lane: VirtualLane::truncate(lane),
            level: ServiceLevel::truncate(lane),
            ..FrameHeaders::default()
        }
    }

    fn admit(drain: &mut RxBuffer, lane: u8, arrived: Instant) -> bool {
        let frame = Frame::intact(FrameKind::Ethernet, Default::default());
        drain.admit(frame, headers(lane), arrived).is_ok()
    }

    #[test]
    fn frames_are_drained_in_order_at_the_configured_rate() {
        let mut drain = RxBuffer::new(SLOW, Bytes::new(10_000));
        assert!(admit(&mut drain, 3, us(5)) && admit(&mut drain, 4, us(5)));
        assert!(drain.poll(us(6)).is_none());
        assert_eq!(drain.poll_timeout(), us(7));
        let through =
            [us(7), us(9)].map(|now| drain.poll(now).expect("a drained frame").drained_at);
        assert_eq!(through, [us(7), us(9)]);
        assert!(admit(&mut drain, 3, us(20)));
        assert_eq!(drain.poll_timeout(), us(22), "idle time is not credited");
    }

    #[test]
    fn a_priority_is_paused_above_xoff_until_it_falls_to_xon() {
        let mut drain = RxBuffer::new(SLOW, Bytes::new(10_000));
        let mut seen = Vec::new();
        for _ in 0..3 {
            assert!(admit(&mut drain, 3, us(0)));
            seen.push(drain.paused);
        }
        assert!(admit(&mut drain, 5, us(0)));
        for n in 1..=4 {
            assert!(drain.poll(us(2 * n)).is_some());
            seen.push(drain.paused);
        }
        assert_eq!(seen, [0, 0, 8, 8, 0, 0, 0]);
    }

    #[test]
    fn frames_that_exceed_the_buffer_are_returned() {
        let mut drain = RxBuffer::new(SLOW, Bytes::new(2_500));
        assert_eq!([3, 4, 5].map(|lane| admit(&mut drain, lane, us(0))), [true, true, false]);
        assert_eq!((drain.frames(), drain.held(VirtualLane::truncate(4))), (2, Bytes::new(1_000)));
        assert!(drain.poll(us(2)).is_some() && admit(&mut drain, 5, us(2)));
    }
}
