//! A device on the virtual clock, its neighbours played by the case that tests it.
//!
//! A neighbour trains its link with real flow-control packets and repeats its offer of buffer on
//! every lane; what it sends beyond that is up to the case ([`Bench::send`], [`Bench::inject`]). It
//! sees what the device sends when the last bit has left. On Ethernet it says nothing unasked
//! ([`ethernet`]). Cables have no length: what is sent now
//! arrives now. All frames are unchecked, so that devices verify every CRC.

use crate::case::{Failure, ensure};
use proto::counters::DeviceReading;
use proto::device::{Departure, Device};
use proto::events::DeviceEvent;
use proto::frame::{Frame, FrameKind, Integrity};
use proto::ids::{PortNumber, VirtualLane};
use proto::link::credit::blocks;
use proto::units::{Bytes, Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use std::collections::VecDeque;

pub mod devices;
mod ethernet;
pub mod line;
pub mod packets;
pub mod star;

/// Credit counters are twelve bits wide. Source: IBTA Vol 1, 7.9.4.
const MODULUS: u32 = 4096;
/// How long a link may take to train; the refresh interval of its flow-control packets is longer.
const TRAINING: Duration = Duration::from_us(50);

/// A device among neighbours.
pub struct Bench<D> {
    /// The device.
    pub device: D,
    /// What has happened in it.
    pub events: Vec<DeviceEvent>,
    now: Instant,
    neighbours: Vec<Neighbour>,
    /// What the neighbours have seen, in the order in which they saw it.
    seen: Vec<Departure>,
}

/// Whoever is at the other end of a port's cable.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// By data lane.
    pub lanes: Vec<NeighbourLane>,
    /// It sends flow-control packets by itself.
    pub speaks: bool,
    /// How often it repeats them.
    pub refresh: Duration,
    next: Instant,
    flying: VecDeque<Departure>,
    /// What it will have sent, and when.
    coming: VecDeque<(Instant, Frame)>,
}

/// A neighbour's account of one lane.
#[derive(Clone, Copy, Debug)]
pub struct NeighbourLane {
    /// Blocks it offers beyond what it has received.
    pub offer: u32,
    /// It sends flow-control packets for this lane.
    pub speaks: bool,
    /// Blocks it has sent.
    pub sent: u32,
    /// Blocks it has received.
    pub received: u32,
    heard: bool,
}

impl Neighbour {
    /// Somebody who has said and heard nothing yet, and offers as much as can be offered.
    fn new(lanes: u8) -> Neighbour {
        let lane = NeighbourLane { offer: 2048, speaks: true, sent: 0, received: 0, heard: false };
        Neighbour {
            lanes: vec![lane; usize::from(lanes)],
            speaks: true,
            refresh: Duration::from_us(10),
            next: Instant::ZERO,
            flying: VecDeque::new(),
            coming: VecDeque::new(),
        }
    }

    /// What it says about `lane`: initializing until it has heard the device on every lane.
    pub fn packet(&self, lane: usize) -> FlowControlPacket {
        let trained = self.lanes.iter().all(|lane| lane.heard);
        let account = self.lanes[lane];
        FlowControlPacket {
            op: if trained { FlowControlOp::Normal } else { FlowControlOp::Init },
            fctbs: (account.sent % MODULUS) as u16,
            virtual_lane: VirtualLane::truncate(lane as u8),
            fccl: ((account.received + account.offer) % MODULUS) as u16,
        }
    }

    /// Takes note of a frame; true if it is the first it has heard of a lane.
    fn hear(&mut self, frame: &Frame) -> bool {
        match frame.kind {
            FrameKind::InfinibandLink => {
                let Ok(packet) = FlowControlPacket::parse(&frame.octets) else { return false };
                let Some(lane) = self.lanes.get_mut(packet.virtual_lane.index()) else {
                    return false;
                };
                lane.received = u32::from(packet.fctbs);
                !std::mem::replace(&mut lane.heard, true)
            }
            _ => {
                if let Some(lane) = lane_of(frame).and_then(|lane| self.lanes.get_mut(lane)) {
                    lane.received = (lane.received + cost(frame)) % MODULUS;
                }
                false
            }
        }
    }
}

/// Credit blocks a packet takes.
fn cost(frame: &Frame) -> u32 {
    blocks(Bytes::new(frame.octets.len() as u64))
}

fn lane_of(frame: &Frame) -> Option<usize> {
    frame.octets.first().map(|octet| usize::from(octet >> 4))
}

impl<D: Device> Bench<D> {
    /// A device whose neighbours have `lanes` data lanes and begin to train when time begins to pass.
    pub fn new(device: D, lanes: u8) -> Bench<D> {
        let neighbours = vec![Neighbour::new(lanes); device.ports()];
        let events = Vec::new();
        Bench { device, events, now: Instant::ZERO, neighbours, seen: Vec::new() }
    }

    /// A device whose links are all active.
    ///
    /// # Errors
    /// If one of them is not.
    pub fn up(device: D, lanes: u8) -> Result<Bench<D>, Failure> {
        let mut bench = Bench::new(device, lanes);
        bench.run_for(TRAINING);
        for port in 1..=bench.device.ports() as u8 {
            for lane in 0..lanes {
                let last = bench.flow_control(port, lane).last();
                let active = last.is_some_and(|(_, packet)| packet.op == FlowControlOp::Normal);
                ensure(active, || format!("port {port} has not trained lane {lane}"))?;
            }
        }
        Ok(bench)
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The neighbour at `port`, to change what it does.
    pub fn neighbour(&mut self, port: u8) -> &mut Neighbour {
        &mut self.neighbours[usize::from(port) - 1]
    }

    /// The neighbour at `port` offers `blocks` on `lane` beyond what it has received, and says so.
    pub fn offer(&mut self, port: u8, lane: u8, blocks: u32) {
        self.neighbour(port).lanes[usize::from(lane)].offer = blocks;
        let packet = self.neighbour(port).packet(usize::from(lane));
        self.say(port, packet);
    }

    /// The neighbour at `port` sends a flow-control packet.
    pub fn say(&mut self, port: u8, packet: FlowControlPacket) {
        self.inject(port, packets::link_packet(&packet));
    }

    /// The neighbour at `port` sends a packet: its blocks count as sent, whatever becomes of it.
    pub fn send(&mut self, port: u8, frame: Frame) {
        let cost = cost(&frame);
        let neighbour = self.neighbour(port);
        if let Some(lane) = lane_of(&frame).and_then(|lane| neighbour.lanes.get_mut(lane)) {
            lane.sent = (lane.sent + cost) % MODULUS;
        }
        self.inject(port, frame);
    }

    /// Octets reach `port` out of nowhere.
    pub fn inject(&mut self, port: u8, frame: Frame) {
        let number = PortNumber::from_index(usize::from(port) - 1);
        self.device.handle_frame(number, frame, self.now, self.now);
        self.drain();
    }

    /// Lets time pass.
    pub fn run_for(&mut self, length: Duration) {
        self.run_until(self.now + length);
    }

    /// Lets time pass until `stop`; what happens at `stop` has happened then.
    pub fn run_until(&mut self, stop: Instant) {
        self.drain();
        loop {
            let next = self.next();
            if next > stop {
                break;
            }
            // A device that wants to be woken at once is woken at once, though never for ever.
            self.now = self.now.max(next);
            self.land();
            self.come();
            self.refresh();
            if self.device.poll_timeout().is_some_and(|due| due <= self.now) {
                self.device.handle_timeout(self.now);
            }
            self.drain();
        }
        self.now = self.now.max(stop);
    }

    fn next(&self) -> Instant {
        let of_neighbour = |neighbour: &Neighbour| {
            let lands = neighbour.flying.front().map_or(Instant::NEVER, |sent| sent.at);
            let comes = neighbour.coming.front().map_or(Instant::NEVER, |(at, _)| *at);
            lands.min(comes).min(if neighbour.speaks { neighbour.next } else { Instant::NEVER })
        };
        let first = self.neighbours.iter().map(of_neighbour).min().unwrap_or(Instant::NEVER);
        first.min(self.device.poll_timeout().unwrap_or(Instant::NEVER))
    }

    /// Whatever has left by now is seen.
    fn land(&mut self) {
        for neighbour in &mut self.neighbours {
            while neighbour.flying.front().is_some_and(|sent| sent.at <= self.now) {
                let sent = neighbour.flying.pop_front().expect("it was there just now");
                if neighbour.hear(&sent.frame) {
                    // Somebody new is there: what there is to say is said again, soon.
                    neighbour.next = neighbour.next.min(self.now);
                }
                self.seen.push(sent);
            }
        }
    }

    /// Whatever neighbours were to have sent by now comes in.
    fn come(&mut self) {
        let now = self.now;
        for index in 0..self.neighbours.len() {
            let due = |(at, _): &mut (Instant, Frame)| *at <= now;
            while let Some((_, frame)) = self.neighbours[index].coming.pop_front_if(due) {
                self.send(index as u8 + 1, frame);
            }
        }
    }

    /// The flow-control packets that are due.
    fn refresh(&mut self) {
        for index in 0..self.neighbours.len() {
            let neighbour = &mut self.neighbours[index];
            if !neighbour.speaks || neighbour.next > self.now {
                continue;
            }
            neighbour.next = self.now + neighbour.refresh;
            for lane in 0..neighbour.lanes.len() {
                let neighbour = &self.neighbours[index];
                if neighbour.lanes[lane].speaks {
                    self.say(index as u8 + 1, neighbour.packet(lane));
                }
            }
        }
    }

    fn drain(&mut self) {
        while let Some(mut sent) = self.device.poll_transmit(self.now) {
            sent.frame.integrity = Integrity::Unchecked;
            self.neighbours[sent.port.index()].flying.push_back(sent);
        }
        while let Some(event) = self.device.poll_event() {
            self.events.push(event);
        }
    }

    /// Packets that the neighbour at `port` has seen; what governs the link is left out.
    pub fn packets(&self, port: u8) -> impl Iterator<Item = &Departure> {
        let is_packet = |sent: &&Departure| packets::is_packet(&sent.frame);
        self.seen.iter().filter(move |sent| sent.port.get() == port).filter(is_packet)
    }

    /// Frames of every kind that the neighbour at `port` has seen.
    pub fn line(&self, port: u8) -> impl Iterator<Item = &Departure> {
        self.seen.iter().filter(move |sent| sent.port.get() == port)
    }

    /// Flow-control packets that the neighbour at `port` has seen for `lane`, and when.
    pub fn flow_control(
        &self,
        port: u8,
        lane: u8,
    ) -> impl Iterator<Item = (Instant, FlowControlPacket)> {
        let at_port = self.seen.iter().filter(move |sent| sent.port.get() == port);
        let links = at_port.filter(|sent| sent.frame.kind == FrameKind::InfinibandLink);
        let read = |sent: &Departure| {
            FlowControlPacket::parse(&sent.frame.octets).ok().map(|packet| (sent.at, packet))
        };
        links.filter_map(read).filter(move |(_, packet)| packet.virtual_lane.get() == lane)
    }

    /// Forgets what the neighbours have seen and what has happened.
    pub fn forget(&mut self) {
        self.seen.clear();
        self.events.clear();
    }

    /// Every counter now.
    pub fn reading(&mut self) -> DeviceReading {
        let mut reading = DeviceReading::default();
        self.device.read(self.now, &mut reading);
        reading
    }

    /// What `port` has lost since `before`, as in "vcrc 1, mtu 2"; "nothing" if nothing.
    pub fn lost_since(&mut self, before: &DeviceReading, port: u8) -> String {
        let index = usize::from(port) - 1;
        let after = self.reading();
        let earlier = &before.ports[index].drops;
        let grown: Vec<String> = after.ports[index]
            .drops
            .iter()
            .map(|(reason, count)| (reason, count - earlier.get(reason)))
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| format!("{} {count}", reason.name()))
            .collect();
        if grown.is_empty() { "nothing".to_owned() } else { grown.join(", ") }
    }
}

#[cfg(test)]
mod tests;
