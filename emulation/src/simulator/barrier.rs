//! The barrier between two windows: threads exchange frames there and agree on the next window.

use crate::inputs::Times;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A window takes tens of microseconds and the other threads are nearly done, so spinning is cheaper than
/// sleeping, unless threads share a core.
const SPINS_BEFORE_SLEEP: u32 = 2_000;

/// A frame for a device of another shard.
pub(super) struct CrossFrame {
    pub member: u32,
    pub port: PortNumber,
    pub times: Times,
    pub frame: Frame,
}

/// A barrier, a mailbox for each pair of shards, and the next instant of each shard.
pub(super) struct WindowBarrier {
    shards: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// Threads that stopped spinning and wait for `woken`. A lock, because a `Condvar` needs one.
    sleeping: Mutex<usize>,
    woken: Condvar,
    /// A thread panicked, so waiting would never end.
    poisoned: AtomicBool,
    /// By shard: its earliest pending instant, in ps.
    earliest: Vec<AtomicU64>,
    /// By sending shard, then by receiving shard. One lock per pair, so that shards rarely wait for each other.
    mailboxes: Vec<Mutex<Vec<CrossFrame>>>,
}

/// Every critical section leaves the protected value whole, so a poisoned lock can be used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WindowBarrier {
    pub fn new(shards: usize) -> WindowBarrier {
        WindowBarrier {
            shards,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            sleeping: Mutex::new(0),
            woken: Condvar::new(),
            poisoned: AtomicBool::new(false),
            earliest: (0..shards).map(|_| AtomicU64::new(u64::MAX)).collect(),
            mailboxes: (0..shards * shards).map(|_| Mutex::default()).collect(),
        }
    }

    /// Swaps the mailbox of a pair with `outgoing`: the sender puts frames in and takes an empty vector, the
    /// receiver does the opposite.
    pub fn exchange(&self, from: usize, to: usize, outgoing: &mut Vec<CrossFrame>) {
        std::mem::swap(&mut *lock(&self.mailboxes[from * self.shards + to]), outgoing);
    }

    /// Waits until all shards have called this.
    ///
    /// # Panics
    /// If another shard has panicked.
    pub fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.shards {
            self.arrived.store(0, Ordering::Relaxed);
            return self.wake_after(|| self.round.store(round.wrapping_add(1), Ordering::Release));
        }
        for _ in 0..SPINS_BEFORE_SLEEP {
            if self.is_over(round) {
                return;
            }
            spin_loop();
        }
        let mut sleeping = lock(&self.sleeping);
        while !self.is_over(round) {
            *sleeping += 1;
            sleeping = self.woken.wait(sleeping).unwrap_or_else(PoisonError::into_inner);
            *sleeping -= 1;
        }
    }

    fn is_over(&self, round: usize) -> bool {
        assert!(!self.poisoned.load(Ordering::Relaxed), "another shard has panicked");
        self.round.load(Ordering::Acquire) != round
    }

    /// Makes a change that other shards wait for, and wakes those that sleep.
    fn wake_after(&self, change: impl FnOnce()) {
        let sleeping = lock(&self.sleeping);
        change();
        if *sleeping > 0 {
            self.woken.notify_all();
        }
    }

    /// Publishes this shard's earliest pending instant, waits for all shards, and returns the earliest of all.
    pub fn agree(&self, shard: usize, earliest: Instant) -> Instant {
        self.earliest[shard].store(earliest.as_ps(), Ordering::Relaxed);
        self.wait();
        let all = self.earliest.iter().map(|at| at.load(Ordering::Relaxed));
        Instant::from_ps(all.min().unwrap_or(u64::MAX))
    }
}

/// Poisons the barrier when its thread panics, so that the other threads end instead of waiting forever.
pub(super) struct PanicGuard<'a>(pub &'a WindowBarrier);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.wake_after(|| self.0.poisoned.store(true, Ordering::Relaxed));
        }
    }
}
