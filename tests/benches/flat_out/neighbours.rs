//! The source and the sink around the forwarder, on one thread.

use crate::{Signals, pin_to};
use emulation::clock::monotonic_ns;
use emulation::timer;
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum number of frames between source and sink.
const WINDOW: u64 = 256;

/// Source and sink of a forwarder.
pub trait Neighbours {
    /// Sends at most `room` frames; returns their number.
    fn send(&mut self, room: u64) -> u64;

    /// Receives the frames at the sink; returns their number.
    fn receive(&mut self) -> u64;

    /// The sink's socket, for polling.
    fn sink(&self) -> BorrowedFd<'_>;
}

/// Keeps the forwarder busy until the end of the run.
pub fn drive(neighbours: &mut impl Neighbours, signals: &Signals) {
    /// If the sink receives nothing for this long, frames were lost and the source restarts.
    const STALL_NS: u64 = 20_000_000;
    const NAP_NS: u64 = 100_000;
    pin_to(0);
    let (mut sent, mut sunk, mut heard_ns) = (0, 0, monotonic_ns());
    while !signals.stopped() {
        let received = neighbours.receive();
        if received > 0 {
            sunk += received;
            signals.sunk(sunk);
            heard_ns = monotonic_ns();
        }
        let under_way = u64::saturating_sub(sent, sunk);
        let gone = neighbours.send(WINDOW.saturating_sub(under_way));
        sent += gone;
        if received == 0 && gone == 0 {
            let now = monotonic_ns();
            if now - heard_ns > STALL_NS {
                sent = sunk;
                heard_ns = now;
            }
            timer::wait(Some(neighbours.sink().as_fd()), now + NAP_NS);
        }
    }
}
