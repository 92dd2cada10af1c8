//! Cores kept from falling asleep while a run lasts.
//!
//! A core with nothing to do halts. On a machine of one's own it wakes some 20 µs late; a virtual one
//! gives its core back to a host that may lend it to somebody else, and then waits milliseconds for
//! it. A thread that is always ready but gives way to every other keeps the core, and costs nobody
//! anything but heat.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// One thread a core, until this is dropped.
#[derive(Debug)]
pub struct Awake {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    kept: AtomicUsize,
}

impl Awake {
    /// Keeps all cores awake that this process may use. A core whose thread cannot be had sleeps as
    /// before.
    pub fn keep() -> Awake {
        let shared = Arc::new(Shared::default());
        let cores = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let mine = |core: &usize| cores.is_set(*core).unwrap_or(false);
        let start = |core| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("awake {core}"));
            thread.spawn(move || stay(core, &shared)).ok()
        };
        let threads = (0..CpuSet::count()).filter(mine).filter_map(start).collect();
        Awake { shared, threads }
    }

    /// How many cores are being kept by now.
    pub fn cores(&self) -> usize {
        self.shared.kept.load(Ordering::Relaxed)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot have panicked, and if it had, a core would merely have slept.
            let _ = thread.join();
        }
    }
}

/// Is ready on `core` until it is over. Never at an ordinary priority, where it would take its share
/// from those who work.
fn stay(core: usize, shared: &Shared) {
    let mut only = CpuSet::new();
    let pinned = only.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
    if pinned.is_err() || !become_idle() {
        return;
    }
    shared.kept.fetch_add(1, Ordering::Relaxed);
    while !shared.over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// `SCHED_IDLE`: whoever else is ready goes first. Needs no right.
fn become_idle() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` outlives the call, which only reads it; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Stopwatch;

    #[test]
    fn every_core_is_kept_until_the_end() {
        let cores = std::thread::available_parallelism().expect("some core").get();
        let awake = Awake::keep();
        let stopwatch = Stopwatch::start();
        while awake.cores() < cores && stopwatch.seconds() < 60.0 {
            std::thread::yield_now();
        }
        assert!(awake.cores() >= cores);
    }

    #[test]
    fn a_thread_that_keeps_a_core_gives_way() {
        let policy = std::thread::spawn(|| {
            assert!(become_idle());
            // SAFETY: no memory is passed; 0 is the calling thread.
            unsafe { libc::sched_getscheduler(0) }
        });
        assert_eq!(policy.join().expect("no panic"), libc::SCHED_IDLE);
    }
}
