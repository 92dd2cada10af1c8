//! Receive moderation for attached interfaces: sockets are read at once under low load and in batches under
//! high load.
//!
//! Programs outside the fabric do not follow the worker's ticks. A real-time worker that wakes for every frame
//! takes the core from the program that is about to send the next one, and pays one wake-up a frame. So it does
//! what network cards do with interrupts: after some frames in quick succession it leaves the sockets to fill
//! for a short time.
//!
//! A frame that arrives on another port than the one before it is a reply that some program waits for, so
//! request and response traffic is never delayed. Only frames that follow each other on one port count.

use proto::ids::PortNumber;

/// Frames closer than this many nanoseconds count as high load: a wake-up for each would use a fifth of a core.
const THIN_NS: u64 = 100_000;
/// Burst above that rate that is still read at once.
const BURST_NS: u64 = 8 * THIN_NS;
/// Upper limit of the remembered burst; it decays when the load falls.
const BURST_MAX_NS: u64 = 2 * BURST_NS;
/// Sockets are left until so many frames have come at the rate of the last reading. QEMU stops when the socket of its
/// machine holds 11 frames (`net.unix.max_dgram_qlen`).
const BATCH: u64 = 4;
/// The shortest time that sockets are left to fill: cheaper frames, which come closer, need batches of only 50.
const FILL_MIN_NS: u64 = 100_000;
/// The longest such time.
const FILL_MAX_NS: u64 = 300_000;

/// The recent load, as a leaky bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moderation {
    /// Device and port of the last frame.
    last: Option<(usize, PortNumber)>,
    /// Frames of this reading on the same port as the frame before them.
    in_a_row: u64,
    /// Fill level of the bucket: [`THIN_NS`] a frame, minus the time that has passed.
    burst_ns: u64,
    /// When the level was last computed.
    at_ns: u64,
    /// Sockets are left alone until then.
    until_ns: u64,
}

impl Moderation {
    /// A frame came in by `port` of `device`.
    pub fn count(&mut self, device: usize, port: PortNumber) {
        let before = self.last.replace((device, port));
        self.in_a_row += u64::from(before == self.last);
    }

    /// The reading at `now_ns` is over.
    pub fn close(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.at_ns);
        let frames = std::mem::take(&mut self.in_a_row);
        self.burst_ns = (self.burst_ns.saturating_sub(passed) + frames * THIN_NS).min(BURST_MAX_NS);
        self.at_ns = now_ns;
        if frames > 0 && self.burst_ns > BURST_NS {
            let fill_ns = passed * BATCH / frames;
            self.until_ns = now_ns + fill_ns.clamp(FILL_MIN_NS, FILL_MAX_NS);
        }
    }

    /// Until when the sockets are left alone, if they are at `now_ns`.
    pub(crate) fn filling(&self, now_ns: u64) -> Option<u64> {
        (self.until_ns > now_ns).then_some(self.until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `frames` frames that came by port `port`.
    fn read(moderation: &mut Moderation, frames: usize, port: usize, now_ns: u64) -> Option<u64> {
        (0..frames).for_each(|_| moderation.count(0, PortNumber::from_index(port)));
        moderation.close(now_ns);
        moderation.filling(now_ns)
    }

    #[test]
    fn what_comes_thin_is_read_at_once() {
        let mut moderation = Moderation::default();
        for frame in 1..1_000 {
            assert_eq!(read(&mut moderation, 1, 0, frame * THIN_NS), None, "frame {frame}");
        }
    }

    #[test]
    fn a_few_frames_in_a_row_are_read_at_once_and_many_by_the_batch() {
        let mut moderation = Moderation::default();
        let begin = 10_000_000;
        let held = (0..100).position(|frame| read(&mut moderation, 1, 0, begin + frame).is_some());
        assert_eq!(held, Some(9), "the first that waits comes after one that begins and a burst");
    }

    #[test]
    fn answers_are_read_at_once_however_many_there_are() {
        let mut moderation = Moderation::default();
        for frame in 1..1_000 {
            assert_eq!(read(&mut moderation, 1, frame % 2, frame as u64 * 1_000), None, "{frame}");
        }
    }

    #[test]
    fn a_socket_that_stays_empty_is_listened_to_again() {
        let mut moderation = Moderation::default();
        let now = 10_000_000;
        assert_eq!(read(&mut moderation, 10_000, 0, now), Some(now + FILL_MIN_NS));
        assert_eq!(read(&mut moderation, 0, 0, now + FILL_MIN_NS), None);
        let later = now + BURST_MAX_NS;
        assert_eq!(read(&mut moderation, 1, 0, later), None, "however much came before");
    }

    #[test]
    fn sockets_fill_for_a_batch_at_the_rate_of_the_last_reading() {
        for (spacing_ns, fill_ns) in
            [(10_000, FILL_MIN_NS), (60_000, 240_000), (90_000, FILL_MAX_NS)]
        {
            let (mut moderation, mut now, mut fill) = (Moderation::default(), 10_000_000, None);
            for _ in 0..200 {
                now += spacing_ns;
                fill = read(&mut moderation, 1, 0, now).map(|until| until - now);
            }
            assert_eq!(fill, Some(fill_ns), "a frame each {spacing_ns} ns");
        }
    }
}
