//! Pending connections: their readings, and how they become queue pairs.

use super::cable::*;
use super::*;
use crate::config::{NicConfig, Operation, QueuePairOrder, Target, TrafficConfig, Transport};
use proto::counters::FlowReading;
use proto::events::EventKind;
use proto::ids::{Lid, Psn, QueuePairNumber};
use proto::wire::infiniband::{Bth, Opcode, PacketBuilder};

/// The integral of the line rate over one microsecond.
const RATE_OF_US: u128 = 8_000_000_000 * 1_000_000;

/// NIC 0 sends these items on UC in posting order.
fn sending(traffic: Vec<TrafficConfig>) -> Pair {
    let classes = vec![class(Transport::Uc, Operation::Send)];
    Pair::alike(NicConfig { traffic, classes, ..config(1) })
}

/// The flows of NIC 0 at this depth, by receiver.
fn flows(pair: &mut Pair, depth: Depth) -> Vec<FlowReading> {
    let mut reading = DeviceReading::default();
    pair.nics[0].read_to(depth, pair.now, &mut reading);
    reading.flows
}

fn receivers(pair: &mut Pair, depth: Depth) -> Vec<u64> {
    flows(pair, depth).iter().map(|flow| flow.flow.destination).collect()
}

/// Bursts of four frames to LIDs 4, 3 and 2. Each frame takes 2.074 µs on the line.
fn three_bursts() -> Vec<TrafficConfig> {
    [4, 3, 2].map(|lid| burst(lid, 2048, 4)).to_vec()
}

#[test]
fn a_queue_pair_begins_with_its_first_frame_and_its_flow_with_its_first_message() {
    let mut pair = sending(three_bursts());
    pair.advance(us(6));
    assert_eq!(receivers(&mut pair, Depth::All), [2, 3, 4]);
    assert_eq!(receivers(&mut pair, Depth::Begun), [4]);
    let waiting = flows(&mut pair, Depth::All).swap_remove(0);
    assert_eq!((waiting.messages, waiting.offered_bytes, waiting.tx_bytes), (4, 4 * 2048, 0));
    assert_eq!((waiting.neutral_since, waiting.first), (Some(us(5)), None));
    assert_eq!((waiting.rate.integral, waiting.items[..].to_vec()), (RATE_OF_US, vec![2]));
    pair.advance(us(40));
    let sent = flows(&mut pair, Depth::Begun);
    assert!(sent.iter().all(|flow| (flow.completed, flow.tx_bytes) == (4, 4 * FULL)), "{sent:?}");
    let rates: Vec<u128> = sent.iter().map(|flow| flow.rate.integral).collect();
    assert_eq!(rates, [35 * RATE_OF_US; 3], "each flow counts from its first message");
}

/// 100 messages are due at once, and again later; a queue pair, pending or not, takes eight.
#[test]
fn a_full_send_queue_takes_no_message_and_counts_it() {
    for transport in [Transport::Uc, Transport::Rc] {
        let classes = vec![class(transport, Operation::Send)];
        let later = TrafficConfig { start: us(9), ..burst(2, 2048, 100) };
        let traffic = vec![burst(2, 2048, 100), later, burst(3, 2048, 5)];
        let limits = NicConfig { traffic, classes, send_queue_max: Some(8), ..config(1) };
        let mut pair = Pair::alike(limits);
        pair.advance(us(200));
        let flows = flows(&mut pair, Depth::All);
        let posted = |lid| flows.iter().find(|flow| flow.flow.destination == lid);
        let full = posted(2).expect("a flow");
        assert!((8..30).contains(&full.messages), "{transport:?}: {}", full.messages);
        assert_eq!(full.completed, full.messages, "what was posted is sent");
        assert_eq!(posted(3).map(|flow| flow.messages), Some(5), "each connection has its own");
        assert_eq!(pair.total(0, "send_queue_full") + full.messages, 200, "{transport:?}");
    }
}

#[test]
fn a_backlog_never_meets_a_full_send_queue() {
    let backlog =
        TrafficConfig { arrivals: crate::config::Arrivals::Backlog, ..burst(2, 2048, 50) };
    let classes = vec![class(Transport::Rc, Operation::Send)];
    let traffic = vec![backlog];
    let mut pair =
        Pair::alike(NicConfig { traffic, classes, send_queue_max: Some(1), ..config(1) });
    pair.advance(us(500));
    assert_eq!(flows(&mut pair, Depth::All)[0].completed, 50);
    assert_eq!(pair.total(0, "send_queue_full"), 0);
}

/// The bursts to LIDs 3 and 2 wait while items stop.
#[test]
fn messages_of_several_items_are_withdrawn_item_by_item() {
    let stopped = |lid| TrafficConfig { stop: us(7), ..burst(lid, 2048, 3) };
    let traffic = vec![burst(4, 2048, 4), stopped(3), burst(3, 2048, 2), stopped(2)];
    let mut pair = sending(traffic);
    pair.advance(us(60));
    let accounts = flows(&mut pair, Depth::All);
    let accounts = accounts.iter().map(|flow| (flow.messages, flow.completed, flow.withdrawn));
    assert_eq!(accounts.collect::<Vec<_>>(), [(3, 0, 3), (5, 2, 3), (4, 4, 0)]);
    assert_eq!(receivers(&mut pair, Depth::Begun), [3, 4]);
    assert_eq!(pair.reading(0).balance.withdrawn, 6);
    assert_eq!(pair.reading(0).ports[0].lanes[0].counters.source_queue.value, 0);
}

/// The connection keeps its counts after its messages were withdrawn.
#[test]
fn a_connection_may_begin_after_all_its_messages_were_withdrawn() {
    let early = TrafficConfig { stop: us(7), ..burst(3, 2048, 3) };
    let late = TrafficConfig { start: us(30), ..burst(3, 2048, 2) };
    let mut pair = sending(vec![burst(4, 2048, 4), early, late]);
    pair.advance(us(60));
    let flow = flows(&mut pair, Depth::All).swap_remove(0);
    assert_eq!((flow.messages, flow.completed, flow.withdrawn), (5, 2, 3));
    assert_eq!(flow.items[..], [1, 2]);
}

/// LID 2 sends while messages to it are still pending.
#[test]
fn a_frame_from_the_peer_makes_the_queue_pair_and_keeps_the_order() {
    for qp_order in [QueuePairOrder::Posting, QueuePairOrder::RoundRobin] {
        let classes = vec![class(Transport::Uc, Operation::Send)];
        let ours = NicConfig { traffic: three_bursts(), classes, qp_order, ..config(1) };
        let traffic =
            vec![TrafficConfig { to: Target::Lids(vec![Lid::new(1)]), ..burst(1, 256, 1) }];
        let theirs = NicConfig { name: "h2".to_owned(), lid: Lid::new(2), traffic, ..ours.clone() };
        let alone = Pair::alike(ours.clone()).run_until(us(60));
        let mut pair = Pair::new(ours, theirs);
        pair.advance(us(60));
        assert_eq!(pair.reading(0).receptions.len(), 1);
        let order = |pair: &Pair| -> Vec<Lid> {
            pair.data_from(0).iter().map(|seen| seen.packet().lrh.dlid).collect()
        };
        assert_eq!(order(&pair), order(&alone), "{qp_order:?}");
        assert_eq!(receivers(&mut pair, Depth::All), [2, 3, 4]);
    }
}

/// LID 2 has sent data, and then a CNP for a flow that never carried a frame.
#[test]
fn a_notification_about_a_flow_that_was_never_sent_is_counted_and_changes_nothing() {
    let classes = vec![class(Transport::Uc, Operation::Send)];
    let scheme = throttled_by(3);
    let theirs = NicConfig { classes, scheme, traffic: vec![burst(1, 256, 1)], ..config(2) };
    let ours = NicConfig { traffic: vec![], ..NicConfig { lid: Lid::new(1), ..theirs.clone() } };
    let mut pair = Pair::new(ours, theirs);
    pair.advance(us(50));
    let bth = Bth {
        becn: true,
        ..Bth::new(Opcode::CNP, QueuePairNumber::planned(0, Lid::new(2)), Psn::default())
    };
    let builder = PacketBuilder { slid: Lid::new(2), dlid: Lid::new(1), ..PacketBuilder::new(bth) };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, 0, |_| {}).expect("a good packet");
    let frame = Frame::unchecked(FrameKind::Infiniband, octets);
    pair.nics[0].handle_frame(PortNumber::from_index(0), frame, us(50), us(50));
    assert_eq!((pair.total(0, "rp_cnp_handled"), pair.total(0, "rp_cnp_ignored")), (1, 1));
    assert_eq!(pair.reading(0).flows, []);
    assert_eq!(pair.happened(0, |kind| matches!(kind, EventKind::React { .. })), 0);
}
