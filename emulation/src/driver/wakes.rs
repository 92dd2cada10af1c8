//! When each device wants to be called: a winner tree, so that the next is known at once.

use proto::units::Instant;

/// The next wake-up of every device of a worker. Nothing is allocated after the beginning.
#[derive(Debug)]
pub struct Wakes {
    /// A power of two; leaf of device `d` is `leaves + d`.
    leaves: usize,
    /// Node 1 is the root; each holds the earlier of its two children.
    tree: Vec<Instant>,
}

impl Wakes {
    /// No wake-up for any of `devices` devices.
    pub fn new(devices: usize) -> Wakes {
        let leaves = devices.next_power_of_two().max(2);
        Wakes { leaves, tree: vec![Instant::NEVER; leaves * 2] }
    }

    /// `device` wants to be called at `at`, instead of what it wanted before.
    pub fn set(&mut self, device: usize, at: Instant) {
        let mut node = self.leaves + device;
        if self.tree[node] == at {
            return;
        }
        self.tree[node] = at;
        while node > 1 {
            node /= 2;
            let earlier = self.tree[node * 2].min(self.tree[node * 2 + 1]);
            if self.tree[node] == earlier {
                return;
            }
            self.tree[node] = earlier;
        }
    }

    /// When the next device wants to be called; [`Instant::NEVER`] if none does.
    pub fn next_at(&self) -> Instant {
        self.tree[1]
    }

    /// The next wake-up and its device, the lower of two at one instant.
    pub fn next(&self) -> (Instant, usize) {
        let at = self.tree[1];
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.tree[node] != at {
                node += 1;
            }
        }
        (at, node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_next_is_always_the_least_of_all(
            devices in 1usize..40,
            changes in prop::collection::vec((0usize..40, 0u64..50), 0..200),
        ) {
            let mut wakes = Wakes::new(devices);
            let mut plain = vec![Instant::NEVER; devices];
            for (device, at) in changes {
                let (device, at) = (device % devices, Instant::from_ps(at));
                wakes.set(device, at);
                plain[device] = at;
                let least = plain.iter().enumerate().min_by_key(|(_, at)| **at);
                let (index, at) = least.expect("there is a device");
                prop_assert_eq!(wakes.next(), (*at, index));
            }
        }
    }
}
