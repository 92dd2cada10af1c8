//! Content and size of RoCEv2 packets, and which received frames are refused.

use super::*;
use crate::config::Encapsulation;
use crate::nic::tests::cable;
use crate::wire::WireFormat;
use bytes::BytesMut;
use proto::frame::{Frame, FrameKind, FramePool, Integrity};
use proto::ids::Psn;
use proto::wire::classify::classify_ethernet;
use proto::wire::ethernet::{CongestionTag, preface};
use proto::wire::infiniband::{Aeth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::internet::Udp;
use proto::wire::project::RateTag;

const DATA: &[u8] = b"nine octe";

fn wire(lid: u16, version: RoceVersion) -> WireFormat {
    let roce = RoceConfig { version, ..RoceConfig::default() };
    WireFormat::new(&NicConfig { wire: Encapsulation::Roce(roce), ..cable::config(lid) })
}

fn outward(class: FrameClass) -> OutgoingPacket {
    let queue_pair = QueuePairNumber::planned(0, Lid::new(2));
    let remote = QueuePairNumber::planned(0, Lid::new(1));
    let aeth = Aeth { syndrome: Syndrome::from_octet(0x1f), message_sequence_number: 0 };
    let (opcode, extended) = match class {
        FrameClass::Notification => (Opcode::ROCEV2_CNP, ExtendedHeaders::NONE),
        FrameClass::Ack => {
            (Opcode::RC_ACKNOWLEDGE, ExtendedHeaders { aeth: Some(aeth), ..ExtendedHeaders::NONE })
        }
        _ => (Opcode::RC_SEND_ONLY, ExtendedHeaders::NONE),
    };
    OutgoingPacket {
        to: Lid::new(2),
        lane: VirtualLane::ZERO,
        level: ServiceLevel::default(),
        queue_pair,
        class,
        bth: Bth::new(opcode, remote, Psn::truncate(7)),
        extended,
    }
}

fn emitted(version: RoceVersion, class: FrameClass, payload: &[u8]) -> Frame {
    let append = |octets: &mut BytesMut| octets.extend_from_slice(payload);
    wire(1, version).emit(&outward(class), &mut FramePool::default(), payload.len(), append)
}

/// The packet in a frame.
fn parsed<'a>(wire: &WireFormat, octets: &'a [u8]) -> Result<ReceivedPacket<'a>, DropReason> {
    match wire.roce().expect("the format is RoCE").parse_frame(octets, octets.len())? {
        FrameContent::Packet(inward) => Ok(inward),
        other => panic!("{other:?}"),
    }
}

const VERSIONS: [RoceVersion; 2] = [RoceVersion::V2Ipv4, RoceVersion::V2Ipv6];

#[test]
fn an_emitted_packet_parses_at_its_receiver() {
    for version in VERSIONS {
        let frame = emitted(version, FrameClass::Data, DATA);
        assert_eq!((frame.kind, frame.integrity), (FrameKind::Ethernet, Integrity::Intact));
        let receiver = wire(2, version);
        assert_eq!(receiver.verify(&frame.octets), Ok(()));
        let inward = parsed(&receiver, &frame.octets).unwrap();
        assert_eq!((inward.from, inward.transport.payload), (Lid::new(1), DATA));
        assert_eq!(inward.transport.bth.psn.get(), 7);
        let headers = classify_ethernet(&frame.octets, &PriorityMap::BY_DSCP).unwrap();
        assert!(receiver.is_own(headers.destination.number()));
        assert_eq!(parsed(&wire(3, version), &frame.octets).unwrap_err(), DropReason::NotForUs);
    }
}

#[test]
fn only_data_is_ecn_capable_and_each_kind_has_its_dscp() {
    let kinds = [
        (FrameClass::Data, DATA, Ecn::Capable0, 24),
        (FrameClass::Ack, &[][..], Ecn::NotCapable, 24),
        (FrameClass::Notification, &[0; 16][..], Ecn::NotCapable, 48),
    ];
    for version in VERSIONS {
        for (class, payload, ecn, dscp) in kinds {
            let frame = emitted(version, class, payload);
            let headers = classify_ethernet(&frame.octets, &PriorityMap::BY_DSCP).unwrap();
            assert_eq!((headers.class, headers.ecn, headers.lane.get()), (class, ecn, dscp >> 3));
            let packet = Packet::parse(&frame.octets).unwrap().unwrap();
            let said = match packet.network {
                NetworkHeaders::Ipv4(ip, ..) => ip.dscp,
                NetworkHeaders::Ipv6(ip, _) => ip.dscp,
                NetworkHeaders::Global(_) => panic!("not the second version"),
            };
            assert_eq!(said.get(), dscp);
        }
    }
}

#[test]
fn lanes_are_the_priorities_of_the_dscps() {
    let wire = wire(1, RoceVersion::V2Ipv4);
    let lanes = (0..16).map(|level| wire.lane(ServiceLevel::truncate(level)).get());
    assert_eq!(lanes.collect::<Vec<_>>(), [3, 1, 2, 3, 4, 5, 6, 7, 3, 3, 3, 3, 3, 3, 3, 3]);
    assert_eq!(wire.notification_lane(ServiceLevel::default()).get(), 6);
}

#[test]
fn frames_have_tags_on_a_link_with_priorities_by_pcp() {
    let mut config = cable::on_ethernet(cable::config(1), RoceVersion::V2Ipv4);
    let FlowControlConfig::Pause(pause) = &mut config.link.control else { panic!("on Ethernet") };
    pause.priorities = PriorityMap::BY_PCP;
    let wire = WireFormat::new(&config);
    assert_eq!(wire.lane(ServiceLevel::default()).get(), 3);
    assert_eq!(wire.notification_lane(ServiceLevel::default()).get(), 6);
    let append = |octets: &mut BytesMut| octets.extend_from_slice(DATA);
    let data = outward(FrameClass::Data);
    let frame = wire.emit(&data, &mut FramePool::default(), DATA.len(), append);
    assert_eq!(frame.line_size(), wire.size(0, DATA.len()));
    let headers = classify_ethernet(&frame.octets, &PriorityMap::BY_PCP).unwrap();
    assert_eq!((headers.lane.get(), headers.class), (3, FrameClass::Data));
    let receiver = WireFormat::new(&cable::on_ethernet(cable::config(2), RoceVersion::V2Ipv4));
    assert_eq!(receiver.verify(&frame.octets), Ok(()));
    assert_eq!(parsed(&receiver, &frame.octets).unwrap().transport.payload, DATA);
}

#[test]
fn sizes_count_da_to_fcs_and_are_at_least_64() {
    for (version, headers) in VERSIONS.into_iter().zip([62, 82]) {
        let wire = wire(1, version);
        assert_eq!(wire.size(0, 1_024).get(), headers + 1_024);
        assert_eq!(wire.size(0, 9).get(), headers + 12);
        for (class, payload) in [(FrameClass::Data, DATA), (FrameClass::Notification, &[0; 16])] {
            let frame = emitted(version, class, payload);
            assert_eq!(frame.octets.len() as u64 + 4, wire.size(0, payload.len()).get());
        }
    }
    assert_eq!(wire(1, RoceVersion::V2Ipv4).size(0, 0).get(), 64);
}

#[test]
fn the_source_port_spreads_queue_pairs_and_is_stable() {
    let port = |class, peer| {
        let ours = QueuePairNumber::planned(class, Lid::new(peer));
        source_port(ours, QueuePairNumber::planned(class, Lid::new(1)))
    };
    let ports: std::collections::BTreeSet<u16> =
        (0..8).flat_map(|class| (2..66).map(move |peer| port(class, peer))).collect();
    assert!(ports.len() > 480, "{} of 512", ports.len());
    assert!(ports.iter().all(|port| *port >= 0xc000));
    assert_eq!(port(3, 9), port(3, 9));
}

/// Conformance cases ROCE-15 and ROCE-16 at the level of the wire format.
#[test]
fn invalid_packets_have_a_drop_reason() {
    let receiver = wire(2, RoceVersion::V2Ipv4);
    let good = emitted(RoceVersion::V2Ipv4, FrameClass::Data, DATA);
    let verdict = |change: &dyn Fn(&mut [u8])| {
        let mut octets = good.octets.to_vec();
        change(&mut octets);
        receiver.verify(&octets).and_then(|()| parsed(&receiver, &octets).map(|_| ()))
    };
    let with_checksum = |octets: &mut [u8]| {
        let checksum = proto::wire::internet::checksum::ipv4_header(&octets[14..34]);
        octets[24..26].copy_from_slice(&checksum.to_be_bytes());
    };
    assert_eq!(verdict(&|_| {}), Ok(()));
    let payload_at = 14 + Ipv4::LEN + Udp::LEN + Bth::LEN;
    assert_eq!(verdict(&|octets| octets[payload_at] ^= 1), Err(DropReason::Icrc));
    assert_eq!(verdict(&|octets| octets[24] ^= 1), Err(DropReason::Checksum));
    // Destination port 4792, and a fragment.
    assert_eq!(verdict(&|octets| octets[37] += 1), Err(DropReason::NotRoce));
    let fragment = |octets: &mut [u8]| {
        octets[20] |= 0x20;
        with_checksum(octets);
    };
    assert_eq!(verdict(&fragment), Err(DropReason::NotRoce));
    assert_eq!(verdict(&|octets| octets[39] -= 4), Err(DropReason::PacketLength));
    assert_eq!(verdict(&|octets| octets[12] = 0x89), Err(DropReason::NotRoce));
}

#[test]
fn a_packet_behind_a_tag_of_any_ethertype_is_verified_and_parsed() {
    let types = ProjectTypes::new(0x9abc, 0x9abd, 0x9abe).expect("unused EtherTypes");
    let mut config = cable::on_ethernet(cable::config(2), RoceVersion::V2Ipv4);
    let FlowControlConfig::Pause(pause) = &mut config.link.control else { panic!("on Ethernet") };
    pause.project = types;
    let receiver = WireFormat::new(&config);
    let mut octets = emitted(RoceVersion::V2Ipv4, FrameClass::Data, DATA).octets;
    let tag = CongestionTag::RateRegulated(RateTag::default());
    preface::insert_tag(&mut octets, tag, &types).expect("a whole frame");
    assert_eq!(receiver.verify(&octets), Ok(()));
    assert_eq!(parsed(&receiver, &octets).unwrap().transport.payload, DATA);
    octets[14 + tag.octets_len() + Ipv4::LEN + Udp::LEN + Bth::LEN] ^= 1;
    assert_eq!(receiver.verify(&octets), Err(DropReason::Icrc));
}
