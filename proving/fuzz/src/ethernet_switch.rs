//! An Ethernet switch under random operations: hostile frames, endless pauses, learned and forged
//! addresses, every memory model, a watchdog.

use crate::bench::{Bench, Peers};
use crate::tape::Tape;
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, PortNumber};
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig, PauseMode};
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::plan;
use switchd::config::{
    Defence, DomainConfig, MacTableParams, MemoryConfig, PortConfig, Read, Route, RoutingConfig,
    StormAction, SwitchConfig, WatchdogConfig,
};
use switchd::switch::Switch;

const PORTS: u16 = 4;
/// Buffer of an input port in every memory model, in octets.
const BUFFER: u64 = 60_000;

/// Schemes of a switch, by the three upper bits of the first octet.
pub const SCHEMES: [&str; 8] = ["dcqcn", "dcqcn", "dcqcn", "dcqcn", "qcn", "qcn", "bcn", "none"];

/// The first two octets choose the switch configuration; the others are operations.
pub fn check(octets: &[u8]) {
    let mut tape = Tape::new(octets);
    let config = config(tape.u8(), tape.u8());
    // One address without a route, and one that the switch learns.
    let lids = (1..=PORTS).chain([77, 500]).collect();
    let switch = Switch::new(config).expect("the configuration is valid");
    Bench::new(switch, Peers::Ethernet, lids, 2, BUFFER).run(tape);
}

fn config(choice: u8, more: u8) -> SwitchConfig {
    let route = |lid: u16| Route {
        first: Lid::new(lid),
        last: Lid::new(lid),
        port: PortNumber::from_index(usize::from(lid) - 1),
    };
    // Adapter 4 is reached by two ports.
    let spread = Route { port: PortNumber::from_index(0), ..route(PORTS) };
    SwitchConfig {
        name: "s0".to_owned(),
        seed: choice.into(),
        lid: Lid::new(100),
        memory: memory(choice),
        sl2vl: Vec::new(),
        scheme: scheme(choice >> 5),
        ports: (1..=PORTS).map(|port| self::port(port, choice, more)).collect(),
        routes: (1..=PORTS).map(route).chain((more & 4 != 0).then_some(spread)).collect(),
        routing: RoutingConfig {
            kind: (more & 64 != 0).then(|| "adaptive".to_owned()),
            table: MacTableParams {
                learned_max: 3,
                age: Duration::from_us(30),
                flood_gap: Duration::from_us(10),
                flood_burst: 5,
            },
            ..RoutingConfig::default()
        },
        management: None,
        watchdog: (more & 8 != 0).then(|| watchdog(more >> 4)),
        multicast: Vec::new(),
    }
}

/// One of three models, small enough to run full.
fn memory(choice: u8) -> MemoryConfig {
    MemoryConfig {
        kind: ["shared-pool", "per-input", "global-watermark", "shared-pool"]
            [usize::from(choice & 3)]
        .to_owned(),
        read: if choice & 4 == 0 { Read::Multi } else { Read::Single },
        headroom: Bytes::new(8_000),
        jitter: Duration::ZERO,
        params: pool(choice).into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    }
}

fn pool(choice: u8) -> Vec<(&'static str, toml::Value)> {
    let size = |octets| Bytes::new(octets).into();
    // PAUSE protects all eight priorities, which cannot each have separate headroom.
    let headroom_pool = size(if choice & 16 == 0 { 9_000 } else { 40_000 });
    let threshold = if choice & 8 == 0 { 1.into() } else { size(6_000) };
    let numbers = [
        ("size", size(BUFFER)),
        ("reserve", size(100)),
        ("threshold", threshold),
        ("hysteresis", size(2_000)),
        ("headroom_pool", headroom_pool),
    ];
    let lossy_queue = (choice & 16 == 0).then(|| ("lossy_queue", size(9_000)));
    numbers.into_iter().chain(lossy_queue).collect()
}

fn scheme(choice: u8) -> SchemeConfig {
    let kind = SCHEMES[usize::from(choice)];
    let kmax = ["0 B", "4 KB", "20 KB"][usize::from(choice % 3)];
    let params: &[(&str, &str)] = match kind {
        "dcqcn" => &[("kmin", "0 B"), ("kmax", kmax)],
        "qcn" => &[("cp_q_sp", "2 KB"), ("cp_sample_base", "10 KB")],
        "bcn" => &[("q_eq", "2 KB"), ("sampling", "octets"), ("sample_octets", "10 KB")],
        _ => &[],
    };
    let params = params.iter().map(|(key, value)| ((*key).to_owned(), (*value).into()));
    SchemeConfig { kind: kind.to_owned(), params: params.collect() }
}

fn port(number: u16, choice: u8, more: u8) -> PortConfig {
    let mode = [PauseMode::Pfc, PauseMode::Global, PauseMode::None, PauseMode::Pfc];
    let control = PauseConfig {
        address: plan::mac(Lid::new(200 + number)),
        mode: mode[usize::from(more & 3)],
        lossless: 1 << 3,
        priorities: if more & 0x80 == 0 { PriorityMap::BY_DSCP } else { PriorityMap::BY_PCP },
        ..PauseConfig::default()
    };
    let link = LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(BUFFER / 4),
        control: FlowControlConfig::Pause(control),
    };
    let defences = [Defence::InteriorReady, Defence::Interior, Defence::Edge, Defence::Disabled];
    let notifies = ["qcn", "bcn"].contains(&SCHEMES[usize::from(choice >> 5)]);
    let domain = notifies.then(|| {
        DomainConfig::new(1 << 3, defences[usize::from((number as u8).wrapping_add(more) & 3)])
    });
    let plain = PortConfig::plain(number < PORTS, link, Duration::ZERO);
    PortConfig { domain: domain.unwrap_or_default(), ..plain }
}

fn watchdog(choice: u8) -> WatchdogConfig {
    let action = [StormAction::Drop, StormAction::Forward, StormAction::Alert, StormAction::Drop];
    WatchdogConfig {
        detection: Duration::from_us(20),
        restoration: Duration::from_us(20),
        poll: Duration::from_us(5),
        action: action[usize::from(choice & 3)],
    }
}
