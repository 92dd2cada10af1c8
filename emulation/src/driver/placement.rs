//! On which core a worker with attached interfaces stays: where most frames get through.
//!
//! The kernel leaves a real-time thread on the core where it happens to be, and whoever else is there has to wait. That
//! may be the very program that sends to us, or whose interface we send to, with another core idle; and waking a
//! receiver on another core for every frame costs as much as the frame. Nobody tells which programs these are, nor
//! where they run. So where frames come thick the worker tries another core now and then, for a moment, and stays there
//! if notably more frames get through.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// How long frames are counted on a core: several time slices of whoever else is there.
const WINDOW_NS: u64 = 25_000_000;
/// How long it takes until senders and receivers have found a new balance.
const SETTLING_NS: u64 = 3_000_000;
/// How long a worker that has moved stays before it tries another core. It stays twice as long after each try in vain.
const STAY_NS: u64 = 250_000_000;
/// But no longer than this: programs move as well.
const STAY_MAX_NS: u64 = 8 * STAY_NS;
/// Fewer frames a window are no reason to move: a core carries ten times as many.
const THICK: u64 = 750;
/// Another core is better if so many frames get through in place of 100.
const NOTABLY: u64 = 115;

/// Where the worker is, and what it knows of other cores.
#[derive(Debug)]
pub struct Placement {
    /// The cores that it may use; it tries them in this order.
    cores: Vec<usize>,
    /// Its place in `cores`.
    at: usize,
    /// The place that it tried last.
    tried: usize,
    /// Where it came from, and how many frames a window got through there, while it tries this one.
    before: Option<(usize, u64)>,
    /// Frames since the window began.
    frames: u64,
    /// When the window begins; later than now while things settle.
    since_ns: u64,
    /// When another core is tried, if frames are thick then.
    next_ns: u64,
    /// How long it stays after this try.
    stay_ns: u64,
}

impl Placement {
    /// Of the calling thread, on the cores that it may use; `None` if that is but one.
    pub fn here() -> Option<Placement> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let is_allowed = |core: &usize| allowed.is_set(*core).unwrap_or(false);
        let cores: Vec<usize> = (0..CpuSet::count()).filter(is_allowed).collect();
        let here = nix::sched::sched_getcpu().ok()?;
        let at = cores.iter().position(|core| *core == here)?;
        (cores.len() > 1).then(|| Placement::new(cores, at))
    }

    fn new(cores: Vec<usize>, at: usize) -> Placement {
        Placement {
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

    /// So many frames came by `now_ns`: moves the calling thread if that may serve it.
    pub fn count(&mut self, frames: usize, now_ns: u64) {
        if let Some(core) = self.advance(frames, now_ns) {
            go_to(core, &self.cores);
        }
    }

    /// The core to go to, if it shall go to another.
    fn advance(&mut self, frames: usize, now_ns: u64) -> Option<usize> {
        if now_ns < self.since_ns {
            return None;
        }
        self.frames += frames as u64;
        let passed = now_ns - self.since_ns;
        if passed < WINDOW_NS {
            return None;
        }
        // The last reading of a window may come late; a pause makes of it that frames are thin.
        let came = std::mem::take(&mut self.frames) * WINDOW_NS / passed;
        self.since_ns = now_ns;
        let Some((home, there)) = self.before.take() else {
            if came < THICK || now_ns < self.next_ns {
                return None;
            }
            self.before = Some((self.at, came));
            let mut others =
                (1..=self.cores.len()).map(|step| (self.tried + step) % self.cores.len());
            self.tried = others.find(|other| *other != self.at)?;
            return Some(self.settle(self.tried, now_ns));
        };
        let is_better = came * 100 >= there * NOTABLY;
        self.stay_ns = if is_better { STAY_NS } else { (self.stay_ns * 2).min(STAY_MAX_NS) };
        self.next_ns = now_ns + self.stay_ns;
        (!is_better).then(|| self.settle(home, now_ns))
    }

    fn settle(&mut self, at: usize, now_ns: u64) -> usize {
        self.at = at;
        self.since_ns = now_ns + SETTLING_NS;
        self.cores[at]
    }
}

/// Takes the calling thread to `core`. It stays there by itself, and may use all `cores` as before: another real-time
/// thread can still displace it. What is refused leaves it where it is, and the next try finds no difference.
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

    /// Runs for four seconds with so many frames a millisecond on each core; where it was, by milliseconds.
    fn run(placement: &mut Placement, frames: &[usize], from_ms: u64) -> Vec<u64> {
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
        let mut placement = Placement::new(vec![0, 1, 2], 0);
        let spent = run(&mut placement, &[200, 210, 300], 1_000);
        assert!(spent[2] > 3_000 && placement.at == 2, "{spent:?}");
        let spent = run(&mut placement, &[200, 210, 300], 5_000);
        assert!(spent[2] > 3_900 && placement.at == 2, "tries cost little: {spent:?}");
    }

    #[test]
    fn it_leaves_a_core_that_has_become_worse() {
        let mut placement = Placement::new(vec![4, 7], 1);
        assert!(run(&mut placement, &[200, 300], 1_000)[1] > 3_800);
        let spent = run(&mut placement, &[200, 100], 5_000);
        assert!(spent[0] > 1_900 && placement.at == 0, "{spent:?}");
    }

    #[test]
    fn where_cores_are_alike_or_frames_thin_it_stays() {
        let mut placement = Placement::new(vec![0, 1], 0);
        assert!(run(&mut placement, &[200, 220], 1_000)[0] > 3_800);
        let mut placement = Placement::new(vec![0, 1], 0);
        assert_eq!(run(&mut placement, &[29, 300], 1_000), [4_000, 0]);
    }

    #[test]
    fn a_thread_goes_to_a_core_and_may_still_use_all() {
        std::thread::spawn(|| {
            let Some(placement) = Placement::here() else {
                eprintln!("SKIPPED: one core alone");
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
