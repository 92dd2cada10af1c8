//! A device on the virtual clock among played neighbours.
//!
//! A neighbour trains its link and repeats its offer of buffer by itself; scripts and tests do the
//! rest. All frames are unchecked, so that devices verify every CRC. The default cable has no length
//! and no rate: a frame that is sent now arrives now.

use crate::bed::{Bed, Label, Script};
use crate::credits::{Credits, FcMode};
use crate::neighbour::Neighbour;
use crate::seen::{Seen, Sightings};
use proto::counters::DeviceReading;
use proto::device::Device;
use proto::events::{DeviceEvent, EventKind};
use proto::frame::{Frame, FrameKind, Integrity};
use proto::ids::PortNumber;
use proto::units::{BitRate, Duration, Instant};
use proto::wire::infiniband::FlowControlOp;
use std::collections::VecDeque;

/// How long a link may take to train; the refresh interval of its flow-control packets is longer.
const TRAINING: Duration = Duration::from_us(50);
/// How often a neighbour repeats its flow-control packets.
const REFRESH: Duration = Duration::from_us(10);

/// What a cable makes of the frames that neighbours send.
///
/// The provided methods are those of a cable without sequence numbers, length or loss.
pub trait Cable {
    /// The frames that reach the device, and when, for one that leaves the neighbour at `leaves`.
    fn carry(
        &mut self,
        _port: u8,
        kind: FrameKind,
        octets: &[u8],
        label: Label,
        leaves: Instant,
    ) -> Vec<(Instant, Frame)> {
        let mut frame = Frame::unchecked(kind, octets.into());
        if label.aborted {
            frame.integrity = Integrity::Aborted;
        }
        vec![(label.stamp.unwrap_or(leaves), frame)]
    }

    /// The next sequence number of the line to `port`.
    fn sequence(&self, _port: u8) -> u32 {
        0
    }

    /// Takes the next sequence number of the line to `port`.
    fn hold_back(&mut self, _port: u8, _kind: FrameKind, _octets: &[u8]) -> u32 {
        0
    }
}

/// A cable that changes nothing.
struct Ideal;

impl Cable for Ideal {}

/// Frames on the cable of one port.
#[derive(Clone, Debug, Default)]
struct Flying {
    /// From the device.
    out: VecDeque<Seen>,
    /// To the device.
    coming: VecDeque<(Instant, Frame)>,
}

/// A device among neighbours.
pub struct Bench<D: ?Sized = dyn Device> {
    /// The device.
    pub device: Box<D>,
    /// What has happened in it.
    pub events: Vec<DeviceEvent>,
    /// What the neighbours have seen.
    pub seen: Vec<Seen>,
    /// The counters at each step that read them.
    pub samples: Vec<DeviceReading>,
    /// By port.
    pub neighbours: Vec<Neighbour>,
    now: Instant,
    flying: Vec<Flying>,
    cable: Box<dyn Cable>,
}

impl<D: Device> Bench<D> {
    /// A device of InfiniBand with `lanes` data lanes, or of Ethernet if there are none.
    pub fn new(device: D, lanes: u8) -> Bench<D> {
        Bench::ideal(Box::new(device), lanes)
    }
}

impl<D: Device + ?Sized> Bench<D> {
    /// A device among these neighbours, by port, behind this cable.
    pub fn with(device: Box<D>, neighbours: Vec<Neighbour>, cable: Box<dyn Cable>) -> Bench<D> {
        let flying = vec![Flying::default(); neighbours.len()];
        let (events, seen, samples) = (Vec::new(), Vec::new(), Vec::new());
        Bench { device, events, seen, samples, neighbours, now: Instant::ZERO, flying, cable }
    }

    /// A device behind cables without rate and length, with `lanes` data lanes of InfiniBand, or of
    /// Ethernet if there are none. Links begin to train when time begins to pass.
    pub fn ideal(device: Box<D>, lanes: u8) -> Bench<D> {
        let credits = (lanes > 0).then(|| Credits::new(lanes, REFRESH));
        let neighbours = vec![Neighbour::new(None, Duration::ZERO, credits); device.ports()];
        Bench::with(device, neighbours, Box::new(Ideal))
    }

    /// Lets the links train.
    ///
    /// # Errors
    /// If one of them does not: which.
    pub fn up(mut self) -> Result<Bench<D>, String> {
        self.run_for(TRAINING);
        for (port, lanes) in (1..).zip(self.neighbours.iter().map(|one| one.lanes().len() as u8)) {
            for lane in 0..lanes {
                let last = self.flow_control(port, lane).last();
                if last.is_none_or(|(_, packet)| packet.op != FlowControlOp::Normal) {
                    return Err(format!("port {port} has not trained lane {lane}"));
                }
            }
        }
        Ok(self)
    }

    /// Follows `script` until `stop`.
    pub fn follow(&mut self, script: Script, stop: Instant) {
        for (at, step) in script.into_steps() {
            if at > self.now {
                self.run_until(at);
            }
            step(self);
        }
        self.run_until(stop);
    }

    /// No neighbour sends anything by itself any more.
    pub fn mute(&mut self) {
        self.neighbours.iter_mut().for_each(|neighbour| neighbour.credits().mode = FcMode::Off);
    }

    /// The neighbour at `port` sends a frame that arrives now.
    pub fn inject(&mut self, port: u8, frame: Frame) {
        if self.neighbours[usize::from(port) - 1].kind() == frame.kind {
            self.neighbours[usize::from(port) - 1].on_send(&frame.octets);
        }
        self.arrive(port, frame);
    }

    /// Octets reach `port` that no neighbour counts as sent.
    pub fn arrive(&mut self, port: u8, frame: Frame) {
        let number = PortNumber::from_index(usize::from(port) - 1);
        self.device.handle_frame(number, frame, self.now, self.now);
        self.drain();
    }

    /// The last octet of `frame` comes from the neighbour of `port` at `at`, in time order.
    pub fn schedule(&mut self, port: u8, at: Instant, frame: Frame) {
        self.flying[usize::from(port) - 1].coming.push_back((at, frame));
    }

    /// The neighbour at `port` sends `frames` back to back from `start` on a line of `rate`; when the
    /// last bit of the last one comes.
    pub fn stream(
        &mut self,
        port: u8,
        start: Instant,
        rate: BitRate,
        frames: impl IntoIterator<Item = Frame>,
    ) -> Instant {
        let mut at = start;
        for frame in frames {
            at = at + frame.line_size().time_at(rate);
            self.schedule(port, at, frame);
        }
        at
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
            // A timeout in the past is due now: time never runs back.
            self.now = self.now.max(next);
            self.land();
            self.come();
            self.speak_and_send();
            if self.device.poll_timeout().is_some_and(|due| due <= self.now) {
                self.device.handle_timeout(self.now);
            }
            self.drain();
        }
        self.now = self.now.max(stop);
    }

    fn next(&self) -> Instant {
        let of_cable = |flying: &Flying| {
            let lands = flying.out.front().map_or(Instant::NEVER, |sent| sent.received);
            lands.min(flying.coming.front().map_or(Instant::NEVER, |(at, _)| *at))
        };
        let cables = self.flying.iter().map(of_cable);
        let neighbours =
            self.neighbours.iter().map(|neighbour| neighbour.due().min(neighbour.next()));
        let first = cables.chain(neighbours).min().unwrap_or(Instant::NEVER);
        first.min(self.device.poll_timeout().unwrap_or(Instant::NEVER))
    }

    /// Neighbours see what has reached them.
    fn land(&mut self) {
        let now = self.now;
        for (flying, neighbour) in self.flying.iter_mut().zip(&mut self.neighbours) {
            while let Some(sent) = flying.out.pop_front_if(|sent| sent.received <= now) {
                neighbour.receive(sent.frame.kind, &sent.frame.octets);
                self.seen.push(sent);
            }
        }
    }

    /// The device receives what has reached it.
    fn come(&mut self) {
        let now = self.now;
        let due = |(at, _): &mut (Instant, Frame)| *at <= now;
        for index in 0..self.flying.len() {
            while let Some((_, frame)) = self.flying[index].coming.pop_front_if(due) {
                self.arrive(index as u8 + 1, frame);
            }
        }
    }

    /// Neighbours send the flow control that is due, and what waits for line and credit.
    fn speak_and_send(&mut self) {
        for index in 0..self.neighbours.len() {
            let port = index as u8 + 1;
            for octets in self.neighbours[index].words(self.now) {
                self.put(port, FrameKind::InfinibandLink, &octets, Label::default());
            }
            while self.neighbours[index].next() <= self.now
                && let Some((_, octets)) = self.neighbours[index].waiting.pop_front()
            {
                self.send(port, &octets);
            }
        }
    }

    fn drain(&mut self) {
        while let Some(mut sent) = self.device.poll_transmit(self.now) {
            sent.frame.materialise();
            sent.frame.integrity = Integrity::Unchecked;
            let (index, at) = (sent.port.index(), sent.at);
            let received = at + self.neighbours[index].delay;
            let port = sent.port.get();
            self.flying[index].out.push_back(Seen { port, at, received, frame: sent.frame });
        }
        while let Some(event) = self.device.poll_event() {
            self.events.push(event);
        }
    }

    /// Every frame that `port` has sent, those on its line and its cable included.
    pub fn departed(&self, port: u8) -> impl Iterator<Item = &Frame> {
        self.line(port).chain(&self.flying[usize::from(port) - 1].out).map(|sent| &sent.frame)
    }

    /// Events of this kind that have happened: when, at which port, of which lane or priority.
    pub fn events_of(&self, is: impl Fn(&EventKind) -> bool) -> Vec<(Instant, u8, u8)> {
        let of_kind = self.events.iter().filter(|event| is(&event.kind));
        of_kind.map(|event| (event.at, event.port.get(), event.tc)).collect()
    }

    /// Clears the frames that the neighbours received and the events.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.events.clear();
    }

    /// Every counter now.
    pub fn reading(&mut self) -> DeviceReading {
        let mut reading = DeviceReading::default();
        self.device.read(self.now, &mut reading);
        reading
    }

    /// A total of `port` under an operator's name; 0 if there is none.
    pub fn named(&mut self, port: u8, name: &str) -> u64 {
        let named = &self.reading().ports[usize::from(port) - 1].named;
        named.iter().find(|(key, _)| key == name).map_or(0, |(_, total)| *total)
    }

    /// Octets that wait at output `port`, by priority.
    pub fn queued(&mut self, port: u8) -> [u64; 8] {
        let lanes = &self.reading().ports[usize::from(port) - 1].lanes;
        std::array::from_fn(|priority| lanes[priority].counters.out_queue.value)
    }

    /// What `port` has lost since `before`, as in "vcrc 1, mtu 2"; "nothing" if nothing.
    pub fn lost_since(&mut self, before: &DeviceReading, port: u8) -> String {
        let index = usize::from(port) - 1;
        let earlier = &before.ports[index].drops;
        let after = self.reading();
        let grown = after.ports[index].drops.iter();
        let grown = grown.map(|(reason, count)| (reason, count - earlier.get(reason)));
        let grown = grown.filter(|(_, count)| *count > 0);
        let grown: Vec<_> =
            grown.map(|(reason, count)| format!("{} {count}", reason.name())).collect();
        if grown.is_empty() { "nothing".to_owned() } else { grown.join(", ") }
    }
}

impl<D: Device + ?Sized> Sightings for Bench<D> {
    fn sightings(&self) -> &[Seen] {
        &self.seen
    }
}

impl<D: Device + ?Sized> Bed for Bench<D> {
    fn now(&self) -> Instant {
        self.now
    }

    fn neighbour(&mut self, port: u8) -> &mut Neighbour {
        &mut self.neighbours[usize::from(port) - 1]
    }

    fn seen(&self) -> &[Seen] {
        &self.seen
    }

    fn sample(&mut self) {
        let reading = self.reading();
        self.samples.push(reading);
    }

    fn put(&mut self, port: u8, kind: FrameKind, octets: &[u8], label: Label) {
        let index = usize::from(port) - 1;
        let leaves = self.neighbours[index].occupy(kind, octets, self.now);
        for (at, frame) in self.cable.carry(port, kind, octets, label, leaves) {
            match at > self.now {
                true => self.flying[index].coming.push_back((at, frame)),
                false => self.arrive(port, frame),
            }
        }
    }

    fn sequence(&self, port: u8) -> u32 {
        self.cable.sequence(port)
    }

    fn hold_back(&mut self, port: u8, kind: FrameKind, octets: &[u8]) -> u32 {
        self.cable.hold_back(port, kind, octets)
    }
}
