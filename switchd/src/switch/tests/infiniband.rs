//! InfiniBand: relaying, marking, fairness, reading discipline, odd addresses.

use super::bench::{Bench, Look, PORTS};
use crate::config::{
    MemoryConfig, MulticastRoute, PortConfig, Read, Route, RoutingConfig, SwitchConfig,
};
use crate::switch::{ConfigError, Switch};
use proptest::prelude::*;
use proto::congestion::SchemeConfig;
use proto::counters::DropReason;
use proto::events::EventKind;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber, VirtualLane};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::classify;
use proto::wire::infiniband::crc::{verify_icrc, verify_vcrc};
use testbed::frames::infiniband::Packet;
use testbed::{Bed, FcMode};

pub fn config(scheme: &str) -> SwitchConfig {
    let link = LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(36 * 2112),
        control: FlowControlConfig::Credit(CreditConfig {
            data_lanes: 1,
            ..CreditConfig::default()
        }),
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
        memory: MemoryConfig::default(),
        sl2vl: vec![0; 15].into_iter().chain([15]).collect(),
        scheme: SchemeConfig { kind: scheme.to_owned(), params: toml::Table::new() },
        ports: vec![PortConfig::plain(true, link, Duration::ZERO); PORTS.into()],
        routes: (1..=PORTS.into()).map(route).collect(),
        routing: RoutingConfig::default(),
        watchdog: None,
        management: None,
        multicast: vec![MulticastRoute {
            lid: Lid::new(0xc000),
            ports: (0..3).map(PortNumber::from_index).collect(),
        }],
    }
}

/// A switch whose links are up and whose neighbours offer all the credit there is.
fn bench(config: SwitchConfig) -> Bench {
    Bench::new(Switch::new(config).unwrap(), 1).up().unwrap()
}

fn packet(from: u16, to: u16, lane: u8, level: u8, psn: u32, payload: usize) -> Frame {
    Packet { lane, level, payload, ..Packet::new(from, to, psn) }.frame()
}

pub fn data(from: u16, to: u16, psn: u32) -> Frame {
    Packet::full(from, to, psn).frame()
}

#[test]
fn a_packet_leaves_by_its_route_unchanged_one_frame_time_later() {
    let mut bench = bench(config("none"));
    bench.inject(1, data(1, 3, 7));
    bench.run_for(Duration::from_us(5));
    assert_eq!(bench.sent(3), [data(1, 3, 7)]);
    assert_eq!(bench.counts(), [0, 0, 1, 0]);
}

#[test]
fn outputs_serve_backlogged_inputs_in_turn_and_keep_each_inputs_order() {
    let mut bench = bench(config("none"));
    for psn in 0..20 {
        bench.inject(1, data(1, 4, psn));
        bench.inject(2, data(2, 4, psn));
        bench.inject(3, data(3, 4, psn));
    }
    bench.run_for(Duration::from_us(62));
    let sources: Vec<u64> = bench
        .sent(4)
        .iter()
        .map(|frame| classify(frame.kind, &frame.octets).unwrap().source.number())
        .collect();
    assert_eq!(sources.len(), 30);
    for source in 1..=3 {
        assert_eq!(sources.iter().filter(|s| **s == source).count(), 10);
        let psns: Vec<u32> = bench
            .sent(4)
            .iter()
            .map(|frame| classify(frame.kind, &frame.octets).unwrap())
            .filter(|headers| headers.source.number() == source)
            .map(|headers| headers.psn)
            .collect();
        assert!(psns.is_sorted());
    }
}

#[test]
fn a_root_marks_when_its_queue_passes_90_percent_of_a_buffer_and_only_fecn_and_vcrc_change() {
    let mut bench = bench(config("ib-cca"));
    for psn in 0..30 {
        bench.inject(1, data(1, 4, psn));
        bench.inject(2, data(2, 4, psn));
    }
    bench.run_for(Duration::from_us(140));
    let mut marked = bench.sent(4);
    marked.retain(|frame| frame.octets[12] & 0x80 != 0);
    assert!(!marked.is_empty() && marked.len() < 30, "{} marked", marked.len());
    for frame in marked {
        verify_vcrc(&frame.octets).unwrap();
        verify_icrc(&frame.octets).unwrap();
        let headers = classify(frame.kind, &frame.octets).unwrap();
        let plain = data(headers.source.number() as u16, 4, headers.psn);
        let differing = (0..plain.octets.len()).filter(|i| plain.octets[*i] != frame.octets[*i]);
        assert!(differing.into_iter().all(|i| i == 12 || i >= plain.octets.len() - 2));
    }
    assert!(bench.events.iter().any(|event| matches!(event.kind, EventKind::Mark { .. })));
}

#[test]
fn a_port_starved_of_credit_is_a_victim_and_marks_nothing() {
    let mut bench = bench(config("ib-cca"));
    bench.set_mode(4, FcMode::Off);
    bench.run_for(Duration::from_us(2));
    for psn in 0..36 {
        bench.inject(1, data(1, 4, psn));
        bench.inject(2, data(2, 4, psn));
    }
    // Credit for one frame at a time: the port waits before each.
    bench.offer(4, 0, 0);
    for _ in 0..40 {
        bench.run_for(Duration::from_us(3));
        bench.offer(4, 0, 33);
    }
    assert!(bench.sent(4).len() > 20);
    let marked = bench.sent(4).iter().filter(|f| f.octets[12] & 0x80 != 0).count();
    // The very first heads are judged before anybody has waited.
    assert!(marked <= 2, "{marked} victims marked");
}

#[test]
fn a_packet_is_judged_once_when_its_predecessor_has_left() {
    let mut config = config("ib-cca");
    config.scheme.params = "threshold = 15".parse().unwrap();
    let mut bench = bench(config);
    for psn in 0..2 {
        bench.inject(1, data(1, 4, psn));
        bench.inject(2, data(2, 4, psn));
        bench.run_for(Duration::from_ns(2074));
    }
    // The last came to a queue of three frames, above 2.16, but its predecessor was on the line.
    bench.run_for(Duration::from_us(10));
    assert!(bench.sent(4).iter().all(|frame| frame.octets[12] & 0x80 == 0));
}

#[test]
fn judged_at_departure_every_victim_passes_for_a_root() {
    let mut config = config("ib-cca");
    config.scheme.params = "root_test = \"dequeue\"".parse().unwrap();
    let mut bench = bench(config);
    bench.set_mode(4, FcMode::Off);
    bench.run_for(Duration::from_us(2));
    for psn in 0..36 {
        bench.inject(1, data(1, 4, psn));
        bench.inject(2, data(2, 4, psn));
    }
    for _ in 0..20 {
        bench.offer(4, 0, 33);
        bench.run_for(Duration::from_us(3));
    }
    let marked = bench.sent(4).iter().filter(|f| f.octets[12] & 0x80 != 0).count();
    assert!(marked >= 19, "{marked} marked");
}

#[test]
fn fecn_from_an_earlier_switch_is_never_cleared() {
    let mut bench = bench(config("none"));
    let mut frame = data(1, 3, 0);
    proto::wire::infiniband::relabel::relabel(&mut frame.octets, VirtualLane::ZERO, true);
    bench.inject(1, frame.clone());
    bench.run_for(Duration::from_us(5));
    assert_eq!(bench.sent(3), [frame]);
}

#[test]
fn read_singly_an_input_feeds_one_output_at_a_time() {
    let reach = |read| {
        let mut config = config("none");
        config.memory.read = read;
        let mut bench = bench(config);
        for psn in 0..10 {
            bench.inject(1, data(1, 3, psn));
            bench.inject(1, data(1, 4, psn));
        }
        bench.run_for(Duration::from_ns(2074 * 10 + 500));
        bench.sent(3).len() + bench.sent(4).len()
    };
    assert_eq!(reach(Read::Multi), 20);
    assert!((10..=11).contains(&reach(Read::Single)));
}

#[test]
fn odd_addresses_end_here_each_under_its_own_reason() {
    let mut config = config("none");
    let ports = vec![PortNumber::from_index(0)];
    config.multicast.push(MulticastRoute { lid: Lid::new(0xc001), ports });
    let mut bench = bench(config);
    bench.inject(1, data(1, 0xc001, 0));
    bench.inject(1, data(1, 77, 0));
    bench.inject(1, data(1, 0, 0));
    bench.inject(1, data(1, 0xffff, 0));
    bench.inject(1, data(1, 0xc005, 0));
    bench.inject(1, data(1, 1, 0));
    bench.inject(1, packet(1, 0xffff, 15, 0, 0, 256));
    bench.inject(1, packet(1, 3, 0, 15, 0, 256));
    bench.run_for(Duration::from_us(20));
    assert_eq!(bench.drops(1, DropReason::NoRoute), 3);
    assert_eq!(bench.drops(1, DropReason::NoMulticastRoute), 1);
    assert_eq!(bench.drops(1, DropReason::Hairpin), 2);
    assert_eq!(bench.drops(1, DropReason::Management), 1);
    assert_eq!(bench.drops(1, DropReason::Lane), 1);
    assert_eq!(bench.counts(), [0; 4]);
    assert_eq!(bench.device.ports[0].in_use(VirtualLane::ZERO), Bytes::ZERO, "all buffer is back");
}

#[test]
fn multicast_goes_out_by_every_port_but_its_own_and_frees_its_buffer_once() {
    let mut bench = bench(config("none"));
    bench.inject(1, data(1, 0xc000, 5));
    assert_eq!(bench.device.ports[0].in_use(VirtualLane::ZERO), Bytes::new(2112));
    bench.run_for(Duration::from_us(10));
    assert_eq!(bench.sent(2), [data(1, 0xc000, 5)]);
    assert_eq!(bench.sent(3), [data(1, 0xc000, 5)]);
    assert_eq!(bench.counts(), [0, 1, 1, 0]);
    assert_eq!(bench.device.ports[0].in_use(VirtualLane::ZERO), Bytes::ZERO);
    assert_eq!(bench.device.balance.injected, 1, "one copy more than came in");
}

#[test]
fn multicast_of_management_takes_no_group_for_ever() {
    let mut bench = bench(config("none"));
    for psn in 0..50 {
        bench.inject(1, packet(1, 0xc000, 15, 0, psn, 256));
        bench.run_for(Duration::from_us(2));
    }
    assert_eq!((bench.sent(2).len(), bench.sent(3).len()), (50, 50));
    assert!(bench.device.groups.iter().all(|copies| *copies == 0), "{:?}", bench.device.groups);
    bench.inject(1, data(1, 0xc000, 5));
    bench.run_for(Duration::from_us(10));
    assert_eq!(bench.device.groups, [0], "one group, and it is free again");
}

#[test]
fn management_needs_no_credit_and_overflows_into_its_own_counter() {
    let mut bench = bench(config("none"));
    bench.mute();
    bench.run_for(Duration::from_us(1));
    for psn in 0..40 {
        bench.inject(1, packet(1, 3, 15, 0, psn, 256));
    }
    bench.run_for(Duration::from_us(50));
    assert_eq!(bench.sent(3).len() as u64 + bench.drops(1, DropReason::ManagementOverrun), 40);
    assert!(bench.sent(3).len() >= 17);
}

#[test]
fn a_bad_icrc_is_not_the_switchs_business_but_a_bad_vcrc_is() {
    let mut bench = bench(config("none"));
    let mut frame = data(1, 3, 0);
    frame.octets[100] ^= 1;
    bench.inject(1, frame.clone());
    proto::wire::infiniband::crc::refresh_vcrc(&mut frame.octets);
    bench.inject(1, frame.clone());
    bench.run_for(Duration::from_us(10));
    assert_eq!(bench.drops(1, DropReason::Vcrc), 1);
    assert_eq!(bench.sent(3), [frame]);
}

#[test]
fn faulty_configurations_are_refused() {
    let with = |change: fn(&mut SwitchConfig)| {
        let mut config = config("none");
        change(&mut config);
        Switch::new(config).err()
    };
    assert!(matches!(with(|c| c.scheme.kind = "magic".into()), Some(ConfigError::Scheme(_))));
    assert!(matches!(with(|c| c.memory.kind = "none".into()), Some(ConfigError::Memory(_))));
    assert!(matches!(with(|c| c.sl2vl = vec![0; 3]), Some(ConfigError::ServiceLevels)));
    assert!(matches!(with(|c| c.sl2vl[3] = 16), Some(ConfigError::ServiceLevels)));
    assert!(matches!(with(|c| c.ports.truncate(2)), Some(ConfigError::Port(_))));
    assert!(matches!(with(|c| c.ports.clear()), Some(ConfigError::Ports(0))));
    let pool = with(|c| c.memory.kind = "shared-pool".into());
    assert!(matches!(pool, Some(ConfigError::Memory(_))), "credits know no pool");
    let routing = with(|c| c.routing.kind = Some("adaptive".into()));
    assert!(matches!(routing, Some(ConfigError::Routing(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes in, nothing panics, and every frame is sent, kept or counted.
    #[test]
    fn every_frame_is_sent_kept_or_counted(
        frames in proptest::collection::vec(
            (1..=PORTS, any::<bool>(), 0u16..8, 0u8..16, proptest::collection::vec(any::<u8>(), 0..300)),
            1..60,
        ),
    ) {
        let mut bench = bench(config("ib-cca"));
        let mut fed = 0u64;
        for (port, sound, to, level, octets) in frames {
            let frame = if sound {
                packet(1, to, 0, level, 0, octets.len())
            } else {
                Frame::unchecked(FrameKind::Infiniband, octets[..].into())
            };
            fed += 1;
            bench.inject(port, frame);
        }
        bench.run_for(Duration::from_us(3));
        let balance = bench.reading().balance;
        let sent: usize = bench.counts().iter().sum();
        prop_assert_eq!(fed + balance.injected, sent as u64 + bench.lost() + balance.buffered);
    }
}
