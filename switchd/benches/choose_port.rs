//! What choosing a port costs beside the hop: the same switch with one port for each of 1024 destinations,
//! with sixteen and an empty congestion table, and with sixteen and an entry for every destination.
//!
//! The variants take turns within one run, and the ratio of their medians is shown, so that a noisy host
//! disturbs all alike.

use bytes::BytesMut;
use emulation::clock::process_cpu_ns;
use proto::congestion::SchemeConfig;
use proto::device::Device;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber};
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::ethernet::{Cnm, Envelope, ethertype, plan};
use std::hint::black_box;
use switchd::config::{MemoryConfig, PortConfig, Route, RoutingConfig, SwitchConfig};
use switchd::switch::{Switch, headroom_needed};

const PERIOD: Duration = Duration::from_ns(400);
const DESTINATIONS: u16 = 1024;
const WAYS: usize = 16;
/// The source's port; the ways are those behind it.
const INPUT: usize = 0;
const SOURCE: Lid = Lid::new(2000);
const ROUNDS: usize = 41;

struct Hop {
    switch: Switch,
    now: Instant,
    spare: Vec<BytesMut>,
}

impl Hop {
    fn new(ways: usize, congested: bool) -> Hop {
        let switch = Switch::new(config(ways)).expect("a good configuration");
        let mut hop = Hop { switch, now: Instant::ZERO, spare: Vec::new() };
        for number in (1..=DESTINATIONS).filter(|_| congested) {
            let octets = notification(Lid::new(number));
            hop.pass(1 + usize::from(number) % ways, &octets);
        }
        hop
    }

    fn pass(&mut self, input: usize, octets: &[u8]) {
        self.now = self.now + PERIOD;
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.extend_from_slice(octets);
        let frame = Frame::unchecked(FrameKind::Ethernet, copy);
        self.switch.handle_frame(PortNumber::from_index(input), frame, self.now, self.now);
        self.drain();
        self.now = self.now + PERIOD;
        self.switch.handle_timeout(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            let mut octets = departure.frame.octets;
            octets.clear();
            self.spare.push(octets);
        }
        black_box(self.switch.poll_timeout());
    }
}

fn config(ways: usize) -> SwitchConfig {
    let link = LinkConfig {
        rate: BitRate::gbps(40),
        mtu: Bytes::new(1500),
        buffer: Bytes::new(150_000),
        control: FlowControlConfig::Pause(PauseConfig::default()),
    };
    let ports =
        (0..=WAYS).map(|port| PortConfig::plain(port == INPUT, link.clone(), Duration::ZERO));
    let route = |number, port| Route {
        first: Lid::new(number),
        last: Lid::new(number),
        port: PortNumber::from_index(port),
    };
    let to = |number: u16| {
        (0..ways).map(move |way| route(number, 1 + (usize::from(number) + way) % WAYS))
    };
    let mut routing =
        RoutingConfig { kind: Some("adaptive".to_owned()), ..RoutingConfig::default() };
    routing.params.insert("timeout".to_owned(), "1000 s".into());
    let mut config = SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(3000),
        memory: MemoryConfig { kind: "shared-pool".to_owned(), ..MemoryConfig::default() },
        sl2vl: Vec::new(),
        scheme: SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        ports: ports.collect(),
        routes: (1..=DESTINATIONS).flat_map(to).chain([route(SOURCE.get(), INPUT)]).collect(),
        multicast: Vec::new(),
        routing,
        watchdog: None,
        management: None,
    };
    config.memory.headroom = headroom_needed(&config);
    config
}

fn data(to: Lid) -> Vec<u8> {
    let mut octets = vec![0; 1496];
    Envelope::untagged(plan::mac(to), plan::mac(SOURCE), 0x88b7).emit(&mut octets);
    octets
}

fn notification(about: Lid) -> Vec<u8> {
    let from = plan::port_mac(Lid::new(3001), PortNumber::from_index(0));
    let mut octets = vec![0; 14];
    Envelope::untagged(plan::mac(SOURCE), from, ethertype::CNM).emit(&mut octets);
    let cnm = Cnm {
        quantized_feedback: 9,
        cpid: 1,
        encapsulated_destination: plan::mac(about),
        ..Cnm::default()
    };
    octets.extend_from_slice(&cnm.to_octets());
    octets.resize(60, 0);
    octets
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let frames: Vec<Vec<u8>> = (1..=DESTINATIONS).map(|number| data(Lid::new(number))).collect();
    let names = ["one port", "sixteen ports", "sixteen ports, each destination congested"];
    let mut hops = [Hop::new(1, false), Hop::new(WAYS, false), Hop::new(WAYS, true)];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (hop, times) in hops.iter_mut().zip(&mut times) {
            let begun = process_cpu_ns();
            for octets in frames.iter().chain(&frames) {
                hop.pass(INPUT, black_box(octets));
            }
            times.push((process_cpu_ns() - begun) as f64 / (2.0 * frames.len() as f64));
        }
    }
    let medians = times.map(median);
    for (name, ns) in names.iter().zip(medians) {
        println!("{name}: {ns:.0} ns a hop, {:.3} of the first", ns / medians[0]);
    }
}
