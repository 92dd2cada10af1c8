//! A priority queue of one instant for each of a fixed number of slots.
//!
//! A tournament tree of instants, four to a match. Changing one slot replays the matches on its way to the
//! root, as far as their outcome changes; the winner's slot is found on the way down. Both take O(log slots),
//! without allocations or stale entries. Among equal instants the lowest slot wins.

use proto::units::Instant;

/// Children of a match: two cache lines at most, and half the rounds of a binary tree.
const FAN: usize = 4;

/// One instant for each slot.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// The root is at 0, the children of `n` from `FAN * n + 1` on. Each node holds the earliest instant of its
    /// children.
    tree: Vec<Instant>,
    /// Index of the first leaf: slot `n` is at `leaves + n`.
    leaves: usize,
}

impl Calendar {
    /// `slots` slots without an instant.
    pub fn new(slots: usize) -> Calendar {
        let (mut leaves, mut width) = (0, 1);
        while width < slots {
            leaves += width;
            width *= FAN;
        }
        Calendar { tree: vec![Instant::NEVER; leaves + width], leaves }
    }

    /// Sets the instant of `slot`; [`Instant::NEVER`] for none.
    pub fn set(&mut self, slot: usize, at: Instant) {
        let mut node = self.leaves + slot;
        let mut earliest = at;
        while self.tree[node] != earliest {
            self.tree[node] = earliest;
            if node == 0 {
                break;
            }
            node = (node - 1) / FAN;
            earliest = self.children(node).iter().fold(Instant::NEVER, |a, b| a.min(*b));
        }
    }

    /// The earliest instant and its slot, the lowest among equals.
    pub fn first(&self) -> (Instant, usize) {
        let at = self.tree[0];
        let mut node = 0;
        while node < self.leaves {
            // One bit for each child equal to the winner. A branch here would be mispredicted half the time.
            let equal = self.children(node).iter().enumerate();
            let won = equal.fold(0u32, |won, (n, child)| won | u32::from(*child == at) << n);
            node = node * FAN + 1 + won.trailing_zeros() as usize;
        }
        (at, node - self.leaves)
    }

    fn children(&self, node: usize) -> &[Instant; FAN] {
        let children = self.tree[node * FAN + 1..].first_chunk();
        children.expect("every match has all children")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest_and_among_equals_the_lowest(
            slots in 1usize..40,
            changes in proptest::collection::vec((0usize..40, 0u64..20), 1..200),
        ) {
            let mut calendar = Calendar::new(slots);
            let mut plain = vec![Instant::NEVER; slots];
            for (slot, at) in changes {
                let slot = slot % slots;
                let at = if at == 19 { Instant::NEVER } else { Instant::from_ps(at) };
                calendar.set(slot, at);
                plain[slot] = at;
                let earliest = *plain.iter().min().unwrap();
                let (first, winner) = calendar.first();
                prop_assert_eq!(first, earliest);
                if earliest != Instant::NEVER {
                    prop_assert_eq!(Some(winner), plain.iter().position(|at| *at == earliest));
                }
            }
        }
    }
}
