//! The cable in memory: frames in flight inside one process, ordered by when they are due.
//!
//! A frame keeps its buffer and its [`proto::frame::Integrity`]. The same queue holds departures until their
//! last bit has left, and frames from sockets until they have arrived.

use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A frame, and when and where it is due.
#[derive(Debug)]
pub(crate) struct Flight {
    /// When it is due.
    pub at: Instant,
    /// Index of the device among the worker's devices.
    pub device: usize,
    /// At which of its ports.
    pub port: PortNumber,
    /// Sequence of insertion, the last criterion of the order.
    order: u64,
    /// The frame.
    pub frame: Frame,
}

impl Flight {
    fn key(&self) -> (Instant, usize, PortNumber, u64) {
        (self.at, self.device, self.port, self.order)
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Flight) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Flight) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    /// Reversed, since [`BinaryHeap`] pops its greatest element first.
    fn cmp(&self, other: &Flight) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Frames in the order of (instant, device, port, insertion).
///
/// Most frames are inserted in that order and go into a queue. Only the others go into the heap, where each
/// costs some comparisons.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    row: VecDeque<Flight>,
    heap: BinaryHeap<Flight>,
    next_order: u64,
}

impl Flights {
    /// Inserts a frame.
    pub fn push(&mut self, at: Instant, device: usize, port: PortNumber, frame: Frame) {
        let order = self.next_order;
        self.next_order += 1;
        let flight = Flight { at, device, port, order, frame };
        if self.row.back().is_none_or(|last| last.key() < flight.key()) {
            self.row.push_back(flight);
        } else {
            self.heap.push(flight);
        }
    }

    /// The instant and device of the first frame; [`Instant::NEVER`] without one.
    pub fn next(&self) -> (Instant, usize) {
        let due = |flight: &Flight| (flight.at, flight.device);
        let row = self.row.front().map_or((Instant::NEVER, 0), due);
        match self.heap.peek() {
            Some(flight) => row.min(due(flight)),
            None => row,
        }
    }

    /// The instant of the first frame; [`Instant::NEVER`] without one.
    pub(crate) fn next_at(&self) -> Instant {
        self.next().0
    }

    /// Removes the first frame.
    pub fn pop(&mut self) -> Option<Flight> {
        let Some(other) = self.heap.peek() else { return self.row.pop_front() };
        match self.row.front() {
            Some(first) if first.key() < other.key() => self.row.pop_front(),
            _ => self.heap.pop(),
        }
    }

    /// Removes the frames that `is_unwanted` names, and passes them to `each`.
    pub fn remove(&mut self, is_unwanted: impl Fn(&Flight) -> bool, each: impl FnMut(Flight)) {
        let all = std::mem::take(&mut self.row).into_iter().chain(std::mem::take(&mut self.heap));
        let (unwanted, mut kept): (Vec<_>, Vec<_>) = all.partition(is_unwanted);
        kept.sort_unstable_by_key(Flight::key);
        self.row = kept.into();
        unwanted.into_iter().for_each(each);
    }

    /// All frames, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.row.iter().chain(&self.heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proto::frame::{FrameKind, Integrity};

    #[test]
    fn frames_come_out_by_instant_device_port_and_order_of_entry() {
        let mut flights = Flights::default();
        let port = |n| PortNumber::new(n).expect("a port number");
        let entries = [(20, 0, 1, 0), (10, 1, 1, 1), (10, 0, 2, 2), (10, 0, 1, 3), (10, 0, 1, 4)];
        for (at, device, number, tag) in entries {
            let frame = Frame::intact(FrameKind::Ethernet, BytesMut::from(&[tag][..]));
            flights.push(Instant::from_ps(at), device, port(number), frame);
        }
        assert_eq!(flights.next_at(), Instant::from_ps(10));
        let mut tags = vec![];
        while let Some(flight) = flights.pop() {
            assert_eq!(flight.frame.integrity, Integrity::Intact);
            tags.push(flight.frame.octets[0]);
        }
        assert_eq!(tags, [3, 4, 2, 1, 0]);
        assert_eq!(flights.next_at(), Instant::NEVER);
    }

    #[test]
    fn frames_that_are_removed_leave_the_others_in_order() {
        let mut flights = Flights::default();
        for at in [5, 3, 9, 1, 7, 2] {
            let frame = Frame::intact(FrameKind::Ethernet, BytesMut::new());
            flights.push(Instant::from_ps(at), at as usize % 2, PortNumber::from_index(0), frame);
        }
        let mut removed = 0;
        flights.remove(|flight| flight.device == 0, |_| removed += 1);
        assert_eq!(removed, 1);
        let left: Vec<u64> = std::iter::from_fn(|| Some(flights.pop()?.at.as_ps())).collect();
        assert_eq!(left, [1, 3, 5, 7, 9]);
    }
}
