//! A switch of eight ports under some control, and one frame's way through it.

use bytes::BytesMut;
use proto::congestion::SchemeConfig;
use proto::device::Device;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber};
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};
use std::hint::black_box;
use switchd::config::{MemoryConfig, PortConfig, Route, RoutingConfig, SwitchConfig};
use switchd::switch::{Switch, headroom_needed};

/// Line time of a full frame at 40 Gb/s, and a little more.
const PERIOD: Duration = Duration::from_ns(400);
const INPUT: usize = 0;
const OUTPUT: usize = 1;
/// The sender, behind the input.
pub const SOURCE: Lid = Lid::new(1);
/// The receiver, behind the output.
pub const DESTINATION: Lid = Lid::new(2);

/// A scheme and its parameters.
#[derive(Clone, Copy)]
pub struct Control {
    /// Its row in the registry.
    pub scheme: &'static str,
    /// A line each.
    pub params: &'static str,
}

/// No congestion control: no queue is sampled and no frame is marked.
pub const NONE: Control = Control { scheme: "none", params: "" };
/// Every frame is marked.
pub const DCQCN: Control = Control { scheme: "dcqcn", params: "kmin = \"0 B\"\nkmax = \"0 B\"" };
/// The queue is the frame itself. One frame in 50 is sampled by chance, and each sample is bad news.
pub const BCN: Control = Control { scheme: "bcn", params: "q_eq = \"64 B\"" };
/// The same with 150 KB between two samples, of which QntzFb is 1 or 2.
pub const QCN: Control = Control { scheme: "qcn", params: "cp_q_sp = \"1400 B\"" };

/// A switch of eight ports.
pub struct Hop {
    switch: Switch,
    now: Instant,
    /// Buffers to make frames in.
    spare: Vec<BytesMut>,
}

impl Hop {
    /// Under `control`.
    pub fn new(control: Control) -> Hop {
        let switch = Switch::new(config(control)).expect("a good configuration");
        Hop { switch, now: Instant::ZERO, spare: Vec::new() }
    }

    /// Copies `octets` as from a socket into the switch and lets it through; what came out.
    pub fn pass(&mut self, octets: &[u8]) -> Frame {
        self.now = self.now + PERIOD;
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.extend_from_slice(octets);
        let frame = Frame::unchecked(FrameKind::Ethernet, copy);
        self.switch.handle_frame(PortNumber::from_index(INPUT), frame, self.now, self.now);
        let passed = self.drain().expect("nothing is paused, so it passes");
        self.now = self.now + PERIOD;
        self.switch.handle_timeout(self.now);
        assert!(self.drain().is_none());
        passed
    }

    /// All that comes of a call, as a driver does it; the frame among it.
    fn drain(&mut self) -> Option<Frame> {
        let mut passed = None;
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            if departure.port.index() == OUTPUT {
                passed = Some(departure.frame);
            } else {
                // A notification, on its way back.
                self.recycle(departure.frame);
            }
        }
        while self.switch.poll_event().is_some() {}
        black_box(self.switch.poll_timeout());
        passed
    }

    /// Gives a frame's buffer back.
    pub fn recycle(&mut self, frame: Frame) {
        let mut octets = frame.octets;
        octets.clear();
        self.spare.push(octets);
    }
}

fn config(control: Control) -> SwitchConfig {
    let link = LinkConfig {
        rate: BitRate::gbps(40),
        mtu: Bytes::new(1500),
        buffer: Bytes::new(150_000),
        control: FlowControlConfig::Pause(PauseConfig::default()),
    };
    let Control { scheme, params } = control;
    let params = params.parse().expect("a table");
    let route = |number: Lid, port| Route {
        first: number,
        last: number,
        port: PortNumber::from_index(port),
    };
    let mut config = SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: MemoryConfig { kind: "shared-pool".to_owned(), ..MemoryConfig::default() },
        sl2vl: Vec::new(),
        scheme: SchemeConfig { kind: scheme.to_owned(), params },
        ports: vec![PortConfig::plain(true, link, Duration::ZERO); 8],
        routes: vec![route(SOURCE, INPUT), route(DESTINATION, OUTPUT)],
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
        management: None,
    };
    config.memory.headroom = headroom_needed(&config);
    config
}
