//! One impairment at a time, then combinations.

use super::*;
use crate::wiring::{NodeKind, NodeWiring};
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::ids::PortNumber;
use proto::units::Duration;

fn impairer(rules: &[(FrameFilter, Action, (u64, u64))]) -> Impairer {
    let from = End { node: 0, port: PortNumber::from_index(0) };
    let rule = |(frames, action, chance): &(FrameFilter, Action, (u64, u64))| Impairment {
        from,
        frames: *frames,
        action: *action,
        chance: *chance,
    };
    let node = NodeWiring { name: "s0".to_owned(), kind: NodeKind::Switch, ports: 1, level: 1 };
    let wiring = Wiring {
        nodes: vec![node],
        links: vec![],
        impairments: rules.iter().map(rule).collect(),
        ..Wiring::default()
    };
    Impairer::new(&wiring, from, 7).expect("there are rules")
}

fn frame(kind: FrameKind) -> Frame {
    Frame::intact(kind, BytesMut::zeroed(64))
}

const ALWAYS: (u64, u64) = (1, 1);

#[test]
fn a_lost_frame_vanishes_and_is_counted_by_how_far_it_would_have_gone() {
    let link_only = FrameFilter::Kind(FrameKind::InfinibandLink);
    let mut impairer = impairer(&[(link_only, Action::Lose, ALWAYS)]);
    let kept = impairer.apply(frame(FrameKind::Infiniband), Instant::ZERO);
    let lost = impairer.apply(frame(FrameKind::InfinibandLink), Instant::ZERO);
    assert_eq!(kept.frames.iter().flatten().count(), 1);
    assert_eq!(lost.frames.iter().flatten().count(), 0);
    assert_eq!(impairer.injected.lost, FrameTally { end_to_end: 0, link_local: 1 });
}

#[test]
fn corruption_flips_exactly_one_bit_and_withdraws_the_promise_of_intact_octets() {
    let mut impairer = impairer(&[(FrameFilter::All, Action::Corrupt, ALWAYS)]);
    let out = impairer.apply(frame(FrameKind::Infiniband), Instant::ZERO);
    let bad = out.frames[0].as_ref().expect("still there");
    let flipped: u32 = bad.octets.iter().map(|octet| octet.count_ones()).sum();
    assert_eq!((flipped, bad.integrity), (1, Integrity::Unchecked));
    let empty = Frame::intact(FrameKind::Ethernet, BytesMut::new());
    assert!(impairer.apply(empty, Instant::ZERO).frames[0].is_some());
}

/// Whichever bit flips, the receiving port detects it, as the FCS would.
#[test]
fn a_corrupted_frame_of_ethernet_is_bad_at_its_end_and_keeps_its_type() {
    let mut impairer = impairer(&[(FrameFilter::All, Action::Corrupt, ALWAYS)]);
    let mut hit = [0u32; 64];
    for _ in 0..20_000 {
        let out = impairer.apply(frame(FrameKind::Ethernet), Instant::ZERO);
        let bad = out.frames[0].as_ref().expect("still there");
        assert_eq!(bad.integrity, Integrity::Aborted);
        let flipped = bad.octets.iter().map(|octet| octet.count_ones());
        hit.iter_mut().zip(flipped).for_each(|(sum, ones)| *sum += ones);
    }
    assert_eq!(hit.iter().sum::<u32>(), 20_000, "one bit each");
    let spared: Vec<usize> = (0..64).filter(|at| hit[*at] == 0).collect();
    assert_eq!(spared, [12, 13]);
    assert_eq!(impairer.injected.corrupted, 20_000);
}

#[test]
fn a_delay_holds_back_what_follows_on_the_link() {
    let link_only = FrameFilter::Kind(FrameKind::InfinibandLink);
    let delay = Action::Delay(Duration::from_ps(100));
    let mut impairer = impairer(&[(link_only, delay, ALWAYS)]);
    let first = impairer.apply(frame(FrameKind::InfinibandLink), Instant::from_ps(10));
    let second = impairer.apply(frame(FrameKind::Infiniband), Instant::from_ps(20));
    let third = impairer.apply(frame(FrameKind::Infiniband), Instant::from_ps(200));
    let at = [first.at, second.at, third.at].map(Instant::as_ps);
    assert_eq!(at, [110, 110, 200]);
    assert_eq!(impairer.injected.delayed, 1);
}

#[test]
fn a_duplicate_is_equal_and_a_later_loss_takes_both() {
    let twice = (FrameFilter::All, Action::Duplicate, ALWAYS);
    let mut one = impairer(&[twice]);
    let [Some(first), Some(second)] = one.apply(frame(FrameKind::Ethernet), Instant::ZERO).frames
    else {
        panic!("two frames");
    };
    assert_eq!(first, second);
    let mut repeated = impairer(&[twice, twice]);
    let copies = repeated.apply(frame(FrameKind::Ethernet), Instant::ZERO).frames;
    let made = copies.iter().flatten().count() as u64 - 1;
    assert_eq!(repeated.injected.duplicated.total(), made, "each copy that counts is made");
    let mut both = impairer(&[twice, (FrameFilter::All, Action::Lose, ALWAYS)]);
    let out = both.apply(frame(FrameKind::Ethernet), Instant::ZERO);
    assert_eq!(out.frames.iter().flatten().count(), 0);
    assert_eq!(both.injected.lost.total(), 2);
}

#[test]
fn chances_are_met_and_equal_seeds_hit_the_same_frames() {
    let run = || {
        let mut impairer = impairer(&[(FrameFilter::All, Action::Lose, (1, 10))]);
        let lost = |_| {
            let out = impairer.apply(frame(FrameKind::Ethernet), Instant::ZERO);
            out.frames[0].is_none()
        };
        (0..10_000).map(lost).collect::<Vec<_>>()
    };
    let hits = run();
    assert_eq!(hits, run());
    let count = hits.iter().filter(|lost| **lost).count();
    assert!((900..1100).contains(&count), "{count} of 10000 at one in ten");
}

#[test]
fn a_cable_cut_by_hand_loses_all_until_it_is_whole_and_the_scenario_stays() {
    let link_only = FrameFilter::Kind(FrameKind::InfinibandLink);
    let mut impairer = impairer(&[(link_only, Action::Lose, ALWAYS)]);
    let passes = |impairer: &mut Impairer, kind| {
        impairer.apply(frame(kind), Instant::ZERO).frames.iter().flatten().count() == 1
    };
    assert!(passes(&mut impairer, FrameKind::Infiniband));
    impairer.change(ManualImpairment::Cut(true), Instant::ZERO);
    assert!(!passes(&mut impairer, FrameKind::Infiniband));
    impairer.change(ManualImpairment::Cut(false), Instant::ZERO);
    assert!(passes(&mut impairer, FrameKind::Infiniband));
    impairer.change(ManualImpairment::Lossy(ALWAYS), Instant::ZERO);
    assert!(!passes(&mut impairer, FrameKind::Infiniband));
    impairer.change(ManualImpairment::Mend, Instant::ZERO);
    assert!(passes(&mut impairer, FrameKind::Infiniband));
    assert!(!passes(&mut impairer, FrameKind::InfinibandLink));
    assert_eq!(impairer.injected.lost, FrameTally { end_to_end: 2, link_local: 1 });
}

#[test]
fn a_rule_by_hand_ends_when_its_time_is_over_and_old_ones_make_room() {
    let mut impairer = impairer(&[(FrameFilter::LinkLocal, Action::Corrupt, ALWAYS)]);
    let rule = |action| {
        let from = End { node: 0, port: PortNumber::from_index(0) };
        Impairment { from, frames: FrameFilter::All, action, chance: ALWAYS }
    };
    let at = |ps| Instant::from_ps(ps);
    impairer
        .change(ManualImpairment::Rule(rule(Action::Lose), Some(Duration::from_ps(10))), at(100));
    let lost = |impairer: &mut Impairer, ps| {
        impairer.apply(frame(FrameKind::Infiniband), at(ps)).frames[0].is_none()
    };
    assert!(lost(&mut impairer, 109));
    assert!(!lost(&mut impairer, 110));
    for _ in 0..3 * RULES_BY_HAND_MAX {
        impairer.change(ManualImpairment::Rule(rule(Action::Duplicate), None), at(200));
    }
    assert_eq!(impairer.rules.len(), 1 + RULES_BY_HAND_MAX);
    assert_eq!(impairer.rules[0].rule.action, Action::Corrupt);
}

#[test]
fn marked_frames_are_told_from_others_and_link_local_ones_too() {
    // Source: IBTA Vol 1, 7.8, sample packet; octets behind the BTH are not examined.
    let mut octets = [0u8; 58];
    octets[..8].copy_from_slice(&[0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2]);
    octets[8..12].copy_from_slice(&[0x0a, 0x20, 0x24, 0x87]);
    let packet = |octets: &[u8]| Frame::intact(FrameKind::Infiniband, BytesMut::from(octets));
    let found = |octets: &[u8]| {
        let filters = [FrameFilter::Marked, FrameFilter::Notice, FrameFilter::LinkLocal];
        filters.map(|filter| matches(filter, &packet(octets)))
    };
    assert_eq!(found(&octets), [false, false, false]);
    octets[12] = 0x80;
    assert_eq!(found(&octets), [true, false, false]);
    octets[12] = 0x40;
    assert_eq!(found(&octets), [false, true, false]);
    assert!(matches(FrameFilter::LinkLocal, &frame(FrameKind::InfinibandLink)));
}

/// A RoCEv2 SEND ONLY over IPv4 with 16 octets of payload, without FCS: headers end at 54, the ICRC begins at 70.
fn roce_frame() -> Frame {
    let mut octets = BytesMut::zeroed(74);
    octets[12..14].copy_from_slice(&[0x08, 0x00]);
    octets[14] = 0x45;
    octets[16..18].copy_from_slice(&60u16.to_be_bytes());
    octets[23] = 17;
    octets[36..38].copy_from_slice(&4791u16.to_be_bytes());
    octets[38..40].copy_from_slice(&40u16.to_be_bytes());
    octets[42] = 0x04;
    Frame::intact(FrameKind::Ethernet, octets)
}

/// Octets that differ between `frame` and what an impairer with `action` makes of it, many times.
fn altered(frame: &Frame, action: Action, outside: bool) -> Vec<usize> {
    let mut impairer = impairer(&[(FrameFilter::All, action, ALWAYS)]);
    impairer.outside = outside;
    let mut places: Vec<usize> = (0..500)
        .map(|_| {
            let out = impairer.apply(frame.clone(), Instant::ZERO);
            let bad = out.frames[0].as_ref().expect("the frame is sent");
            assert_eq!(bad.integrity, Integrity::Unchecked, "the FCS is right");
            let pairs = bad.octets.iter().zip(&frame.octets);
            let flips = pairs.clone().map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            assert_eq!(flips, 1);
            pairs.clone().position(|(a, b)| a != b).expect("one octet differs")
        })
        .collect();
    assert_eq!(impairer.injected.corrupted, 500);
    places.sort_unstable();
    places.dedup();
    places
}

#[test]
fn outside_the_fabric_corruption_hits_the_payload_and_the_frame_is_sent() {
    let places = altered(&roce_frame(), Action::Corrupt, true);
    assert_eq!(places, (54..70).collect::<Vec<_>>());
}

#[test]
fn each_part_of_a_frame_can_be_altered() {
    let parts = |part| altered(&roce_frame(), Action::Alter(part), false);
    assert_eq!(parts(FramePart::Icrc), (70..74).collect::<Vec<_>>());
    assert_eq!(parts(FramePart::Header), (14..54).collect::<Vec<_>>());
    // An acknowledgement has only its AETH.
    let mut ack = roce_frame();
    ack.octets[42] = 0x11;
    ack.octets[16..18].copy_from_slice(&48u16.to_be_bytes());
    ack.octets[38..40].copy_from_slice(&28u16.to_be_bytes());
    assert_eq!(altered(&ack, Action::Corrupt, true), [54, 55, 56, 57]);
}

#[test]
fn frames_without_roce_are_altered_behind_their_headers() {
    // IPv6 with UDP to another port: 14 + 40 + 8.
    let mut octets = BytesMut::zeroed(80);
    octets[12..14].copy_from_slice(&[0x86, 0xdd]);
    (octets[14], octets[19], octets[20]) = (0x60, 18, 17);
    let ipv6 = Frame::intact(FrameKind::Ethernet, octets);
    assert_eq!(altered(&ipv6, Action::Corrupt, true), (62..72).collect::<Vec<_>>());
    // ARP with a VLAN tag: everything behind the EtherType, and never the tag.
    let mut octets = BytesMut::zeroed(46);
    octets[12..18].copy_from_slice(&[0x81, 0x00, 0, 5, 0x08, 0x06]);
    let arp = Frame::intact(FrameKind::Ethernet, octets);
    assert_eq!(altered(&arp, Action::Corrupt, true), (18..46).collect::<Vec<_>>());
    for length in 0..74 {
        let mut cut = roce_frame();
        cut.octets.truncate(length);
        for part in [FramePart::Payload, FramePart::Icrc, FramePart::Header] {
            assert!(parts::place(&cut.octets, part).end <= length);
        }
    }
}
