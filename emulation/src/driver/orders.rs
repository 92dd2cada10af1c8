//! What somebody wants of a worker while it runs: to be told how things stand, or to change something.
//!
//! Orders are carried out between two turns. A worker looks at a flag for them, and nothing of what it
//! does for an order waits for whoever gave it.

use super::{Beat, Supervisor, Worker};
use crate::cable::impairment::{ByHand, Impairer, Injected};
use crate::cable::lines::line_index;
use crate::frame_tap::FrameTap;
use proto::counters::DeviceReading;
use proto::device::Depth;
use proto::ids::PortNumber;
use proto::units::{BitRate, Instant};
use std::fmt;

/// Orders that are carried out in one turn at most.
const ORDERS_A_TURN: usize = 4;

/// How things stood at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// How the worker does.
    pub beat: Beat,
    /// By device of the worker.
    pub devices: Vec<DeviceReading>,
    /// Faults on purpose so far.
    pub injected: Injected,
}

/// Delivers the answer to an order. An order that is never carried out drops it.
pub struct Reply<T>(Box<dyn FnOnce(T) + Send>);

impl<T> Reply<T> {
    /// An answer goes to `deliver`, which must not block.
    pub fn new(deliver: impl FnOnce(T) + Send + 'static) -> Reply<T> {
        Reply(Box::new(deliver))
    }

    /// Delivers `answer`.
    pub fn send(self, answer: T) {
        (self.0)(answer);
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// Something that is wanted of a worker. Who no longer waits for an answer gets none.
#[derive(Debug)]
pub enum Order {
    /// Read all devices so far into a snapshot, whose buffers are used again; the rest of it may be older.
    Read(Box<Snapshot>, Depth, Reply<Box<Snapshot>>),
    /// Do so to the frames that a port sends.
    Impair(Box<Impairing>, Reply<Result<(), String>>),
    /// Let a port of a device send no faster than that; whether it can.
    SlowDown(usize, PortNumber, BitRate, Reply<bool>),
    /// Show frames to this tap, or to none; the answer is the tap before it, unfinished, and when that one ended.
    Tap(Option<Box<dyn FrameTap>>, Reply<(Option<Box<dyn FrameTap>>, Instant)>),
    /// Let traffic items of this name post, or all; or let them be silent.
    Traffic {
        /// Which; all if none is named.
        item: Option<String>,
        /// They may post.
        on: bool,
        /// Of how many adapters items heard it.
        reply: Reply<usize>,
    },
}

/// A change of what happens to the frames that one port sends.
#[derive(Debug)]
pub struct Impairing {
    /// Which of the worker's devices.
    pub device: usize,
    /// Which port.
    pub port: PortNumber,
    /// What is to be changed.
    pub change: ByHand,
    /// What the port gets if nothing has impaired it yet.
    pub spare: Impairer,
}

impl Worker {
    /// Carries out what has been ordered.
    pub(super) fn obey(&mut self, supervisor: &impl Supervisor) {
        for _ in 0..ORDERS_A_TURN {
            let Some(order) = supervisor.order() else { return };
            match order {
                Order::Read(mut snapshot, depth, reply) => {
                    self.read(&mut snapshot, depth);
                    reply.send(snapshot);
                }
                Order::Impair(impairing, reply) => {
                    reply.send(self.impair(*impairing));
                }
                Order::SlowDown(device, port, rate, reply) => {
                    let device = &mut self.run.devices[device];
                    reply.send(device.slow_down(port, rate));
                }
                Order::Tap(tap, reply) => {
                    reply.send((self.run.recorder.replace_tap(tap), self.now));
                }
                Order::Traffic { item, on, reply } => {
                    reply.send(self.let_post(item.as_deref(), on));
                }
            }
        }
    }

    /// Reads all devices as of the last thing that happened. As before a bin, what has begun to leave is
    /// sent first.
    fn read(&mut self, snapshot: &mut Snapshot, depth: Depth) {
        self.clear_the_lines();
        snapshot.devices.resize_with(self.run.devices.len(), DeviceReading::default);
        for (device, reading) in self.run.devices.iter_mut().zip(&mut snapshot.devices) {
            device.read_to(depth, self.now, reading);
        }
        snapshot.beat = self.beat();
        snapshot.injected = Injected::default();
        for impairer in self.run.impairers.iter().flatten() {
            snapshot.injected.merge(&impairer.injected);
        }
    }

    fn impair(&mut self, impairing: Impairing) -> Result<(), String> {
        let Impairing { device, port, change, spare } = impairing;
        let line = self.run.lines.outgoing(device, port).ok_or("no cable is there")?;
        let place = line_index(line.link, line.end);
        self.run.impairers[place].get_or_insert(spare).change(change, self.now);
        Ok(())
    }

    /// How many devices have such items.
    fn let_post(&mut self, item: Option<&str>, on: bool) -> usize {
        let mut heard = 0;
        for device in 0..self.run.devices.len() {
            if self.run.devices[device].let_post(item, on, self.now) {
                heard += 1;
                self.settle(device);
            }
        }
        heard
    }

    /// How the worker does.
    pub(super) fn beat(&self) -> Beat {
        let frames = &self.meter.lateness().frames;
        Beat {
            at: self.now,
            departures: self.meter.departures(),
            late_p99_thousandths: frames.p99(),
            late_max_thousandths: frames.max(),
            lost: self.run.exchange.lost(),
            rejected: self.run.exchange.rejected(),
            cpu_ns: crate::clock::process_cpu_ns(),
        }
    }
}
