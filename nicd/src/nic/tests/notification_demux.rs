//! Test frames, CNM and BCN messages: which flows they limit, why they are refused, and the tags of limited
//! frames.

use super::cable::*;
use super::*;
use crate::config::*;
use bytes::BytesMut;
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, Priority, QueuePairNumber, VlanId};
use proto::link::{FlowControlConfig, PauseConfig};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::{
    CnTag, Cnm, CongestionTag, Envelope, Preface, VlanTag, ethertype, plan,
};
use proto::wire::project::{Bcn, ProjectTypes, RateTag, SUBTYPE_LEN, TestFrame};

const TYPES: ProjectTypes = ProjectTypes::DEFAULT;
const CPID: u64 = 0x0200_0100_0064_0003;
const LINE: u64 = 8_000_000_000;

/// NIC 0 sends `messages` to adapter 2 with PCP 3.
fn sending(transport: Transport, messages: u64, scheme: &str) -> NicConfig {
    let settings = NicConfig {
        traffic: vec![burst(2, 1500, messages)],
        classes: vec![class(transport, Operation::Send)],
        scheme: SchemeConfig { kind: scheme.to_owned(), params: toml::Table::new() },
        ..config(1)
    };
    let mut settings = on_ethernet(settings, RoceVersion::V2Ipv4);
    if let FlowControlConfig::Pause(pause) = &mut settings.link.control {
        *pause = PauseConfig { priorities: PriorityMap::BY_PCP, ..pause.clone() };
    }
    if let Encapsulation::Roce(roce) = &mut settings.wire {
        roce.cn_tags = true;
    }
    settings
}

fn preface(to: u16, kind: u16) -> Preface {
    let priority = Priority::truncate(6);
    let tag = VlanTag { priority, drop_eligible: false, id: VlanId::truncate(0), ethertype: 0 };
    let switch = plan::port_mac(Lid::new(100), PortNumber::from_index(0));
    Preface::untagged(Envelope::untagged(plan::mac(Lid::new(to)), switch, kind).tagged(tag))
}

fn frame(preface: Preface, body: &[u8]) -> Frame {
    let mut octets = BytesMut::zeroed(preface.octets_len());
    preface.emit(&mut octets);
    octets.extend_from_slice(body);
    Frame::intact(FrameKind::Ethernet, octets)
}

/// A CNM about frames to adapter 2 on priority 3.
fn cnm() -> Cnm {
    Cnm {
        quantized_feedback: 10,
        cpid: CPID,
        encapsulated_priority: Priority::truncate(3),
        encapsulated_destination: plan::mac(Lid::new(2)),
        ..Cnm::default()
    }
}

/// A BCN message with this queue offset, about a frame from adapter 1 to adapter 2.
fn bcn(q_offset: i16, cpid: u64) -> Frame {
    let sampled = preface(2, TYPES.test_frame());
    let mut sample = vec![0; sampled.octets_len()];
    sampled.emit(&mut sample);
    // PCP 3.
    sample[14] = 3 << 5;
    let length = sample.len() as u8;
    let message = Bcn { version: Bcn::VERSION, cpid, q_offset, length, ..Bcn::default() };
    let body = [&[Bcn::SUBTYPE][..], &message.to_octets(), &sample].concat();
    frame(preface(1, TYPES.bcn()), &body)
}

fn deliver(pair: &mut Pair, frame: Frame) {
    let now = pair.now;
    pair.nics[0].handle_frame(PortNumber::from_index(0), frame, now, now);
}

fn running(scheme: &str) -> Pair {
    Pair::alike(sending(Transport::Test, 400, scheme)).run_until(us(20))
}

fn rate(pair: &mut Pair) -> u64 {
    pair.flow(0).rate.value
}

#[test]
fn a_test_frame_carries_flow_sequence_and_departure() {
    let mut pair = Pair::alike(sending(Transport::Test, 4, "none")).run_until(us(30));
    assert_eq!(pair.seen.len(), 4, "a test frame returns no acknowledgement");
    for (sequence, seen) in (0..).zip(&pair.seen) {
        assert_eq!(seen.octets.len(), 1500 - 4, "the size from DA to FCS is the message size");
        let preface = Preface::parse(&seen.octets, &TYPES).unwrap();
        assert_eq!(preface.envelope.tag.map(|tag| tag.priority.get()), Some(3));
        assert_eq!(preface.ethertype(), ethertype::PROJECT);
        let body = &seen.octets[preface.octets_len()..];
        assert_eq!(body[0], TestFrame::SUBTYPE);
        let header = TestFrame::parse(&body[SUBTYPE_LEN..]).unwrap();
        let flow = QueuePairNumber::planned(0, Lid::new(1)).get();
        assert_eq!((header.flow, header.sequence, header.departure), (flow, sequence, seen.at));
        assert!(header.holds(&body[SUBTYPE_LEN + TestFrame::LEN..]));
    }
    let received = pair.reception(1);
    assert_eq!((received.messages, received.reordered), (4, 0));
    assert_eq!(pair.flow(0).completed, 4);
    pair.assert_conserved(0, 0);
}

#[test]
fn a_repeated_test_frame_counts_as_reordered() {
    let mut pair = Pair::alike(sending(Transport::Test, 3, "none"))
        .with_impairment(|_| Impairment::Duplicate)
        .run_until(us(30));
    let received = pair.reception(1);
    assert_eq!((received.messages, received.reordered), (6, 3));
}

#[test]
fn a_cnm_limits_its_flow() {
    let mut pair = running("qcn");
    assert_eq!(rate(&mut pair), LINE);
    deliver(&mut pair, frame(preface(1, ethertype::CNM), &cnm().to_octets()));
    // The rate becomes 1 - 10/128 of itself.
    assert_eq!(rate(&mut pair), LINE / 128 * 118);
    assert_eq!(pair.total(0, "rp_cnm_handled"), 1);
    assert_eq!(pair.flow(0).notes, 1);
}

#[test]
fn an_invalid_cnm_is_counted_by_reason_and_changes_no_rate() {
    let plain = || preface(1, ethertype::CNM);
    let whole = |cnm: Cnm| frame(plain(), &[&cnm.to_octets()[..], &[0; 18]].concat());
    let flow_9 = CongestionTag::Cn(CnTag { flow_id: 9, ethertype: 0 });
    let tagged = plain().tagged(flow_9, &TYPES);
    let to_3 = plan::mac(Lid::new(3));
    let cases = [
        ("rp_cnm_malformed", frame(plain(), &cnm().to_octets()[..Cnm::LEN - 1]), 1),
        ("rp_cnm_malformed", whole(Cnm { msdu_length: 19, ..cnm() }), 1),
        ("rp_cnm_malformed", whole(Cnm { version: 1, ..cnm() }), 1),
        ("rp_cnm_unknown_flow", whole(Cnm { encapsulated_destination: to_3, ..cnm() }), 1),
        (
            "rp_cnm_unknown_flow",
            whole(Cnm { encapsulated_priority: Priority::truncate(5), ..cnm() }),
            1,
        ),
        ("rp_cnm_unknown_flow", frame(tagged, &cnm().to_octets()), 1),
        ("rp_cnm_unknown_cpid", whole(Cnm { cpid: 0, ..cnm() }), 0),
        ("rp_cnm_refused", whole(Cnm { quantized_feedback: 0, ..cnm() }), 0),
    ];
    for (reason, frame, dropped) in cases {
        let mut pair = running("qcn");
        let before = pair.reading(0);
        deliver(&mut pair, frame);
        let after = pair.reading(0);
        assert_eq!(pair.total(0, reason), 1, "{reason}");
        assert_eq!(pair.total(0, "rp_cnm_handled"), 0);
        assert_eq!(rate(&mut pair), LINE, "{reason}");
        assert_eq!(after.ports[0].drops.total(), dropped, "{reason}");
        let of_no_flow = after.ports[0].drops.get(DropReason::NotificationFlow);
        assert_eq!(of_no_flow, u64::from(reason == "rp_cnm_unknown_flow"), "{reason}");
        assert_eq!(after.balance.delivered - before.balance.delivered, 1 - dropped, "{reason}");
    }
}

#[test]
fn a_cnm_for_another_station_is_refused() {
    let mut pair = running("qcn");
    deliver(&mut pair, frame(preface(3, ethertype::CNM), &cnm().to_octets()));
    assert_eq!(pair.drops(0, DropReason::NotForUs), 1);
    assert_eq!(rate(&mut pair), LINE);
}

#[test]
fn only_the_associated_congestion_point_may_raise_the_rate() {
    let mut pair = running("bcn");
    deliver(&mut pair, bcn(100, CPID));
    assert_eq!((rate(&mut pair), pair.total(0, "rp_bcn_ignored")), (LINE, 1));
    // Fb = -64 000: the rate falls by 64/600 of itself.
    deliver(&mut pair, bcn(-1000, CPID));
    let lowered = LINE - LINE * 64 / 600;
    assert!(rate(&mut pair).abs_diff(lowered) <= 1, "{}", rate(&mut pair));
    deliver(&mut pair, bcn(100, CPID + 1));
    assert_eq!(pair.total(0, "rp_bcn_ignored"), 2);
    assert!(rate(&mut pair).abs_diff(lowered) <= 1);
    // Fb = 6400: the rate rises by Gi·Fb·Ru = 6400/1500·10 Mb/s.
    deliver(&mut pair, bcn(100, CPID));
    assert!(rate(&mut pair).abs_diff(lowered + 42_666_666) <= 2, "{}", rate(&mut pair));
    assert_eq!(pair.total(0, "rp_bcn_handled"), 2);
}

#[test]
fn a_bcn_message_without_its_sampled_frame_is_malformed() {
    let mut pair = running("bcn");
    let Frame { mut octets, .. } = bcn(-1000, CPID);
    octets.truncate(octets.len() - 1);
    deliver(&mut pair, Frame::intact(FrameKind::Ethernet, octets));
    assert_eq!(pair.total(0, "rp_bcn_malformed"), 1);
    assert_eq!(rate(&mut pair), LINE);
}

/// Tag, and size without FCS, of each frame that NIC 0 sent after index `from`.
fn tags(pair: &Pair, from: usize) -> Vec<(Option<CongestionTag>, usize)> {
    let sent = pair.seen[from..].iter().filter(|seen| seen.from == 0);
    let tag = |seen: &Seen| Preface::parse(&seen.octets, &TYPES).unwrap().tag;
    sent.map(|seen| (tag(seen), seen.octets.len())).collect()
}

#[test]
fn limited_frames_carry_the_flow_identifier_and_test_frames_keep_their_size() {
    let mut pair = running("qcn");
    assert!(tags(&pair, 0).iter().all(|(tag, size)| tag.is_none() && *size == 1496));
    deliver(&mut pair, frame(preface(1, ethertype::CNM), &cnm().to_octets()));
    let before = pair.seen.len();
    pair.advance(us(30));
    let after = tags(&pair, before);
    assert!(!after.is_empty());
    for (tag, size) in after {
        let Some(CongestionTag::Cn(tag)) = tag else { panic!("{tag:?}") };
        assert_eq!((tag.flow_id, tag.ethertype, size), (1, ethertype::PROJECT, 1496));
    }
    assert_eq!(pair.reading(1).ports[0].drops.total(), 0, "tagged frames are received");
}

#[test]
fn roce_packets_grow_by_the_tag_and_are_delivered() {
    let mut pair = Pair::alike(sending(Transport::Rc, 400, "bcn")).run_until(us(20));
    deliver(&mut pair, bcn(-1000, CPID));
    let before = pair.seen.len();
    pair.advance(us(40));
    let data = |seen: &&Seen| seen.from == 0 && seen.is_data();
    let plain =
        pair.seen.iter().find(data).expect("frames that left before the BCN message").octets.len();
    let tagged: Vec<_> = pair.seen[before..].iter().filter(data).collect();
    assert!(!tagged.is_empty());
    for seen in tagged {
        let Some(CongestionTag::RateRegulated(tag)) = seen.roce().congestion_tag else {
            panic!("no tag")
        };
        assert_eq!(tag.cpid, CPID);
        assert_eq!(seen.octets.len(), plain + SUBTYPE_LEN + RateTag::LEN);
    }
    pair.advance(us(2_000));
    assert_eq!(pair.flow(0).completed, 400);
    assert_eq!(pair.reading(1).ports[0].drops.total(), 0);
}
