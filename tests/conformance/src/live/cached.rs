//! A run that several cases look at: made once, and once more as long as it says nothing.

use crate::case::Failure;
use std::sync::{Arc, Mutex, PoisonError};

/// A run is made at most so often. Source: preface of the conformance cases.
const TRIES_MAX: u32 = 4;

/// A place for one run.
pub struct Cached<T: 'static> {
    make: fn() -> Result<T, Failure>,
    /// Whether the host kept up.
    holds: fn(&T) -> bool,
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    tries: u32,
    run: Option<Result<Arc<T>, Failure>>,
}

impl<T> Cached<T> {
    /// A place for what `make` makes; `holds` says whether it can be believed.
    pub const fn new(make: fn() -> Result<T, Failure>, holds: fn(&T) -> bool) -> Cached<T> {
        Cached { make, holds, kept: Mutex::new(Kept { tries: 0, run: None }) }
    }

    /// The run: as it was made, or made anew if it could not be believed and there are tries left.
    ///
    /// # Errors
    /// Why there is none.
    pub fn get(&self) -> Result<Arc<T>, Failure> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = match &kept.run {
            Some(Ok(run)) => (self.holds)(run),
            Some(Err(Failure::Failed(_) | Failure::Skipped(_))) => true,
            Some(Err(Failure::Inconclusive(_))) | None => false,
        };
        if !is_good && kept.tries < TRIES_MAX {
            kept.tries += 1;
            kept.run = Some((self.make)().map(Arc::new));
        }
        kept.run.clone().unwrap_or_else(|| Err(Failure::Inconclusive("no run".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_run_that_holds_is_made_once_and_one_that_does_not_four_times_at_most() {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let make = || Ok(MADE.fetch_add(1, Ordering::Relaxed));
        let good = Cached::new(make, |run| *run >= 2);
        let runs: Vec<u32> = (0..5).map(|_| *good.get().expect("it is made")).collect();
        assert_eq!(runs, [0, 1, 2, 2, 2]);
        let bad = Cached::new(make, |_| false);
        let runs: Vec<u32> = (0..6).map(|_| *bad.get().expect("it is made")).collect();
        assert_eq!(runs, [3, 4, 5, 6, 6, 6]);
    }

    #[test]
    fn a_daemon_that_failed_is_not_asked_again() {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let fails = || -> Result<u32, Failure> {
            MADE.fetch_add(1, Ordering::Relaxed);
            Err(Failure::Failed("it died".to_owned()))
        };
        let cached = Cached::new(fails, |_| true);
        assert!(cached.get().is_err() && cached.get().is_err());
        assert_eq!(MADE.load(Ordering::Relaxed), 1);
    }
}
