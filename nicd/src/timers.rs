//! Every reason for which a NIC wakes by itself, in one lazy heap.
//!
//! An deadline that is put off keeps its entry in the heap: when the entry comes up too early it is
//! queued_at again at the new instant. So a timer that is put off with every frame, like the wait for
//! an acknowledgement, costs a comparison and no heap operation.

use proto::units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an deadline is for, and whose it is (an index).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// No acknowledgement came to this queue pair for too long.
    Retransmit(u32),
    /// This queue pair has waited long enough for its peer's receive buffers.
    ReceiverReady(u32),
    /// This queue pair owes an acknowledgement that cannot wait longer.
    Acknowledge(u32),
    /// The notification point of this queue pair asked for it.
    NotificationPoint(u32),
    /// The reaction point of this group asked for it.
    ReactionPoint(u32),
    /// What is missing before frames of this queue pair has been waited for long enough.
    SequenceGap(u32),
}

/// One timer: when it is due, and where its entry stands in the heap.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    due: Instant,
    /// Instant of the entry that counts; any other entry of this deadline is out of date.
    queued_at: Instant,
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline { due: Instant::NEVER, queued_at: Instant::NEVER }
    }
}

impl Deadline {
    /// The deadline will ring, some time.
    pub fn is_set(&self) -> bool {
        self.due != Instant::NEVER
    }

    /// The deadline will not ring. Its entry stays and is ignored.
    pub fn clear(&mut self) {
        self.due = Instant::NEVER;
    }
}

/// The heap of alarms, soonest first; at one instant in the order of [`Timer`].
#[derive(Clone, Debug, Default)]
pub struct Timers {
    entries: BinaryHeap<Reverse<(Instant, Timer)>>,
}

impl Timers {
    /// `deadline`, which is for `timer`, shall ring at `due`; [`Instant::NEVER`] clears it.
    pub fn set(&mut self, deadline: &mut Deadline, timer: Timer, due: Instant) {
        deadline.due = due;
        if due < deadline.queued_at {
            deadline.queued_at = due;
            self.entries.push(Reverse((due, timer)));
        }
    }

    /// When the next entry comes up. It may turn out to be put off.
    pub fn poll_timeout(&self) -> Instant {
        self.entries.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at)
    }

    /// The next entry that is due at `now`; ask [`Timers::rings`] whether it still means anything.
    pub fn poll_entry(&mut self, now: Instant) -> Option<(Instant, Timer)> {
        if self.poll_timeout() > now {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    /// True if `deadline`, whose entry has come up, rings at `now`; otherwise it is queued_at again, or
    /// was cleared.
    pub fn expires(
        &mut self,
        deadline: &mut Deadline,
        (at, timer): (Instant, Timer),
        now: Instant,
    ) -> bool {
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
    fn an_alarm_put_off_rings_once_and_at_the_later_instant() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        timers.set(&mut deadline, TIMER, at(10));
        timers.set(&mut deadline, TIMER, at(30));
        assert_eq!(timers.poll_timeout(), at(10));
        let entry = timers.poll_entry(at(10)).expect("the first entry");
        assert!(!timers.expires(&mut deadline, entry, at(10)));
        assert_eq!(timers.poll_timeout(), at(30));
        let entry = timers.poll_entry(at(30)).expect("queued_at again");
        assert!(timers.expires(&mut deadline, entry, at(30)));
        assert!(!deadline.is_set());
        assert_eq!(timers.poll_entry(at(99)), None);
    }

    #[test]
    fn an_alarm_brought_forward_rings_once() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        timers.set(&mut deadline, TIMER, at(30));
        timers.set(&mut deadline, TIMER, at(10));
        let entry = timers.poll_entry(at(40)).expect("the earlier entry");
        assert!(timers.expires(&mut deadline, entry, at(40)));
        let entry = timers.poll_entry(at(40)).expect("the entry out of date");
        assert!(!timers.expires(&mut deadline, entry, at(40)));
    }

    #[test]
    fn a_cleared_alarm_is_silent() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        timers.set(&mut deadline, TIMER, at(10));
        deadline.clear();
        let entry = timers.poll_entry(at(10)).expect("its entry");
        assert!(!timers.expires(&mut deadline, entry, at(10)));
        assert_eq!(timers.poll_timeout(), Instant::NEVER);
    }
}
