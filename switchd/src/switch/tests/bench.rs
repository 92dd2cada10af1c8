//! A switch of Ethernet among toy neighbours, and the frames they send.

use crate::config::{MemoryConfig, PortConfig, Route, RoutingConfig, SwitchConfig};
use crate::egress::Egress;
use crate::switch::Switch;
use bytes::BytesMut;
use proto::Technology;
use proto::congestion::{CongestionPoint, Marking, QueueSample, SchemeConfig};
use proto::counters::{DeviceReading, DropReason};
use proto::device::{Device, Instrumented};
use proto::events::EventKind;
use proto::frame::{Frame, FrameHeaders, FrameKind};
use proto::ids::{Dscp, Ecn, Lid, PortNumber, Priority, Psn, QueuePairNumber, VirtualLane};
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::ethernet::{MacControl, Pfc, plan};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};

pub const PORTS: usize = 4;

/// Payload of a frame of [`FRAME`] octets, DA to FCS.
pub const PAYLOAD: usize = 940;
pub const FRAME: u64 = 14 + 20 + 8 + 12 + PAYLOAD as u64 + 4 + 4;

/// The lossless priority, and the DSCP that means it.
pub const P3: u8 = 3;
pub const DSCP3: u8 = 24;

/// Four ports of 10 Gb/s, adapter n behind port n; priority 3 is lossless, all obey PFC. A pool in
/// whose reserves two frames fit, twenty more below the threshold, and ten in each headroom.
pub fn config() -> SwitchConfig {
    let control = FlowControlConfig::Pause(PauseConfig::default());
    let link = LinkConfig {
        rate: BitRate::gbps(10),
        mtu: Bytes::new(1500),
        buffer: Bytes::new(100 * FRAME),
        control,
    };
    let route = |lid: u16| Route {
        first: Lid::new(lid),
        last: Lid::new(lid),
        port: PortNumber::from_index(usize::from(lid) - 1),
    };
    SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: MemoryConfig {
            kind: "shared-pool".to_owned(),
            headroom: Bytes::new(10 * FRAME),
            jitter: Duration::from_ns(100),
            params: [
                ("size", 1000),
                ("reserve", 2),
                ("threshold", 20),
                ("hysteresis", 3),
                ("lossy_queue", 10),
            ]
            .map(|(key, frames)| (key.to_owned(), Bytes::new(frames * FRAME).into()))
            .into_iter()
            .collect(),
            ..MemoryConfig::default()
        },
        sl2vl: Vec::new(),
        scheme: SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        ports: vec![PortConfig::plain(true, link, Duration::from_ns(100)); PORTS],
        routes: (1..=PORTS as u16).map(route).collect(),
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
    }
}

/// A switch whose neighbours do what the test makes them do.
pub struct Bench {
    pub switch: Switch,
    pub now: Instant,
    /// What each port sent, MAC control left out.
    pub sent: Vec<Vec<Frame>>,
    /// The MAC control that each port sent, and when its last bit left.
    pub control: Vec<Vec<(Instant, MacControl)>>,
    pub events: Vec<EventKind>,
}

impl Bench {
    pub fn new(config: SwitchConfig) -> Bench {
        let switch = Switch::new(config).unwrap();
        let (sent, control) = (vec![Vec::new(); PORTS], vec![Vec::new(); PORTS]);
        Bench { switch, now: Instant::ZERO, sent, control, events: Vec::new() }
    }

    pub fn feed(&mut self, port: usize, frame: Frame) {
        self.switch.handle_frame(PortNumber::from_index(port), frame, self.now, self.now);
        self.drain();
    }

    /// The neighbour at `port` pauses some priorities, or resumes them with time 0.
    pub fn pause(&mut self, port: usize, priorities: &[u8], time: u16) {
        let mut pfc = Pfc::default();
        for priority in priorities {
            pfc = pfc.with(Priority::truncate(*priority), time);
        }
        let octets = MacControl::Pfc(pfc).to_octets(plan::mac(Lid::new(9)));
        self.feed(port, Frame::intact(FrameKind::Ethernet, octets[..].into()));
    }

    fn drain(&mut self) {
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            let port = departure.port.index();
            if MacControl::is_announced(&departure.frame.octets) {
                let control = MacControl::parse(&departure.frame.octets).unwrap();
                self.control[port].push((departure.at, control));
            } else {
                self.sent[port].push(departure.frame);
            }
        }
        while let Some(event) = self.switch.poll_event() {
            self.events.push(event.kind);
        }
    }

    pub fn run(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            let wake = self.switch.poll_timeout().unwrap_or(end).min(end);
            self.now = self.now.max(wake) + Duration::from_ps(u64::from(wake <= self.now));
            self.switch.handle_timeout(self.now);
            self.drain();
        }
    }

    pub fn reading(&mut self) -> DeviceReading {
        let mut reading = DeviceReading::default();
        self.switch.read(self.now, &mut reading);
        reading
    }

    pub fn drops(&mut self, port: usize, reason: DropReason) -> u64 {
        self.reading().ports[port].drops.get(reason)
    }

    /// All drops, at all ports and for all reasons.
    pub fn lost(&mut self) -> u64 {
        self.reading().ports.iter().map(|port| port.drops.total()).sum()
    }

    pub fn named(&mut self, port: usize, name: &str) -> u64 {
        let reading = self.reading();
        let named = &reading.ports[port].named;
        named.iter().find(|(key, _)| key == name).map_or(0, |(_, value)| *value)
    }

    /// Whether the switch holds no frame and requests no pause.
    pub fn is_empty(&self) -> bool {
        let ports = (0..PORTS).map(PortNumber::from_index);
        let memory = self.switch.memory.as_ref().expect("a switch of Ethernet has one");
        self.switch.queues.frames() == 0
            && ports.into_iter().all(|port| {
                let lanes = || (0..8).map(VirtualLane::truncate);
                let none = lanes().all(|lane| memory.held(port, lane) == Bytes::ZERO);
                let queued =
                    lanes().any(|lane| self.switch.queues.standing(port, lane) > Bytes::ZERO);
                none && !queued && memory.demands(port) == 0
            })
    }
}

/// The pause times for priority 3 that the neighbour receives, frame by frame.
pub fn times(control: &[(Instant, MacControl)]) -> Vec<u16> {
    let of = |control: &MacControl| match control {
        MacControl::Pfc(pfc) => pfc.time(Priority::truncate(P3)),
        MacControl::Pause(pause) => Some(pause.time),
        MacControl::Unknown(_) => None,
    };
    control.iter().filter_map(|(_, control)| of(control)).collect()
}

/// A RoCEv2 frame of one adapter to another.
pub fn packet(from: u16, to: u16, dscp: u8, ecn: Ecn, psn: u32, payload: usize) -> Frame {
    let [from, to] = [from, to].map(Lid::new);
    let dscp = Dscp::truncate(dscp);
    let (source, destination) = (plan::ipv4(from), plan::ipv4(to));
    let ip = Ipv4 { dscp, ecn, source, destination, ..Ipv4::default() };
    let queue_pair = QueuePairNumber::planned(0, from);
    let builder = PacketBuilder {
        destination: plan::mac(to),
        source: plan::mac(from),
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(0xc000)),
        bth: Bth::new(Opcode::RC_SEND_ONLY, queue_pair, Psn::truncate(psn)),
        extended: ExtendedHeaders::default(),
    };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |place| place.fill(0x5a)).unwrap();
    Frame::intact(FrameKind::Ethernet, octets)
}

/// A lossless frame of [`FRAME`] octets.
pub fn data(from: u16, to: u16, psn: u32) -> Frame {
    packet(from, to, DSCP3, Ecn::Capable0, psn, PAYLOAD)
}

/// A lossy one.
pub fn lossy(from: u16, to: u16, psn: u32) -> Frame {
    packet(from, to, 0, Ecn::NotCapable, psn, PAYLOAD)
}

/// Marks whatever is judged at a queue above so many octets.
struct Above(Bytes);

impl CongestionPoint for Above {
    fn on_dequeue(&mut self, _: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        if sample.queue > self.0 { Marking::Ce { limit: self.0 } } else { Marking::Pass }
    }
}

impl Bench {
    /// Every output marks what leaves a queue of more than so many frames.
    pub fn marking_above(config: SwitchConfig, frames: u64) -> Bench {
        let mut bench = Bench::new(config);
        for egress in &mut bench.switch.egress {
            let points = (0..8).map(|_| Box::new(Above(Bytes::new(frames * FRAME))) as Box<_>);
            *egress = Egress::new(points.collect(), PORTS, Technology::Ethernet);
        }
        bench
    }
}
