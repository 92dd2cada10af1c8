//! What somebody wants of a worker while it runs: to be told how things stand, or to change something.
//!
//! Orders are carried out between two turns. A worker looks at a flag for them, and nothing of what it
//! does for an order waits for whoever gave it.

use super::{Beat, Supervisor, Worker};
use crate::cable::impairment::{ByHand, Impairer, Injected};
use crate::cable::lines::line_index;
use crate::capture::Capture;
use crate::witness::Witness;
use proto::counters::DeviceReading;
use proto::device::Depth;
use proto::ids::PortNumber;
use proto::units::{BitRate, Instant};
use tokio::sync::oneshot::Sender;

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

/// Something that is wanted of a worker. Who no longer waits for an answer gets none.
#[derive(Debug)]
pub enum Order {
    /// Read all devices so far into a snapshot, whose buffers are used again; the rest of it may be older.
    Read(Box<Snapshot>, Depth, Sender<Box<Snapshot>>),
    /// Do so to the frames that a port sends.
    Impair(Box<Impairing>, Sender<Result<(), String>>),
    /// Let a port of a device send no faster than that; whether it can.
    SlowDown(usize, PortNumber, BitRate, Sender<bool>),
    /// Show frames to this capture, or to none; what it answers with is the one before, and when that
    /// ended.
    Capture(Option<Box<Capture>>, Sender<(Option<Box<Capture>>, Instant)>),
    /// Let traffic items of this name post, or all; or let them be silent.
    Traffic {
        /// Which; all if none is named.
        item: Option<String>,
        /// They may post.
        on: bool,
        /// Of how many adapters items heard it.
        reply: Sender<usize>,
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

impl<W: Witness> Worker<W> {
    /// Carries out what has been ordered.
    pub(super) fn obey(&mut self, supervisor: &impl Supervisor) {
        for _ in 0..ORDERS_A_TURN {
            let Some(order) = supervisor.order() else { return };
            // An answer that nobody waits for any more is no loss.
            match order {
                Order::Read(mut snapshot, depth, reply) => {
                    self.read(&mut snapshot, depth);
                    let _ = reply.send(snapshot);
                }
                Order::Impair(impairing, reply) => {
                    let _ = reply.send(self.impair(*impairing));
                }
                Order::SlowDown(device, port, rate, reply) => {
                    let device = &mut self.run.devices[device];
                    let _ = reply.send(device.slow_down(port, rate));
                }
                Order::Capture(capture, reply) => {
                    let _ = reply.send((self.run.witness.capture(capture), self.now));
                }
                Order::Traffic { item, on, reply } => {
                    let _ = reply.send(self.let_post(item.as_deref(), on));
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
