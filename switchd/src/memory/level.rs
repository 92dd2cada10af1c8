//! Buffer levels with their maximum, and XOFF marks with hysteresis.

use proto::units::Bytes;

/// A buffer level in octets, and its maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    now: Bytes,
    max: Bytes,
}

impl Level {
    /// The present level.
    pub fn get(self) -> Bytes {
        self.now
    }

    /// The maximum since [`Level::restart`].
    pub fn max(self) -> Bytes {
        self.max
    }

    /// Raises the level by `size`.
    pub fn rise(&mut self, size: Bytes) {
        self.now += size;
        self.max = self.max.max(self.now);
    }

    /// Lowers the level by `size`.
    ///
    /// # Panics
    /// If the level is less than `size`.
    pub fn fall(&mut self, size: Bytes) {
        self.now = self.now - size;
    }

    /// Restarts the maximum at the present level.
    pub fn restart(&mut self) {
        self.max = self.now;
    }
}

/// An XOFF mark: exceeded from one level on, until the level has fallen to another.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Level at which neighbours must pause.
    pub xoff: Bytes,
    /// Level at which neighbours may resume.
    pub xon: Bytes,
    over: bool,
}

impl Mark {
    /// A mark that is not exceeded.
    pub fn new(xoff: Bytes, xon: Bytes) -> Mark {
        Mark { xoff, xon, over: false }
    }

    /// The same state at other levels. [`Mark::note`] compares with them.
    pub fn moved(self, to: Mark) -> Mark {
        Mark { over: self.over, ..to }
    }

    /// Whether neighbours must pause.
    pub fn is_over(self) -> bool {
        self.over
    }

    /// The octets of `held` above the mark, if any.
    pub fn beyond(self, held: Bytes) -> Option<Bytes> {
        (held > self.xoff).then(|| held - self.xoff)
    }

    /// Notes the present level; true if the pause state changes.
    pub fn note(&mut self, held: Bytes) -> bool {
        let over = if self.over { held > self.xon } else { held >= self.xoff };
        std::mem::replace(&mut self.over, over) != over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_changes_only_at_its_two_levels() {
        let mut mark = Mark::new(Bytes::new(100), Bytes::new(50));
        let mut changes = |held| mark.note(Bytes::new(held));
        let levels = [99, 100, 101, 99, 51, 50, 99, 51, 100];
        let expected = [false, true, false, false, false, true, false, false, true];
        assert_eq!(levels.map(&mut changes), expected);
        assert!(mark.is_over());
    }

    #[test]
    fn a_level_keeps_its_maximum_until_restart() {
        let mut level = Level::default();
        level.rise(Bytes::new(9));
        level.fall(Bytes::new(5));
        assert_eq!((level.get(), level.max()), (Bytes::new(4), Bytes::new(9)));
        level.restart();
        assert_eq!(level.max(), Bytes::new(4));
    }
}
