//! Classification of Ethernet frames agrees with the full parse and never panics.

use super::*;
use crate::counters::DropReason;
use crate::frame::{FrameClass, FrameKind};
use crate::ids::{Priority, ServiceLevel, VirtualLane};
use crate::tests::infiniband::payloads;
use crate::tests::roce::{self as samples, build, builders, octets};
use crate::wire::classify::classify;
use crate::wire::ethernet::{CnTag, CongestionTag, MacAddress, Pause, preface};
use crate::wire::internet::mark_congestion;
use crate::wire::project::RateTag;
use crate::wire::roce::Packet;
use crate::wire::roce::checks::{verify_checksums, verify_icrc};
use proptest::prelude::*;

fn look(octets: &[u8]) -> Result<FrameHeaders, ParseError> {
    classify(FrameKind::Ethernet, octets)
}

#[test]
fn a_tagged_send_is_data_of_the_tags_priority() {
    let expected = FrameHeaders {
        size: Bytes::new(78 + 4),
        source: MacAddress::from_number(0x7cfe_9064_3b32).into(),
        destination: MacAddress::from_number(0xe41d_2dab_2bc2).into(),
        multicast: false,
        lane: VirtualLane::truncate(3),
        level: ServiceLevel::truncate(3),
        class: FrameClass::Data,
        queue_pair: 0x118,
        psn: 0xab_cdef,
        fecn: false,
        becn: false,
        ecn: Ecn::Capable0,
        regulated_by: None,
        payload: Bytes::new(16),
    };
    assert_eq!(look(&octets(samples::SEND)), Ok(expected));
    let marked = FrameHeaders { ecn: Ecn::CongestionExperienced, ..expected };
    assert_eq!(look(&octets(samples::SEND_MARKED)), Ok(marked));
}

#[test]
fn a_dscp_map_sets_the_priority_from_the_ip_header() {
    let headers = |sample, map| classify_ethernet(&octets(sample), &map).expect("a packet");
    // DSCP 26 and PCP 3, DSCP 48 and no tag, DSCP 48 in IPv6, no IP.
    for (sample, by_pcp, by_dscp) in [
        (samples::SEND, 3, 3),
        (samples::CNP, 0, 6),
        (samples::CNP_IPV6, 0, 6),
        (samples::WRITE_V1, 0, 0),
    ] {
        assert_eq!(headers(sample, PriorityMap::BY_PCP).lane.get(), by_pcp, "{sample}");
        assert_eq!(headers(sample, PriorityMap::BY_DSCP).lane.get(), by_dscp, "{sample}");
    }
    let mut table = [Priority::default(); 64];
    table[26] = Priority::truncate(5);
    let map = PriorityMap::Dscp { table, other: Priority::truncate(1) };
    assert_eq!(headers(samples::SEND, map).lane.get(), 5);
    assert_eq!(headers(samples::WRITE_V1, map).lane.get(), 1);
    let map =
        PriorityMap::Pcp { table: [Priority::truncate(7); 8], untagged: Priority::truncate(2) };
    assert_eq!(
        (headers(samples::SEND, map).lane.get(), headers(samples::CNP, map).lane.get()),
        (7, 2)
    );
}

#[test]
fn the_opcode_decides_the_class() {
    let class = |sample, opcode: Opcode| {
        let mut octets = octets(sample);
        let bth = Layout::find(&octets).expect("a complete frame").expect("a RoCE frame").bth_at;
        octets[bth] = opcode.0;
        look(&octets).expect("a packet").class
    };
    assert_eq!(class(samples::CNP, Opcode::ROCEV2_CNP), FrameClass::Notification);
    assert_eq!(class(samples::CNP_IPV6, Opcode::ROCEV2_CNP), FrameClass::Notification);
    assert_eq!(class(samples::CNP, Opcode::CNP), FrameClass::Data);
    assert_eq!(class(samples::WRITE_V1, Opcode::ROCEV2_CNP), FrameClass::Data);
    assert_eq!(class(samples::SEND, Opcode::RC_ACKNOWLEDGE), FrameClass::Ack);
    assert_eq!(class(samples::SEND, Opcode::RC_WRITE_MIDDLE), FrameClass::Data);
}

#[test]
fn other_traffic_is_data_without_a_queue_pair() {
    let arp = [&[0xff; 6][..], &[2; 6], &[0x08, 0x06], &[0; 46]].concat();
    let headers = look(&arp).expect("a frame");
    assert_eq!((headers.class, headers.queue_pair), (FrameClass::Data, 0));
    assert_eq!((headers.multicast, headers.payload), (true, Bytes::new(46)));
    assert_eq!((headers.lane, headers.ecn), (VirtualLane::ZERO, Ecn::NotCapable));
}

#[test]
fn mac_control_has_no_headers() {
    let frame = MacControl::Pause(Pause { time: 1 }).to_octets(MacAddress::from_number(1));
    let refused = look(&frame).expect_err("to be read as MAC control");
    assert_eq!(refused.layer, MacControl::LAYER);
}

#[test]
fn each_fault_has_its_drop_reason() {
    let reason = |at: usize, value| {
        let mut octets = octets(samples::CNP);
        octets[at] = value;
        look(&octets).expect_err("a lie").drop_reason()
    };
    assert_eq!(reason(17, 61), DropReason::PacketLength);
    assert_eq!(reason(39, 41), DropReason::PacketLength);
    assert_eq!(reason(14, 0x55), DropReason::Malformed);
    assert_eq!(look(&[0; 13]).expect_err("too short").drop_reason(), DropReason::Malformed);
}

/// A frame of the project with a VLAN tag of priority 6.
fn of_the_project(body: &[u8]) -> Vec<u8> {
    let preface = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 5][..], &[0x81, 0, 0xc0, 0, 0x88, 0xb6]];
    [&preface.concat()[..], body].concat()
}

#[test]
fn a_test_frame_is_data_of_its_flow() {
    let frame = TestFrame { flow: 0x0102_0304, sequence: 9, ..TestFrame::default() };
    let octets = of_the_project(&[&[1][..], &frame.to_octets(), &[0; 40]].concat());
    let headers = look(&octets).expect("a frame");
    assert_eq!((headers.class, headers.lane.get()), (FrameClass::Data, 6));
    assert_eq!((headers.queue_pair, headers.psn), (0x0102_0304, 9));
    assert_eq!((headers.payload, headers.size.get()), (Bytes::new(40), 18 + 18 + 40 + 4));
    for present in 19..18 + 18 {
        let refused = look(&octets[..present]).expect_err("cut off");
        assert_eq!((refused.layer, refused.offset), ("test frame", 19));
    }
}

#[test]
fn messages_of_congestion_points_are_notifications() {
    let bcn = of_the_project(&[2; 60]);
    let mut cnm = bcn.clone();
    cnm[16..18].copy_from_slice(&ethertype::CNM.to_be_bytes());
    let mut unknown = bcn.clone();
    unknown[18] = 9;
    for (octets, class) in [
        (bcn, FrameClass::Notification),
        (cnm, FrameClass::Notification),
        (unknown, FrameClass::Data),
    ] {
        let headers = look(&octets).expect("a frame");
        assert_eq!((headers.class, headers.payload), (class, Bytes::new(60)));
        assert_eq!((headers.queue_pair, headers.lane.get()), (0, 6));
    }
}

#[test]
fn mac_control_behind_a_tag_is_refused_as_such() {
    let octets = of_the_project(&[&[3][..], &[0; 13], &[0x88, 0x08], &[0; 40]].concat());
    assert_eq!(look(&octets).expect_err("tagged").layer, MacControl::LAYER);
}

proptest! {
    #[test]
    fn a_tag_changes_only_the_size_and_the_regulating_congestion_point(
        builder in builders(), payload in payloads(), flow_id: u16, regulated in any::<(u64, u32)>(),
    ) {
        let before = build(&builder, &payload);
        let (cpid, timestamp) = regulated;
        let cn = CongestionTag::Cn(CnTag { flow_id, ethertype: 0 });
        let regulated = RateTag { cpid, timestamp, ..RateTag::default() };
        let by = CongestionPointId::new(cpid);
        for (tag, regulated_by) in [(cn, None), (CongestionTag::RateRegulated(regulated), by)] {
            let mut octets = before.clone();
            preface::insert_tag(&mut octets, tag, &ProjectTypes::DEFAULT)?;
            let plain = look(&before)?;
            let size = Bytes::new((octets.len() as u64 + 4).max(64));
            prop_assert_eq!(look(&octets)?, FrameHeaders { size, regulated_by, ..plain });
            let marked = mark_congestion(&mut octets);
            prop_assert_eq!(marked, plain.ecn.is_capable());
            prop_assert_eq!((verify_icrc(&octets), verify_checksums(&octets)), (Ok(()), Ok(())));
            let whole = Packet::parse(&octets)?.expect("a RoCE frame");
            prop_assert_eq!(whole.to_octets(), octets);
        }
    }

    #[test]
    fn it_agrees_with_the_full_parse(builder in builders(), payload in payloads()) {
        let octets = build(&builder, &payload);
        let packet = Packet::parse(&octets)?.expect("a RoCE frame");
        let headers = look(&octets)?;
        let bth = packet.transport.bth;
        prop_assert_eq!((headers.psn, headers.queue_pair), (bth.psn.get(), bth.destination.get()));
        prop_assert_eq!((headers.fecn, headers.becn), (bth.fecn, bth.becn));
        prop_assert_eq!(headers.payload.get(), payload.len() as u64);
        prop_assert_eq!(headers.size.get(), (octets.len() as u64 + 4).max(64));
        prop_assert_eq!(headers.source, builder.source.into());
        prop_assert_eq!(headers.destination, builder.destination.into());
    }

    #[test]
    fn it_never_panics(
        octets in prop::collection::vec(any::<u8>(), 0..100),
        kind in prop::sample::select(&[0x0800u16, 0x86dd, 0x8915, 0x8100, 0x8808, 0x22e9, 0x88b6]),
    ) {
        let mut octets = octets;
        let _ = look(&octets);
        if octets.len() > 14 {
            octets[12..14].copy_from_slice(&kind.to_be_bytes());
            octets[14] = if kind == 0x0800 { 0x45 } else { 0x60 };
        }
        let _ = look(&octets);
    }
}
