//! The source and the sink around the forwarder, on one thread.

use crate::{Signals, settle_on};
use emulation::clock::monotonic_ns;
use emulation::timer;
use std::os::fd::{AsFd, BorrowedFd};

/// Frames that may be between source and sink.
const WINDOW: u64 = 256;

/// Both neighbours of a forwarder.
pub trait Neighbours {
    /// Sends frames, at most `room`; how many.
    fn send(&mut self, room: u64) -> u64;

    /// Takes what has reached the sink; how many frames.
    fn receive(&mut self) -> u64;

    /// The sink's socket, to wait for.
    fn sink(&self) -> BorrowedFd<'_>;
}

/// Keeps the forwarder busy until the run is over.
pub fn drive(neighbours: &mut impl Neighbours, signals: &Signals) {
    /// A sink that hears nothing for so long has lost frames: the source begins anew.
    const STALL_NS: u64 = 20_000_000;
    const NAP_NS: u64 = 100_000;
    settle_on(0);
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
