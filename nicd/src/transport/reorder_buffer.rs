//! Puts what has come by several ways back into order, within a window.
//!
//! Whoever delivers knows which number is expected; here stand the ones that came ahead of it. What is
//! missing is waited for until the owner's timer runs out; then it is skipped, and counted by the owner.
//!
//! ```text
//!   expected ─▶ [ missing ][ held ][ missing ][ held ] …   no more than the window
//! ```
//!
//! Source: algorithms.md 6 (resequencing at the receiver).

use std::collections::VecDeque;

/// What became of an item that came ahead of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion<T> {
    /// It waits for its turn.
    Held,
    /// One with its number waits already.
    Duplicate(T),
    /// It is further ahead than the window is long.
    TooFar(T),
}

/// Items that came ahead of their turn.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T> {
    window: usize,
    /// By how far ahead of the expected number; the first place is the expected number's own.
    slots: VecDeque<Option<T>>,
    held: usize,
    depth: usize,
}

impl<T> ReorderBuffer<T> {
    /// An empty one that holds no number `window` or further ahead.
    pub fn new(window: usize) -> ReorderBuffer<T> {
        ReorderBuffer { window, slots: VecDeque::new(), held: 0, depth: 0 }
    }

    /// Keeps an item whose number is `ahead`, at least 1, of the expected one.
    pub fn insert(&mut self, ahead: usize, item: T) -> Insertion<T> {
        if ahead >= self.window {
            return Insertion::TooFar(item);
        }
        if self.slots.len() <= ahead {
            self.slots.resize_with(ahead + 1, || None);
        }
        if self.slots[ahead].is_some() {
            return Insertion::Duplicate(item);
        }
        self.slots[ahead] = Some(item);
        self.held += 1;
        self.depth = self.depth.max(self.held);
        Insertion::Held
    }

    /// The expected number is now one more.
    pub fn advance(&mut self) {
        let gone = self.slots.pop_front().flatten();
        self.held -= usize::from(gone.is_some());
    }

    /// Takes the item with the expected number, which stays expected until [`ReorderBuffer::advance`].
    pub fn take_expected(&mut self) -> Option<T> {
        let item = self.slots.front_mut()?.take()?;
        self.held -= 1;
        Some(item)
    }

    /// How many numbers are missing before the first item that is held; nothing if none is.
    pub fn missing(&self) -> Option<usize> {
        self.slots.iter().position(Option::is_some)
    }

    /// Takes everything that waits, in order; nothing is expected any more.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.held = 0;
        self.slots.drain(..).flatten()
    }

    /// No number so far ahead or further is held.
    pub fn window(&self) -> usize {
        self.window
    }

    /// How many items wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The most that have ever waited.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Delivers as an owner does: in turn, or held and then in turn.
    fn run(window: usize, arrivals: &[u32]) -> (Vec<u32>, ReorderBuffer<u32>) {
        let (mut expected, mut out) = (0, Vec::new());
        let mut resequencer = ReorderBuffer::new(window);
        for number in arrivals.iter().copied() {
            if number < expected {
                continue;
            }
            if number > expected {
                resequencer.insert((number - expected) as usize, number);
                continue;
            }
            out.push(number);
            expected += 1;
            resequencer.advance();
            while let Some(next) = resequencer.take_expected() {
                out.push(next);
                expected += 1;
                resequencer.advance();
            }
        }
        (out, resequencer)
    }

    #[test]
    fn what_came_too_early_comes_out_in_its_turn() {
        let (out, resequencer) = run(8, &[0, 2, 3, 1, 5, 4]);
        assert_eq!(out, [0, 1, 2, 3, 4, 5]);
        assert_eq!((resequencer.held(), resequencer.depth()), (0, 2));
    }

    #[test]
    fn the_window_bounds_what_is_held() {
        let mut resequencer = ReorderBuffer::new(3);
        assert_eq!(resequencer.insert(2, 'c'), Insertion::Held);
        assert_eq!(resequencer.insert(2, 'x'), Insertion::Duplicate('x'));
        assert_eq!(resequencer.insert(3, 'd'), Insertion::TooFar('d'));
        assert_eq!((resequencer.missing(), resequencer.held()), (Some(2), 1));
        resequencer.advance();
        resequencer.advance();
        assert_eq!(resequencer.take_expected(), Some('c'));
        assert_eq!((resequencer.missing(), resequencer.held()), (None, 0));
    }

    proptest! {
        /// Any order within the window comes out as it was sent, and nothing stays.
        #[test]
        fn any_order_within_the_window_is_mended(keys in proptest::collection::vec(0u32..16, 1..200)) {
            let mut arrivals: Vec<u32> = (0..keys.len() as u32).collect();
            arrivals.sort_by_key(|number| number + keys[*number as usize]);
            let (out, resequencer) = run(17, &arrivals);
            prop_assert_eq!(out, (0..keys.len() as u32).collect::<Vec<_>>());
            prop_assert_eq!(resequencer.held(), 0);
            prop_assert!(resequencer.depth() <= 16);
        }
    }
}
