//! A run that several cases look at: made once, and once more as long as it says nothing.

use crate::check::case::Failure;
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
