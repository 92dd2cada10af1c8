//! Devices of Ethernet: 8 Gb/s, so that an octet lasts a nanosecond and a quantum 64. Priority 3 is
//! lossless and known by its DSCP; PFC is obeyed on it and no other.

use super::{MTU, RATE, scheme};
use nicd::config::{Encapsulation, NicConfig, RoceConfig};
use proto::ids::{Lid, PortNumber};
use proto::link::{LinkConfig, LinkControl, PauseConfig};
use proto::units::{Bytes, Duration};
use proto::wire::ethernet::plan;
use switchd::config::{
    MemoryConfig, PoolConfig, PortConfig, Route, RoutingConfig, SwitchConfig, Threshold,
};

/// The lossless priority.
pub const LOSSLESS: u8 = 3;
/// One quantum: 512 bit times.
pub const QUANTUM: Duration = Duration::from_ns(64);
/// A full frame, DA to FCS: what a buffer holds of it and what it takes of the line.
pub const FRAME: u64 = 14 + 20 + 8 + 12 + MTU as u64 + 4 + 4;
/// Time a full frame takes on the line.
pub const FRAME_TIME: Duration = Duration::from_ns(FRAME);
/// Time a frame of MAC control takes on the line.
pub const CONTROL_TIME: Duration = Duration::from_ns(64);
/// Full frames that one port and priority shares before its neighbour is silenced.
pub const SHARED_FRAMES: u64 = 8;
/// Full frames that its headroom holds.
pub const HEADROOM_FRAMES: u64 = 4;
/// How many full frames below the threshold the neighbour may speak again.
pub const HYSTERESIS_FRAMES: u64 = 3;

/// What a port goes by.
pub fn pause() -> PauseConfig {
    PauseConfig { obeyed: 1 << LOSSLESS, lossless: 1 << LOSSLESS, ..PauseConfig::default() }
}

/// A link with these pauses.
pub fn link(pause: PauseConfig) -> LinkConfig {
    LinkConfig {
        rate: RATE,
        mtu: Bytes::new(MTU as u64),
        buffer: Bytes::new(100 * FRAME),
        control: LinkControl::Pause(pause),
    }
}

/// One memory for all ports, without reserves: one port and priority shares [`SHARED_FRAMES`] and has
/// [`HEADROOM_FRAMES`] of headroom.
pub fn memory() -> MemoryConfig {
    MemoryConfig {
        kind: "shared-pool".to_owned(),
        headroom: Bytes::new(HEADROOM_FRAMES * FRAME),
        pool: PoolConfig {
            size: Bytes::new(1000 * FRAME),
            reserve: Bytes::ZERO,
            threshold: Threshold::Octets(Bytes::new(SHARED_FRAMES * FRAME)),
            hysteresis: Bytes::new(HYSTERESIS_FRAMES * FRAME),
            headroom_pool: None,
            lossy_queue: None,
        },
        ..MemoryConfig::default()
    }
}

/// A switch that leads adapter n out of port n.
pub fn switch(ports: u8) -> SwitchConfig {
    let port = |number: u16| {
        let address = plan::mac(Lid::new(100 + number));
        let link = link(PauseConfig { address, ..pause() });
        PortConfig::plain(true, link, Duration::ZERO)
    };
    let route = |number: u16| {
        let lid = Lid::new(number);
        Route { first: lid, last: lid, port: PortNumber::from_index(usize::from(number) - 1) }
    };
    SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: memory(),
        sl2vl: Vec::new(),
        scheme: scheme("none"),
        ports: (1..=u16::from(ports)).map(port).collect(),
        routes: (1..=u16::from(ports)).map(route).collect(),
        routing: RoutingConfig::default(),
        watchdog: None,
        multicast: Vec::new(),
    }
}

/// The same switch with `change` made to what every port is told about pauses.
pub fn with_pause(mut config: SwitchConfig, change: impl Fn(&mut PauseConfig)) -> SwitchConfig {
    for port in &mut config.ports {
        change(pause_of(&mut port.link));
    }
    config
}

/// The same switch with room for everything that a case keeps waiting: nobody is silenced, nothing lost.
pub fn roomy(mut config: SwitchConfig) -> SwitchConfig {
    let room = Bytes::new(1 << 24);
    config.memory.pool.size = room * 2;
    config.memory.pool.threshold = Threshold::Octets(room);
    config
}

/// What a link of Ethernet is told about pauses.
///
/// # Panics
/// If it is a link of InfiniBand.
pub fn pause_of(link: &mut LinkConfig) -> &mut PauseConfig {
    match &mut link.control {
        LinkControl::Pause(pause) => pause,
        LinkControl::Credits(_) => panic!("devices of this file have pauses"),
    }
}

/// A NIC that speaks RoCEv2 over IPv4, adapter `number` of four; service level n from 1 to 7 goes with
/// priority n, all others with [`LOSSLESS`].
pub fn nic(number: u16) -> NicConfig {
    let address = plan::mac(Lid::new(number));
    NicConfig {
        wire: Encapsulation::Roce(RoceConfig::default()),
        link: link(PauseConfig { address, ..pause() }),
        ..super::nic(number, 1)
    }
}
