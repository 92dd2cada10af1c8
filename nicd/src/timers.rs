//! All timers of a NIC in one heap with lazy deletion.
//!
//! A deadline that moves later keeps its heap entry. When that entry comes up too early, it is queued again
//! at the new instant. So a timer that moves with every frame, such as the retransmission timer, costs one
//! comparison per frame and no heap operation.

use proto::units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The purpose of a timer, with the index of its queue pair or pacing group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The queue pair has waited for an acknowledgement for too long.
    Retransmit(u32),
    /// The wait that an RNR NAK asked this queue pair for is over.
    ReceiverReady(u32),
    /// The queue pair must send its coalesced acknowledgement.
    Acknowledge(u32),
    /// The notification point of the queue pair has a timeout.
    NotificationPoint(u32),
    /// The reaction point of the pacing group has a timeout.
    ReactionPoint(u32),
    /// The queue pair has waited for missing frames for too long.
    SequenceGap(u32),
}

/// A heap entry: when it is due, and which timer it belongs to.
pub type Entry = (Instant, Timer);

/// The deadline of one timer, and the instant of its valid heap entry.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    due: Instant,
    /// The instant of the valid heap entry; entries at other instants are stale.
    queued_at: Instant,
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline { due: Instant::NEVER, queued_at: Instant::NEVER }
    }
}

impl Deadline {
    /// Whether the timer will expire.
    pub fn is_set(&self) -> bool {
        self.due != Instant::NEVER
    }

    /// Stops the timer. Its heap entry stays and is ignored.
    pub fn clear(&mut self) {
        self.due = Instant::NEVER;
    }
}

/// Heap entries, soonest first; entries of one instant in the order of [`Timer`].
#[derive(Clone, Debug, Default)]
pub struct Timers {
    entries: BinaryHeap<Reverse<Entry>>,
}

impl Timers {
    /// Sets `deadline`, which belongs to `timer`, to `due`; [`Instant::NEVER`] stops it.
    pub fn set(&mut self, deadline: &mut Deadline, timer: Timer, due: Instant) {
        deadline.due = due;
        if due < deadline.queued_at {
            deadline.queued_at = due;
            self.entries.push(Reverse((due, timer)));
        }
    }

    /// The instant of the first heap entry. The entry may be stale.
    pub fn poll_timeout(&self) -> Instant {
        self.entries.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at)
    }

    /// Removes and returns an entry that is due at `now`. [`Timers::expires`] returns whether it is valid.
    pub fn poll_entry(&mut self, now: Instant) -> Option<Entry> {
        if self.poll_timeout() > now {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    /// Whether `deadline` expires at `now`, when its entry has come up. An entry that came up too early is
    /// queued again.
    pub fn expires(&mut self, deadline: &mut Deadline, (at, timer): Entry, now: Instant) -> bool {
        if at != deadline.queued_at {
            return false;
        }
        deadline.queued_at = Instant::NEVER;
        if deadline.due <= now {
            deadline.due = Instant::NEVER;
            return true;
        }
        self.set(deadline, timer, deadline.due);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: Timer = Timer::Retransmit(7);

    fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    #[test]
    fn a_postponed_timer_expires_once_at_the_later_instant() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        timers.set(&mut deadline, TIMER, at(10));
        timers.set(&mut deadline, TIMER, at(30));
        assert_eq!(timers.poll_timeout(), at(10));
        let entry = timers.poll_entry(at(10)).expect("the first entry");
        assert!(!timers.expires(&mut deadline, entry, at(10)));
        assert_eq!(timers.poll_timeout(), at(30));
        let entry = timers.poll_entry(at(30)).expect("the entry queued again");
        assert!(timers.expires(&mut deadline, entry, at(30)));
        assert!(!deadline.is_set());
        assert_eq!(timers.poll_entry(at(99)), None);
    }

    #[test]
    fn a_timer_moved_forward_expires_once() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        timers.set(&mut deadline, TIMER, at(30));
        timers.set(&mut deadline, TIMER, at(10));
        let entry = timers.poll_entry(at(40)).expect("the earlier entry");
        assert!(timers.expires(&mut deadline, entry, at(40)));
        let entry = timers.poll_entry(at(40)).expect("the stale entry");
        assert!(!timers.expires(&mut deadline, entry, at(40)));
    }

    #[test]
    fn a_cleared_timer_never_expires() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        timers.set(&mut deadline, TIMER, at(10));
        deadline.clear();
        let entry = timers.poll_entry(at(10)).expect("its entry");
        assert!(!timers.expires(&mut deadline, entry, at(10)));
        assert_eq!(timers.poll_timeout(), Instant::NEVER);
    }
}
