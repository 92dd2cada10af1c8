//! Tests of whole packets: round trips, every truncation, lengths and pad of every payload.

use super::*;
use crate::counters::DropReason;
use crate::ids::{Lid, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use crate::tests::infiniband::{self as samples, LOCAL, builders, payloads};
use crate::wire::infiniband::{Aeth, Opcode, Reth, Syndrome, crc};
use proptest::prelude::*;

#[test]
fn the_sample_packet_round_trips() {
    let packet = Packet::parse(&LOCAL).expect("the sample packet parses");
    assert_eq!(packet.bth.map(|bth| bth.opcode), Some(Opcode::RC_WRITE_ONLY));
    assert_eq!(packet.extended.reth.map(|reth| reth.dma_length), Some(14));
    assert_eq!((packet.payload.len(), packet.pad), (14, &[0, 0][..]));
    assert_eq!((packet.icrc, packet.vcrc), (Some(0x5ab7_2596), 0xfa45));
    assert_eq!(packet.to_octets(), LOCAL[..]);
    assert_eq!(packet.octets_len(), LOCAL.len());
}

#[test]
fn the_sample_packet_is_built_from_its_fields() {
    let reth =
        Reth { virtual_address: 0x0171_0a1c_015d_4002, remote_key: 0x38f2_7a05, dma_length: 14 };
    let qpn = QueuePairNumber::truncate(0x87_b1b3);
    let bth = Bth::new(Opcode::RC_WRITE_ONLY, qpn, Psn::truncate(0x0d_ec2a));
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::truncate(7),
        service_level: ServiceLevel::truncate(1),
        dlid: Lid::new(0x375c),
        slid: Lid::new(0x17d2),
        grh: None,
        bth: Bth { partition_key: 0x2487, ..bth },
        extended: ExtendedHeaders { reth: Some(reth), ..ExtendedHeaders::NONE },
    };
    assert_eq!(samples::build(&builder, &LOCAL[36..50]), LOCAL[..]);
}

fn cnp() -> PacketBuilder {
    let bth = Bth::new(Opcode::CNP, QueuePairNumber::truncate(0x118), Psn::truncate(0));
    PacketBuilder {
        dlid: Lid::new(4),
        slid: Lid::new(1),
        ..PacketBuilder::new(Bth { becn: true, ..bth })
    }
}

/// ENC-07: a notification parses with and without its reserved body.
#[test]
fn a_congestion_notification_has_ten_words_or_six() {
    for (body, words) in [(16, 10), (0, 6)] {
        let octets = samples::build(&cnp(), &vec![0; body]);
        let packet = Packet::parse(&octets).expect("a built packet parses");
        let bth = packet.bth.expect("the packet is not raw");
        assert_eq!((packet.lrh.packet_length, octets.len()), (words, usize::from(words) * 4 + 2));
        assert_eq!((bth.opcode.0, bth.becn, bth.fecn, bth.psn.get()), (0x80, true, false, 0));
        assert_eq!(bth.destination.get(), 0x118);
        assert_eq!(packet.payload, vec![0; body]);
        assert_eq!(crc::verify_icrc(&octets), Ok(()));
        assert_eq!(crc::verify_vcrc(&octets), Ok(()));
    }
}

/// ENC-14.
#[test]
fn lengths_and_pad_are_right_for_every_payload() {
    let zero = Psn::truncate(0);
    let qpn = QueuePairNumber::truncate(2);
    let reth = Reth { virtual_address: 0, remote_key: 0, dma_length: 0 };
    let aeth = Aeth { syndrome: Syndrome::ACK, message_sequence_number: 0 };
    let none = ExtendedHeaders::NONE;
    let kinds = [
        (Opcode::RC_SEND_ONLY, none, 24),
        (Opcode::RC_WRITE_ONLY, ExtendedHeaders { reth: Some(reth), ..none }, 40),
        (Opcode::RC_ACKNOWLEDGE, ExtendedHeaders { aeth: Some(aeth), ..none }, 28),
    ];
    let mut octets = BytesMut::new();
    for (opcode, extended, headers_and_icrc) in kinds {
        let builder = PacketBuilder { extended, ..PacketBuilder::new(Bth::new(opcode, qpn, zero)) };
        let payloads = if opcode == Opcode::RC_ACKNOWLEDGE { 0..1 } else { 0..4097 };
        for length in payloads {
            builder
                .emit(&mut octets, length, |place| place.fill(0xee))
                .expect("the payload fits a packet");
            let packet = Packet::parse(&octets).expect("a built packet parses");
            let pad = (4 - length % 4) % 4;
            assert_eq!(packet.lrh.packet_length as usize * 4, headers_and_icrc + length + pad);
            assert_eq!(packet.bth.map(|bth| usize::from(bth.pad_count)), Some(pad));
            assert_eq!((packet.payload.len(), packet.pad.len()), (length, pad));
            assert!(packet.payload.iter().all(|octet| *octet == 0xee));
            assert!(packet.pad.iter().all(|octet| *octet == 0));
        }
    }
}

#[test]
fn an_impossible_packet_is_refused_and_leaves_the_buffer_unchanged() {
    let mut octets = BytesMut::from(&b"before"[..]);
    let builder = cnp();
    let longest = 0x7ff * 4 - 24;
    let refused = builder.emit(&mut octets, longest + 1, |_| unreachable!());
    assert_eq!(refused, Err(EmitError::TooLong { words: 0x800 }));
    let refused = builder.emit(&mut octets, usize::MAX, |_| unreachable!());
    assert!(matches!(refused, Err(EmitError::TooLong { .. })));
    let bth = Bth { opcode: Opcode::RC_WRITE_ONLY, ..builder.bth };
    let refused = PacketBuilder { bth, ..builder }.emit(&mut octets, 0, |_| unreachable!());
    assert_eq!(refused, Err(EmitError::ExtendedHeaders { opcode: Opcode::RC_WRITE_ONLY }));
    assert_eq!(octets, b"before"[..]);
    builder.emit(&mut octets, longest, |_| ()).expect("the longest payload fits");
    assert_eq!(octets.len(), 0x7ff * 4 + 2);
}

/// ENC-16: PktLen detects truncated packets and packets with trailing octets.
#[test]
fn pktlen_detects_every_truncation_and_every_trailing_octet() {
    for whole in [&LOCAL[..], &samples::global(), &samples::build(&cnp(), &[0; 16])] {
        for present in 0..whole.len() {
            let refused = Packet::parse(&whole[..present]).expect_err("cut");
            assert_eq!((refused.layer, refused.offset), ("LRH", 0));
            let reason = if present < 8 { DropReason::Malformed } else { DropReason::PacketLength };
            assert_eq!(refused.drop_reason(), reason);
        }
        for tail in 1..=64 {
            let long = [whole, &vec![0xaa; tail]].concat();
            let refused = Packet::parse(&long).expect_err("too long");
            assert_eq!(refused, ParseError::length("LRH", 0, whole.len(), long.len()));
        }
    }
}

/// The first `words` of a packet with a matching PktLen, so that an inner layer detects the truncation.
fn cut_to(whole: &[u8], words: u8) -> Vec<u8> {
    let mut octets = whole[..usize::from(words) * 4 + 2].to_vec();
    octets[5] = words;
    octets
}

#[test]
fn a_truncation_with_matching_pktlen_names_the_truncated_layer() {
    let refused = |whole: &[u8], words| {
        let octets = cut_to(whole, words);
        Packet::parse(&octets).expect_err("cut").to_string()
    };
    let global = samples::global();
    let local = |words| refused(&LOCAL, words);
    let global = |words| refused(&global, words);
    assert_eq!(local(2), "BTH at octet 8: needs 12 octets, 2 are left");
    assert_eq!(local(4), "BTH at octet 8: needs 12 octets, 10 are left");
    assert_eq!(local(5), "CRCs at octet 20: needs 6 octets, 2 are left");
    assert_eq!(local(6), "RETH at octet 20: needs 16 octets, 0 are left");
    assert_eq!(local(9), "RETH at octet 20: needs 16 octets, 12 are left");
    assert_eq!(local(10), "BTH at octet 8: declares 2 octets, 0 are present");
    assert_eq!(global(2), "GRH at octet 8: needs 40 octets, 2 are left");
    assert_eq!(global(11), "GRH at octet 8: needs 40 octets, 38 are left");
    assert_eq!(global(12), "BTH at octet 48: needs 12 octets, 2 are left");
    assert_eq!(global(15), "CRCs at octet 60: needs 6 octets, 2 are left");
    assert_eq!(global(16), "GRH at octet 8: declares 48 octets, 16 are present");
}

#[test]
fn other_versions_and_other_next_headers_are_refused() {
    let refused = |octets: &[u8], place: usize, bits: u8| {
        let mut octets = octets.to_vec();
        octets[place] ^= bits;
        Packet::parse(&octets).expect_err("not ours to read").to_string()
    };
    assert_eq!(refused(&LOCAL, 0, 0x01), "LRH at octet 0: unknown version 1");
    assert_eq!(refused(&LOCAL, 9, 0x02), "BTH at octet 8: unknown version 2");
    let global = samples::global();
    assert_eq!(refused(&global, 8, 0x20), "GRH at octet 8: unknown version 4");
    assert_eq!(refused(&global, 14, 0x1b ^ 6), "GRH at octet 8: the next header is not a BTH");
}

#[test]
fn a_raw_packet_has_only_payload_between_lrh_and_vcrc() {
    for next_header in 0..2 {
        let mut octets = LOCAL;
        octets[1] = octets[1] & !0b11 | next_header;
        let packet = Packet::parse(&octets).expect("the lengths are valid");
        assert_eq!((packet.bth, packet.grh, packet.icrc), (None, None, None));
        assert_eq!(packet.payload, &octets[8..56]);
        assert_eq!(packet.to_octets(), octets[..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    /// ENC-15, from field values.
    #[test]
    fn any_built_packet_parses_to_its_fields(builder in builders(), payload in payloads()) {
        let octets = samples::build(&builder, &payload);
        let packet = Packet::parse(&octets)?;
        let pad_count = packet.bth.map_or(0, |bth| bth.pad_count);
        prop_assert_eq!(packet.lrh.virtual_lane, builder.virtual_lane);
        prop_assert_eq!(packet.lrh.service_level, builder.service_level);
        prop_assert_eq!((packet.lrh.dlid, packet.lrh.slid), (builder.dlid, builder.slid));
        prop_assert_eq!(packet.bth, Some(Bth { pad_count, ..builder.bth }));
        prop_assert_eq!(packet.extended, builder.extended);
        prop_assert_eq!(packet.payload, payload);
        prop_assert_eq!(packet.grh.map(|grh| Grh { payload_length: 0, ..grh }),
                        builder.grh.map(|grh| Grh { payload_length: 0, ..grh }));
        prop_assert_eq!(crc::verify_icrc(&octets), Ok(()));
        prop_assert_eq!(crc::verify_vcrc(&octets), Ok(()));
        prop_assert_eq!(packet.to_octets(), octets);
    }

    /// ENC-15, from octets: every accepted packet round-trips, and no octets cause a panic.
    #[test]
    fn any_octets_with_matching_pktlen_round_trip_or_are_refused(
        mut octets in proptest::collection::vec(any::<u8>(), 8..140),
        make_readable: bool,
    ) {
        let words = octets.len() / 4;
        octets.resize(words * 4 + 2, 0);
        octets[4] = 0;
        octets[5] = words as u8;
        if make_readable {
            octets[0] &= 0xf0;
            octets[1] |= 0x02;
            octets[8..][..2].copy_from_slice(&[0x60, 0]);
        }
        if let Ok(packet) = Packet::parse(&octets) {
            prop_assert_eq!(packet.to_octets(), octets);
        }
    }
}
