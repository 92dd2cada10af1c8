//! A shelf: many queues that share one store, so that memory follows what waits and not how many queues there
//! are.
//!
//! A switch has a queue for every input, output and lane, thousands of them, and most are empty. Each with a ring
//! of its own would keep the greatest length it ever had, and touch memory that no cache holds. Here a queue is two
//! numbers, its items are linked, and the place that became free last is filled first.

/// Nowhere.
const NONE: u32 = u32::MAX;

/// One queue on a [`Shelf`].
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
    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.first == NONE
    }
}

#[derive(Debug)]
struct Place<T> {
    /// Nothing in a free place.
    item: Option<T>,
    /// The place behind it in its queue, or the next free one.
    next: u32,
}

/// The store of all queues. A queue must always be used with the shelf it began on.
#[derive(Debug)]
pub struct Shelf<T> {
    places: Vec<Place<T>>,
    /// The place that became free last.
    free: u32,
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { places: Vec::new(), free: NONE }
    }
}

impl<T> Shelf<T> {
    /// Puts `item` behind all others of `queue`; true if it is the only one.
    ///
    /// # Panics
    /// If 2^32 - 1 items wait.
    pub fn push_back(&mut self, queue: &mut Queue, item: T) -> bool {
        let place = self.put(item);
        let is_first = queue.is_empty();
        if is_first {
            queue.first = place;
        } else {
            self.places[queue.last as usize].next = place;
        }
        queue.last = place;
        is_first
    }

    /// Takes the first item of `queue`.
    pub fn pop_front(&mut self, queue: &mut Queue) -> Option<T> {
        let place = self.places.get_mut(queue.first as usize)?;
        let freed = std::mem::replace(&mut self.free, queue.first);
        queue.first = std::mem::replace(&mut place.next, freed);
        place.item.take()
    }

    /// The first item of `queue`.
    pub fn front(&self, queue: Queue) -> Option<&T> {
        self.places.get(queue.first as usize)?.item.as_ref()
    }

    /// The same, to be changed.
    pub fn front_mut(&mut self, queue: Queue) -> Option<&mut T> {
        self.places.get_mut(queue.first as usize)?.item.as_mut()
    }

    /// The last item of `queue`, to be changed.
    pub fn back_mut(&mut self, queue: Queue) -> Option<&mut T> {
        if queue.is_empty() {
            return None;
        }
        self.places[queue.last as usize].item.as_mut()
    }

    fn put(&mut self, item: T) -> u32 {
        let Some(place) = self.places.get_mut(self.free as usize) else {
            let number = u32::try_from(self.places.len()).ok().filter(|number| *number != NONE);
            self.places.push(Place { item: Some(item), next: NONE });
            return number.expect("fewer frames than numbers");
        };
        place.item = Some(item);
        let next = std::mem::replace(&mut place.next, NONE);
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
        fn queues_on_a_shelf_are_queues_and_take_no_more_places_than_items_ever_waited(
            acts in proptest::collection::vec((0usize..5, proptest::bool::weighted(0.6)), 0..300),
        ) {
            let mut shelf = Shelf::default();
            let mut queues = [Queue::default(); 5];
            let mut plain: [VecDeque<usize>; 5] = Default::default();
            let mut most = 0;
            for (number, (queue, puts)) in acts.into_iter().enumerate() {
                if puts {
                    plain[queue].push_back(number);
                    let is_first = shelf.push_back(&mut queues[queue], number);
                    prop_assert_eq!(is_first, plain[queue].len() == 1);
                } else {
                    prop_assert_eq!(shelf.pop_front(&mut queues[queue]), plain[queue].pop_front());
                }
                for (queue, plain) in queues.into_iter().zip(&mut plain) {
                    prop_assert_eq!(queue.is_empty(), plain.is_empty());
                    prop_assert_eq!(shelf.front(queue), plain.front());
                    prop_assert_eq!(shelf.front_mut(queue), plain.front_mut());
                    prop_assert_eq!(shelf.back_mut(queue), plain.back_mut());
                }
                most = most.max(plain.iter().map(VecDeque::len).sum());
                prop_assert_eq!(shelf.places.len(), most);
            }
        }
    }
}
