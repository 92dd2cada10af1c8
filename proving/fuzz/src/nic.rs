//! A NIC under random operations: no panic, no hang, and every frame is counted.

use crate::bench::{Bench, Peers};
use crate::tape::Tape;
use nicd::config::{
    Arrivals, ClassConfig, CnpBody, Encapsulation, NicConfig, Operation, QueuePairOrder, Target,
    TrafficConfig, Transport,
};
use nicd::nic::Nic;
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, ServiceLevel};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::units::{BitRate, Bytes, Duration, Instant};

/// Input buffer, in octets.
pub const BUFFER: u64 = 8 * 2112;

/// Transport services of the three classes.
pub const CLASSES: [(Transport, Operation); 3] = [
    (Transport::Rc, Operation::Send),
    (Transport::Uc, Operation::Write),
    (Transport::Ud, Operation::Send),
];

/// Schemes of an adapter, by the three upper bits of the first octet.
pub const SCHEMES: [&str; 8] =
    ["none", "ib-cca", "none", "rr-cc", "none", "ib-cca", "none", "rr-cc"];

/// The first two octets choose the NIC configuration; the others are operations.
pub fn check(octets: &[u8]) {
    let mut tape = Tape::new(octets);
    let config = config(tape.u8(), tape.u8());
    let lids = vec![2, 1, 3, 9];
    let nic = Nic::new(config).expect("the configuration is valid");
    Bench::new(nic, Peers::Infiniband, lids, CLASSES.len() as u8, BUFFER).run(tape);
}

/// The NIC of one of the adapters 1 to 3, chosen by the two octets.
pub fn config(choice: u8, traffic: u8) -> NicConfig {
    let class = |(transport, operation)| ClassConfig {
        transport,
        operation,
        service_level: ServiceLevel::default(),
    };
    NicConfig {
        name: "h1".to_owned(),
        seed: choice.into(),
        lid: Lid::new(1),
        qp_order: match choice & 1 {
            0 => QueuePairOrder::Posting,
            _ => QueuePairOrder::RoundRobin,
        },
        ack_every: if choice & 2 == 0 { 1 } else { 4 },
        ack_delay: Duration::from_us(1),
        ack_timeout: Duration::from_us(20),
        retry_count: 2,
        rnr_retry: if choice & 4 == 0 { 7 } else { 1 },
        rnr_timer: Duration::from_us(3),
        receive_depth: if choice & 8 == 0 { 0 } else { 2 },
        receive_refill: Duration::from_us(5),
        send_queue_max: None,
        wire: Encapsulation::Infiniband,
        cnp_body: if choice & 16 == 0 { CnpBody::Reserved16 } else { CnpBody::None },
        sl2vl: vec![0; 16],
        scheme: SchemeConfig {
            kind: SCHEMES[usize::from(choice >> 5)].to_owned(),
            params: toml::Table::new(),
        },
        link: LinkConfig {
            rate: BitRate::gbps(8),
            mtu: Bytes::new(256),
            buffer: Bytes::new(BUFFER),
            control: FlowControlConfig::Credit(CreditConfig {
                data_lanes: 2,
                ..CreditConfig::default()
            }),
        },
        adapters: vec![Lid::new(1), Lid::new(2), Lid::new(3)],
        classes: CLASSES.into_iter().map(class).collect(),
        host: None,
        management: None,
        groups: Vec::new(),
        traffic: (0..3).filter(|index| traffic >> index & 1 != 0).map(item).collect(),
    }
}

fn item(class: u8) -> TrafficConfig {
    TrafficConfig {
        name: format!("t{class}"),
        item: class.into(),
        class,
        to: if class == 1 { Target::Uniform } else { Target::Lids(vec![Lid::new(2)]) },
        arrivals: [Arrivals::Poisson, Arrivals::Paced, Arrivals::Backlog][usize::from(class)],
        interval: Duration::from_us(2),
        slot: Duration::from_us(1),
        size: Bytes::new(if class == 2 { 200 } else { 600 }),
        start: Instant::ZERO,
        stop: Instant::from_ps(200_000_000),
        messages: 0,
    }
}
