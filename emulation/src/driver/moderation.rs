//! When sockets on interfaces of the host are read: at once where frames come thin, by the batch where
//! they come thick.
//!
//! Whoever sends into an attached interface knows no ticks of ours. A worker that goes before all
//! other threads and looks up for every frame takes the core from the very sender whose next frame it
//! will look up for, and pays a wake-up for each. So it does as network cards do with interrupts: after
//! a few frames in quick succession it lets the sockets fill for a moment.
//!
//! A frame that comes by another port than the one before is an answer, and somebody waits for it or will
//! wait for the next: pings and requests are never held up, however many there are. What counts is frames
//! that follow each other by one port.

use proto::ids::PortNumber;

/// Frames in a row are thick above one in so many nanoseconds: a wake-up for each would take a third of a
/// core.
const THIN_NS: u64 = 50_000;
/// So many beyond that rate are still read at once.
const BURST_NS: u64 = 8 * THIN_NS;
/// How much of a burst is remembered: what goes beyond it is forgotten as soon as frames come thin.
const BURST_MAX_NS: u64 = 2 * BURST_NS;
/// How long sockets may fill.
const FILL_NS: u64 = 100_000;

/// What is remembered of the frames that came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    /// By which port of which device the last frame came.
    last: Option<(usize, PortNumber)>,
    /// Frames of this reading that came by the same port as the one before them.
    in_a_row: u64,
    /// Such frames beyond the rate at which they are thin, each as long as it lasts there.
    burst_ns: u64,
    /// When that was reckoned.
    at_ns: u64,
    /// Sockets fill until then.
    until_ns: u64,
}

impl Moderation {
    /// A frame came by `port` of `device`.
    pub fn count(&mut self, device: usize, port: PortNumber) {
        let before = self.last.replace((device, port));
        self.in_a_row += u64::from(before == self.last);
    }

    /// That was all there was at `now_ns`.
    pub fn close(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.at_ns);
        let came = std::mem::take(&mut self.in_a_row) * THIN_NS;
        self.burst_ns = (self.burst_ns.saturating_sub(passed) + came).min(BURST_MAX_NS);
        self.at_ns = now_ns;
        if came > 0 && self.burst_ns > BURST_NS {
            self.until_ns = now_ns + FILL_NS;
        }
    }

    /// Whether the sockets are left alone at `now_ns`, and until when.
    pub fn filling(&self, now_ns: u64) -> Option<u64> {
        (self.until_ns > now_ns).then_some(self.until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `frames` that came by port `port`.
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
        assert_eq!(read(&mut moderation, 10_000, 0, now), Some(now + FILL_NS));
        assert_eq!(read(&mut moderation, 0, 0, now + FILL_NS), None);
        let later = now + BURST_MAX_NS;
        assert_eq!(read(&mut moderation, 1, 0, later), None, "however much came before");
    }
}
