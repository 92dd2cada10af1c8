//! Classification of InfiniBand packets agrees with the full parse and never panics.

use super::*;
use crate::counters::DropReason;
use crate::ids::{Lid, ServiceLevel};
use crate::tests::infiniband::{self as samples, LOCAL, builders, payloads};
use crate::wire::infiniband::{FlowControlOp, FlowControlPacket as Fcp, Grh, Packet};
use proptest::prelude::*;

fn look(octets: &[u8]) -> Result<FrameHeaders, ParseError> {
    classify(FrameKind::Infiniband, octets)
}

#[test]
fn the_sample_packet_is_data_with_fourteen_octets_of_payload() {
    let expected = FrameHeaders {
        size: Bytes::new(58),
        source: Lid::new(0x17d2).into(),
        destination: Lid::new(0x375c).into(),
        multicast: false,
        lane: VirtualLane::truncate(7),
        level: ServiceLevel::truncate(1),
        class: FrameClass::Data,
        queue_pair: 0x87_b1b3,
        psn: 0x0d_ec2a,
        fecn: false,
        becn: false,
        ecn: Ecn::NotCapable,
        regulated_by: None,
        payload: Bytes::new(14),
    };
    assert_eq!(look(&LOCAL), Ok(expected));
}

#[test]
fn the_opcode_decides_the_class_until_the_lane_does() {
    let class = |opcode: u8, lane: u8| {
        let mut octets = LOCAL;
        octets[0] = lane << 4;
        octets[8] = opcode;
        look(&octets).map(|headers| headers.class)
    };
    assert_eq!(class(Opcode::CNP.0, 0), Ok(FrameClass::Notification));
    assert_eq!(class(Opcode::ROCEV2_CNP.0, 0), Ok(FrameClass::Data));
    assert_eq!(class(Opcode::RC_ACKNOWLEDGE.0, 0), Ok(FrameClass::Ack));
    assert_eq!(class(Opcode::RC_ATOMIC_ACKNOWLEDGE.0, 0), Ok(FrameClass::Ack));
    assert_eq!(class(Opcode::RC_READ_REQUEST.0, 0), Ok(FrameClass::Data));
    assert_eq!(class(0xff, 0), Ok(FrameClass::Data));
    assert_eq!(class(Opcode::CNP.0, 15), Ok(FrameClass::Management));
    assert_eq!(class(Opcode::UD_SEND_ONLY.0, 15), Ok(FrameClass::Management));
}

#[test]
fn multicast_lids_are_multicast_and_the_permissive_lid_is_not() {
    let multicast = |dlid: u16| {
        let mut octets = LOCAL;
        octets[2..4].copy_from_slice(&dlid.to_be_bytes());
        look(&octets).expect("the lengths are valid").multicast
    };
    let cases = [(0, false), (0xbfff, false), (0xc000, true), (0xfffe, true), (0xffff, false)];
    for (dlid, expected) in cases {
        assert_eq!(multicast(dlid), expected, "{dlid:#x}");
    }
}

#[test]
fn a_raw_packet_is_data_without_a_queue_pair() {
    let mut raw = LOCAL;
    raw[1] &= !0b11;
    let headers = look(&raw).expect("the lengths are valid");
    assert_eq!((headers.class, headers.queue_pair, headers.psn), (FrameClass::Data, 0, 0));
    assert_eq!(headers.payload, Bytes::new(48));
}

/// IBRX-03.
#[test]
fn a_wrong_pktlen_and_a_malformed_packet_have_different_reasons() {
    for declared in [0x0d, 0x0f, 0, 5, 0x7ff_u16] {
        let mut octets = LOCAL;
        octets[4..6].copy_from_slice(&declared.to_be_bytes());
        let refused = look(&octets).expect_err("disagrees with 58 octets");
        assert_eq!(refused.drop_reason(), DropReason::PacketLength, "{declared:#x}");
    }
    assert_eq!(look(&LOCAL[..7]).map_err(|e| e.drop_reason()), Err(DropReason::Malformed));
}

/// One counter a meaning: a version and a GRH that no port accepts are not octets without a structure.
#[test]
fn a_wrong_version_and_a_wrong_grh_have_their_own_reasons() {
    let reason = |octets: &[u8]| look(octets).expect_err("refused").drop_reason();
    for version in 1..16 {
        let mut octets = LOCAL;
        octets[0] |= version;
        assert_eq!(reason(&octets), DropReason::LinkVersion, "LVer {version}");
    }
    let mut octets = samples::global();
    octets[Lrh::LEN + 6] = 17;
    assert_eq!(reason(&octets), DropReason::GlobalHeader, "UDP behind a GRH");
    let fault = |octets: &[u8]| Packet::parse(octets).expect_err("refused").drop_reason();
    octets[Lrh::LEN + 6] = Grh::NEXT_HEADER_BTH;
    octets[Lrh::LEN] = 0x40;
    assert_eq!(fault(&octets), DropReason::GlobalHeader, "IPVer 4");
    let mut octets = LOCAL;
    octets[samples::LOCAL_BTH + 1] |= 1;
    assert_eq!(fault(&octets), DropReason::TransportVersion);
}

#[test]
fn kinds_without_packet_headers_are_refused_by_layer() {
    let link = Fcp { op: FlowControlOp::Init, fctbs: 0, virtual_lane: VirtualLane::ZERO, fccl: 9 };
    let refused = classify(FrameKind::InfinibandLink, &link.to_octets()).expect_err("no LRH");
    assert_eq!(refused.drop_reason(), DropReason::LinkPacket);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn classify_agrees_with_the_full_parse(builder in builders(), payload in payloads()) {
        let octets = samples::build(&builder, &payload);
        let headers = look(&octets)?;
        let packet = Packet::parse(&octets)?;
        let bth = packet.bth.expect("the packet has a BTH");
        prop_assert_eq!(headers.size.get(), octets.len() as u64);
        prop_assert_eq!(headers.source, packet.lrh.slid.into());
        prop_assert_eq!(headers.destination, packet.lrh.dlid.into());
        prop_assert_eq!(headers.lane, packet.lrh.virtual_lane);
        prop_assert_eq!(headers.level, packet.lrh.service_level);
        prop_assert_eq!(headers.queue_pair, bth.destination.get());
        prop_assert_eq!(headers.psn, bth.psn.get());
        prop_assert_eq!((headers.fecn, headers.becn), (bth.fecn, bth.becn));
        prop_assert_eq!(headers.payload.get(), payload.len() as u64);
    }

    #[test]
    fn classify_never_panics(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        for kind in [FrameKind::Infiniband, FrameKind::InfinibandLink, FrameKind::Ethernet] {
            let _ = classify(kind, &octets);
        }
    }

    /// `classify` accepts every packet that the full parse accepts. Only the full parse, in the adapter,
    /// refuses wrong versions and lengths of the GRH and wrong versions of the transport.
    #[test]
    fn classify_is_no_stricter_than_the_full_parse(
        mut octets in proptest::collection::vec(any::<u8>(), 8..140),
    ) {
        let words = octets.len() / 4;
        octets.resize(words * 4 + 2, 0);
        octets[0] &= 0xf0;
        octets[4..6].copy_from_slice(&[0, words as u8]);
        match (Packet::parse(&octets), look(&octets)) {
            (Ok(packet), Ok(headers)) => {
                prop_assert_eq!(headers.payload.get(), packet.payload.len() as u64);
            }
            (Ok(_), Err(refused)) => prop_assert!(false, "only classify refuses: {}", refused),
            (Err(refused), Ok(_)) => prop_assert!(matches!(refused.layer, "GRH" | "BTH")),
            (Err(_), Err(_)) => {}
        }
    }
}
