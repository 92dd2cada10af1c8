//! A slab of linked queues: memory use follows the number of items, not the number of queues.
//!
//! A switch has a queue for every input, output and lane: thousands, mostly empty. Separate ring buffers
//! would each keep their greatest length and miss the cache. Here a queue is two indexes into the slab, and
//! the slot that became free last is used first.

/// No slot.
const NONE: u32 = u32::MAX;

/// One queue in a [`Slab`].
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    first: u32,
    last: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { first: NONE, last: NONE }
    }
}

impl Queue {
    /// Whether the queue is empty.
    pub fn is_empty(self) -> bool {
        self.first == NONE
    }
}

#[derive(Debug)]
struct Slot<T> {
    /// `None` in a free slot.
    item: Option<T>,
    /// The next slot of the queue, or the next free slot.
    next: u32,
}

/// The items of all queues. A queue must always be used with the same slab.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The slot that became free last.
    free: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { slots: Vec::new(), free: NONE }
    }
}

impl<T> Slab<T> {
    /// Appends `item` to `queue`; returns the stored item.
    ///
    /// # Panics
    /// If 2^32 - 1 items wait.
    pub fn push_back(&mut self, queue: &mut Queue, item: T) -> &mut T {
        let slot = self.free_slot();
        if queue.is_empty() {
            queue.first = slot;
        } else {
            self.slots[queue.last as usize].next = slot;
        }
        queue.last = slot;
        self.slots[slot as usize].item.insert(item)
    }

    /// Removes the first item of `queue`.
    pub fn pop_front(&mut self, queue: &mut Queue) -> Option<T> {
        let slot = self.slots.get_mut(queue.first as usize)?;
        let freed = std::mem::replace(&mut self.free, queue.first);
        queue.first = std::mem::replace(&mut slot.next, freed);
        slot.item.take()
    }

    /// The first item of `queue`.
    pub fn front(&self, queue: Queue) -> Option<&T> {
        self.slots.get(queue.first as usize)?.item.as_ref()
    }

    /// The first item of `queue`, mutable.
    pub fn front_mut(&mut self, queue: Queue) -> Option<&mut T> {
        self.slots.get_mut(queue.first as usize)?.item.as_mut()
    }

    /// An unlinked slot without an item.
    fn free_slot(&mut self) -> u32 {
        let Some(slot) = self.slots.get_mut(self.free as usize) else {
            let index = u32::try_from(self.slots.len()).ok().filter(|index| *index != NONE);
            self.slots.push(Slot { item: None, next: NONE });
            return index.expect("a slab has less than 2^32 - 1 slots");
        };
        let next = std::mem::replace(&mut slot.next, NONE);
        std::mem::replace(&mut self.free, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn queues_of_a_slab_keep_order_and_take_no_more_slots_than_items_ever_waited(
            acts in proptest::collection::vec((0usize..5, proptest::bool::weighted(0.6)), 0..300),
        ) {
            let mut slab = Slab::default();
            let mut queues = [Queue::default(); 5];
            let mut plain: [VecDeque<usize>; 5] = Default::default();
            let mut most = 0;
            for (number, (queue, puts)) in acts.into_iter().enumerate() {
                if puts {
                    plain[queue].push_back(number);
                    prop_assert_eq!(*slab.push_back(&mut queues[queue], number), number);
                } else {
                    prop_assert_eq!(slab.pop_front(&mut queues[queue]), plain[queue].pop_front());
                }
                for (queue, plain) in queues.into_iter().zip(&mut plain) {
                    prop_assert_eq!(queue.is_empty(), plain.is_empty());
                    prop_assert_eq!(slab.front(queue), plain.front());
                    prop_assert_eq!(slab.front_mut(queue), plain.front_mut());
                }
                most = most.max(plain.iter().map(VecDeque::len).sum());
                prop_assert_eq!(slab.slots.len(), most);
            }
        }
    }
}
