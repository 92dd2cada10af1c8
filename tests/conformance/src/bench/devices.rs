//! The devices that cases begin with: 8 Gb/s over four lanes, so that an octet lasts a nanosecond
//! and a symbol four.

use nicd::config::{
    ClassConfig, CnpBody, Encapsulation, NicConfig, Operation, QueuePairOrder, Target,
    TrafficConfig, Transport,
};
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, PortNumber, ServiceLevel};
use proto::link::{CreditConfig, LinkConfig, LinkControl};
use proto::units::{BitRate, Bytes, Duration, Instant};
use switchd::config::{
    MemoryConfig, MulticastRoute, PortConfig, Route, RoutingConfig, SwitchConfig,
};

pub mod ethernet;

/// Rate of every line.
pub const RATE: BitRate = BitRate::gbps(8);
/// Time an octet takes on it.
pub const OCTET: Duration = Duration::from_ns(1);
/// Largest payload.
pub const MTU: usize = 2048;
/// Credit blocks of a full frame: 2074 octets.
pub const FULL_FRAME_BLOCKS: u32 = 33;
/// Time a full frame takes on the line.
pub const FRAME_TIME: Duration = Duration::from_ns(2074);
/// One symbol of one lane.
pub const SYMBOL: Duration = Duration::from_ns(4);
/// Full frames that one data lane's buffer holds.
pub const BUFFER_FRAMES: u32 = 36;
/// The multicast group that switches know: it goes to all their ports but the last.
pub const GROUP: u16 = 0xc001;

/// A link with this many data lanes, each with room for [`BUFFER_FRAMES`] full frames.
pub fn link(lanes: u8) -> LinkConfig {
    let blocks = u64::from(lanes) * u64::from(BUFFER_FRAMES * FULL_FRAME_BLOCKS);
    LinkConfig {
        rate: RATE,
        mtu: Bytes::new(MTU as u64),
        buffer: Bytes::new(blocks * 64),
        control: LinkControl::Credits(CreditConfig {
            data_lanes: lanes,
            ..CreditConfig::default()
        }),
    }
}

/// A scheme with its own defaults.
pub fn scheme(kind: &str) -> SchemeConfig {
    SchemeConfig { kind: kind.to_owned(), params: toml::Table::new() }
}

/// A switch that leads LID n out of port n and knows one multicast group. Service level n goes by
/// lane n, or by lane 0 where there is no such lane; 15 is discarded.
pub fn switch(ports: u8, lanes: u8) -> SwitchConfig {
    let lane = |level: u8| if level == 15 { 15 } else { level * u8::from(level < lanes) };
    let port = |index: u8| PortNumber::from_index(usize::from(index));
    let route = |index: u8| {
        let lid = Lid::new(u16::from(index) + 1);
        Route { first: lid, last: lid, port: port(index) }
    };
    SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: MemoryConfig::default(),
        sl2vl: (0..16).map(lane).collect(),
        scheme: scheme("none"),
        ports: vec![PortConfig::plain(true, link(lanes), Duration::ZERO); usize::from(ports)],
        routes: (0..ports).map(route).collect(),
        routing: RoutingConfig::default(),
        watchdog: None,
        multicast: vec![MulticastRoute {
            lid: Lid::new(GROUP),
            ports: (0..ports - 1).map(port).collect(),
        }],
    }
}

/// The lane that IBARB-01 plans for a service level from a port to a port, counted from 1: 0 to 3,
/// which a switch of four lanes has, 5, which it has not, or 15.
pub fn planned_lane(input: u8, output: u8, level: u8) -> u8 {
    match (3 * input + 5 * output + level) % 6 {
        4 => 15,
        lane => lane,
    }
}

/// [`planned_lane`] as a switch of `ports` ports is told it.
pub fn planned_lanes(ports: u8) -> Vec<u8> {
    let pairs = (1..=ports).flat_map(|input| (1..=ports).map(move |output| (input, output)));
    let lanes = pairs
        .flat_map(|(input, output)| (0..16).map(move |level| planned_lane(input, output, level)));
    lanes.collect()
}

/// A NIC with LID `lid` of a fabric of adapters 1 to 4, one class of RC SEND, no traffic. Service
/// level n goes by lane n, or by lane 0 where there is no such lane.
pub fn nic(lid: u16, lanes: u8) -> NicConfig {
    NicConfig {
        name: format!("h{lid}"),
        seed: 7,
        lid: Lid::new(lid),
        qp_order: QueuePairOrder::Posting,
        ack_every: 1,
        ack_delay: Duration::from_us(5),
        ack_timeout: Duration::from_us(1_000_000),
        retry_count: 7,
        rnr_retry: 7,
        rnr_timer: Duration::from_us(10),
        receive_depth: 0,
        receive_refill: Duration::ZERO,
        wire: Encapsulation::Infiniband,
        cnp_body: CnpBody::Reserved16,
        sl2vl: (0..16).map(|level| level * u8::from(level < lanes)).collect(),
        scheme: scheme("none"),
        link: link(lanes),
        adapters: (1..=4).map(Lid::new).collect(),
        classes: vec![class(Transport::Rc, 0)],
        traffic: Vec::new(),
    }
}

/// SENDs of one service on one level.
pub fn class(transport: Transport, level: u8) -> ClassConfig {
    let service_level = ServiceLevel::truncate(level);
    ClassConfig { transport, operation: Operation::Send, service_level }
}

/// `messages` of `size` octets to LID `to` on class `class`, all posted at `start`; 0 is no end.
pub fn burst(to: u16, class: u8, size: u64, messages: u64, start: Instant) -> TrafficConfig {
    let backlog = messages == 0;
    TrafficConfig {
        name: "burst".to_owned(),
        item: 0,
        class,
        to: Target::Lids(vec![Lid::new(to)]),
        arrivals: if backlog {
            nicd::config::Arrivals::Backlog
        } else {
            nicd::config::Arrivals::Paced
        },
        interval: Duration::from_ps(1),
        slot: Duration::from_ps(1),
        size: Bytes::new(size),
        start,
        stop: Instant::NEVER,
        messages,
    }
}
