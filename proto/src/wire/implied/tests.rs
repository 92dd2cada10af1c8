//! Frames with implied octets against whole ones: every opcode, length, address family and tag, and what happens to frames on
//! their way.

use super::*;
use crate::ids::{Priority, VirtualLane};
use crate::tests::{infiniband, roce as ethernet};
use crate::wire::classify::{PriorityMap, classify, classify_ethernet_by, classify_frame};
use crate::wire::ethernet::preface::{insert_tag, remove_tag};
use crate::wire::ethernet::{CnTag, CongestionTag, Envelope, Preface};
use crate::wire::infiniband::Packet;
use crate::wire::infiniband::relabel::{relabel, relabel_frame};
use crate::wire::internet::mark_congestion;
use crate::wire::project::{ProjectTypes, RateTag};
use crate::wire::roce;
use proptest::prelude::*;

/// What a hop may do to a frame.
#[derive(Clone, Copy, Debug)]
enum Change {
    Relabel(u8, bool),
    Mark,
    Tag { is_rate: bool, contents: u16 },
    Untag,
    Priority(u8),
    Materialise,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        6 => (0..16u8, any::<bool>()).prop_map(|(lane, fecn)| Change::Relabel(lane, fecn)),
        3 => Just(Change::Mark),
        2 => (any::<bool>(), any::<u16>())
            .prop_map(|(is_rate, contents)| Change::Tag { is_rate, contents }),
        2 => Just(Change::Untag),
        2 => (0..8u8).prop_map(Change::Priority),
        1 => Just(Change::Materialise),
    ];
    proptest::collection::vec(change, 0..8)
}

fn types() -> impl Strategy<Value = ProjectTypes> {
    let own = ProjectTypes::new(0x9001, 0x9002, 0x9003).expect("the EtherTypes are free");
    prop_oneof![Just(ProjectTypes::DEFAULT), Just(own)]
}

/// Octets of payload, some of which are implied.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => PAYLOAD_KEPT + 1..300,
        1 => PAYLOAD_KEPT + 1..=4096usize,
        1 => prop_oneof![Just(256), Just(1024), Just(1436), Just(2048), Just(4096)],
    ]
}

/// The same frame with implied octets and whole. `emit` builds a whole packet around a payload of that length, or its
/// headers alone.
fn both(
    kind: FrameKind,
    first: &[u8; PAYLOAD_KEPT],
    length: usize,
    emit: impl Fn(&mut BytesMut, bool),
) -> (Frame, Frame) {
    let (mut head, mut octets) = (BytesMut::new(), BytesMut::new());
    emit(&mut head, false);
    head.extend_from_slice(first);
    emit(&mut octets, true);
    let implied = (length - PAYLOAD_KEPT) as u16;
    (Frame::with_implied(kind, head, implied), Frame::intact(kind, octets))
}

fn payload(octets: &mut BytesMut, first: &[u8; PAYLOAD_KEPT], length: usize) {
    octets.extend_from_slice(first);
    pattern::append(octets, PAYLOAD_KEPT, length - PAYLOAD_KEPT);
}

fn of_infiniband(
    builder: &crate::wire::infiniband::PacketBuilder,
    first: &[u8; PAYLOAD_KEPT],
    length: usize,
) -> (Frame, Frame) {
    both(FrameKind::Infiniband, first, length, |octets, whole| match whole {
        true => builder.emit_around(octets, length, |to| payload(to, first, length)).expect("fits"),
        false => builder.emit_headers(octets, length, PAYLOAD_KEPT).expect("fits"),
    })
}

fn of_roce(
    builder: &roce::PacketBuilder<'_>,
    first: &[u8; PAYLOAD_KEPT],
    length: usize,
) -> (Frame, Frame) {
    both(FrameKind::Ethernet, first, length, |octets, whole| match whole {
        true => builder.emit_around(octets, length, |to| payload(to, first, length)).expect("fits"),
        false => builder.emit_headers(octets, length, PAYLOAD_KEPT).expect("fits"),
    })
}

fn apply(change: Change, implied: &mut Frame, whole: &mut Frame, types: &ProjectTypes) {
    let alike = |each: &dyn Fn(&mut BytesMut) -> bool, implied: &mut Frame, whole: &mut Frame| {
        assert_eq!(each(&mut implied.octets), each(&mut whole.octets), "{change:?}");
    };
    match (change, whole.kind) {
        (Change::Materialise, _) => implied.materialise(),
        (Change::Relabel(lane, fecn), FrameKind::Infiniband) => {
            let lane = VirtualLane::truncate(lane);
            let after = relabel_frame(implied, lane, fecn);
            assert_eq!(after, relabel(&mut whole.octets, lane, fecn));
        }
        (Change::Mark, FrameKind::Ethernet) => {
            alike(&|octets| mark_congestion(octets), implied, whole);
        }
        (Change::Tag { is_rate, contents }, FrameKind::Ethernet) => {
            let tag = match is_rate {
                true => CongestionTag::RateRegulated(RateTag { cpid: 7, ..RateTag::default() }),
                false => CongestionTag::Cn(CnTag { flow_id: contents, ..CnTag::default() }),
            };
            let insert = |octets: &mut BytesMut| {
                let preface = Preface::parse(octets, types).expect("a frame has a preface");
                preface.tag.is_none() && insert_tag(octets, tag, types).is_ok()
            };
            alike(&insert, implied, whole);
        }
        (Change::Untag, FrameKind::Ethernet) => {
            let remove =
                |octets: &mut BytesMut| remove_tag(octets, types).is_ok_and(|tag| tag.is_some());
            alike(&remove, implied, whole);
        }
        (Change::Priority(priority), FrameKind::Ethernet) => {
            let remap = |octets: &mut BytesMut| {
                let mut envelope = Envelope::parse(octets).expect("a frame has an envelope");
                envelope.tag.iter_mut().for_each(|tag| tag.priority = Priority::truncate(priority));
                envelope.emit(octets);
                envelope.tag.is_some()
            };
            alike(&remap, implied, whole);
        }
        _ => {}
    }
}

/// The frames are the same to a relay, and octet for octet.
fn assert_same(implied: &Frame, whole: &Frame, types: &ProjectTypes) {
    let octets = &whole.octets[..];
    assert_eq!((implied.octets_len(), implied.line_size()), (octets.len(), whole.line_size()));
    assert_eq!(classify_frame(implied), classify(whole.kind, octets));
    if whole.kind == FrameKind::Ethernet {
        let by = |octets: &[u8], length| {
            classify_ethernet_by(octets, length, &PriorityMap::BY_DSCP, types)
        };
        assert_eq!(by(&implied.octets, implied.octets_len()), by(octets, octets.len()));
    }
    let mut room = BytesMut::from(&b"used before"[..]);
    assert_eq!(implied.whole(&mut room), octets);
    let mut appended = b"before".to_vec();
    implied.append_to(&mut appended);
    assert_eq!((&appended[..6], &appended[6..]), (&b"before"[..], octets));
    let mut made = implied.clone();
    made.materialise();
    assert_eq!(&made, whole);
}

fn history(frames: (Frame, Frame), changes: &[Change], types: &ProjectTypes) {
    let (mut implied, mut whole) = frames;
    for change in changes {
        apply(*change, &mut implied, &mut whole, types);
    }
    assert_same(&implied, &whole, types);
}

fn histories(cases: u32) {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases / 2));
    let about = || (any::<[u8; PAYLOAD_KEPT]>(), lengths(), changes());
    let packets = (infiniband::builders(), about());
    let checked = runner.run(&packets, |(builder, (first, length, changes))| {
        let frames = of_infiniband(&builder, &first, length);
        history(frames, &changes, &ProjectTypes::DEFAULT);
        Ok(())
    });
    checked.expect("InfiniBand");
    let packets = (ethernet::builders(), types(), about());
    let checked = runner.run(&packets, |(builder, types, (first, length, changes))| {
        history(of_roce(&builder, &first, length), &changes, &types);
        Ok(())
    });
    checked.expect("RoCE");
}

#[test]
fn a_relabelled_frame_has_the_octets_of_a_whole_one() {
    histories(20_000);
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_million_relabelled_frames_have_the_octets_of_whole_ones() {
    histories(1_000_000);
}

#[test]
fn a_frame_of_any_length_has_the_octets_of_a_whole_one() {
    let first = std::array::from_fn(|at| at as u8);
    let sample = Packet::parse(&infiniband::LOCAL).expect("the sample packet parses");
    let builder = crate::wire::infiniband::PacketBuilder::of(&sample).expect("it is not raw");
    for length in PAYLOAD_KEPT + 1..=4096 {
        let (implied, whole) = of_infiniband(&builder, &first, length);
        assert_same(&implied, &whole, &ProjectTypes::DEFAULT);
    }
}

#[test]
fn a_receiver_parses_a_packet_without_the_implied_octets() {
    let first = [9; PAYLOAD_KEPT];
    let sample = Packet::parse(&infiniband::LOCAL).expect("the sample packet parses");
    let builder = crate::wire::infiniband::PacketBuilder::of(&sample).expect("it is not raw");
    let (implied, whole) = of_infiniband(&builder, &first, 1001);
    let part = Packet::transport_part(&implied.octets, implied.octets_len());
    let (part, all) =
        (part.expect("it parses"), Packet::transport(&whole.octets).expect("it parses"));
    let (part, all) = (part.expect("it is not raw"), all.expect("it is not raw"));
    assert_eq!((part.bth, part.extended, part.payload), (all.bth, all.extended, &first[..]));
    let lie = Packet::transport_part(&implied.octets, implied.octets_len() - 4);
    assert!(lie.is_err(), "PktLen counts the implied octets");
    let mut unchecked = whole;
    unchecked.integrity = Integrity::Unchecked;
    assert!(unchecked.is_unchecked());
    assert!(!Frame { integrity: Integrity::Unchecked, ..implied }.is_unchecked());
}
