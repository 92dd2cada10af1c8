//! What a worker is given: its devices and cables, frames from outside, and its supervisor.

use super::Beat;
use super::orders::Order;
use crate::cable::datagram::Peer;
use crate::cable::exchange::Exchange;
use crate::cable::impairment::Impairer;
use crate::cable::lines::Lines;
use crate::clock::{Clock, ClockChange};
use crate::recorder::{Recorder, RecordingPlan};
use crate::wiring::{End, Wiring};
use proto::device::{Device, ManagementDatagram};
use proto::frame::Frame;
use proto::ids::{Lid, PortNumber};
use proto::units::Instant;
use std::os::fd::BorrowedFd;

/// A change that the launcher announces to every worker.
#[derive(Clone, Debug)]
pub enum Change {
    /// From some instant on the clock runs with another dilation.
    Clock(ClockChange),
    /// The process with this number has ended.
    Gone(usize),
    /// Another process has taken its place, at this address; cables with interfaces of their own need none. It has the
    /// adapters with these LIDs of the plan.
    Replaced(usize, Option<Peer>, Vec<Lid>),
}

/// The worker's channel to the thread that supervises it. No method may block.
pub trait Supervisor {
    /// Whether the run is to end now.
    fn stop_requested(&self) -> bool;

    /// Sends a heartbeat.
    fn beat(&self, beat: Beat);

    /// The next change, in FIFO order. Called once a turn, before the clock is read.
    fn change(&self) -> Option<Change> {
        None
    }

    /// The next pending order, in FIFO order. Called at least once a turn.
    fn order(&self) -> Option<Order> {
        None
    }

    /// What is readable while an order waits that must not wait for the worker's next wake-up; asked once.
    fn alarm(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Takes a datagram of a device for the program beside it. Devices with an order [`Order::Manage`] have one.
    fn deliver(&self, _device: usize, _datagram: ManagementDatagram) {}
}

/// A frame that reaches a port from outside the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedFrame {
    /// Index into the worker's own devices.
    pub device: usize,
    /// The port there.
    pub port: PortNumber,
    /// When it arrives; whole nanoseconds if it comes from a capture file.
    pub at: Instant,
    /// The frame.
    pub frame: Frame,
}

/// Everything a worker needs for one run.
pub struct Assignment {
    /// The number of this process.
    pub process: usize,
    /// The number of processes of the run.
    pub processes: usize,
    /// Fabric time.
    pub clock: Clock,
    /// When the devices begin: fabric zero, or later for a process that takes the place of another.
    pub begin: Instant,
    /// When to stop and what to measure.
    pub plan: RecordingPlan,
    /// The process's devices, in the order of their nodes.
    pub devices: Vec<Box<dyn Device>>,
    /// The ends of their cables.
    pub lines: Lines,
    /// Impairments by line index, see [`impairers`].
    pub impairers: Vec<Option<Impairer>>,
    /// The sockets.
    pub exchange: Exchange,
    /// Records counters, events and frames.
    pub recorder: Recorder,
}

/// The impairers of `wiring` by line index; `None` where nothing is impaired. `seed` is the scenario's.
pub fn impairers(wiring: &Wiring, seed: u64) -> Vec<Option<Impairer>> {
    let at = |end: End| Impairer::new(wiring, end, seed);
    let links = wiring.links.iter().flat_map(|link| [at(link.a), at(link.b)]);
    // Frames that arrive at an attached interface come from outside and are not impaired.
    links.chain(wiring.attached.iter().flat_map(|attached| [at(attached.at), None])).collect()
}
