//! Two ports of Ethernet back to back, 8 Gb/s, so that an octet lasts a nanosecond. `check/testbed` cannot serve here:
//! it depends on this crate, so in unit tests its types are those of another build of it.

use super::*;
use crate::ids::{Priority, VlanId};
use crate::link::config::{FlowControlConfig, PauseConfig};
use crate::units::Duration;
use crate::wire::classify::PriorityMap;
use crate::wire::ethernet::{Envelope, MacAddress, MacControl, VlanTag};
use bytes::BytesMut;

/// Octets of every data frame, DA to FCS, and so its nanoseconds on the line.
pub const SIZE: u64 = 1500;

pub fn ns(n: u64) -> Instant {
    Instant::from_ps(n * 1000)
}

pub fn pause_config() -> PauseConfig {
    let address = MacAddress::new([2, 0, 0, 0, 0, 1]);
    PauseConfig { address, priorities: PriorityMap::BY_PCP, ..PauseConfig::default() }
}

pub fn ethernet(control: PauseConfig) -> LinkPort {
    let config = LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(1500),
        buffer: Bytes::new(100_000),
        control: FlowControlConfig::Pause(control),
    };
    LinkPort::new(PortNumber::from_index(0), &config, Instant::ZERO)
}

/// A data frame of a priority.
pub fn tagged(priority: u8, octets: usize) -> Frame {
    let [to, from] = [9, 8].map(MacAddress::from_number);
    let tag = VlanTag {
        priority: Priority::truncate(priority),
        drop_eligible: false,
        id: VlanId::truncate(1),
        ethertype: 0,
    };
    let mut frame = BytesMut::zeroed(octets);
    Envelope::untagged(to, from, 0x88b5).tagged(tag).emit(&mut frame);
    Frame::intact(FrameKind::Ethernet, frame)
}

/// A MAC control frame from whoever is at the other end.
pub fn from_peer(control: &MacControl) -> Frame {
    let octets = control.to_octets(MacAddress::from_number(0x77));
    Frame::intact(FrameKind::Ethernet, octets[..].into())
}

/// Frames of a priority left to send, all ready from an instant on, and what was sent when.
#[derive(Default)]
pub struct Backlog {
    pub left: [u64; 8],
    pub ready: Instant,
    /// Start and lane.
    pub sent: Vec<(Instant, u8)>,
}

impl LaneSource for Backlog {
    type Offer = ();

    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<()>> {
        let waits = self.left[lane.index()] > 0 && self.ready <= now;
        let (size, ready) = (Bytes::new(SIZE), self.ready);
        waits.then_some(Head { size, ready, class: FrameClass::Data, offer: () })
    }
}

impl Sender for Backlog {
    fn take(&mut self, grant: &Grant<()>) -> Frame {
        let lane = grant.lane;
        self.left[lane.index()] -= 1;
        self.sent.push((grant.start, lane.get()));
        tagged(lane.get(), SIZE as usize - 4)
    }
}

impl Backlog {
    /// Frames of a priority that started before `end`.
    pub fn count(&self, lane: u8, end: Instant) -> usize {
        self.sent.iter().filter(|(start, of)| *of == lane && *start < end).count()
    }

    /// When the first frame of a priority started at or after `from`.
    pub fn next(&self, lane: u8, from: Instant) -> Option<Instant> {
        self.sent.iter().find(|(start, of)| *of == lane && *start >= from).map(|(start, _)| *start)
    }
}

/// The pair, its cable, and everything that went over it.
pub struct Pair {
    pub ports: [LinkPort; 2],
    pub sources: [Backlog; 2],
    pub log: EventLog,
    pub now: Instant,
    /// What reached an end: when, what, and what came of it.
    pub heard: [Vec<(Instant, Frame, Arrival)>; 2],
    /// Control frames of an end that the cable loses from here on.
    pub lost: [usize; 2],
    delay: Duration,
    flying: Vec<(Instant, usize, Frame)>,
    pool: FramePool,
}

impl Pair {
    pub fn new(configs: [PauseConfig; 2]) -> Pair {
        Pair {
            ports: configs.map(ethernet),
            sources: Default::default(),
            log: EventLog::default(),
            now: Instant::ZERO,
            heard: Default::default(),
            lost: [0; 2],
            delay: Duration::from_ns(100),
            flying: Vec::new(),
            pool: FramePool::default(),
        }
    }

    /// `end` requests its peer to pause `priorities` from now on.
    pub fn demand(&mut self, end: usize, priorities: u8) {
        self.ports[end].demand(priorities, self.now);
        self.poll();
    }

    /// `end` receives a frame that arrives now.
    pub fn hear(&mut self, end: usize, frame: Frame) -> Arrival {
        let arrival = self.ports[end].receive(&frame, self.now, self.now, &mut self.log);
        self.heard[end].push((self.now, frame, arrival));
        self.poll();
        arrival
    }

    fn poll(&mut self) {
        for end in 0..2 {
            let (port, source) = (&mut self.ports[end], &mut self.sources[end]);
            while let Some(sent) =
                port.poll_departure(source, &mut self.pool, self.now, &mut self.log)
            {
                let is_control = MacControl::is_announced(&sent.frame.octets);
                if is_control && self.lost[end] > 0 {
                    self.lost[end] -= 1;
                } else {
                    self.flying.push((sent.at + self.delay, 1 - end, sent.frame));
                }
            }
        }
    }

    fn next(&self) -> Instant {
        let arrival = self.flying.iter().map(|(at, ..)| *at).min().unwrap_or(Instant::NEVER);
        let due = (0..2).map(|end| {
            let (port, source) = (&self.ports[end], &self.sources[end]);
            let waits = source.left.iter().any(|left| *left > 0) || port.control_is_due(self.now);
            let line = port.line_free_at().max(source.ready);
            let line = if waits && line > self.now { line } else { Instant::NEVER };
            port.poll_timeout().min(line)
        });
        due.fold(arrival, Instant::min)
    }

    /// Everything that happens up to `end`, each thing at its instant.
    pub fn run_until(&mut self, end: Instant) {
        self.poll();
        while self.next() <= end {
            self.now = self.next();
            let due = |(at, ..): &mut (Instant, usize, Frame)| *at <= self.now;
            for (_, to, frame) in self.flying.extract_if(.., due).collect::<Vec<_>>() {
                self.hear(to, frame);
            }
            for port in &mut self.ports {
                port.handle_timeout(self.now, &mut self.log);
            }
            self.poll();
        }
        self.now = end;
    }

    /// The MAC control frames that reached `end`, and when.
    pub fn controls(&self, end: usize) -> Vec<(Instant, MacControl)> {
        let is_control = |(_, frame, _): &&(_, Frame, _)| MacControl::is_announced(&frame.octets);
        let controls = self.heard[end].iter().filter(is_control);
        let read = |frame: &Frame| MacControl::parse(&frame.octets).expect("a good frame");
        controls.map(|(at, frame, _)| (*at, read(frame))).collect()
    }

    /// Data frames of a priority that reached `end`.
    pub fn received(&self, end: usize, lane: u8) -> usize {
        let of_lane =
            |arrival: &Arrival| matches!(arrival, Arrival::Packet(h) if h.lane.get() == lane);
        self.heard[end].iter().filter(|(.., arrival)| of_lane(arrival)).count()
    }

    pub fn reading(&mut self, end: usize) -> PortReading {
        let mut reading = PortReading::default();
        self.ports[end].read(self.now, &mut reading);
        self.ports[end].read_named(self.now, &mut reading.named);
        reading
    }
}

/// What a port counts under a name; zero if it does not say.
pub fn named(reading: &PortReading, name: &str) -> u64 {
    reading.named.iter().find(|(other, _)| other == name).map_or(0, |(_, total)| *total)
}
