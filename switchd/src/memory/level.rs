//! Levels that remember how high they were, and marks with hysteresis.

use proto::units::Bytes;

/// Octets held, and the most that were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    now: Bytes,
    max: Bytes,
}

impl Level {
    /// Octets held.
    pub fn get(self) -> Bytes {
        self.now
    }

    /// The most that were held since [`Level::restart`].
    pub fn max(self) -> Bytes {
        self.max
    }

    /// `size` more.
    pub fn rise(&mut self, size: Bytes) {
        self.now += size;
        self.max = self.max.max(self.now);
    }

    /// `size` less.
    ///
    /// # Panics
    /// If less than that is held.
    pub fn fall(&mut self, size: Bytes) {
        self.now = self.now - size;
    }

    /// Takes the maximum anew from the present level.
    pub fn restart(&mut self) {
        self.max = self.now;
    }
}

/// Silence from one level on until a level has fallen to another.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// From here on neighbours shall be silent.
    pub xoff: Bytes,
    /// Here they may speak again.
    pub xon: Bytes,
    over: bool,
}

impl Mark {
    /// A mark that is not passed.
    pub fn new(xoff: Bytes, xon: Bytes) -> Mark {
        Mark { xoff, xon, over: false }
    }

    /// Whether neighbours shall be silent.
    pub fn is_over(self) -> bool {
        self.over
    }

    /// What of `held` came in behind the mark, if anything did.
    pub fn beyond(self, held: Bytes) -> Option<Bytes> {
        (held > self.xoff).then(|| held - self.xoff)
    }

    /// The level is `held` now; true if that changes what neighbours shall do.
    pub fn note(&mut self, held: Bytes) -> bool {
        let over = if self.over { held > self.xon } else { held >= self.xoff };
        std::mem::replace(&mut self.over, over) != over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_changes_its_mind_only_at_its_two_levels() {
        let mut mark = Mark::new(Bytes::new(100), Bytes::new(50));
        let mut changes = |held| mark.note(Bytes::new(held));
        let levels = [99, 100, 101, 99, 51, 50, 99, 51, 100];
        let expected = [false, true, false, false, false, true, false, false, true];
        assert_eq!(levels.map(&mut changes), expected);
        assert!(mark.is_over());
    }

    #[test]
    fn a_level_remembers_its_maximum_until_told_to_forget() {
        let mut level = Level::default();
        level.rise(Bytes::new(9));
        level.fall(Bytes::new(5));
        assert_eq!((level.get(), level.max()), (Bytes::new(4), Bytes::new(9)));
        level.restart();
        assert_eq!(level.max(), Bytes::new(4));
    }
}
