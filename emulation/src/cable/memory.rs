//! The cable in memory: frames on their way inside one process, ordered by when they are due.
//!
//! A frame keeps its buffer and its [`proto::frame::Integrity`]. The same heap holds departures
//! until their last bit has left, and frames from sockets until they have arrived.

use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A frame with the instant and place of what happens to it next.
#[derive(Debug)]
pub(crate) struct Flight {
    /// When.
    pub at: Instant,
    /// At which of the worker's own devices.
    pub device: usize,
    /// At which of its ports.
    pub port: PortNumber,
    /// Keeps the order in which frames were put in, where all else is equal.
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
    /// Backwards, since [`BinaryHeap`] gives its greatest first.
    fn cmp(&self, other: &Flight) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Frames in order of (instant, device, port, put in first).
///
/// Most are put in in that order. They stand in a row, and only the others are in the heap, where each costs some
/// comparisons.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    row: VecDeque<Flight>,
    heap: BinaryHeap<Flight>,
    next_order: u64,
}

impl Flights {
    /// Puts a frame in.
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

    /// When the first is due, and at which device; [`Instant::NEVER`] if there is none.
    pub fn next(&self) -> (Instant, usize) {
        let due = |flight: &Flight| (flight.at, flight.device);
        let row = self.row.front().map_or((Instant::NEVER, 0), due);
        match self.heap.peek() {
            Some(flight) => row.min(due(flight)),
            None => row,
        }
    }

    /// When the first is due.
    pub(crate) fn next_at(&self) -> Instant {
        self.next().0
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Flight> {
        let Some(other) = self.heap.peek() else { return self.row.pop_front() };
        match self.row.front() {
            Some(first) if first.key() < other.key() => self.row.pop_front(),
            _ => self.heap.pop(),
        }
    }

    /// Every frame, in no order.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.row.iter().chain(&self.heap).map(|flight| &flight.frame)
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
}
