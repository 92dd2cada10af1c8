//! Tests of RoCE packets: captured packets, round trips, truncation, and every bit flip.

use super::*;
use crate::counters::DropReason;
use crate::ids::{Dscp, QueuePairNumber};
use crate::tests::infiniband::payloads;
use crate::tests::roce::{self as samples, build, builders, octets};
use crate::wire::error::Reason;
use crate::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use crate::wire::roce::checks::{verify_checksums, verify_icrc};
use crate::wire::roce::notification;
use proptest::prelude::*;

fn parse(octets: &[u8]) -> Packet<'_> {
    Packet::parse(octets).expect("a complete frame").expect("a RoCE frame")
}

/// The builder that reproduces a packet.
fn builder_of<'a>(packet: &Packet<'a>) -> PacketBuilder<'a> {
    PacketBuilder {
        destination: packet.ethernet.header.destination,
        source: packet.ethernet.header.source,
        tag: packet.ethernet.tag,
        network: packet.network,
        bth: packet.transport.bth,
        extended: packet.transport.extended,
    }
}

#[test]
fn samples_round_trip_with_valid_checks() {
    for sample in samples::ALL {
        let octets = octets(sample);
        let packet = parse(&octets);
        assert_eq!(packet.to_octets(), octets);
        assert_eq!((verify_icrc(&octets), verify_checksums(&octets)), (Ok(()), Ok(())));
        let built = build(&builder_of(&packet), packet.transport.payload);
        // The builder does not reproduce the pad contents of hardware.
        assert_eq!(built.len(), octets.len());
        if packet.transport.pad.iter().all(|octet| *octet == 0) {
            assert_eq!(built, octets);
        }
    }
}

#[test]
fn the_cnp_of_an_adapter_is_built_from_its_fields() {
    let octets = octets(samples::CNP);
    let packet = parse(&octets);
    let NetworkHeaders::Ipv4(ip, &[], udp) = packet.network else { panic!("{packet:?}") };
    assert_eq!((ip.dscp, ip.total_length, udp.length), (Dscp::truncate(48), 60, 40));
    let queue_pair = QueuePairNumber::truncate(0x118);
    let bth = notification::bth(queue_pair, Bth::DEFAULT_PARTITION);
    assert_eq!(packet.transport.bth, bth);
    let ip = Ipv4 {
        dscp: ip.dscp,
        identification: 29068,
        source: [10, 0, 17, 1].into(),
        destination: [10, 0, 18, 1].into(),
        ..Ipv4::default()
    };
    let builder = PacketBuilder {
        destination: "e4:1d:2d:ab:2b:c2".parse().expect("an address"),
        source: "7c:fe:90:64:3b:32".parse().expect("an address"),
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(0)),
        bth,
        extended: ExtendedHeaders::NONE,
    };
    assert_eq!(build(&builder, &[0; notification::BODY_LEN]), octets);
}

#[test]
fn a_frame_without_roce_gives_none() {
    let roce = octets(samples::CNP);
    let none = |octets: &[u8]| assert_eq!(Packet::parse(octets), Ok(None));
    for (at, value) in [(13, 6), (23, 6), (36, 0), (20, 0x20), (21, 1)] {
        let mut other = roce.clone();
        other[at] = value;
        none(&other);
    }
    none(&[0; 14]);
}

#[test]
fn each_lie_is_named() {
    let refused = |sample, at: usize, value| {
        let mut octets = octets(sample);
        octets[at] = value;
        let error = Packet::parse(&octets).expect_err("a lie");
        (error.layer, error.offset, error.reason)
    };
    let length = |declared, present| Reason::Length { declared, present };
    assert_eq!(refused(samples::CNP, 14, 0x55), ("IPv4", 14, Reason::Version(5)));
    assert_eq!(refused(samples::CNP, 14, 0x44), ("IPv4", 14, Reason::Illegal("IHL is below 5")));
    assert_eq!(refused(samples::CNP, 17, 61), ("IPv4", 14, length(61, 60)));
    assert_eq!(refused(samples::CNP, 17, 19), ("IPv4", 14, length(19, 60)));
    assert_eq!(refused(samples::CNP, 17, 59), ("UDP", 34, length(40, 39)));
    assert_eq!(refused(samples::CNP, 39, 41), ("UDP", 34, length(41, 40)));
    assert_eq!(refused(samples::CNP, 43, 1), ("BTH", 42, Reason::Version(1)));
    assert_eq!(refused(samples::CNP_IPV6, 14, 0x50), ("IPv6", 14, Reason::Version(5)));
    assert_eq!(refused(samples::CNP_IPV6, 19, 41), ("IPv6", 14, length(41, 40)));
    assert_eq!(refused(samples::WRITE_V1, 14, 0x50), ("GRH", 14, Reason::Version(5)));
    assert_eq!(refused(samples::WRITE_V1, 19, 41), ("GRH", 14, length(41, 40)));
    assert_eq!(
        refused(samples::WRITE_V1, 19, 15),
        ("ICRC", 66, Reason::Short { needed: 4, present: 3 })
    );
    let illegal = Reason::Illegal("the next header is not a BTH");
    assert_eq!(refused(samples::WRITE_V1, 20, 17), ("GRH", 14, illegal));
}

#[test]
fn every_flipped_bit_is_detected_by_a_check() {
    for sample in samples::ALL {
        let whole = octets(sample);
        for bit in 14 * 8..whole.len() * 8 {
            let mut octets = whole.clone();
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            let seen = match Packet::parse(&octets) {
                Ok(Some(_)) => verify_icrc(&octets).is_err() || verify_checksums(&octets).is_err(),
                Ok(None) | Err(_) => true,
            };
            let at = bit / 8;
            // Variant fields without a checksum are exempt. A flip to UDP checksum 0 does not occur in the samples.
            let network = Layout::find(&whole).expect("a complete frame").expect("a RoCE frame");
            let free = match network.network {
                Network::Ipv4 => at == network.bth_at + 4,
                _ => (14..18).contains(&at) || at == 21 || at == network.bth_at + 4,
            };
            let tag = network.network_at == 18 && at < 18;
            assert!(seen || free || tag, "bit {bit} of {sample}");
        }
    }
}

#[test]
fn one_wrong_bit_of_the_icrc_is_counted_as_an_icrc_error() {
    let mut octets = octets(samples::SEND);
    let last = octets.len() - 1;
    octets[last] ^= 1;
    let refused = verify_icrc(&octets).expect_err("one bit is wrong");
    assert_eq!((refused.layer, refused.offset), ("ICRC", last - 3));
    assert_eq!(refused.drop_reason(), DropReason::Icrc);
}

#[test]
fn wrong_checksums_are_counted_as_checksum_errors() {
    for (at, layer, offset) in [(28, "IPv4", 18), (44, "UDP", 38)] {
        let mut octets = octets(samples::SEND);
        octets[at] ^= 1;
        let refused = verify_checksums(&octets).expect_err("one bit is wrong");
        assert_eq!((refused.layer, refused.offset), (layer, offset));
        assert_eq!(refused.drop_reason(), DropReason::Checksum);
        assert_eq!(verify_icrc(&octets), Ok(()), "outside the ICRC");
    }
}

#[test]
fn short_packets_are_padded_to_the_minimum_frame() {
    let cnp = octets(samples::CNP);
    let packet = parse(&cnp);
    let bth = Bth { opcode: Opcode::RC_SEND_ONLY, ..packet.transport.bth };
    let frame = build(&PacketBuilder { bth, ..builder_of(&packet) }, &[]);
    assert_eq!(frame.len(), 60);
    assert_eq!((verify_icrc(&frame), verify_checksums(&frame)), (Ok(()), Ok(())));
    assert_eq!(parse(&frame).trailer, [0; 2]);
}

#[test]
fn a_packet_beyond_its_length_fields_is_refused() {
    let cnp = octets(samples::CNP);
    let packet = parse(&cnp);
    let builder = builder_of(&packet);
    let mut buffer = BytesMut::from(&b"as it was"[..]);
    let error = builder.emit(&mut buffer, 65_535, |_| ()).expect_err("too long");
    assert_eq!(error, EmitError::TooLong { octets: 65_580 });
    let bth = Bth { opcode: Opcode::RC_ACKNOWLEDGE, ..builder.bth };
    let wrong = PacketBuilder { bth, ..builder };
    let error = wrong.emit(&mut buffer, 0, |_| ()).expect_err("an AETH is missing");
    assert_eq!(error, EmitError::ExtendedHeaders { opcode: Opcode::RC_ACKNOWLEDGE });
    let network = NetworkHeaders::Ipv4(Ipv4::default(), &[1, 1, 1], Udp::roce(0));
    let wrong = PacketBuilder { network, ..builder };
    let error = wrong.emit(&mut buffer, 0, |_| ()).expect_err("no words");
    assert_eq!(error, EmitError::Options { octets: 3 });
    assert_eq!(&buffer[..], b"as it was");
}

proptest! {
    #[test]
    fn what_is_built_is_read_back(builder in builders(), payload in payloads()) {
        let octets = build(&builder, &payload);
        let packet = parse(&octets);
        prop_assert_eq!(packet.transport.payload, &payload[..]);
        prop_assert_eq!(packet.transport.extended, builder.extended);
        prop_assert_eq!(packet.octets_len(), octets.len());
        prop_assert!(octets.len() >= 60);
        prop_assert_eq!((verify_icrc(&octets), verify_checksums(&octets)), (Ok(()), Ok(())));
        prop_assert_eq!(packet.to_octets(), &octets);
        prop_assert_eq!(build(&builder_of(&packet), &payload), octets);
    }

    #[test]
    fn accepted_packets_round_trip(
        builder in builders(), payload in payloads(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut octets = build(&builder, &payload);
        let headers = octets.len().min(120);
        for (place, value) in changes {
            octets[place.index(headers)] = value;
        }
        if let Ok(Some(packet)) = Packet::parse(&octets) {
            prop_assert_eq!(packet.to_octets(), octets);
        }
    }

    #[test]
    fn every_truncation_names_its_layer(builder in builders(), payload in payloads()) {
        let octets = build(&builder, &payload);
        let end = Layout::find(&octets)?.expect("a RoCE frame").end;
        for present in 0..end {
            let refused = Packet::parse(&octets[..present]).expect_err("too short");
            prop_assert!(!refused.layer.is_empty());
            prop_assert!(refused.offset <= present, "{} of {}", refused, present);
        }
    }

    #[test]
    fn no_octets_cause_a_panic(
        which in 0usize..4, octets in prop::collection::vec(any::<u8>(), 0..120), first: u8,
    ) {
        let kind = [0x0800u16, 0x86dd, 0x8915, 0x8100][which];
        let first = [0x45, 0x60, 0x60, first][which];
        let octets = [&[2; 12][..], &kind.to_be_bytes(), &[first], &octets].concat();
        let _ = (Packet::parse(&octets), verify_icrc(&octets), verify_checksums(&octets));
    }
}
