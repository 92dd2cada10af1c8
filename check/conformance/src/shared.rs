//! A run that several cases judge: made once on each level, and once more while it is inconclusive.

use super::case::{Failure, Level, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// A run is made at most so often. Source: preface of the conformance cases.
const TRIES_MAX: u32 = 4;

/// A run that records whether the host kept up.
pub trait Evidence {
    /// Succeeds if the host kept up with the run.
    ///
    /// # Errors
    /// Inconclusive, and why.
    fn kept_up(&self) -> Result<()>;
}

/// A place for one run on each level.
pub struct Shared<T: 'static> {
    make: fn(Level) -> Result<T>,
    kept: [Mutex<Kept<T>>; 2],
}

struct Kept<T> {
    tries: u32,
    run: Option<Result<Arc<T>>>,
}

impl<T: Evidence> Shared<T> {
    /// A place for the runs that `make` makes.
    pub const fn new(make: fn(Level) -> Result<T>) -> Shared<T> {
        let kept = [const { Mutex::new(Kept { tries: 0, run: None }) }; 2];
        Shared { make, kept }
    }

    /// The run on this level, if the host kept up.
    ///
    /// # Errors
    /// Why there is none, or why it is inconclusive.
    pub fn on(&self, level: Level) -> Result<Arc<T>> {
        let run = self.made(level)?;
        run.kept_up()?;
        Ok(run)
    }

    /// The run on this level: as it was made, or made anew if it was inconclusive and there are tries left.
    ///
    /// # Errors
    /// Why there is none.
    pub fn made(&self, level: Level) -> Result<Arc<T>> {
        let kept = &self.kept[usize::from(level == Level::Live)];
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = match &kept.run {
            Some(Ok(run)) => run.kept_up().is_ok(),
            Some(Err(Failure::Failed(_) | Failure::Skipped(_))) => true,
            Some(Err(Failure::Inconclusive(_))) | None => false,
        };
        if !is_good && kept.tries < TRIES_MAX {
            kept.tries += 1;
            kept.run = Some((self.make)(level).map(Arc::new));
        }
        kept.run.clone().unwrap_or_else(|| Err(Failure::Inconclusive("no run".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The number of a run, and the first number for which the host kept up.
    struct Number(u32, u32);

    impl Evidence for Number {
        fn kept_up(&self) -> Result<()> {
            let late = || Failure::Inconclusive("late".to_owned());
            if self.0 >= self.1 { Ok(()) } else { Err(late()) }
        }
    }

    fn numbers(shared: &Shared<Number>, level: Level) -> Vec<u32> {
        (0..6).map(|_| shared.made(level).expect("it is made").0).collect()
    }

    #[test]
    fn a_run_that_holds_is_made_once_a_level_and_one_that_does_not_four_times_at_most() {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let good = Shared::new(|_| Ok(Number(MADE.fetch_add(1, Ordering::Relaxed), 2)));
        assert_eq!(numbers(&good, Level::Live), [0, 1, 2, 2, 2, 2]);
        assert_eq!(numbers(&good, Level::Engine), [3; 6]);
        let bad = Shared::new(|_| Ok(Number(MADE.fetch_add(1, Ordering::Relaxed), u32::MAX)));
        assert_eq!(numbers(&bad, Level::Live), [4, 5, 6, 7, 7, 7]);
        assert!(bad.on(Level::Live).is_err());
    }

    #[test]
    fn a_daemon_that_failed_is_not_started_again() {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let fails = |_| -> Result<Number> {
            MADE.fetch_add(1, Ordering::Relaxed);
            Err(Failure::Failed("it died".to_owned()))
        };
        let shared = Shared::new(fails);
        assert!(shared.on(Level::Live).is_err() && shared.on(Level::Live).is_err());
        assert_eq!(MADE.load(Ordering::Relaxed), 1);
    }
}
