//! The adaptive policy in a router: it inspects good and forged messages and routes frames accordingly.

use super::*;
use crate::config::{PortConfig, Route, RoutingConfig, SwitchConfig};
use crate::routing::router::{Decision, Router};
use proto::Technology;
use proto::congestion::{CnmBody, Notification, SchemeConfig};
use proto::frame::FrameKind;
use proto::ids::{CongestionPointId, Lid, Priority, VlanId};
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig};
use proto::units::{BitRate, Duration};
use proto::wire::classify::classify;
use proto::wire::ethernet::{Cnm, Envelope, VlanTag, ethertype, plan};
use std::collections::BTreeSet;

/// The port to adapter 1, those to adapter 2 by preference, and the one to adapter 3.
const HOME: usize = 0;
const WAYS: [usize; 2] = [2, 1];
const OTHER: usize = 3;

fn port(index: usize) -> PortNumber {
    PortNumber::from_index(index)
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn router(absorb: bool) -> Router {
    let route = |lid, index| Route { first: Lid::new(lid), last: Lid::new(lid), port: port(index) };
    let link = LinkConfig {
        rate: BitRate::gbps(10),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(600_000),
        control: FlowControlConfig::Pause(PauseConfig::default()),
    };
    let faces = |index: usize| index == HOME || index == OTHER;
    let mut routing = RoutingConfig { kind: Some("adaptive".into()), ..RoutingConfig::default() };
    routing.params.insert("absorb".to_owned(), absorb.into());
    let config = SwitchConfig {
        name: "s0".to_owned(),
        seed: 1,
        lid: Lid::new(100),
        memory: crate::config::MemoryConfig::default(),
        sl2vl: Vec::new(),
        scheme: SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        ports: (0..4)
            .map(|index| PortConfig::plain(faces(index), link.clone(), Duration::ZERO))
            .collect(),
        routes: vec![route(1, HOME), route(2, WAYS[0]), route(2, WAYS[1]), route(3, OTHER)],
        multicast: Vec::new(),
        routing,
        watchdog: None,
        management: None,
    };
    let policy = Adaptive::new(&config, &*config.scheme.roles().unwrap()).unwrap();
    Router::new(&config, Box::new(policy), Technology::Ethernet)
}

/// A message to adapter `source` about congestion on the way to `destination`.
fn message(source: u16, destination: u16, severity: u8) -> Vec<u8> {
    let envelope = Envelope::untagged(
        plan::mac(Lid::new(source)),
        plan::port_mac(Lid::new(100), port(0)),
        ethertype::CNM,
    );
    let tag = VlanTag {
        priority: Priority::truncate(6),
        drop_eligible: false,
        id: VlanId::truncate(0),
        ethertype: ethertype::CNM,
    };
    let envelope = envelope.tagged(tag);
    let cnm = Cnm {
        quantized_feedback: severity,
        cpid: 7,
        encapsulated_destination: plan::mac(Lid::new(destination)),
        ..Cnm::default()
    };
    let mut octets = vec![0; 18];
    envelope.emit(&mut octets);
    octets.extend_from_slice(&cnm.to_octets());
    octets.resize(60, 0);
    octets
}

fn data(destination: u16) -> Vec<u8> {
    let ends = [destination, 1].map(|lid| plan::mac(Lid::new(lid)));
    let mut octets = vec![0; 64];
    Envelope::untagged(ends[0], ends[1], 0x88b7).emit(&mut octets);
    octets
}

fn out(router: &mut Router, octets: &[u8], now: Instant) -> usize {
    let headers = classify(FrameKind::Ethernet, octets).unwrap();
    match router.route(RoutedPacket { input: port(HOME), headers: &headers, octets, now }) {
        Decision::Unicast(port) => port.index(),
        other => panic!("{other:?}"),
    }
}

fn total(router: &Router, index: usize, name: &str) -> u64 {
    let mut named = Vec::new();
    router.read(port(index), &mut named);
    named.iter().find(|(key, _)| key == name).map_or(0, |(_, count)| *count)
}

#[test]
fn an_inspected_message_diverts_frames_until_its_entry_expires() {
    let mut router = router(false);
    assert_eq!(out(&mut router, &data(2), at(0)), WAYS[0]);
    let heard = router.on_notification(port(WAYS[0]), &message(1, 2, 10), at(1));
    assert_eq!(heard, NotificationAction::Forward, "the source gets the message too");
    assert_eq!(out(&mut router, &data(2), at(1)), WAYS[1]);
    assert_eq!(router.poll_timeout(), at(250_001));
    assert_eq!(out(&mut router, &data(2), at(250_000)), WAYS[1]);
    router.handle_timeout(at(250_001));
    assert_eq!(out(&mut router, &data(2), at(250_001)), WAYS[0]);
    assert_eq!(router.poll_timeout(), Instant::NEVER);
    assert_eq!(total(&router, WAYS[1], "ar_diverted_packets"), 2);
}

#[test]
fn where_there_is_one_way_or_none_of_ours_nothing_is_noted() {
    let mut router = router(false);
    assert_eq!(
        router.on_notification(port(WAYS[1]), &message(1, 3, 10), at(0)),
        NotificationAction::Forward
    );
    assert_eq!(
        router.on_notification(port(WAYS[1]), &message(1, 77, 10), at(0)),
        NotificationAction::Forward
    );
    assert_eq!(
        router.on_notification(port(WAYS[0]), &message(1, 2, 0), at(0)),
        NotificationAction::Forward
    );
    assert_eq!(
        router.on_notification(port(WAYS[0]), &message(1, 2, 9)[..40], at(0)),
        NotificationAction::Forward
    );
    assert_eq!(router.on_notification(port(WAYS[0]), &data(2), at(0)), NotificationAction::Forward);
    assert_eq!(router.poll_timeout(), Instant::NEVER);
}

/// Adapter 3 forges messages about flows from 1 to 2, to any source.
#[test]
fn an_adapter_that_tells_of_flows_not_its_own_is_refused_and_changes_nothing() {
    let mut router = router(false);
    for source in [1, 2, 3, 50] {
        for (about, severity) in [(2, 63), (1, 63), (77, 1)] {
            let heard =
                router.on_notification(port(OTHER), &message(source, about, severity), at(0));
            assert_eq!(heard, NotificationAction::Refuse, "to {source} about {about}");
        }
    }
    assert_eq!(total(&router, OTHER, "ar_refused_packets"), 12);
    let tables = (0..4).map(|index| total(&router, index, "ar_remote_entries"));
    assert_eq!(tables.sum::<u64>(), 0);
    assert_eq!(out(&mut router, &data(2), at(0)), WAYS[0]);
    let own = router.on_notification(port(OTHER), &message(1, 3, 5), at(0));
    assert_eq!(own, NotificationAction::Forward, "an adapter may report the way to itself");
}

#[test]
fn messages_to_a_source_go_by_every_way_there_is() {
    let mut router = router(false);
    let ways: BTreeSet<usize> =
        (0..64).map(|us| out(&mut router, &message(2, 1, 5), at(us))).collect();
    assert_eq!(ways, BTreeSet::from(WAYS));
}

#[test]
fn a_message_ends_here_if_asked_to_and_while_another_way_is_free() {
    let mut router = router(true);
    assert_eq!(
        router.on_notification(port(WAYS[0]), &message(1, 2, 10), at(0)),
        NotificationAction::Absorb
    );
    assert_eq!(
        router.on_notification(port(WAYS[1]), &message(1, 2, 10), at(0)),
        NotificationAction::Forward
    );
    for name in ["ar_absorbed_packets", "ar_snooped_packets"] {
        assert_eq!(total(&router, WAYS[0], name), 1, "{name}");
    }
}

#[test]
fn local_congestion_ends_with_its_queue_and_its_message_returns_to_the_input() {
    let mut router = router(false);
    let body = CnmBody {
        quantized_feedback: 20,
        cpid: CongestionPointId::new(9).unwrap(),
        q_offset: -1,
        q_delta: 0,
    };
    let destination = plan::mac(Lid::new(2)).into();
    let ways = (port(HOME), port(WAYS[0]));
    let back = router.on_local_notification(&Notification::Cnm(body), destination, ways, at(0));
    assert_eq!(back, Some(port(HOME)));
    assert_eq!(total(&router, WAYS[0], "ar_local_entries"), 1);
    assert_eq!(out(&mut router, &data(2), at(0)), WAYS[1]);
    assert!(router.watches(port(WAYS[0])) && !router.watches(port(WAYS[1])));
    router.on_departure(port(WAYS[0]), Bytes::new(13_001));
    assert_eq!(out(&mut router, &data(2), at(9_000_000)), WAYS[1]);
    router.on_departure(port(WAYS[0]), Bytes::new(13_000));
    assert_eq!(out(&mut router, &data(2), at(9_000_000)), WAYS[0]);
    assert!(!router.watches(port(WAYS[0])));
}
