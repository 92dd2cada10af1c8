//! Which records an inbox accepts and which it refuses.

use super::*;
use crate::cable::udp;
use crate::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::frame::Integrity;
use proto::ids::PortNumber;
use proto::units::Duration;

const EPOCH: u32 = 77;
const US: &str = "127.0.0.1:4000";
const PEER: &str = "127.0.0.1:4001";
const STRANGER: &str = "127.0.0.1:4002";

/// One link from a node of process 1 to a node of process 0, where the inbox is.
struct Bench {
    inbox: Inbox,
    lines: Lines,
    pool: FramePool,
    delivered: Vec<(BytesMut, Instant)>,
}

impl Bench {
    fn new() -> Bench {
        let port = PortNumber::from_index(0);
        let node = |name: &str| NodeWiring {
            name: name.to_owned(),
            kind: NodeKind::Nic,
            ports: 1,
            level: 0,
        };
        let wiring = Wiring {
            nodes: vec![node("far"), node("near")],
            links: vec![LinkWiring {
                a: End { node: 0, port },
                b: End { node: 1, port },
                delay: Duration::from_ps(5),
                frame_time: Duration::from_ps(100),
            }],
            ..Wiring::default()
        };
        let lines = Lines::new(&wiring, &[1, 0], 0, false).expect("a good wiring");
        let peers = [US, PEER].map(|address| udp::peer(address).expect("an address"));
        let inbox = Inbox::new(EPOCH, &peers, lines.count());
        Bench { inbox, lines, pool: FramePool::default(), delivered: vec![] }
    }

    fn feed_from(&mut self, source: &str, octets: &[u8], cut: bool) {
        let peer = udp::peer(source).expect("an address");
        let datagram = Received { source: peer.key(), octets, cut };
        let delivered = &mut self.delivered;
        self.inbox.accept(datagram, &self.lines, &mut self.pool, |accepted| {
            delivered.push((accepted.frame.octets, accepted.arrived));
        });
    }

    fn feed(&mut self, records: &[Vec<u8>]) {
        self.feed_from(PEER, &records.concat(), false);
    }

    fn counts(&self) -> LineCounts {
        self.inbox.received(&self.lines).next().expect("one line comes in").counts
    }
}

fn shim(sequence: u32, kind: FrameKind) -> Shim {
    Shim {
        kind,
        flags: 0,
        end: SendingEnd::A,
        link: 0,
        epoch: EPOCH,
        sequence,
        length: 3,
        stamp: Instant::from_ps(1_000),
    }
}

fn record(shim: Shim) -> Vec<u8> {
    let mut octets = shim.emit().to_vec();
    octets.extend([1, 2, shim.sequence as u8]);
    octets
}

fn data(sequence: u32) -> Vec<u8> {
    record(shim(sequence, FrameKind::Infiniband))
}

#[test]
fn frames_that_travel_together_arrive_in_order_at_stamp_plus_delay() {
    let mut bench = Bench::new();
    bench.feed(&[data(0), data(1), data(2)]);
    let last: Vec<_> = bench.delivered.iter().map(|(octets, _)| octets[2]).collect();
    assert_eq!(last, [0, 1, 2]);
    assert!(bench.delivered.iter().all(|(_, arrived)| *arrived == Instant::from_ps(1_005)));
    assert_eq!(bench.counts().received, FrameTally { end_to_end: 3, link_local: 0 });
    assert_eq!(bench.inbox.rejected, Rejected::default());
}

#[test]
fn what_its_sender_gave_up_arrives_as_such_and_nothing_else_does() {
    for (flags, integrity) in [
        (Shim::ABORTED, Integrity::Aborted),
        (0, Integrity::Unchecked),
        (0xfe, Integrity::Unchecked),
    ] {
        let mut bench = Bench::new();
        let octets = record(Shim { flags, ..shim(0, FrameKind::Infiniband) });
        let peer = udp::peer(PEER).expect("an address");
        let datagram = Received { source: peer.key(), octets: &octets, cut: false };
        let mut found = Vec::new();
        bench.inbox.accept(datagram, &bench.lines, &mut bench.pool, |accepted| {
            found.push(accepted.frame.integrity);
        });
        assert_eq!(found, [integrity]);
    }
}

#[test]
fn strangers_and_cut_datagrams_are_counted_and_not_read() {
    let mut bench = Bench::new();
    bench.feed_from(STRANGER, &data(0), false);
    bench.feed_from(PEER, &data(0), true);
    bench.feed_from(PEER, &[], false);
    let expected = Rejected { foreign: 1, oversize: 1, truncated: 1, ..Rejected::default() };
    assert_eq!(bench.inbox.rejected, expected);
    assert!(bench.delivered.is_empty());
}

#[test]
fn a_stamp_from_the_far_future_is_refused_before_its_sequence_number_counts() {
    let mut bench = Bench::new();
    let stamped = |ps: u64, sequence| {
        record(Shim { stamp: Instant::from_ps(ps), ..shim(sequence, FrameKind::Infiniband) })
    };
    bench.feed(&[data(0), stamped(u64::MAX, 900), stamped(10_000_000_000_001, 901), data(1)]);
    assert_eq!(bench.inbox.rejected, Rejected { future: 2, ..Rejected::default() });
    assert_eq!((bench.delivered.len(), bench.counts().lost), (2, 0));
    bench.inbox.latest_stamp = Instant::from_ps(10_000_000_000_001);
    bench.feed(&[stamped(10_000_000_000_001, 2)]);
    assert_eq!(bench.delivered.len(), 3, "time has passed");
}

#[test]
fn a_link_is_accepted_only_from_its_own_process_and_end() {
    let mut bench = Bench::new();
    bench.feed_from(US, &data(0), false);
    bench.feed(&[record(Shim { link: 9, ..shim(0, FrameKind::Ethernet) })]);
    bench.feed(&[record(Shim { end: SendingEnd::B, ..shim(0, FrameKind::Ethernet) })]);
    assert_eq!(bench.inbox.rejected, Rejected { link: 3, ..Rejected::default() });
    assert!(bench.delivered.is_empty());
}

#[test]
fn a_record_of_another_run_does_not_harm_its_neighbours() {
    let mut bench = Bench::new();
    let old = record(Shim { epoch: EPOCH - 1, ..shim(500, FrameKind::Infiniband) });
    bench.feed(&[data(0), old, data(1)]);
    assert_eq!(bench.inbox.rejected, Rejected { epoch: 1, ..Rejected::default() });
    assert_eq!((bench.delivered.len(), bench.counts().lost), (2, 0));
}

#[test]
fn each_broken_header_has_its_own_reason() {
    type Reason = fn(&mut Rejected) -> &mut u64;
    let broken: [(usize, u8, Reason); 4] = [
        (0, b'x', |r| &mut r.magic),
        (5, 9, |r| &mut r.kind),
        (7, 2, |r| &mut r.link),
        (21, 0xff, |r| &mut r.oversize),
    ];
    for (at, value, reason) in broken {
        let mut bench = Bench::new();
        let mut octets = data(0);
        octets[at] = value;
        bench.feed(&[octets]);
        let mut expected = Rejected::default();
        *reason(&mut expected) = 1;
        assert_eq!(bench.inbox.rejected, expected, "octet {at}");
        assert!(bench.delivered.is_empty());
    }
}

#[test]
fn another_version_is_remembered_by_its_number() {
    let mut bench = Bench::new();
    let mut octets = data(0);
    octets[4] = 2;
    bench.feed(&[octets]);
    let expected = Rejected { version: 1, other_version: Some(2), ..Rejected::default() };
    assert_eq!(bench.inbox.rejected, expected);
}

#[test]
fn short_ends_are_refused_and_what_came_before_them_is_kept() {
    let mut bench = Bench::new();
    bench.feed(&[data(0), vec![1, 2, 3]]);
    let mut cut = data(2);
    cut.pop();
    bench.feed(&[data(1), cut]);
    bench.feed(&[vec![1, 2, 3]]);
    let expected = Rejected { trailing: 1, truncated: 2, ..Rejected::default() };
    assert_eq!(bench.inbox.rejected, expected);
    assert_eq!(bench.delivered.len(), 2);
}

#[test]
fn a_gap_is_a_loss_until_the_frame_comes_after_all() {
    let mut bench = Bench::new();
    bench.feed(&[data(0), data(3)]);
    assert_eq!((bench.counts().lost, bench.inbox.lost), (2, 2));
    bench.feed(&[data(2), data(2)]);
    let counts = bench.counts();
    assert_eq!((counts.lost, counts.reordered, counts.duplicates), (1, 1, 1));
    assert_eq!(bench.delivered.len(), 3);
}

#[test]
fn a_late_link_packet_is_history_and_no_loss() {
    let mut bench = Bench::new();
    bench.feed(&[data(1), record(shim(0, FrameKind::InfinibandLink))]);
    let counts = bench.counts();
    assert_eq!((counts.lost, counts.stale, counts.reordered), (0, 1, 0));
    assert_eq!(bench.delivered.len(), 1);
}

#[test]
fn what_comes_after_the_stop_is_counted_apart() {
    let mut bench = Bench::new();
    bench.feed(&[data(0)]);
    bench.inbox.draining = true;
    bench.feed(&[data(1)]);
    let counts = bench.counts();
    assert_eq!((counts.received.total(), counts.drained.total()), (1, 1));
}

mod noise {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arbitrary_octets_from_the_right_peer_never_panic(
            octets in prop::collection::vec(any::<u8>(), 0..200),
            flips in prop::collection::vec((0usize..105, any::<u8>()), 0..4),
        ) {
            let mut bench = Bench::new();
            bench.feed_from(PEER, &octets, false);
            let mut records = [data(0), data(1), data(2)].concat();
            for (at, value) in flips {
                records[at] = value;
            }
            bench.feed_from(PEER, &records, false);
        }
    }
}
