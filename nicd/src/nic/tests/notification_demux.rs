//! Test frames, and messages of congestion points in the network: who is held back by them, what is
//! refused and under which name, and what limited frames carry.

use super::cable::*;
use super::*;
use crate::config::*;
use bytes::BytesMut;
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, Priority, QueuePairNumber, VlanId};
use proto::link::{LinkControl, PauseConfig};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::{
    CnTag, Cnm, CongestionTag, Envelope, Preface, VlanTag, ethertype, plan,
};
use proto::wire::project::{Bcn, ProjectTypes, RateTag, SUBTYPE_LEN, TestFrame};

const TYPES: ProjectTypes = ProjectTypes::DEFAULT;
const CPID: u64 = 0x0200_0100_0064_0003;
const LINE: u64 = 8_000_000_000;

/// Adapter 1 has so much for adapter 2, on priority 3 by tag.
fn sending(transport: Transport, messages: u64, scheme: &str) -> NicConfig {
    let settings = NicConfig {
        traffic: vec![burst(2, 1500, messages)],
        classes: vec![class(transport, Operation::Send)],
        scheme: SchemeConfig { kind: scheme.to_owned(), params: toml::Table::new() },
        ..config(1)
    };
    let mut settings = on_ethernet(settings, RoceVersion::V2Ipv4);
    if let LinkControl::Pause(pause) = &mut settings.link.control {
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

/// A message about frames to adapter 2 on priority 3.
fn cnm() -> Cnm {
    Cnm {
        quantized_feedback: 10,
        cpid: CPID,
        encapsulated_priority: Priority::truncate(3),
        encapsulated_destination: plan::mac(Lid::new(2)),
        ..Cnm::default()
    }
}

/// One that says so much of the queue, about a frame of adapter 1 to adapter 2.
fn bcn(q_offset: i16, cpid: u64) -> Frame {
    let sampled = preface(2, TYPES.test_frame());
    let mut sample = vec![0; sampled.octets_len()];
    sampled.emit(&mut sample);
    // Its PCP is 3.
    sample[14] = 3 << 5;
    let length = sample.len() as u8;
    let said = Bcn { version: Bcn::VERSION, cpid, q_offset, length, ..Bcn::default() };
    let body = [&[Bcn::SUBTYPE][..], &said.to_octets(), &sample].concat();
    frame(preface(1, TYPES.bcn()), &body)
}

fn give(pair: &mut Pair, frame: Frame) {
    let now = pair.now;
    pair.nics[0].handle_frame(PortNumber::from_index(0), frame, now, now);
}

fn under_way(scheme: &str) -> Pair {
    Pair::alike(sending(Transport::Test, 400, scheme)).run_until(us(20))
}

fn rate(pair: &mut Pair) -> u64 {
    pair.flow(0).rate.value
}

#[test]
fn a_test_frame_says_whose_it_is_which_it_is_and_when_it_left() {
    let mut pair = Pair::alike(sending(Transport::Test, 4, "none")).run_until(us(30));
    assert_eq!(pair.seen.len(), 4, "and nobody answers");
    for (sequence, seen) in (0..).zip(&pair.seen) {
        assert_eq!(seen.octets.len(), 1500 - 4, "DA to FCS is what was asked for");
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
fn a_test_frame_that_comes_again_counts_as_out_of_order() {
    let mut pair = Pair::alike(sending(Transport::Test, 3, "none"))
        .with_impairment(|_| Impairment::Duplicate)
        .run_until(us(30));
    let received = pair.reception(1);
    assert_eq!((received.messages, received.reordered), (6, 3));
}

#[test]
fn a_message_of_802_1qau_holds_its_flow_back() {
    let mut pair = under_way("qcn");
    assert_eq!(rate(&mut pair), LINE);
    give(&mut pair, frame(preface(1, ethertype::CNM), &cnm().to_octets()));
    // 1 - 10/128.
    assert_eq!(rate(&mut pair), LINE / 128 * 118);
    assert_eq!(pair.total(0, "rp_cnm_handled"), 1);
    assert_eq!(pair.flow(0).notes, 1);
}

#[test]
fn what_a_message_may_not_say_is_counted_by_reason_and_changes_no_rate() {
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
        let mut pair = under_way("qcn");
        let before = pair.reading(0);
        give(&mut pair, frame);
        let after = pair.reading(0);
        assert_eq!(pair.total(0, reason), 1, "{reason}");
        assert_eq!(pair.total(0, "rp_cnm_handled"), 0);
        assert_eq!(rate(&mut pair), LINE, "{reason}");
        assert_eq!(after.ports[0].drops.total(), dropped, "{reason}");
        assert_eq!(after.balance.delivered - before.balance.delivered, 1 - dropped, "{reason}");
    }
}

#[test]
fn a_message_for_another_station_is_not_ours() {
    let mut pair = under_way("qcn");
    give(&mut pair, frame(preface(3, ethertype::CNM), &cnm().to_octets()));
    assert_eq!(pair.drops(0, DropReason::NotForUs), 1);
    assert_eq!(rate(&mut pair), LINE);
}

#[test]
fn only_the_congestion_point_that_a_limiter_obeys_may_raise_its_rate() {
    let mut pair = under_way("bcn");
    give(&mut pair, bcn(100, CPID));
    assert_eq!((rate(&mut pair), pair.total(0, "rp_bcn_ignored")), (LINE, 1));
    // Fb = -64 000: the rate falls by 64/600 of itself.
    give(&mut pair, bcn(-1000, CPID));
    let lowered = LINE - LINE * 64 / 600;
    assert!(rate(&mut pair).abs_diff(lowered) <= 1, "{}", rate(&mut pair));
    give(&mut pair, bcn(100, CPID + 1));
    assert_eq!(pair.total(0, "rp_bcn_ignored"), 2);
    assert!(rate(&mut pair).abs_diff(lowered) <= 1);
    // Fb = 6400: up by Gi·Fb·Ru = 6400/1500·10 Mb/s.
    give(&mut pair, bcn(100, CPID));
    assert!(rate(&mut pair).abs_diff(lowered + 42_666_666) <= 2, "{}", rate(&mut pair));
    assert_eq!(pair.total(0, "rp_bcn_handled"), 2);
}

#[test]
fn a_message_of_bcn_without_the_frame_it_speaks_of_is_malformed() {
    let mut pair = under_way("bcn");
    let Frame { mut octets, .. } = bcn(-1000, CPID);
    octets.truncate(octets.len() - 1);
    give(&mut pair, Frame::intact(FrameKind::Ethernet, octets));
    assert_eq!(pair.total(0, "rp_bcn_malformed"), 1);
    assert_eq!(rate(&mut pair), LINE);
}

/// The tags of what was sent after `from`, and the sizes without FCS.
fn tags(pair: &Pair, from: usize) -> Vec<(Option<CongestionTag>, usize)> {
    let sent = pair.seen[from..].iter().filter(|seen| seen.from == 0);
    let tag = |seen: &Seen| Preface::parse(&seen.octets, &TYPES).unwrap().tag;
    sent.map(|seen| (tag(seen), seen.octets.len())).collect()
}

#[test]
fn frames_of_a_limiter_carry_its_number_and_test_frames_grow_no_longer() {
    let mut pair = under_way("qcn");
    assert!(tags(&pair, 0).iter().all(|(tag, size)| tag.is_none() && *size == 1496));
    give(&mut pair, frame(preface(1, ethertype::CNM), &cnm().to_octets()));
    let before = pair.seen.len();
    pair.advance(us(30));
    let after = tags(&pair, before);
    assert!(!after.is_empty());
    for (tag, size) in after {
        let Some(CongestionTag::Cn(tag)) = tag else { panic!("{tag:?}") };
        assert_eq!((tag.flow_id, tag.ethertype, size), (1, ethertype::PROJECT, 1496));
    }
    assert_eq!(pair.reading(1).ports[0].drops.total(), 0, "and are received as ever");
}

#[test]
fn packets_of_roce_grow_by_the_tag_and_mean_the_same() {
    let mut pair = Pair::alike(sending(Transport::Rc, 400, "bcn")).run_until(us(20));
    give(&mut pair, bcn(-1000, CPID));
    let before = pair.seen.len();
    pair.advance(us(40));
    let data = |seen: &&Seen| seen.from == 0 && seen.is_data();
    let plain = pair.seen.iter().find(data).expect("some left before").octets.len();
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
