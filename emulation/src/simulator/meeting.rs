//! The meeting of the threads between two windows: who has what for whom, and how far all have come.

use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A window takes tens of microseconds and the others are nearly done: looking on is cheaper than
/// going to sleep, unless they have to wait for a core.
const LOOKS_BEFORE_SLEEP: u32 = 2_000;

/// A frame for a device of another shard.
pub(super) struct Parcel {
    pub member: u32,
    pub port: PortNumber,
    pub arrives: Instant,
    pub frame: Frame,
}

/// A barrier, a pigeonhole for each pair of shards, and a board where each writes how far it is.
pub(super) struct Meeting {
    shards: usize,
    here: AtomicUsize,
    round: AtomicUsize,
    /// How many gave up looking.
    asleep: Mutex<usize>,
    bell: Condvar,
    /// A thread panicked: nobody may wait for it.
    broken: AtomicBool,
    /// By shard: the earliest instant at which it has anything to do.
    earliest: Vec<AtomicU64>,
    /// By sending shard, then by receiving shard.
    pigeonholes: Vec<Mutex<Vec<Parcel>>>,
}

/// What a lock protects is whole between any two statements: a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Meeting {
    pub fn new(shards: usize) -> Meeting {
        Meeting {
            shards,
            here: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            asleep: Mutex::new(0),
            bell: Condvar::new(),
            broken: AtomicBool::new(false),
            earliest: (0..shards).map(|_| AtomicU64::new(u64::MAX)).collect(),
            pigeonholes: (0..shards * shards).map(|_| Mutex::default()).collect(),
        }
    }

    /// The pigeonhole of a pair changes hands: whoever sends leaves parcels and takes an empty box,
    /// whoever receives does the opposite.
    pub fn exchange(&self, from: usize, to: usize, parcels: &mut Vec<Parcel>) {
        std::mem::swap(&mut *lock(&self.pigeonholes[from * self.shards + to]), parcels);
    }

    /// Waits until all shards are here.
    ///
    /// # Panics
    /// If one of the others has panicked.
    pub fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.here.fetch_add(1, Ordering::AcqRel) + 1 == self.shards {
            self.here.store(0, Ordering::Relaxed);
            return self.ring(|| self.round.store(round.wrapping_add(1), Ordering::Release));
        }
        for _ in 0..LOOKS_BEFORE_SLEEP {
            if self.is_over(round) {
                return;
            }
            spin_loop();
        }
        let mut asleep = lock(&self.asleep);
        while !self.is_over(round) {
            *asleep += 1;
            asleep = self.bell.wait(asleep).unwrap_or_else(PoisonError::into_inner);
            *asleep -= 1;
        }
    }

    fn is_over(&self, round: usize) -> bool {
        assert!(!self.broken.load(Ordering::Relaxed), "another shard has panicked");
        self.round.load(Ordering::Acquire) != round
    }

    /// Changes something that others wait for.
    fn ring(&self, change: impl FnOnce()) {
        let asleep = lock(&self.asleep);
        change();
        if *asleep > 0 {
            self.bell.notify_all();
        }
    }

    /// Says when this shard has to do something next, waits for all, and gives the earliest of all.
    pub fn agree(&self, shard: usize, earliest: Instant) -> Instant {
        self.earliest[shard].store(earliest.as_ps(), Ordering::Relaxed);
        self.wait();
        let all = self.earliest.iter().map(|at| at.load(Ordering::Relaxed));
        Instant::from_ps(all.min().unwrap_or(u64::MAX))
    }
}

/// A thread's presence: if it panics, the others learn of it instead of waiting for ever.
pub(super) struct Presence<'a>(pub &'a Meeting);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.ring(|| self.0.broken.store(true, Ordering::Relaxed));
        }
    }
}
