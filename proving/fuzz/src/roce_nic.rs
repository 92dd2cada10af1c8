//! A NIC on Ethernet under random operations: hostile frames, pauses, a slow host, a storm.

use crate::bench::{Bench, Peers};
use crate::nic::{self, BUFFER, CLASSES};
use crate::tape::Tape;
use nicd::config::{
    DrainConfig, Encapsulation, HostConfig, NicConfig, RoceConfig, RoceVersion, ServeConfig,
    ServiceKind, StormConfig, Transport,
};
use nicd::nic::Nic;
use proto::congestion::SchemeConfig;
use proto::ids::Lid;
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig, PauseMode};
use proto::units::{BitRate, Bytes, Instant};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::plan;

/// Schemes of an adapter and their profiles, by the three upper bits of the first octet.
pub const SCHEMES: [(&str, Option<&str>); 8] = [
    ("none", None),
    ("dcqcn", Some("paper")),
    ("bcn", None),
    ("dcqcn", Some("cx")),
    ("none", None),
    ("dcqcn", Some("hpcc")),
    ("qcn", None),
    ("qcn", None),
];

/// The first three octets choose the NIC configuration; the others are operations.
pub fn check(octets: &[u8]) {
    let mut tape = Tape::new(octets);
    let config = config(tape.u8(), tape.u8(), tape.u8());
    let lids = vec![2, 1, 3, 9];
    let nic = Nic::new(config).expect("the configuration is valid");
    Bench::new(nic, Peers::Ethernet, lids, CLASSES.len() as u8, BUFFER).run(tape);
}

fn config(choice: u8, traffic: u8, host: u8) -> NicConfig {
    let plain = nic::config(choice, traffic);
    // Messages of QCN and BCN name flows by priority tags, and limited frames carry tags.
    let tagged = host & 0x80 != 0;
    let slow = DrainConfig {
        rate: BitRate::gbps(1),
        xoff: Bytes::new(4_000),
        xon: Bytes::new(if host & 1 == 0 { 4_000 } else { 0 }),
    };
    let storm = StormConfig { start: Instant::from_ps(20_000_000), priorities: 1 << 3 };
    let roce = RoceConfig {
        version: if host & 2 == 0 { RoceVersion::V2Ipv4 } else { RoceVersion::V2Ipv6 },
        drain: (host & 4 != 0).then_some(slow),
        storm: (host & 8 != 0).then_some(storm),
        cn_tags: tagged,
        ..RoceConfig::default()
    };
    let control = PauseConfig {
        address: plan::mac(Lid::new(1)),
        mode: [PauseMode::Pfc, PauseMode::Global, PauseMode::None, PauseMode::Pfc]
            [usize::from(host >> 4 & 3)],
        priorities: if tagged { PriorityMap::BY_PCP } else { PriorityMap::BY_DSCP },
        ..PauseConfig::default()
    };
    let (kind, profile) = SCHEMES[usize::from(choice >> 5)];
    let scheme = SchemeConfig {
        kind: kind.to_owned(),
        params: profile.map(|profile| ("profile".to_owned(), profile.into())).into_iter().collect(),
    };
    let mut classes = plain.classes.clone();
    if tagged {
        classes[2].transport = Transport::Test;
    }
    NicConfig {
        wire: Encapsulation::Roce(roce),
        scheme,
        classes,
        link: LinkConfig { control: FlowControlConfig::Pause(control), ..plain.link },
        // Few, because memory for a host's services takes longer to make than a sequence.
        host: (host & 64 != 0 && choice & 3 == 3).then(serving),
        management: None,
        ..plain
    }
}

/// A host with a service of each kind.
fn serving() -> HostConfig {
    let kinds = [ServiceKind::Rping, ServiceKind::Perftest];
    let serve = kinds.map(|kind| ServeConfig { kind, port: kind.port() }).to_vec();
    HostConfig { serve, remotes: Vec::new() }
}
