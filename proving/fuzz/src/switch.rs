//! An InfiniBand switch under random operations: no panic, no hang, and every frame is counted.

use crate::bench::{Bench, Peers};
use crate::tape::Tape;
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, PortNumber};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::units::{BitRate, Bytes, Duration};
use switchd::config::{
    MemoryConfig, MulticastRoute, PortConfig, Read, Route, RoutingConfig, SwitchConfig,
};
use switchd::switch::Switch;

const PORTS: usize = 4;
const BUFFER: u64 = 6 * 2112;

/// Schemes of a switch, by two bits of the first octet.
pub const SCHEMES: [&str; 4] = ["none", "ib-cca", "none", "rr-cc"];

/// The first octet chooses the switch configuration; the others are operations.
pub fn check(octets: &[u8]) {
    let mut tape = Tape::new(octets);
    let config = config(tape.u8());
    let lids = (1..=PORTS as u16).chain([100, 77]).collect();
    let switch = Switch::new(config).expect("the configuration is valid");
    Bench::new(switch, Peers::Infiniband, lids, 2, BUFFER).run(tape);
}

fn config(choice: u8) -> SwitchConfig {
    let data_lanes = 1 + (choice & 3);
    let link = LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(BUFFER),
        control: FlowControlConfig::Credit(CreditConfig { data_lanes, ..CreditConfig::default() }),
    };
    let route = |lid: u16| Route {
        first: Lid::new(lid),
        last: Lid::new(lid),
        port: PortNumber::from_index(usize::from(lid) - 1),
    };
    let kind = SCHEMES[usize::from(choice >> 2 & 1 | choice >> 3 & 2)];
    let threshold = ("threshold".to_owned(), toml::Value::Integer(15));
    let params = [threshold].into_iter().filter(|_| kind != "none").collect();
    SwitchConfig {
        name: "s0".to_owned(),
        seed: choice.into(),
        lid: Lid::new(100),
        memory: MemoryConfig {
            kind: "per-input".to_owned(),
            read: if choice & 8 == 0 { Read::Multi } else { Read::Single },
            ..MemoryConfig::default()
        },
        sl2vl: (0..15).map(|level| level % data_lanes).chain([15]).collect(),
        scheme: SchemeConfig { kind: kind.to_owned(), params },
        ports: vec![PortConfig::plain(true, link, Duration::ZERO); PORTS],
        routes: (1..=PORTS as u16).map(route).collect(),
        routing: RoutingConfig::default(),
        watchdog: None,
        management: None,
        multicast: vec![MulticastRoute {
            lid: Lid::new(0xc000),
            ports: (0..PORTS - 1).map(PortNumber::from_index).collect(),
        }],
    }
}
