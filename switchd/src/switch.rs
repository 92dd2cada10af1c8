//! The switch: composes ports, routing, memory and outputs into one device.
//!
//! [`build`] makes it from its configuration; [`relay`] is the way of a frame from port to queue and
//! what happens when its last bit has left; [`storm`] is what the watchdog has done. Here is what the
//! driver asks.

use crate::egress::Egress;
use crate::memory::Memory;
use crate::memory::queues::Queues;
use crate::port_set::PortSet;
use crate::routing::router::Router;
use crate::service_levels::ServiceLevels;
use crate::watchdog::Watchdog;
use domain::Border;
use proto::counters::{Balance, BinReading, DeviceReading, LaneReading, PortReading};
use proto::device::{Departure, Device};
use proto::events::{DeviceEvent, EventLog};
use proto::frame::{Frame, FramePool};
use proto::ids::{Lid, PortNumber, VirtualLane};
use proto::link::port::{Arrival, LinkPort};
use proto::units::{BitRate, Instant};
use relay::Packet;

pub use build::{ConfigError, headroom_needed};

mod build;
mod domain;
mod notify;
mod relay;
mod storm;

/// An N×N switch.
pub struct Switch {
    lid: Lid,
    ports: Vec<LinkPort>,
    egress: Vec<Egress>,
    /// By port, on Ethernet: what is changed at the borders of a domain of congestion notification.
    borders: Vec<Border>,
    queues: Queues,
    /// Where ports account for their buffers by credits there is none.
    memory: Option<Box<dyn Memory>>,
    routing: Router,
    sl2vl: ServiceLevels,
    watchdog: Option<Watchdog>,
    pool: FramePool,
    log: EventLog,
    /// Ports to ask for frames. Whatever may change what a port has to do puts it in here, but for one
    /// that is sending: the end of its frame is due, and until then it can begin nothing.
    stirred: PortSet,
    /// By port: when it has to be looked at again. It holds for every port that is not stirred.
    due: Vec<Instant>,
    /// The earliest of those.
    next_due: Instant,
    /// Copies still waiting, by group key; a zero is free for reuse.
    groups: Vec<u32>,
    balance: Balance,
}

impl Switch {
    /// When the port at `index` has to be looked at, if nothing stirs it before: for its timers, or
    /// because its line or its service is free again.
    fn wake(&self, index: usize) -> Instant {
        let (port, egress) = (&self.ports[index], &self.egress[index]);
        let line = if egress.needs_line() { port.line_free_at() } else { Instant::NEVER };
        port.poll_timeout().min(line).min(egress.awaits_service())
    }
}

impl Switch {
    /// `port` may have something to begin at `now`.
    #[inline]
    fn stir(&mut self, port: PortNumber, now: Instant) {
        if !self.egress[port.index()].is_sending(now) {
            self.stirred.insert(port);
        }
    }

    /// Room behind `port` was taken or given back, which it may have to tell its peer. All else that it
    /// has to do is as it was, unless its instant has come, or it waits for an input that others read.
    #[inline]
    fn stir_to_tell(&mut self, port: PortNumber, now: Instant) {
        let index = port.index();
        let is_due = self.ports[index].control_is_due(now) || self.due[index] <= now;
        if is_due || self.queues.couples_outputs() {
            self.stir(port, now);
        }
    }

    /// `port` has nothing to send before its line is free or something stirs it.
    #[inline]
    fn settle(&mut self, port: PortNumber) {
        self.stirred.remove(port);
        let due = self.wake(port.index());
        let before = std::mem::replace(&mut self.due[port.index()], due);
        let was_first = before == self.next_due && due > before;
        self.next_due =
            if was_first { Instant::earliest(&self.due).0 } else { self.next_due.min(due) };
    }

    /// What `number`, which is stirred, begins to send at `now`. Most calls of
    /// [`Device::poll_transmit`] find nobody stirred and need none of this.
    #[inline(never)]
    fn poll_port(&mut self, number: PortNumber, now: Instant) -> Option<Departure> {
        let index = number.index();
        self.finish(number, now);
        let (port, queues) = (&mut self.ports[index], &mut self.queues);
        let egress = &mut self.egress[index];
        let sent = egress.poll_transmit(port, queues, &mut self.pool, now, &mut self.log);
        // Behind a frame of its link alone it is still to be seen what waits for the line.
        if sent.is_none() || self.egress[index].is_sending(now) {
            self.settle(number);
        }
        sent
    }

    /// Fills the ports but for what has a name, integrals closed at `now`.
    fn show_ports(&mut self, now: Instant, into: &mut Vec<PortReading>) {
        into.resize_with(self.ports.len(), Default::default);
        self.ports.iter_mut().zip(into).for_each(|(port, into)| port.read(now, into));
    }

    /// Takes the watermarks that operators see anew from the present levels.
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
        self.finish(port, now);
        match self.ports[index].receive(&frame, arrived, now, &mut self.log) {
            Arrival::Control | Arrival::Lost(_) => {
                self.pool.recycle(frame);
                self.stirred.insert(port);
            }
            Arrival::Packet(headers) => {
                let lane = VirtualLane::truncate(headers.lane);
                self.relay(port, frame, Packet { headers, lane, arrived, now });
                self.stir_to_tell(port, now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.ports.len() {
            if self.due[index] <= now {
                let number = PortNumber::from_index(index);
                self.finish(number, now);
                self.ports[index].handle_timeout(now, &mut self.log);
                self.stirred.insert(number);
            }
        }
        self.routing.handle_timeout(now);
        self.watch(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        while let Some(port) = self.stirred.first_from(0) {
            let sent = self.poll_port(port, now);
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let watch = self.watchdog.as_ref().map_or(Instant::NEVER, Watchdog::due);
        Some(self.next_due.min(watch).min(self.routing.poll_timeout()))
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.log.pop()
    }

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
        self.show_ports(now, &mut reading.ports);
        self.balance.link_local = self.ports.iter().map(LinkPort::link_local_sent).sum();
        let own = |egress: &Egress| egress.management_waiting() + egress.notices_waiting();
        let waiting: u64 = self.egress.iter().map(own).sum();
        self.balance.buffered = self.queues.frames() + waiting;
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

    fn slow_down(&mut self, port: PortNumber, rate: BitRate) -> bool {
        self.ports.get_mut(port.index()).is_some_and(|port| port.slow_down(rate))
    }

    fn ports(&self) -> usize {
        self.ports.len()
    }
}

/// Adds what memory, routing and queues show of a port of Ethernet, under operators' names.
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
