//! What ends the wait of a thread: an alarm that another thread rings, and sets of descriptors.

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Descriptors that one look at a [`WaitSet`] finds ready at most.
const READY_MAX: usize = 64;

/// A descriptor that is readable from [`Alarm::ring`] to [`Alarm::silence`]. Neither blocks.
#[derive(Debug)]
pub struct Alarm(EventFd);

impl Alarm {
    /// A silent alarm.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Alarm> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Alarm(EventFd::from_flags(flags)?))
    }

    /// Wakes the thread that waits for it.
    pub fn ring(&self) {
        // Fails only if it rings already.
        let _ = self.0.write(1);
    }

    /// Ends the ringing. Returns how often it was rung since it was silent.
    pub fn silence(&self) -> u64 {
        // Fails only if it is silent.
        self.0.read().unwrap_or(0)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Several descriptors as one, which is readable while one of them is.
#[derive(Debug)]
pub struct WaitSet(Epoll);

impl WaitSet {
    /// The set of these descriptors, which it names by their place.
    ///
    /// # Errors
    /// If the system refuses one.
    pub fn of<'a>(sources: impl IntoIterator<Item = BorrowedFd<'a>>) -> io::Result<WaitSet> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (place, source) in sources.into_iter().enumerate() {
            epoll.add(source, EpollEvent::new(EpollFlags::EPOLLIN, place as u64))?;
        }
        Ok(WaitSet(epoll))
    }

    /// The places of readable descriptors, at most 64; a later call begins with others.
    pub fn ready(&self) -> Vec<usize> {
        let mut events = [EpollEvent::empty(); READY_MAX];
        // An error is a signal: the caller asks again.
        let count = self.0.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        events[..count].iter().map(|event| event.data() as usize).collect()
    }
}

impl AsFd for WaitSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use crate::timer;

    #[test]
    fn an_alarm_ends_the_wait_for_a_set_until_it_is_silent() {
        let alarms = [Alarm::new().expect("a descriptor"), Alarm::new().expect("a descriptor")];
        let set = WaitSet::of(alarms.iter().map(AsFd::as_fd)).expect("a descriptor");
        assert_eq!(set.ready(), [0; 0]);
        alarms[1].ring();
        alarms[1].ring();
        let begin = monotonic_ns();
        timer::wait(Some(set.as_fd()), begin + 60_000_000_000);
        assert!(monotonic_ns() < begin + 60_000_000_000);
        assert_eq!(set.ready(), [1]);
        assert_eq!(alarms.each_ref().map(Alarm::silence), [0, 2]);
        assert_eq!(set.ready(), [0; 0]);
    }
}
