//! The switch: composes ports, routing, memory and outputs into one device.

use crate::config::SwitchConfig;
use crate::egress::{Egress, Placed, UnderWay};
use crate::memory::models::{self, Shape};
use crate::memory::{Memory, Stored};
use crate::port_set::PortSet;
use crate::routing::forwarding_table::ForwardingTable;
use crate::routing::{Decision, RoutingPolicy};
use crate::service_levels::ServiceLevels;
use proto::congestion::{Place, schemes};
use proto::counters::{Balance, DeviceReading, DropReason};
use proto::device::{Departure, Device};
use proto::events::{DeviceEvent, EventLog};
use proto::frame::{Frame, FramePool};
use proto::ids::{Lid, PortNumber, ServiceLevel, VirtualLane};
use proto::link::port::{Arrival, LinkPort};
use proto::random::Random;
use proto::units::{Bytes, Instant};

/// Why a switch cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No memory model of that name.
    #[error("unknown memory model {0:?}")]
    Memory(String),
    /// No scheme of that name.
    #[error("unknown scheme {0:?}")]
    Scheme(String),
    /// The service level map needs sixteen entries of at most 15, or sixteen for each pair of ports.
    #[error(
        "the service level map needs sixteen lanes from 0 to 15, for all or for each pair of ports"
    )]
    ServiceLevels,
    /// A port number beyond the last port.
    #[error("a route leads out of port {0}, which the switch does not have")]
    Port(PortNumber),
    /// A switch has 1 to 254 ports.
    #[error("a switch has 1 to 254 ports, not {0}")]
    Ports(usize),
}

/// An N×N switch.
pub struct Switch {
    lid: Lid,
    ports: Vec<LinkPort>,
    egress: Vec<Egress>,
    memory: Box<dyn Memory>,
    routing: Box<dyn RoutingPolicy>,
    sl2vl: ServiceLevels,
    pool: FramePool,
    log: EventLog,
    /// Ports to ask for frames. Whatever may change what a port has to do puts it in here.
    stirred: PortSet,
    /// By port: when it has to be looked at again. It holds for every port that is not stirred.
    due: Vec<Instant>,
    /// Copies still waiting, by group key; a zero is free for reuse.
    groups: Vec<u32>,
    balance: Balance,
}

impl Switch {
    /// The switch that `config` describes.
    ///
    /// # Errors
    /// If the configuration names something that does not exist.
    pub fn new(config: SwitchConfig) -> Result<Switch, ConfigError> {
        let count = config.ports.len();
        if !(1..=254).contains(&count) {
            return Err(ConfigError::Ports(count));
        }
        let routed = config.routes.iter().map(|route| route.port);
        let grouped = config.multicast.iter().flat_map(|group| group.ports.iter().copied());
        if let Some(port) = routed.chain(grouped).find(|port| port.index() >= count) {
            return Err(ConfigError::Port(port));
        }
        let sl2vl = ServiceLevels::new(&config.sl2vl, count).ok_or(ConfigError::ServiceLevels)?;
        let model = models::find(&config.memory.kind)
            .ok_or_else(|| ConfigError::Memory(config.memory.kind.clone()))?;
        let ports: Vec<LinkPort> = (0..count)
            .map(|index| {
                let number = PortNumber::from_index(index);
                LinkPort::new(number, &config.ports[index].link, Instant::ZERO)
            })
            .collect();
        let lanes = ports.iter().map(LinkPort::data_lanes).max().unwrap_or(1);
        let full_frame = config.ports.iter().map(|port| port.link.full_frame()).max();
        let shape = Shape {
            ports: count,
            lanes: usize::from(lanes),
            read: config.memory.read,
            full_frame: full_frame.unwrap_or_default(),
        };
        let mut stirred = PortSet::EMPTY;
        ports.iter().for_each(|port| stirred.insert(port.number()));
        Ok(Switch {
            lid: config.lid,
            egress: ports.iter().map(|port| outputs(&config, port)).collect::<Result<_, _>>()?,
            due: vec![Instant::NEVER; count],
            ports,
            memory: (model.make)(shape),
            routing: Box::new(ForwardingTable::new(&config.routes, &config.multicast)),
            sl2vl,
            pool: FramePool::default(),
            log: EventLog::default(),
            stirred,
            groups: Vec::new(),
            balance: Balance::default(),
        })
    }

    /// A packet passed its port's checks and occupies buffer there.
    fn relay(&mut self, port: PortNumber, frame: Frame, packet: Packet) {
        let destination = Lid::new(packet.headers.destination as u16);
        if packet.lane == VirtualLane::MANAGEMENT
            && (destination == Lid::PERMISSIVE || destination == self.lid)
        {
            return self.discard(port, frame, packet, DropReason::Management);
        }
        match self.routing.route(destination) {
            Decision::Unicast(output) if output == port => {
                self.discard(port, frame, packet, DropReason::Hairpin);
            }
            Decision::Unicast(output) => self.enqueue(port, output, frame, packet, None),
            Decision::Multicast(outputs) => {
                let outputs: Vec<_> = outputs.iter().copied().filter(|out| *out != port).collect();
                self.replicate(port, &outputs, frame, packet);
            }
            Decision::Unknown if destination.is_multicast() => {
                self.discard(port, frame, packet, DropReason::NoMulticastRoute);
            }
            Decision::Unknown => self.discard(port, frame, packet, DropReason::NoRoute),
        }
    }

    /// Queues a copy of one packet at each output; they share its place in the input buffer.
    fn replicate(
        &mut self,
        port: PortNumber,
        outputs: &[PortNumber],
        frame: Frame,
        packet: Packet,
    ) {
        let Some((last, others)) = outputs.split_last() else {
            return self.discard(port, frame, packet, DropReason::Hairpin);
        };
        let group = self.groups.iter().position(|copies| *copies == 0).unwrap_or(self.groups.len());
        if group == self.groups.len() {
            self.groups.push(0);
        }
        self.groups[group] = outputs.len() as u32;
        self.balance.injected += others.len() as u64;
        for output in others {
            self.enqueue(port, *output, frame.clone(), packet, Some(group as u32));
        }
        self.enqueue(port, *last, frame, packet, Some(group as u32));
    }

    fn enqueue(
        &mut self,
        port: PortNumber,
        output: PortNumber,
        frame: Frame,
        packet: Packet,
        group: Option<u32>,
    ) {
        self.stirred.insert(output);
        if packet.lane == VirtualLane::MANAGEMENT {
            if let Err(frame) = self.egress[output.index()].store_management(frame) {
                self.discard(port, frame, packet, DropReason::ManagementOverrun);
            }
            return;
        }
        let level = ServiceLevel::truncate(packet.headers.level);
        let lane = self.sl2vl.lane(port, output, level);
        let out = &mut self.ports[output.index()];
        if lane == VirtualLane::MANAGEMENT || !out.is_operational(lane) {
            self.release(port, packet.lane, packet.headers.size, group, packet.now);
            return self.lose(port, frame, packet, DropReason::Lane);
        }
        let stored = Stored {
            frame,
            headers: packet.headers,
            input: port,
            input_lane: packet.lane,
            arrived: packet.arrived,
            group,
        };
        let is_head = self.memory.store(stored, output, lane);
        let place = Placed { input: port, output, lane };
        note_queue(&*self.memory, place, out, packet.now);
        let (egress, memory) = (&mut self.egress[output.index()], &mut *self.memory);
        egress.on_stored(place, is_head, memory, out, packet.now, &mut self.log);
    }

    /// A packet ends here; its buffer is free again.
    fn discard(&mut self, port: PortNumber, frame: Frame, packet: Packet, reason: DropReason) {
        self.release(port, packet.lane, packet.headers.size, None, packet.now);
        self.lose(port, frame, packet, reason);
    }

    fn lose(&mut self, port: PortNumber, frame: Frame, packet: Packet, reason: DropReason) {
        let size = packet.headers.size;
        let tc = packet.lane.get();
        self.ports[port.index()].count_drop(reason, size, tc, packet.now, &mut self.log);
        self.pool.recycle(frame);
    }

    /// Gives input buffer back, once all copies that share it have left.
    fn release(
        &mut self,
        port: PortNumber,
        lane: VirtualLane,
        size: Bytes,
        group: Option<u32>,
        at: Instant,
    ) {
        if let Some(group) = group {
            let copies = &mut self.groups[group as usize];
            *copies -= 1;
            if *copies > 0 {
                return;
            }
        }
        self.ports[port.index()].release(lane, size, at);
        self.stirred.insert(port);
    }

    /// When the port at `index` has to be looked at, if nothing stirs it before: for its timers, or
    /// because its line is free again.
    fn wake(&self, index: usize) -> Instant {
        let (port, egress) = (&self.ports[index], &self.egress[index]);
        let line = if egress.needs_line() { port.line_free_at() } else { Instant::NEVER };
        port.poll_timeout().min(line)
    }

    /// A frame's last bit has left `output`: its buffer is free, and the frame behind it is judged.
    #[inline]
    fn finish(&mut self, output: PortNumber, now: Instant) {
        if let Some(done) = self.egress[output.index()].finish(now) {
            self.finished(output, done);
        }
    }

    fn finished(&mut self, output: PortNumber, done: UnderWay) {
        let index = output.index();
        self.release(done.input, done.input_lane, done.size, done.group, done.end);
        let place = Placed { input: done.input, output, lane: done.lane };
        let memory = &mut *self.memory;
        let has_head = memory.finished(done.input, output, done.lane, done.size).is_some();
        let port = &mut self.ports[index];
        note_queue(memory, place, port, done.end);
        let egress = &mut self.egress[index];
        if has_head {
            let blocked = port.blocked_since(done.lane).or(done.waited);
            egress.on_head(place, blocked, memory, port, done.end, &mut self.log);
        }
        self.stirred.insert(output);
        if self.memory.couples_outputs() {
            self.ports.iter().for_each(|port| self.stirred.insert(port.number()));
        }
    }
}

/// What travels with a packet through the switch.
#[derive(Clone, Copy)]
struct Packet {
    headers: proto::frame::FrameHeaders,
    lane: VirtualLane,
    arrived: Instant,
    now: Instant,
}

fn note_queue(memory: &dyn Memory, place: Placed, port: &mut LinkPort, now: Instant) {
    let standing = memory.occupancy(place.input, place.output, place.lane).output.get();
    port.counters_mut(place.lane).out_queue.set(standing, now);
}

fn outputs(config: &SwitchConfig, port: &LinkPort) -> Result<Egress, ConfigError> {
    let scheme = schemes::find(&config.scheme.kind)
        .ok_or_else(|| ConfigError::Scheme(config.scheme.kind.clone()))?;
    let number = port.number();
    let described = &config.ports[number.index()];
    let points = (0..port.data_lanes()).map(|lane| {
        let purpose = format!("congestion point {number}/{lane}");
        (scheme.congestion_point)(Place {
            params: &config.scheme.params,
            line_rate: described.link.rate,
            full_frame: described.link.full_frame(),
            buffer: port.lane_buffer(),
            port: number,
            faces_adapter: described.faces_adapter,
            random: Random::stream(config.seed, &config.name, &purpose),
        })
    });
    Ok(Egress::new(points.collect(), config.ports.len()))
}

impl Device for Switch {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        let index = port.index();
        if index >= self.ports.len() {
            return;
        }
        self.finish(port, now);
        match self.ports[index].receive(&frame, arrived, now, &mut self.log) {
            Arrival::Control | Arrival::Lost(_) => self.pool.recycle(frame),
            Arrival::Packet(headers) => {
                let lane = VirtualLane::truncate(headers.lane);
                self.relay(port, frame, Packet { headers, lane, arrived, now });
            }
        }
        self.stirred.insert(port);
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
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        while let Some(number) = self.stirred.first_from(0) {
            let index = number.index();
            self.finish(number, now);
            let (port, memory) = (&mut self.ports[index], &mut *self.memory);
            let egress = &mut self.egress[index];
            if let Some(sent) =
                egress.poll_transmit(port, memory, &mut self.pool, now, &mut self.log)
            {
                return Some(sent);
            }
            self.stirred.remove(number);
            self.due[index] = self.wake(index);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.due.iter().fold(Instant::NEVER, |first, due| first.min(*due)))
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.log.pop()
    }

    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        reading.ports.resize_with(self.ports.len(), Default::default);
        self.balance.link_local = 0;
        for (port, into) in self.ports.iter_mut().zip(&mut reading.ports) {
            port.read(now, into);
            self.balance.link_local += port.link_local_sent();
        }
        let waiting: u64 = self.egress.iter().map(Egress::management_waiting).sum();
        self.balance.buffered = self.memory.frames() + waiting;
        reading.balance = self.balance;
    }

    fn restart_watermarks(&mut self) {
        self.ports.iter_mut().for_each(LinkPort::restart_watermarks);
    }

    fn ports(&self) -> usize {
        self.ports.len()
    }
}

#[cfg(test)]
mod tests;
