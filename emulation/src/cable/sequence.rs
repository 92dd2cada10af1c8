//! Sequence numbers of one link and direction: losses, reordering and duplicates.

/// How many numbers back a late frame can still be distinguished from a duplicate.
const WINDOW: u32 = 1024;
const WORDS: usize = (WINDOW / 64) as usize;

/// The state of a frame according to its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Newer than all frames before it.
    Newer {
        /// Sequence numbers skipped just before it.
        missing: u32,
    },
    /// Skipped before, and arrived now.
    Late,
    /// A duplicate, or a frame too old to be distinguished from one.
    Duplicate,
}

/// The sequence numbers that the receiving end has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct SequenceWindow {
    next: u32,
    /// One bit for each of the last [`WINDOW`] numbers, at the number modulo the window.
    seen: [u64; WORDS],
    /// Numbers passed since the start, at most the width of the window.
    passed: u32,
}

impl SequenceWindow {
    /// Records `sequence`. Numbers wrap: those up to 2^31 ahead count as newer.
    pub fn observe(&mut self, sequence: u32) -> Arrival {
        let ahead = sequence.wrapping_sub(self.next);
        if ahead < 1 << 31 {
            self.advance(ahead, sequence);
            return Arrival::Newer { missing: ahead };
        }
        let age = self.next.wrapping_sub(sequence);
        if age > self.passed || self.has(sequence) {
            return Arrival::Duplicate;
        }
        self.mark(sequence, true);
        Arrival::Late
    }

    fn advance(&mut self, ahead: u32, sequence: u32) {
        if ahead >= WINDOW {
            self.seen = [0; WORDS];
        } else {
            for skipped in 0..ahead {
                self.mark(self.next.wrapping_add(skipped), false);
            }
        }
        self.mark(sequence, true);
        self.passed = self.passed.saturating_add(ahead).saturating_add(1).min(WINDOW);
        self.next = sequence.wrapping_add(1);
    }

    fn has(&self, sequence: u32) -> bool {
        self.seen[Self::word(sequence)] >> (sequence % 64) & 1 == 1
    }

    fn mark(&mut self, sequence: u32, seen: bool) {
        let bit = 1 << (sequence % 64);
        let word = &mut self.seen[Self::word(sequence)];
        *word = if seen { *word | bit } else { *word & !bit };
    }

    const fn word(sequence: u32) -> usize {
        (sequence % WINDOW / 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn newer(missing: u32) -> Arrival {
        Arrival::Newer { missing }
    }

    #[test]
    fn a_gap_is_counted_and_taken_back_by_the_late_frame_once() {
        let mut window = SequenceWindow::default();
        assert_eq!(window.observe(0), newer(0));
        assert_eq!(window.observe(3), newer(2));
        assert_eq!(window.observe(2), Arrival::Late);
        assert_eq!(window.observe(2), Arrival::Duplicate);
        assert_eq!(window.observe(1), Arrival::Late);
        assert_eq!(window.observe(0), Arrival::Duplicate);
        assert_eq!(window.observe(4), newer(0));
    }

    #[test]
    fn numbers_wrap() {
        let mut window = SequenceWindow { next: u32::MAX, ..SequenceWindow::default() };
        assert_eq!(window.observe(u32::MAX), newer(0));
        assert_eq!(window.observe(1), newer(1));
        assert_eq!(window.observe(0), Arrival::Late);
        assert_eq!(window.observe(u32::MAX), Arrival::Duplicate);
    }

    #[test]
    fn what_is_older_than_the_window_stays_lost() {
        let mut window = SequenceWindow::default();
        assert_eq!(window.observe(WINDOW + 5), newer(WINDOW + 5));
        assert_eq!(window.observe(5), Arrival::Duplicate);
        assert_eq!(window.observe(6), Arrival::Late);
    }

    #[test]
    fn nothing_before_the_first_number_exists() {
        assert_eq!(SequenceWindow::default().observe(u32::MAX), Arrival::Duplicate);
    }

    proptest! {
        #[test]
        fn any_order_within_the_window_delivers_each_number_once(
            mut order in Just((0u32..200).collect::<Vec<_>>()).prop_shuffle(),
            again in prop::collection::vec(0u32..200, 0..50),
        ) {
            let mut window = SequenceWindow::default();
            let (mut missing, mut fresh) = (0i64, 0);
            order.extend(again);
            for sequence in order {
                match window.observe(sequence) {
                    Arrival::Newer { missing: more } => { missing += i64::from(more); fresh += 1 }
                    Arrival::Late => { missing -= 1; fresh += 1 }
                    Arrival::Duplicate => {}
                }
            }
            prop_assert_eq!((missing, fresh), (0, 200));
        }
    }
}
