//! The calendar: one instant for each of a fixed number of slots, and the earliest at once.
//!
//! A tournament tree. Changing one slot replays the matches on its way to the root: the logarithm
//! of the number of slots, no allocation, and no stale entries. Among equals the lowest slot wins.

use proto::units::Instant;

/// Instants by slot.
#[derive(Debug)]
pub struct Calendar {
    /// By slot, padded to a power of two with [`Instant::NEVER`].
    instants: Vec<Instant>,
    /// The winner's slot of each match; the root is at 1, the children of `n` at `2n`, `2n + 1`.
    winners: Vec<u32>,
}

impl Calendar {
    /// `slots` slots, none with an instant.
    pub fn new(slots: usize) -> Calendar {
        let leaves = slots.next_power_of_two().max(2);
        let mut winners = vec![0u32; leaves];
        for node in (1..leaves).rev() {
            // All are equal, so the lowest slot below each match wins it.
            winners[node] = match 2 * node {
                left if left >= leaves => (left - leaves) as u32,
                left => winners[left],
            };
        }
        Calendar { instants: vec![Instant::NEVER; leaves], winners }
    }

    /// Gives `slot` its instant; [`Instant::NEVER`] for none.
    pub fn set(&mut self, slot: usize, at: Instant) {
        if self.instants[slot] == at {
            return;
        }
        self.instants[slot] = at;
        let leaves = self.instants.len();
        let mut node = (slot + leaves) / 2;
        while node >= 1 {
            let (left, right) = (self.entrant(2 * node), self.entrant(2 * node + 1));
            let earlier = self.instants[right as usize] < self.instants[left as usize];
            let winner = if earlier { right } else { left };
            // Another slot won here before and still does: nothing above can change.
            if winner == self.winners[node] && winner as usize != slot {
                break;
            }
            self.winners[node] = winner;
            node /= 2;
        }
    }

    fn entrant(&self, node: usize) -> u32 {
        let leaves = self.instants.len();
        if node >= leaves { (node - leaves) as u32 } else { self.winners[node] }
    }

    /// The earliest instant and its slot, the lowest among equals.
    pub fn first(&self) -> (Instant, usize) {
        let slot = self.winners[1] as usize;
        (self.instants[slot], slot)
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
