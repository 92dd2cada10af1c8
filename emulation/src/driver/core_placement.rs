//! Core selection for a real-time worker with attached interfaces: it stays on the core where most frames get
//! through.
//!
//! The kernel leaves a real-time thread on its core, and every other thread there has to wait. That thread may
//! be the program that sends to the worker, or the receiver of its frames, while another core is idle. A
//! receiver that must be woken on another core for every frame costs as much as the frame itself. The worker
//! cannot find out which programs these are. So under load it tries another core for a moment now and then, and
//! stays there if at least 15 % more frames get through.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Frames are counted on a core for so long: several time slices of any other thread there.
const WINDOW_NS: u64 = 25_000_000;
/// Time until senders and receivers have adapted to a move; frames in it are not counted.
const SETTLING_NS: u64 = 3_000_000;
/// Time on a core before the next try. It doubles after each try that found nothing better.
const STAY_NS: u64 = 250_000_000;
/// Upper limit of that time, since other programs move as well.
const STAY_MAX_NS: u64 = 8 * STAY_NS;
/// Frames in a window below which no other core is tried: a tenth of what a core carries.
const MIN_FRAMES: u64 = 750;
/// A core is better if it carries at least so many frames for every 100 on the core before.
const BETTER_PERCENT: u64 = 115;

/// The current core and the results of the last try.
#[derive(Debug)]
pub(crate) struct CorePlacement {
    /// The cores that this thread may use, in the order of the tries.
    cores: Vec<usize>,
    /// Index into `cores` of the current one.
    at: usize,
    /// Index into `cores` of the one tried last.
    tried: usize,
    /// During a try: index of the core before it, and the frames of a window there.
    before: Option<(usize, u64)>,
    /// Frames since the window began.
    frames: u64,
    /// When the window begins; in the future after a move.
    since_ns: u64,
    /// When the next core is tried, if the load is high enough then.
    next_ns: u64,
    /// Time on the core after this try.
    stay_ns: u64,
}

impl CorePlacement {
    /// For the calling thread and the cores it may use; `None` if there is only one.
    pub fn here() -> Option<CorePlacement> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let is_allowed = |core: &usize| allowed.is_set(*core).unwrap_or(false);
        let cores: Vec<usize> = (0..CpuSet::count()).filter(is_allowed).collect();
        let here = nix::sched::sched_getcpu().ok()?;
        let at = cores.iter().position(|core| *core == here)?;
        (cores.len() > 1).then(|| CorePlacement::new(cores, at))
    }

    fn new(cores: Vec<usize>, at: usize) -> CorePlacement {
        CorePlacement {
            cores,
            at,
            tried: at,
            before: None,
            frames: 0,
            since_ns: 0,
            next_ns: 0,
            stay_ns: STAY_NS,
        }
    }

    /// Counts `frames` frames that came by `now_ns`, and moves the calling thread if a try is due or over.
    pub fn count(&mut self, frames: usize, now_ns: u64) {
        if let Some(core) = self.advance(frames, now_ns) {
            go_to(core, &self.cores);
        }
    }

    /// The core to move to, if a move is due.
    fn advance(&mut self, frames: usize, now_ns: u64) -> Option<usize> {
        if now_ns < self.since_ns {
            return None;
        }
        self.frames += frames as u64;
        let passed = now_ns - self.since_ns;
        if passed < WINDOW_NS {
            return None;
        }
        // A window that ends late, after a pause, counts as a low load.
        let came = std::mem::take(&mut self.frames) * WINDOW_NS / passed;
        self.since_ns = now_ns;
        let Some((home, there)) = self.before.take() else {
            if came < MIN_FRAMES || now_ns < self.next_ns {
                return None;
            }
            self.before = Some((self.at, came));
            let mut others =
                (1..=self.cores.len()).map(|step| (self.tried + step) % self.cores.len());
            self.tried = others.find(|other| *other != self.at)?;
            return Some(self.switch_to(self.tried, now_ns));
        };
        let is_better = came * 100 >= there * BETTER_PERCENT;
        self.stay_ns = if is_better { STAY_NS } else { (self.stay_ns * 2).min(STAY_MAX_NS) };
        self.next_ns = now_ns + self.stay_ns;
        (!is_better).then(|| self.switch_to(home, now_ns))
    }

    fn switch_to(&mut self, at: usize, now_ns: u64) -> usize {
        self.at = at;
        self.since_ns = now_ns + SETTLING_NS;
        self.cores[at]
    }
}

/// Moves the calling thread to `core` and then allows all `cores` again: the thread stays there, but another
/// real-time thread can still displace it. If the kernel refuses, the thread stays, and the try finds no
/// difference.
fn go_to(core: usize, cores: &[usize]) {
    let set = |cores: &[usize]| {
        let mut set = CpuSet::new();
        for core in cores {
            let _ = set.set(*core);
        }
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    };
    set(&[core]);
    set(cores);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs for four seconds with `frames` frames a millisecond by core; returns the milliseconds spent on
    /// each.
    fn run(placement: &mut CorePlacement, frames: &[usize], from_ms: u64) -> Vec<u64> {
        let mut spent = vec![0; frames.len()];
        for ms in from_ms..from_ms + 4_000 {
            let at = placement.at;
            spent[at] += 1;
            placement.advance(frames[at], ms * 1_000_000);
        }
        spent
    }

    #[test]
    fn it_goes_where_notably_more_frames_get_through_and_stays() {
        let mut placement = CorePlacement::new(vec![0, 1, 2], 0);
        let spent = run(&mut placement, &[200, 210, 300], 1_000);
        assert!(spent[2] > 3_000 && placement.at == 2, "{spent:?}");
        let spent = run(&mut placement, &[200, 210, 300], 5_000);
        assert!(spent[2] > 3_900 && placement.at == 2, "tries cost little: {spent:?}");
    }

    #[test]
    fn it_leaves_a_core_that_has_become_worse() {
        let mut placement = CorePlacement::new(vec![4, 7], 1);
        assert!(run(&mut placement, &[200, 300], 1_000)[1] > 3_800);
        let spent = run(&mut placement, &[200, 100], 5_000);
        assert!(spent[0] > 1_900 && placement.at == 0, "{spent:?}");
    }

    #[test]
    fn where_cores_are_alike_or_frames_thin_it_stays() {
        let mut placement = CorePlacement::new(vec![0, 1], 0);
        assert!(run(&mut placement, &[200, 220], 1_000)[0] > 3_800);
        let mut placement = CorePlacement::new(vec![0, 1], 0);
        assert_eq!(run(&mut placement, &[29, 300], 1_000), [4_000, 0]);
    }

    #[test]
    fn a_thread_goes_to_a_core_and_may_still_use_all() {
        std::thread::spawn(|| {
            let Some(placement) = CorePlacement::here() else {
                let cores = std::thread::available_parallelism().expect("a number of cores");
                assert_eq!(cores.get(), 1, "a thread on several cores has a placement");
                return;
            };
            let before = sched_getaffinity(Pid::from_raw(0)).expect("cores");
            go_to(placement.cores[1], &placement.cores);
            assert_eq!(sched_getaffinity(Pid::from_raw(0)).expect("cores"), before);
        })
        .join()
        .expect("no panic");
    }
}
