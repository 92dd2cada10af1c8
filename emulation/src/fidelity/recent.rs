//! Lateness since the last heartbeat, by powers of two: small enough for every heartbeat, and it adds up over workers.

use serde::{Deserialize, Serialize};

/// Classes of lateness. The last one begins at 8 frame times.
const CLASSES: usize = 14;

/// Departures, and frames handled late, by how late they were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    /// Their number.
    pub count: u64,
    /// The number later than 2ⁿ thousandths of a frame time and at most twice that, by n.
    late: [u32; CLASSES],
}

impl Recent {
    /// Counts one that was this many thousandths of a frame time late; `None` at a port without a rate.
    pub(super) fn count(&mut self, thousandths: Option<u64>) {
        let Some(thousandths) = thousandths else { return };
        self.add(thousandths, 1);
    }

    /// Counts `count` that were this late.
    pub fn add(&mut self, thousandths: u64, count: u64) {
        self.count += count;
        // 1 and below is punctual: a worker does not even notice it.
        if let Some(class) = thousandths.saturating_sub(1).checked_ilog2() {
            let late = &mut self.late[(class as usize).min(CLASSES - 1)];
            *late = late.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Recent) {
        self.count += other.count;
        self.late
            .iter_mut()
            .zip(other.late)
            .for_each(|(own, other)| *own = own.saturating_add(other));
    }

    /// The 99th percentile in thousandths of a frame time, interpolated within its class; zero if nothing was counted.
    pub fn p99(&self) -> u64 {
        self.exceeded_by_one_in(100)
    }

    /// The lateness that one departure in `of` exceeds, as [`Self::p99`] has it for a hundred.
    pub fn exceeded_by_one_in(&self, of: u64) -> u64 {
        let mut allowed = self.count / of;
        for (class, late) in self.late.iter().enumerate().rev() {
            let late = u64::from(*late);
            if late > allowed {
                let from = 1 << class;
                return from + from * (late - allowed) / late;
            }
            allowed -= late;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_late_in_a_hundred_is_allowed_and_two_are_not() {
        let mut recent = Recent::default();
        recent.add(0, 99);
        recent.add(400, 1);
        assert_eq!(recent.p99(), 0);
        recent.add(400, 1);
        assert!((257..=512).contains(&recent.p99()), "{}", recent.p99());
        assert_eq!(Recent::default().p99(), 0);
    }

    proptest! {
        #[test]
        fn the_p99_is_in_the_class_of_the_true_one(late in proptest::collection::vec(0u64..16_000, 100..400)) {
            let mut recent = Recent::default();
            late.iter().for_each(|late| recent.add(*late, 1));
            let mut sorted = late.clone();
            sorted.sort_unstable();
            let exact = sorted[sorted.len() - 1 - sorted.len() / 100];
            let class = |thousandths: u64| thousandths.saturating_sub(1).checked_ilog2();
            prop_assert_eq!(class(recent.p99()), class(exact));
        }
    }
}
