//! Addresses planned, learned, forgotten and unknown; flows that keep their path and spread.

use super::*;
use crate::routing::RoutingPolicy;
use crate::routing::forwarding_table::ForwardingTable;
use crate::routing::oblivious::ecmp;
use proto::frame::{FrameHeaders, FrameKind};
use proto::units::Duration;
use proto::wire::classify::classify;
use proto::wire::ethernet::{Envelope, ethertype};
use proto::wire::internet::{Ipv4, Udp};

const FOREIGN: u64 = 0x7cfe_9064_3b32;

fn port(index: usize) -> PortNumber {
    PortNumber::from_index(index)
}

fn route(lid: u16, index: usize) -> Route {
    Route { first: Lid::new(lid), last: Lid::new(lid), port: port(index) }
}

fn numbers() -> MacTableParams {
    MacTableParams {
        learned_max: 8,
        age: Duration::from_us(100),
        flood_gap: Duration::from_us(10),
        flood_burst: 3,
    }
}

/// Adapter 1 behind port 1, adapter 2 behind ports 3 and 4.
fn table() -> MacTable {
    MacTable::new(&[route(1, 0), route(2, 2), route(2, 3)], 4, &numbers())
}

fn mac(lid: u16) -> u64 {
    plan::mac(Lid::new(lid)).number()
}

/// A UDP packet over IPv4 from this source port.
fn frame(destination: u64, source: u64, source_port: u16) -> Vec<u8> {
    let [to, from] = [destination, source].map(MacAddress::from_number);
    let mut octets = vec![0; 64];
    Envelope::untagged(to, from, ethertype::IPV4).emit(&mut octets);
    let ip = Ipv4 { total_length: 48, ..Ipv4::default() };
    octets[14..34].copy_from_slice(&ip.to_octets());
    let udp = Udp { destination_port: 9, length: 28, ..Udp::roce(source_port) };
    octets[34..42].copy_from_slice(&udp.to_octets());
    octets
}

fn headers(octets: &[u8]) -> FrameHeaders {
    classify(FrameKind::Ethernet, octets).unwrap()
}

fn send(
    table: &mut MacTable,
    input: usize,
    octets: &[u8],
    us: u64,
) -> Result<Vec<usize>, DropReason> {
    let now = Instant::ZERO + Duration::from_us(us);
    let headers = headers(octets);
    let packet = RoutedPacket { input: port(input), headers: &headers, octets, now };
    match table.find(packet) {
        Lookup::Unicast(ports) => Ok(vec![ecmp(7).choose(packet, ports).index()]),
        Lookup::Multicast(ports) => Ok(ports.iter().map(|port| port.index()).collect()),
        Lookup::NoRoute(reason) => Err(reason),
    }
}

#[test]
fn planned_adapters_are_reached_by_their_routes() {
    let mut table = table();
    assert_eq!(send(&mut table, 1, &frame(mac(1), mac(2), 5), 0), Ok(vec![0]));
    assert!(table.learned.is_empty(), "what is planned is not learned");
}

#[test]
fn a_flow_keeps_its_path_and_flows_spread_over_all() {
    let mut table = table();
    let mut by_port = [0; 4];
    for source_port in 0..1000 {
        let octets = frame(mac(2), mac(1), source_port);
        let first = send(&mut table, 0, &octets, 0).unwrap();
        assert_eq!(send(&mut table, 0, &octets, 1).unwrap(), first);
        by_port[first[0]] += 1;
    }
    assert_eq!(by_port[0] + by_port[1], 0);
    assert!(by_port[2..].iter().all(|flows| (420..580).contains(flows)), "{by_port:?}");
}

#[test]
fn what_is_no_ip_is_spread_by_its_addresses() {
    let mut table = table();
    let mut seen = std::collections::BTreeSet::new();
    for source in 0..64 {
        let mut octets = frame(mac(2), 0x0600_0000_0000 + source, 0);
        octets[12..14].copy_from_slice(&0x88b6_u16.to_be_bytes());
        seen.extend(send(&mut table, 1, &octets, 0).unwrap());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_foreign_address_is_flooded_until_learned_and_after_it_aged_out() {
    let mut table = table();
    let to_it = frame(FOREIGN, mac(1), 1);
    assert_eq!(send(&mut table, 0, &to_it, 0), Ok(vec![0, 1, 2, 3]));
    let from_it = frame(mac(1), FOREIGN, 1);
    assert_eq!(send(&mut table, 1, &from_it, 1), Ok(vec![0]));
    assert_eq!(send(&mut table, 0, &to_it, 101), Ok(vec![1]));
    assert_eq!(send(&mut table, 0, &to_it, 102), Ok(vec![0, 1, 2, 3]));
    // It moves.
    send(&mut table, 2, &from_it, 103).unwrap();
    assert_eq!(send(&mut table, 0, &to_it, 104), Ok(vec![2]));
    let mut named = Vec::new();
    table.read(port(0), &mut named);
    assert_eq!(named, [("flooded_packets".to_owned(), 2)]);
}

#[test]
fn a_full_part_learns_only_what_an_old_entry_makes_room_for() {
    let mut table = table();
    for (source, us) in [(FOREIGN, 0), (FOREIGN + 1, 50), (FOREIGN + 2, 90), (FOREIGN + 2, 120)] {
        send(&mut table, 1, &frame(mac(1), source, 1), us).unwrap();
        assert!(table.learned.len() <= 2, "two of eight addresses for each of four ports");
        assert_eq!(table.learned.contains_key(&MacAddress::from_number(FOREIGN + 2)), us == 120);
    }
    // A group address is never learned.
    send(&mut table, 1, &frame(mac(1), MacAddress::BROADCAST.number(), 1), 500).unwrap();
    assert_eq!(table.learned.len(), 2);
    let mut named = Vec::new();
    table.read(port(1), &mut named);
    let expected = [("learned_addresses", 2), ("unlearned_packets", 1)];
    assert_eq!(named, expected.map(|(name, count)| (name.to_owned(), count)));
}

/// Whatever one port claims, an address of another port stays known, and memory and work stay bounded.
#[test]
fn a_flood_of_addresses_displaces_none_of_another_port() {
    let mut table = table();
    send(&mut table, 2, &frame(mac(1), FOREIGN, 1), 0).unwrap();
    for n in 1..5_000 {
        let us = n / 100;
        send(&mut table, 1, &frame(mac(1), FOREIGN + n, 1), us).unwrap();
        let entries: usize = table.shares.iter().map(|share| share.addresses.len()).sum();
        assert!(table.learned.len() <= 3 && entries <= 6, "{n}: {entries}");
    }
    assert_eq!(send(&mut table, 0, &frame(FOREIGN, mac(1), 1), 60), Ok(vec![2]));
}

#[test]
fn an_address_that_wanders_between_ports_leaves_nothing_behind() {
    let mut table = table();
    for n in 0..1_000 {
        let input = 1 + n as usize % 3;
        send(&mut table, input, &frame(mac(1), FOREIGN, 1), n).unwrap();
        assert_eq!(table.shares.iter().map(|share| share.count).sum::<usize>(), 1);
        assert!(table.shares.iter().all(|share| share.addresses.len() <= 4), "{:?}", table.shares);
    }
}

#[test]
fn groups_are_flooded_but_not_those_of_the_link_alone_and_no_more_than_allowed() {
    let mut table = table();
    for last in 0..16 {
        let refused = send(&mut table, 0, &frame(RESERVED + last, mac(1), 0), 0);
        assert_eq!(refused, Err(DropReason::ReservedAddress));
    }
    let everybody = frame(MacAddress::BROADCAST.number(), mac(1), 0);
    for _ in 0..3 {
        assert_eq!(send(&mut table, 0, &everybody, 0), Ok(vec![0, 1, 2, 3]));
    }
    assert_eq!(send(&mut table, 0, &everybody, 0), Err(DropReason::FloodLimit));
    assert_eq!(send(&mut table, 0, &everybody, 9), Err(DropReason::FloodLimit));
    assert!(send(&mut table, 1, &everybody, 9).is_ok(), "each port has its own allowance");
    assert!(send(&mut table, 0, &everybody, 10).is_ok());
    assert!(send(&mut table, 0, &frame(RESERVED + 16, mac(1), 0), 20).is_ok());
}

#[test]
fn a_packet_of_the_other_technology_has_no_route() {
    let octets = frame(mac(1), mac(2), 9);
    let (ethernet, now) = (headers(&octets), Instant::ZERO);
    let packet = |headers| RoutedPacket { input: port(0), headers, octets: &octets, now };
    let nowhere = Lookup::NoRoute(DropReason::NoRoute);
    assert_eq!(ForwardingTable::default().find(packet(&ethernet)), nowhere);
    let infiniband = FrameHeaders { source: Address::Lid(Lid::new(2)), ..ethernet };
    let malformed = Lookup::NoRoute(DropReason::Malformed);
    assert_eq!(table().find(packet(&infiniband)), malformed);
}
