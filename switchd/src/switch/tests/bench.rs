//! A switch on the test bed, what tests read off it, and the frames of Ethernet that its neighbours send.

use crate::config::{MemoryConfig, PortConfig, Route, RoutingConfig, SwitchConfig};
use crate::egress::Egress;
use crate::switch::Switch;
use proto::Technology;
use proto::congestion::{CongestionPoint, Marking, QueueSample, SchemeConfig};
use proto::counters::DropReason;
use proto::frame::{Frame, FrameHeaders};
use proto::ids::{Ecn, Lid, PortNumber, VirtualLane};
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::ethernet::MacControl;
use testbed::frames::ethernet::{control_of, frame, quanta_for, roce, with_dscp, with_ecn};
use testbed::frames::is_packet;

pub type Bench = testbed::Bench<Switch>;

pub const PORTS: u8 = 4;

/// Payload of a frame of [`FRAME`] octets, DA to FCS.
pub const PAYLOAD: usize = 940;
pub const FRAME: u64 = 14 + 20 + 8 + 12 + PAYLOAD as u64 + 4 + 4;

/// The lossless priority, and the DSCP that means it.
pub const P3: u8 = 3;
pub const DSCP3: u8 = 24;

/// Priorities 0 and 3, as PFC names them.
pub const BOTH: u8 = 1 | 1 << P3;

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
        ports: vec![PortConfig::plain(true, link, Duration::from_ns(100)); PORTS.into()],
        routes: (1..=PORTS.into()).map(route).collect(),
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
        management: None,
    }
}

/// A switch of Ethernet whose neighbours do what the test makes them do.
pub fn bench(config: SwitchConfig) -> Bench {
    Bench::new(Switch::new(config).unwrap(), 0)
}

/// What tests read off a switch; ports count from 1. A frame counts as sent as soon as its line has taken it.
pub trait Look {
    /// Packets that `port` sent.
    fn sent(&self, port: u8) -> Vec<Frame>;
    /// How many packets each port sent.
    fn counts(&self) -> [usize; PORTS as usize];
    /// The MAC control that `port` sent.
    fn controls(&self, port: u8) -> Vec<MacControl>;
    /// The pause times for priority 3 that the neighbour at `port` receives, frame by frame.
    fn times(&self, port: u8) -> Vec<u16>;
    fn drops(&mut self, port: u8, reason: DropReason) -> u64;
    /// All drops, at all ports and for all reasons.
    fn lost(&mut self) -> u64;
    /// Whether a switch of Ethernet holds no frame and requests no pause.
    fn is_empty(&self) -> bool;
}

impl Look for Bench {
    fn sent(&self, port: u8) -> Vec<Frame> {
        self.departed(port).filter(|frame| is_packet(frame)).cloned().collect()
    }

    fn counts(&self) -> [usize; PORTS as usize] {
        std::array::from_fn(|index| self.sent(index as u8 + 1).len())
    }

    fn controls(&self, port: u8) -> Vec<MacControl> {
        self.departed(port).filter_map(control_of).collect()
    }

    fn times(&self, port: u8) -> Vec<u16> {
        self.departed(port).filter_map(|frame| quanta_for(frame, P3)).collect()
    }

    fn drops(&mut self, port: u8, reason: DropReason) -> u64 {
        self.reading().ports[usize::from(port) - 1].drops.get(reason)
    }

    fn lost(&mut self) -> u64 {
        self.reading().ports.iter().map(|port| port.drops.total()).sum()
    }

    fn is_empty(&self) -> bool {
        let switch = &self.device;
        let memory = switch.memory.as_ref().expect("a switch of Ethernet has one");
        switch.queues.frames() == 0
            && (0..PORTS.into()).map(PortNumber::from_index).all(|port| {
                let mut lanes = (0..8).map(VirtualLane::truncate);
                memory.demands(port) == 0
                    && lanes.all(|lane| {
                        memory.held(port, lane) == Bytes::ZERO
                            && switch.queues.standing(port, lane) == Bytes::ZERO
                    })
            })
    }
}

/// A RoCEv2 frame of one adapter to another.
pub fn packet(from: u16, to: u16, dscp: u8, ecn: Ecn, psn: u32, payload: usize) -> Frame {
    frame(&with_ecn(&with_dscp(&roce(from, to, 0, psn), dscp), ecn), payload)
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

/// Every output marks what leaves a queue of more than so many frames.
pub fn marking_above(config: SwitchConfig, frames: u64) -> Bench {
    let mut bench = bench(config);
    for egress in &mut bench.device.egress {
        let points = (0..8).map(|_| Box::new(Above(Bytes::new(frames * FRAME))) as Box<_>);
        *egress = Egress::new(points.collect(), PORTS.into(), Technology::Ethernet);
    }
    bench
}
