//! Frames that packet sockets have received, on their way to devices.

use super::{ADDRESSES, ETHERNET, SHIM_ETHERTYPE};
use crate::cable::inbox::{Accepted, FRAME_MAX, Inbox};
use crate::cable::lines::Incoming;
use crate::cable::packet_socket::ReceivedFrame;
use crate::clock::Clock;
use bytes::BytesMut;
use proto::frame::{Frame, FrameKind, FramePool};

/// Age above which a time stamp of the kernel is not used.
const AGE_MAX_NS: u64 = 1_000_000_000;
/// A calendar clock that has moved this far against the monotonic one since the last reading has been stepped: slewing
/// moves it by half a thousandth.
const STEP_NS: u64 = 1_000_000;

/// Finds out whether the calendar clock, from which the kernel's time stamps come, has been stepped.
#[derive(Debug, Default)]
pub(super) struct StepDetector {
    /// The distance between both clocks at the last reading.
    before: Option<u64>,
}

impl StepDetector {
    /// Whether the clock was stepped since the last call. Then the age of a packet that waits is unknown.
    pub(super) fn is_stepped(&mut self, realtime_ns: u64, monotonic_ns: u64) -> bool {
        let apart = realtime_ns.wrapping_sub(monotonic_ns);
        let before = self.before.replace(apart).unwrap_or(apart);
        before.abs_diff(apart) > STEP_NS
    }
}

/// Frames on the way from sockets to devices.
pub(super) struct Arrivals<'a, D> {
    /// Converts the kernel's time stamps.
    pub clock: &'a Clock,
    /// Counts them.
    pub inbox: &'a mut Inbox,
    /// Keeps buffers.
    pub pool: &'a mut FramePool,
    /// Takes accepted frames.
    pub deliver: D,
    /// The clock of the worker at the moment of reading.
    pub monotonic_ns: u64,
    /// The clock of the kernel's time stamps, at that moment; none if it has been stepped since the reading before.
    pub realtime_ns: Option<u64>,
}

impl<D: FnMut(Accepted)> Arrivals<'_, D> {
    /// Accepts a frame of Ethernet.
    pub fn bare(&mut self, line: Incoming, inward: ReceivedFrame<'_>) {
        let ReceivedFrame { octets, at_ns, .. } = inward;
        if octets.len() < ETHERNET {
            return self.inbox.refuse(|rejected| &mut rejected.truncated);
        }
        if octets.len() > FRAME_MAX {
            return self.inbox.refuse(|rejected| &mut rejected.oversize);
        }
        let frame = Frame::unchecked(FrameKind::Ethernet, whole_frame(&inward, self.pool));
        self.inbox.accept_bare(line, &frame);
        let known = self.realtime_ns.zip(at_ns);
        let age = known.map_or(0, |(realtime_ns, at_ns)| realtime_ns.saturating_sub(at_ns));
        let age = if age > AGE_MAX_NS { 0 } else { age };
        let left = self.clock.at_wall_ns(self.monotonic_ns - age);
        (self.deliver)(Accepted { line, frame, arrived: left + line.delay });
    }

    /// Accepts a frame behind the shim.
    pub fn shimmed(&mut self, line: Incoming, inward: ReceivedFrame<'_>) {
        let octets = inward.octets;
        if inward.tag.is_some() || octets.get(ADDRESSES..ETHERNET) != Some(&SHIM_ETHERTYPE) {
            return self.inbox.refuse(|rejected| &mut rejected.foreign);
        }
        self.inbox.accept_from(line, &octets[ETHERNET..], self.pool, &mut self.deliver);
    }
}

/// The octets of a frame of at least [`ETHERNET`] octets, with the tag that the kernel took out.
pub(crate) fn whole_frame(inward: &ReceivedFrame<'_>, pool: &mut FramePool) -> BytesMut {
    let mut whole = pool.take();
    // A buffer that grows bit by bit begins in the memory of an order and stays in the arena of the thread that gave it,
    // whose lock the thread of lowest priority holds for long.
    whole.reserve(inward.octets.len() + inward.tag.map_or(0, |tag| tag.octets().len()));
    let (addresses, rest) = inward.octets.split_at(ADDRESSES);
    whole.extend_from_slice(addresses);
    if let Some(tag) = inward.tag {
        whole.extend_from_slice(&tag.octets());
    }
    whole.extend_from_slice(rest);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_calendar_clock_is_seen_once_and_slewing_is_none() {
        let mut steps = StepDetector::default();
        let (ms, mut calendar) = (1_000_000, 1_700_000_000_000_000_000);
        assert!(!steps.is_stepped(calendar, 0), "nothing is known yet");
        assert!(!steps.is_stepped(calendar + 100 * ms, 100 * ms));
        assert!(!steps.is_stepped(calendar + 1_100 * ms + ms / 2, 1_100 * ms), "slewed");
        for step in [500 * ms as i64, -(500 * ms as i64), 2 * ms as i64] {
            calendar = calendar.wrapping_add_signed(step);
            assert!(steps.is_stepped(calendar + 1_200 * ms, 1_200 * ms), "{step}");
            assert!(!steps.is_stepped(calendar + 1_201 * ms, 1_201 * ms), "{step}");
        }
    }
}
