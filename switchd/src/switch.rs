//! The switch: ports, routing, memory and outputs composed into one device.
//!
//! [`build`] makes it from its configuration. [`relay`] moves a packet from its port to its queue and
//! completes its transmission. [`notifications`] sends the switch's own messages. [`storm`] applies the
//! watchdog's actions. [`management`] connects the agents of a managed fabric. [`settings`] are what an operator changes.
//! This file implements the device traits.

use crate::config::{StormAction, SwitchConfig};
use crate::egress::{Context, Egress};
use crate::memory::Memory;
use crate::memory::queues::Queues;
use crate::partitions::Enforcement;
use crate::port_set::PortSet;
use crate::routing::router::Router;
use crate::service_levels::ServiceLevels;
use crate::watchdog::Watchdog;
use ::management::Management;
use cn_domain_edge::CnDomainEdge;
use packet::Packet;
use proto::counters::{Balance, BinReading, DeviceReading, LaneReading, PortReading};
use proto::device::{Control, Departure, Device, Instrumented, ManagementDatagram, Step};
use proto::events::{DeviceEvent, EventLog};
use proto::frame::{Frame, FramePool};
use proto::ids::{Lid, PortNumber};
use proto::link::LinkConfig;
use proto::link::port::{Arrival, LinkPort};
use proto::units::{BitRate, Instant};

pub use buffers::{buffer_needed, headroom_needed, short_pool};
pub use error::ConfigError;

mod buffers;
mod build;
mod cn_domain_edge;
mod error;
mod management;
mod notifications;
mod packet;
mod relay;
mod settings;
mod storm;

/// A switch with 1 to 254 ports.
pub struct Switch {
    lid: Lid,
    ports: Vec<LinkPort>,
    egress: Vec<Egress>,
    /// By port; empty on InfiniBand.
    edges: Vec<CnDomainEdge>,
    queues: Queues,
    /// Ethernet only; with credits the ports account for their buffers.
    memory: Option<Box<dyn Memory>>,
    routing: Router,
    sl2vl: ServiceLevels,
    /// On a fabric under a subnet manager.
    managed: Option<Box<Management>>,
    /// The configuration without its routes, for what changes while the switch runs.
    blueprint: Box<SwitchConfig>,
    /// Ports that a subnet manager has not made Active: they take no data.
    shut: PortSet,
    enforcement: Enforcement,
    watchdog: Option<Watchdog>,
    pool: FramePool,
    log: EventLog,
    /// Ports that may have a frame to send. A port joins when its state changes, except while it sends: the
    /// end of its frame is a wake-up.
    dirty: PortSet,
    /// By port: the next wake-up, valid for every port that is not dirty.
    due: Vec<Instant>,
    /// The earliest wake-up.
    next_due: Instant,
    /// Copies still waiting, by group key; a key with zero copies is free.
    groups: Vec<u32>,
    /// The outputs of the multicast packet at hand, in a list that is used again.
    copies: Vec<PortNumber>,
    balance: Balance,
    /// The latest step.
    step: Step,
}

impl Switch {
    /// The next wake-up of the port at `index`: for its timers, the end of a transmission, or its service
    /// rate.
    fn next_wakeup(&self, index: usize) -> Instant {
        let (port, egress) = (&self.ports[index], &self.egress[index]);
        let line = if egress.needs_line() { port.line_free_at() } else { Instant::NEVER };
        port.poll_timeout().min(line).min(egress.awaits_service())
    }

    /// Marks `port` dirty, unless it is sending at `now`.
    #[inline]
    fn mark_dirty(&mut self, port: PortNumber, now: Instant) {
        if !self.egress[port.index()].is_sending(now) {
            self.dirty.insert(port);
        }
    }

    /// Marks `port` dirty after a change of its input buffer, if a flow-control frame is due, if its wake-up
    /// has come, or if another output may wait for this input.
    #[inline]
    fn mark_dirty_for_control(&mut self, port: PortNumber, now: Instant) {
        let index = port.index();
        let is_due = self.ports[index].control_is_due(now) || self.due[index] <= now;
        if is_due || self.queues.couples_outputs() {
            self.mark_dirty(port, now);
        }
    }

    /// Marks the outputs dirty that wait for an input whose state has changed.
    #[inline]
    fn mark_coupled_dirty(&mut self, now: Instant) {
        if self.queues.couples_outputs() {
            (0..self.ports.len())
                .for_each(|port| self.mark_dirty(PortNumber::from_index(port), now));
        }
    }

    /// Marks `port` clean: it sends no frame before its next wake-up.
    #[inline]
    fn mark_clean(&mut self, port: PortNumber) {
        self.dirty.remove(port);
        let due = self.next_wakeup(port.index());
        let before = std::mem::replace(&mut self.due[port.index()], due);
        let was_first = before == self.next_due && due > before;
        self.next_due =
            if was_first { Instant::earliest(&self.due).0 } else { self.next_due.min(due) };
    }

    /// The next frame that dirty port `number` starts to send at `now`. Out of line, because most calls of
    /// [`Device::poll_transmit`] find no dirty port.
    #[inline(never)]
    fn poll_port(&mut self, number: PortNumber, now: Instant) -> Option<Departure> {
        let index = number.index();
        self.finish(number, now);
        let (port, pool, log) = (&mut self.ports[index], &mut self.pool, &mut self.log);
        let mut context = Context { port, pool, log, step: self.step };
        let sent = self.egress[index].poll_transmit(&mut self.queues, &mut context);
        if let Some(departure) = &sent {
            self.ports[index].note_sent(&departure.frame);
            // An input that is being read is passed over, and other outputs may send what they offer behind it.
            self.mark_coupled_dirty(now);
        }
        // After a flow-control frame the port stays dirty: the next poll finds what waits for the line.
        if sent.is_none() || self.egress[index].is_sending(now) {
            self.mark_clean(number);
        }
        sent
    }

    /// Restarts the operators' watermarks at the present levels.
    pub fn clear_watermarks(&mut self) {
        self.ports.iter_mut().for_each(LinkPort::forget_peaks);
        if let Some(memory) = &mut self.memory {
            memory.clear_watermarks();
        }
    }
}

impl Device for Switch {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        let index = port.index();
        if index >= self.ports.len() {
            return;
        }
        self.step = Step::late(arrived, now);
        self.finish(port, now);
        match self.ports[index].receive(&frame, arrived, now, &mut self.log) {
            Arrival::Control | Arrival::Lost(_) => {
                self.pool.recycle(frame);
                self.dirty.insert(port);
                if self.managed.is_some() {
                    self.observe(port, now);
                }
            }
            Arrival::Packet(headers) => {
                let lane = headers.lane;
                self.relay(Packet { frame, headers, input: port, lane, arrived, now });
                self.mark_dirty_for_control(port, now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.step = Step::at(now);
        for index in 0..self.ports.len() {
            if self.due[index] <= now {
                let number = PortNumber::from_index(index);
                self.finish(number, now);
                self.ports[index].handle_timeout(now, &mut self.log);
                self.dirty.insert(number);
                if self.managed.is_some() {
                    self.observe(number, now);
                }
            }
        }
        self.routing.handle_timeout(now);
        self.watch(now);
        if let Some(managed) = &mut self.managed {
            managed.agents.handle_timeout(now);
            self.after_management(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        self.step = self.step.resume(now);
        while let Some(port) = self.dirty.first_from(0) {
            let sent = self.poll_port(port, now);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let watch = self.watchdog.as_ref().map_or(Instant::NEVER, |watchdog| watchdog.due);
        let agents = self.managed.as_ref();
        let agents = agents.map_or(Instant::NEVER, |managed| managed.agents.poll_timeout());
        Some(self.next_due.min(watch).min(agents).min(self.routing.poll_timeout()))
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.log.pop()
    }

    fn ports(&self) -> usize {
        self.ports.len()
    }

    fn link(&self, port: PortNumber) -> Option<&LinkConfig> {
        self.blueprint.ports.get(port.index()).map(|port| &port.link)
    }

    fn ignores_pauses(&self) -> bool {
        self.blueprint.watchdog.as_ref().is_some_and(|it| it.action == StormAction::Forward)
    }
}

impl Instrumented for Switch {
    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.read_ports(now, reading);
        for (port, into) in self.ports.iter().zip(&mut reading.ports) {
            port.read_named(now, &mut into.named);
            if let Some(memory) = &self.memory {
                read_named(port.number(), &**memory, &self.routing, into);
                self.egress[port.number().index()].read(&mut into.named);
            }
            if let Some(watchdog) = &self.watchdog {
                watchdog.read(port.number(), &mut into.named);
            }
        }
    }

    fn read_ports(&mut self, now: Instant, reading: &mut DeviceReading) {
        reading.ports.resize_with(self.ports.len(), Default::default);
        let ports = self.ports.iter_mut().zip(&mut reading.ports);
        ports.for_each(|(port, into)| port.read(now, into));
        self.balance.link_local = self.ports.iter().map(LinkPort::link_local_sent).sum();
        let own: u64 = self.egress.iter().map(Egress::own_frames).sum();
        self.balance.buffered = self.queues.frames() + own;
        reading.balance = self.balance;
    }

    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        reading.ports.resize_with(self.ports.len(), Default::default);
        let ports = self.ports.iter_mut().zip(&mut reading.ports);
        ports.for_each(|(port, totals)| port.read_bin(now, totals));
        reading.moved.clear();
        reading.unmoved.clear();
    }

    fn begin_bin(&mut self, _: Instant) {
        self.ports.iter_mut().for_each(LinkPort::restart_watermarks);
    }
}

impl Control for Switch {
    fn send_management(&mut self, datagram: ManagementDatagram, now: Instant) -> bool {
        self.send_for_client(datagram, now)
    }

    fn poll_management(&mut self) -> Option<ManagementDatagram> {
        self.managed.as_mut()?.poll_client()
    }

    fn claim_manager(&mut self, on: bool, now: Instant) -> bool {
        let Some(managed) = &mut self.managed else { return false };
        let changes = managed.agents.has_manager() != on;
        managed.agents.set_manager(on, now);
        changes
    }

    fn change(&mut self, settings: &toml::Table, port: Option<PortNumber>) -> Result<(), String> {
        self.change_settings(settings, port).map_err(|error| error.to_string())
    }

    fn set_link(&mut self, port: PortNumber, is_up: bool, now: Instant) {
        self.finish(port, now);
        self.ports[port.index()].set_link(is_up, now, &mut self.log);
        self.dirty.insert(port);
        if self.managed.is_some() {
            self.observe(port, now);
        }
    }

    fn slow_down(&mut self, port: PortNumber, rate: BitRate) -> bool {
        self.ports.get_mut(port.index()).is_some_and(|port| port.slow_down(rate))
    }
}

/// Adds the counters of memory, routing and queues of an Ethernet port, under operators' names.
fn read_named(port: PortNumber, memory: &dyn Memory, routing: &Router, into: &mut PortReading) {
    for lane in &into.lanes {
        let LaneReading { tc, counters } = lane;
        if counters.out_queue.peak > 0 {
            into.named.push((format!("queue{tc}_watermark"), counters.out_queue.peak));
        }
        if counters.marks > 0 {
            into.named.push((format!("queue{tc}_ecn_marked_packets"), counters.marks));
        }
    }
    memory.read(port, &mut into.named);
    routing.read(port, &mut into.named);
}

#[cfg(test)]
mod tests;
