//! Orders to a running worker: read its devices or change something.
//!
//! The worker executes orders between two turns. It checks a flag for them, and it never waits for the thread
//! that gave an order.

use super::account::AccountReply;
use super::{Beat, Supervisor, Worker};
use crate::cable::exchange::AttachedReading;
use crate::cable::impairment::{Impairer, Injected, ManualImpairment};
use crate::cable::lines::Destination;
use crate::fidelity::Recent;
use crate::frame_tap::FrameTap;
use proto::counters::DeviceReading;
use proto::device::{Depth, Device, ManagementDatagram, Step};
use proto::ids::PortNumber;
use proto::units::{BitRate, Instant};

/// Orders executed in one turn at most.
const ORDERS_A_TURN: usize = 4;

/// The state of the worker at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSnapshot {
    /// The worker's heartbeat at that instant.
    pub beat: Beat,
    /// By device of the worker.
    pub devices: Vec<DeviceReading>,
    /// Frames that impairments have hit so far.
    pub injected: Injected,
    /// The state of attached interfaces.
    pub attached: Vec<AttachedReading>,
    /// The same by device and port, where there have been impairments.
    pub injected_at: Vec<(usize, PortNumber, Injected)>,
}

/// Delivers the answer to an order, and must not block. An order that is not executed drops it.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// A request to a worker.
pub enum Order {
    /// Read all devices at least as deep as that into a snapshot, whose buffers are reused. Deeper parts keep
    /// their old values.
    Read(Box<DeviceSnapshot>, Depth, Reply<Box<DeviceSnapshot>>),
    /// Change the impairment of the frames that a port sends. The answer is false if no cable is there.
    Impair(Box<ImpairmentChange>, Reply<bool>),
    /// Limit the rate at which a port of a device sends. The answer is false if the port cannot do that.
    SlowDown(usize, PortNumber, BitRate, Reply<bool>),
    /// Change settings of a device, those of a link at one port or at all. The answer is why nothing was changed.
    Change(usize, Option<PortNumber>, Box<toml::Table>, Reply<Result<(), String>>),
    /// Execute these lines of calls to the agent of a device. The answer has a line for each; none if the device has no
    /// agent.
    Agent(usize, Vec<String>, Reply<Option<Vec<String>>>),
    /// Show frames to this tap, or to none. The answer is the tap before it, unfinished, and the instant of the
    /// change.
    Tap(Option<Box<dyn FrameTap>>, Reply<(Option<Box<dyn FrameTap>>, Instant)>),
    /// Make an account of all frames at an instant that is ahead. There is none if it comes too late.
    Account(Instant, AccountReply),
    /// Let traffic items post messages, or stop them.
    Traffic {
        /// Name of the items; all items if `None`.
        item: Option<String>,
        /// Whether they may post.
        on: bool,
        /// The answer is the number of adapters that have such items.
        reply: Reply<usize>,
    },
    /// Send a management datagram for a program beside a device. Answers go to [`Supervisor::deliver`].
    Manage(usize, ManagementDatagram),
    /// A subnet manager runs beside a device, or no longer does.
    Claim(usize, bool),
}

/// A change of the impairment of one port.
#[derive(Debug)]
pub struct ImpairmentChange {
    /// Index into the worker's devices.
    pub device: usize,
    /// The port.
    pub port: PortNumber,
    /// The change.
    pub change: ManualImpairment,
    /// The impairer that the port gets if it has none yet.
    pub spare: Impairer,
}

impl Worker {
    /// Executes pending orders, at most [`ORDERS_A_TURN`].
    pub(super) fn execute_orders(&mut self, supervisor: &impl Supervisor) {
        for _ in 0..ORDERS_A_TURN {
            let Some(order) = supervisor.order() else { return };
            match order {
                Order::Read(mut snapshot, depth, reply) => {
                    self.read(&mut snapshot, depth);
                    reply(snapshot);
                }
                Order::Impair(impairing, reply) => reply(self.impair(*impairing)),
                Order::SlowDown(device, port, rate, reply) => {
                    let is_done = self.run.devices[device].slow_down(port, rate);
                    if is_done {
                        self.laws[device][port.index()].slow_down(rate);
                    }
                    reply(is_done);
                }
                Order::Change(device, port, settings, reply) => {
                    reply(self.run.devices[device].change(&settings, port));
                }
                Order::Agent(device, lines, reply) => reply(self.ask_agent(device, &lines)),
                Order::Tap(tap, reply) => {
                    reply((std::mem::replace(&mut self.run.recorder.tap, tap), self.now));
                }
                Order::Account(at, reply) => self.await_account(at, reply),
                Order::Traffic { item, on, reply } => reply(self.let_post(item.as_deref(), on)),
                Order::Manage(device, datagram) => self.manage(device, |device, now| {
                    // Only devices with agents get such orders.
                    device.send_management(datagram, now);
                }),
                Order::Claim(device, on) => self.manage(device, |device, now| {
                    device.claim_manager(on, now);
                }),
            }
        }
    }

    /// Does something for the program beside a device, whose answers are delivered from now on.
    fn manage(&mut self, index: usize, act: impl FnOnce(&mut dyn Device, Instant)) {
        let now = self.present();
        act(&mut *self.run.devices[index], now);
        self.collect_outputs(index, Step::at(now));
        if !self.managed.contains(&index) {
            self.managed.push(index);
        }
    }

    /// Delivers what devices have for the programs beside them.
    pub(super) fn deliver_management(&mut self, supervisor: &impl Supervisor) {
        for index in &self.managed {
            while let Some(datagram) = self.run.devices[*index].poll_management() {
                supervisor.deliver(*index, datagram);
            }
        }
    }

    /// Reads all devices as of the last step. As before a bin edge, departures that have begun are sent first.
    fn read(&mut self, snapshot: &mut DeviceSnapshot, depth: Depth) {
        self.send_started();
        snapshot.devices.resize_with(self.run.devices.len(), DeviceReading::default);
        for (device, reading) in self.run.devices.iter_mut().zip(&mut snapshot.devices) {
            device.read_to(depth, self.now, reading);
        }
        snapshot.beat = self.beat();
        self.run.exchange.read_attached(&mut snapshot.attached);
        snapshot.injected = Injected::by(self.run.impairers.iter().flatten());
        snapshot.injected_at.clear();
        for (device, reading) in snapshot.devices.iter().enumerate() {
            let hits = (0..reading.ports.len()).filter_map(|index| {
                let port = PortNumber::from_index(index);
                let line = self.run.lines.outgoing(device, port)?;
                let impairers = &self.run.impairers;
                let is_outside = line.to == Destination::Outside;
                let received = impairers[line.opposite()].iter().filter(|_| is_outside);
                let injected = Injected::by(impairers[line.index()].iter().chain(received));
                (injected != Injected::default()).then_some((device, port, injected))
            });
            snapshot.injected_at.extend(hits);
        }
    }

    fn impair(&mut self, impairing: ImpairmentChange) -> bool {
        let ImpairmentChange { device, port, change, spare } = impairing;
        let Some(line) = self.run.lines.outgoing(device, port) else { return false };
        // The far end of an attached interface is not a device: what it sends is cut here.
        if line.to == Destination::Outside
            && matches!(change, ManualImpairment::Cut(_) | ManualImpairment::Mend)
        {
            let from_outside = &mut self.run.impairers[line.opposite()];
            from_outside.get_or_insert_with(|| spare.clone()).change(change.clone(), self.now);
        }
        self.run.impairers[line.index()].get_or_insert(spare).change(change, self.now);
        true
    }

    /// Advances to the present, at most to the next step. A timer that an order sets would otherwise count from the last
    /// step, which may be long ago.
    pub(super) fn present(&mut self) -> Instant {
        self.now = self.reached();
        self.now
    }

    /// The instant up to which everything has happened: the present, at most the next step. The last step may be long ago.
    fn reached(&self) -> Instant {
        let present = self.run.clock.now().min(self.run.plan.stop);
        self.now.max(present.min(self.next_instant()))
    }

    fn ask_agent(&mut self, device: usize, lines: &[String]) -> Option<Vec<String>> {
        let now = self.present();
        let answers = lines.iter().map(|line| self.run.devices[device].answer(line, now)).collect();
        self.collect_outputs(device, Step::at(now));
        answers
    }

    fn let_post(&mut self, item: Option<&str>, on: bool) -> usize {
        let (mut affected, now) = (0, self.present());
        for device in 0..self.run.devices.len() {
            if self.run.devices[device].let_post(item, on, now) {
                affected += 1;
                self.collect_outputs(device, Step::at(now));
            }
        }
        affected
    }

    /// The heartbeat of this instant.
    pub(super) fn beat(&self) -> Beat {
        let frames = &self.meter.lateness.frames;
        let has_end = self.run.plan.stop < Instant::NEVER;
        let is_defined = frames.count() > 0 || !self.run.lines.has_outside();
        Beat {
            at: self.reached(),
            departures: self.meter.departures,
            late_p99_thousandths: is_defined.then(|| self.meter.p99(has_end)),
            late_max_thousandths: frames.max(),
            lost: self.run.exchange.lost(),
            unsent: self.run.exchange.unsent(),
            rejected: self.run.exchange.rejected(),
            cpu_ns: crate::clock::process_cpu_ns(),
            peers_changed: self.peers_changed,
            recent: Recent::default(),
        }
    }
}
