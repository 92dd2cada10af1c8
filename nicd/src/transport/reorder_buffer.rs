//! A reorder buffer: holds items ahead of the expected sequence number, within a window.
//!
//! The owner knows the expected number and runs the timer for missing items.
//!
//! ```text
//!   expected ─▶ [ missing ][ held ][ missing ][ held ] …   at most `window` slots
//! ```
//!
//! Source: docs/spec/algorithms.md, 6 (resequencing at the receiver).

use std::collections::VecDeque;

/// The result of [`ReorderBuffer::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion<T> {
    /// The buffer holds the item.
    Held,
    /// The buffer already holds an item of this number.
    Duplicate(T),
    /// The item is outside the window.
    TooFar(T),
}

/// Items ahead of the expected number.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T> {
    /// The window, in items.
    pub window: usize,
    /// Indexed by distance from the expected number; slot 0 is the expected number.
    slots: VecDeque<Option<T>>,
    /// The number of items in the buffer.
    pub held: usize,
    /// The highest number of items that the buffer has held.
    pub depth: usize,
}

impl<T> ReorderBuffer<T> {
    /// An empty buffer for distances below `window`.
    pub fn new(window: usize) -> ReorderBuffer<T> {
        ReorderBuffer { window, slots: VecDeque::new(), held: 0, depth: 0 }
    }

    /// Inserts an item whose number is `ahead` (at least 1) above the expected number.
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

    /// Increments the expected number.
    pub fn advance(&mut self) {
        let gone = self.slots.pop_front().flatten();
        self.held -= usize::from(gone.is_some());
    }

    /// Removes the item with the expected number. [`ReorderBuffer::advance`] then increments that number.
    pub fn take_expected(&mut self) -> Option<T> {
        let item = self.slots.front_mut()?.take()?;
        self.held -= 1;
        Some(item)
    }

    /// How many numbers are missing before the first item; `None` if the buffer is empty.
    pub fn missing(&self) -> Option<usize> {
        self.slots.iter().position(Option::is_some)
    }

    /// Removes all items in order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.held = 0;
        self.slots.drain(..).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Delivers in order, as an owner does.
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
    fn early_items_are_delivered_in_order() {
        let (out, resequencer) = run(8, &[0, 2, 3, 1, 5, 4]);
        assert_eq!(out, [0, 1, 2, 3, 4, 5]);
        assert_eq!((resequencer.held, resequencer.depth), (0, 2));
    }

    #[test]
    fn the_window_bounds_what_is_held() {
        let mut resequencer = ReorderBuffer::new(3);
        assert_eq!(resequencer.insert(2, 'c'), Insertion::Held);
        assert_eq!(resequencer.insert(2, 'x'), Insertion::Duplicate('x'));
        assert_eq!(resequencer.insert(3, 'd'), Insertion::TooFar('d'));
        assert_eq!((resequencer.missing(), resequencer.held), (Some(2), 1));
        resequencer.advance();
        resequencer.advance();
        assert_eq!(resequencer.take_expected(), Some('c'));
        assert_eq!((resequencer.missing(), resequencer.held), (None, 0));
    }

    proptest! {
        /// Any permutation within the window is restored, and the buffer is empty at the end.
        #[test]
        fn any_order_within_the_window_is_restored(keys in proptest::collection::vec(0u32..16, 1..200)) {
            let mut arrivals: Vec<u32> = (0..keys.len() as u32).collect();
            arrivals.sort_by_key(|number| number + keys[*number as usize]);
            let (out, resequencer) = run(17, &arrivals);
            prop_assert_eq!(out, (0..keys.len() as u32).collect::<Vec<_>>());
            prop_assert_eq!(resequencer.held, 0);
            prop_assert!(resequencer.depth <= 16);
        }
    }
}
