//! Stalls of the host: on each core a real-time thread sleeps, and notes when it wakes late. No load of ordinary processes delays it,
//! so what it notes lies below the scheduler: the hypervisor had the core, or the kernel let nothing run.

use emulation::clock::monotonic_ns;
use emulation::timer::{self, Priority};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How long a thread sleeps.
const SLEEP_NS: u64 = 5_000_000;
/// A wake-up that is later than this is a stall.
const STALL_NS: u64 = 20_000_000;

/// A wake-up that was late.
struct Stall {
    /// Since the watch began.
    at_ns: u64,
    core: usize,
    late_ns: u64,
}

/// Threads that watch for stalls, until [`Stalls::end`].
pub struct Stalls {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Option<Vec<Stall>>>>,
}

impl Stalls {
    /// Watches every core of this process.
    pub fn watch() -> Stalls {
        let allowed = sched_getaffinity(Pid::from_raw(0)).expect("an affinity");
        let is_over = Arc::new(AtomicBool::new(false));
        let watch = |core| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || watched(core, &is_over))
        };
        let cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
        Stalls { threads: cores.map(watch).collect(), is_over }
    }

    /// All stalls, in words.
    pub fn end(self) -> String {
        self.is_over.store(true, Ordering::Relaxed);
        let found = self.threads.into_iter().map(|thread| thread.join().expect("no panic"));
        let Some(found) = found.collect::<Option<Vec<_>>>() else {
            return "no right to watch for stalls".to_owned();
        };
        let told = found.iter().flatten().map(|Stall { at_ns, core, late_ns }| {
            let (late_ms, at_s) = (late_ns / 1_000_000, *at_ns as f64 / 1e9);
            format!("{late_ms} ms at {at_s:.1} s on core {core}")
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { "no stall".to_owned() } else { format!("stalls {}", told.join(", ")) }
    }
}

/// The stalls of one core; nothing if the thread may not be a real-time one.
fn watched(core: usize, is_over: &AtomicBool) -> Option<Vec<Stall>> {
    let mut only = CpuSet::new();
    only.set(core).expect("a core of the set");
    sched_setaffinity(Pid::from_raw(0), &only).expect("a core of this process");
    if timer::prepare_thread(true) != Priority::Fifo {
        return None;
    }
    let begin_ns = monotonic_ns();
    let mut stalls = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let due_ns = monotonic_ns() + SLEEP_NS;
        timer::wait(None, due_ns);
        let late_ns = monotonic_ns().saturating_sub(due_ns);
        if late_ns > STALL_NS {
            stalls.push(Stall { at_ns: due_ns - begin_ns, core, late_ns });
        }
    }
    Some(stalls)
}
