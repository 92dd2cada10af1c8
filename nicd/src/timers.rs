//! Every reason for which a NIC wakes by itself, in one lazy heap.
//!
//! An alarm that is put off keeps its entry in the heap: when the entry comes up too early it is
//! entered again at the new instant. So a timer that is put off with every frame, like the wait for
//! an acknowledgement, costs a comparison and no heap operation.

use proto::units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an alarm is for, and whose it is (an index).
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
    Missing(u32),
}

/// One timer: when it is due, and where its entry stands in the heap.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    due: Instant,
    /// Instant of the entry that counts; any other entry of this alarm is out of date.
    entered: Instant,
}

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm { due: Instant::NEVER, entered: Instant::NEVER }
    }
}

impl Alarm {
    /// The alarm will ring, some time.
    pub fn is_set(&self) -> bool {
        self.due != Instant::NEVER
    }

    /// The alarm will not ring. Its entry stays and is ignored.
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
    /// `alarm`, which is for `timer`, shall ring at `due`; [`Instant::NEVER`] clears it.
    pub fn set(&mut self, alarm: &mut Alarm, timer: Timer, due: Instant) {
        alarm.due = due;
        if due < alarm.entered {
            alarm.entered = due;
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

    /// True if `alarm`, whose entry has come up, rings at `now`; otherwise it is entered again, or
    /// was cleared.
    pub fn rings(
        &mut self,
        alarm: &mut Alarm,
        (at, timer): (Instant, Timer),
        now: Instant,
    ) -> bool {
        if at != alarm.entered {
            return false;
        }
        alarm.entered = Instant::NEVER;
        if alarm.due <= now {
            alarm.due = Instant::NEVER;
            return true;
        }
        self.set(alarm, timer, alarm.due);
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
        let (mut timers, mut alarm) = (Timers::default(), Alarm::default());
        timers.set(&mut alarm, TIMER, at(10));
        timers.set(&mut alarm, TIMER, at(30));
        assert_eq!(timers.poll_timeout(), at(10));
        let entry = timers.poll_entry(at(10)).expect("the first entry");
        assert!(!timers.rings(&mut alarm, entry, at(10)));
        assert_eq!(timers.poll_timeout(), at(30));
        let entry = timers.poll_entry(at(30)).expect("entered again");
        assert!(timers.rings(&mut alarm, entry, at(30)));
        assert!(!alarm.is_set());
        assert_eq!(timers.poll_entry(at(99)), None);
    }

    #[test]
    fn an_alarm_brought_forward_rings_once() {
        let (mut timers, mut alarm) = (Timers::default(), Alarm::default());
        timers.set(&mut alarm, TIMER, at(30));
        timers.set(&mut alarm, TIMER, at(10));
        let entry = timers.poll_entry(at(40)).expect("the earlier entry");
        assert!(timers.rings(&mut alarm, entry, at(40)));
        let entry = timers.poll_entry(at(40)).expect("the entry out of date");
        assert!(!timers.rings(&mut alarm, entry, at(40)));
    }

    #[test]
    fn a_cleared_alarm_is_silent() {
        let (mut timers, mut alarm) = (Timers::default(), Alarm::default());
        timers.set(&mut alarm, TIMER, at(10));
        alarm.clear();
        let entry = timers.poll_entry(at(10)).expect("its entry");
        assert!(!timers.rings(&mut alarm, entry, at(10)));
        assert_eq!(timers.poll_timeout(), Instant::NEVER);
    }
}
