//! Traffic to a foreign host, which another NIC plays: it serves perftest, and answers each short message.

use super::cable::*;
use super::*;
use crate::config::{HostConfig, NicConfig, RemoteConfig, RoceVersion, ServeConfig, ServiceKind};
use proto::ids::{Lid, Psn, QueuePairNumber};
use proto::units::{Bytes, Duration};
use proto::wire::infiniband::{Opcode, Transport};
use proto::wire::roce;

/// NIC 1 sends to number 2, which is not an adapter of its fabric. Number 2 listens at perftest's port.
fn pair(size: u64, messages: u64, version: RoceVersion) -> Pair {
    let remote = RemoteConfig { lid: Lid::new(2), class: 0, port: 18515, mtu: Bytes::new(1024) };
    let service = ServeConfig { kind: ServiceKind::Perftest, port: 18515 };
    let sender = NicConfig {
        adapters: [1, 3].map(Lid::new).to_vec(),
        host: Some(HostConfig { serve: Vec::new(), remotes: vec![remote] }),
        traffic: vec![burst(2, size, messages)],
        ack_timeout: Duration::from_us(100),
        ..config(1)
    };
    let receiver = NicConfig {
        name: "v1".to_owned(),
        adapters: [2, 4].map(Lid::new).to_vec(),
        host: Some(HostConfig { serve: vec![service], remotes: Vec::new() }),
        ..config(2)
    };
    Pair::new(on_ethernet(sender, version), on_ethernet(receiver, version))
}

fn named(pair: &mut Pair, nic: usize, name: &str) -> u64 {
    let reading = pair.reading(nic);
    let found = reading.ports[0].named.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1
}

fn packets(pair: &Pair, from: usize) -> impl Iterator<Item = Transport<'_>> {
    let all = pair.seen.iter().filter(move |seen| seen.from == from);
    all.filter_map(|seen| Some(roce::Packet::parse(&seen.octets).ok()??.transport))
}

/// Destination, PSN and payload of each RC SEND of NIC `from`.
fn sends(pair: &Pair, from: usize) -> Vec<(u32, Psn, usize)> {
    let sends =
        packets(pair, from).filter(|transport| transport.bth.opcode == Opcode::RC_SEND_ONLY);
    sends
        .map(|transport| {
            (transport.bth.destination.get(), transport.bth.psn, transport.payload.len())
        })
        .collect()
}

#[test]
fn messages_wait_for_a_connection_and_are_answered() {
    for version in [RoceVersion::V2Ipv4, RoceVersion::V2Ipv6] {
        let mut pair = pair(200, 20, version).run_until(us(2000));
        assert_eq!(named(&mut pair, 0, "host_connected"), 1, "{version:?}");
        assert_eq!(named(&mut pair, 1, "host_accepted"), 1);
        let sent = sends(&pair, 0);
        assert_eq!(sent.len(), 20);
        let (remote, first, _) = sent[0];
        assert!(remote < 1 << 16, "a number that the peer has chosen");
        assert!(sent.iter().zip(0..).all(|(one, n)| *one == (remote, first.plus(n), 200)));
        let answered = sends(&pair, 1);
        let own = QueuePairNumber::planned(0, Lid::new(2)).get();
        assert!(answered.iter().zip(0..).all(|(one, n)| *one == (own, Psn::truncate(n), 200)));
        assert_eq!(answered.len(), 20);
        let flow = pair.flow(0);
        assert_eq!((flow.messages, flow.completed), (20, 20));
        assert_eq!(pair.reception(0).messages, 20, "and its own are received");
    }
}

#[test]
fn lost_and_repeated_frames_change_nothing_but_the_time() {
    let mut count = 0u64;
    let mut pair = pair(200, 60, RoceVersion::V2Ipv4).with_impairment(move |_| {
        count += 1;
        match count % 11 {
            3 => Impairment::Lose,
            7 => Impairment::Duplicate,
            _ => Impairment::Pass,
        }
    });
    pair.advance(us(30_000_000));
    let flow = pair.flow(0);
    assert_eq!((flow.messages, flow.completed), (60, 60));
    assert_eq!(pair.reception(0).messages, 60);
    assert_eq!(named(&mut pair, 1, "host_messages"), 60, "each once");
    assert!(named(&mut pair, 1, "host_repeated") > 0);
}

#[test]
fn a_long_message_has_packets_of_the_path_mtu() {
    let mut pair = pair(5000, 1, RoceVersion::V2Ipv4).run_until(us(2000));
    let first = packets(&pair, 0).find(|transport| transport.bth.opcode == Opcode::RC_SEND_FIRST);
    assert_eq!(first.expect("a message of five packets").payload.len(), 1024);
    // A message of 5000 octets is none of perftest: the peer ends the connection.
    assert_eq!(named(&mut pair, 0, "host_lost"), 1);
}

#[test]
fn a_host_that_does_not_answer_is_counted_as_unreachable() {
    let mut pair = pair(200, 1, RoceVersion::V2Ipv4).with_impairment(|_| Impairment::Lose);
    pair.advance(us(30_000_000));
    assert!(named(&mut pair, 0, "host_unreachable") > 0);
}

#[test]
fn a_refused_connection_is_asked_for_again_and_then_given_up() {
    let mut pair = pair(200, 3, RoceVersion::V2Ipv4);
    pair.nics[1] = Nic::new(NicConfig {
        host: Some(HostConfig::default()),
        adapters: vec![Lid::new(2)],
        ..on_ethernet(config(2), RoceVersion::V2Ipv4)
    })
    .expect("it is valid");
    pair.advance(us(5_000_000));
    assert!(named(&mut pair, 1, "host_refused") > 3, "a program may start later");
    assert_eq!(named(&mut pair, 0, "host_lost"), 0);
    pair.advance(us(30_000_000));
    assert_eq!(named(&mut pair, 1, "host_refused"), 16);
    assert_eq!((named(&mut pair, 0, "host_lost"), pair.flow(0).withdrawn), (1, 3));
}
