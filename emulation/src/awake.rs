//! Keeps cores from halting while a run lasts.
//!
//! An idle core halts. On bare metal it wakes some 20 µs late. A virtual core returns to its host, which may
//! give it to another guest, and a halted vCPU can take milliseconds to wake up. A thread with `SCHED_IDLE`
//! that wakes every 50 µs keeps the core: hosts poll for longer than that before they give a halted vCPU's core away.
//!
//! A thread that is always ready would keep it too, and would harm others although it has `SCHED_IDLE`. Where each session or
//! container is a group of the scheduler (`sched_autogroup_enabled`, cgroups), that class counts inside its group only, and
//! the group of such a thread is never idle: threads of other sessions waited up to 5.7 s (Linux 6.18, docs/performance.md 3).

use crate::clock::monotonic_ns;
use crate::timer;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How long a thread sleeps.
const NAP_NS: u64 = 50_000;

/// Keeps cores awake with one `SCHED_IDLE` thread each, until it is dropped.
#[derive(Debug)]
pub struct Awake(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    kept: AtomicUsize,
}

impl Awake {
    /// Keeps all cores awake that this process may use.
    pub fn keep() -> Awake {
        let shared = Arc::new(Shared::default());
        let cores = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let mine = |core: &usize| cores.is_set(*core).unwrap_or(false);
        let start = |core| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("awake {core}"));
            // Without the thread the core halts as before. Nothing waits for its end: on a busy core it gets no time for long.
            let _ = thread.spawn(move || stay(core, &shared));
        };
        (0..CpuSet::count()).filter(mine).for_each(start);
        Awake(shared)
    }

    /// The number of cores kept awake so far.
    pub fn cores(&self) -> usize {
        self.0.kept.load(Ordering::Relaxed)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Naps on `core` until the end. Returns at once if it cannot get `SCHED_IDLE`: at an ordinary priority it
/// would take time from other threads.
fn stay(core: usize, shared: &Shared) {
    let mut only = CpuSet::new();
    let pinned = only.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
    if pinned.is_err() || !become_idle() {
        return;
    }
    // Refused only for a value out of range. The default slack would double the nap.
    let _ = nix::sys::prctl::set_timerslack(1);
    shared.kept.fetch_add(1, Ordering::Relaxed);
    while !shared.over.load(Ordering::Relaxed) {
        timer::wait(None, monotonic_ns() + NAP_NS);
    }
}

/// Sets `SCHED_IDLE`: every other ready thread goes first. Needs no capability.
fn become_idle() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` outlives the call, which only reads it; 0 is the calling thread.
    // Test: a_thread_that_keeps_a_core_gives_way.
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
