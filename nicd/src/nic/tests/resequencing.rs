//! Resequencing of frames that took paths of different length.

use super::cable::*;
use super::*;
use crate::config::*;
use proto::congestion::SchemeConfig;
use proto::counters::DropReason;
use proto::ids::{Lid, QueuePairNumber};
use proto::link::{FlowControlConfig, PauseConfig};
use proto::units::Duration;
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::plan;

/// Octets of pattern in a test frame of 1500 octets: without MAC header, tag, subtype, header and FCS.
const PATTERN: u64 = 1500 - 14 - 4 - 1 - 17 - 4;

/// Four messages of one frame each, with or without resequencing.
fn sending(transport: Transport, resequence: bool) -> NicConfig {
    let settings = NicConfig {
        traffic: vec![burst(2, 1500, 4)],
        classes: vec![class(transport, Operation::Send)],
        scheme: SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        ..config(1)
    };
    let mut settings = on_ethernet(settings, RoceVersion::V2Ipv4);
    if let FlowControlConfig::Pause(pause) = &mut settings.link.control {
        *pause = PauseConfig { priorities: PriorityMap::BY_PCP, ..pause.clone() };
    }
    if let Encapsulation::Roce(roce) = &mut settings.wire {
        let config = ResequenceConfig { window: 16, timeout: Duration::from_us(20) };
        roce.resequence = resequence.then_some(config);
    }
    settings
}

/// Impairs the second data frame only.
fn second(impairment: fn() -> Impairment) -> impl FnMut(&Seen) -> Impairment {
    let mut frames = 0;
    move |seen: &Seen| {
        frames += u32::from(seen.from == 0);
        if seen.from == 0 && frames == 2 { impairment() } else { Impairment::Pass }
    }
}

fn run(transport: Transport, resequence: bool, impairment: fn() -> Impairment) -> Pair {
    Pair::alike(sending(transport, resequence))
        .with_impairment(second(impairment))
        .run_until(us(300))
}

#[test]
fn a_late_test_frame_delays_later_ones_and_none_is_missing() {
    let mut pair = run(Transport::Test, true, || Impairment::Late);
    let received = pair.reception(1);
    assert_eq!((received.messages, received.reordered), (4, 2), "two frames arrived before it");
    assert_eq!(pair.total(1, "rx_sequence_depth"), 2);
    assert_eq!((pair.total(1, "rx_sequence_gaps"), pair.total(1, "rx_sequence_timeouts")), (0, 0));
    pair.assert_conserved(0, 0);
}

#[test]
fn a_frame_that_comes_twice_while_it_waits_is_a_duplicate() {
    let mut frames = 0;
    let impair = move |seen: &Seen| {
        frames += u32::from(seen.from == 0);
        match (seen.from, frames) {
            (0, 2) => Impairment::Lose,
            (0, 3) => Impairment::Duplicate,
            _ => Impairment::Pass,
        }
    };
    let pair = Pair::alike(sending(Transport::Test, true)).with_impairment(impair);
    let mut pair = pair.run_until(us(300));
    assert_eq!((pair.reception(1).messages, pair.drops(1, DropReason::Duplicate)), (3, 1));
}

#[test]
fn a_lost_test_frame_is_waited_for_and_then_counted() {
    let mut pair = run(Transport::Test, true, || Impairment::Lose);
    assert_eq!(pair.reception(1).messages, 3);
    assert_eq!((pair.total(1, "rx_sequence_gaps"), pair.total(1, "rx_sequence_timeouts")), (1, 1));
    pair.assert_conserved(1, 0);
}

#[test]
fn a_duplicate_test_frame_is_delivered_once() {
    let mut pair = run(Transport::Test, true, || Impairment::Duplicate);
    let received = pair.reception(1);
    assert_eq!((received.messages, received.reordered), (4, 1));
    assert_eq!(pair.drops(1, DropReason::Duplicate), 1);
    let without = run(Transport::Test, false, || Impairment::Pass).reception(1);
    assert_eq!((without.messages, without.reordered), (4, 0));
    assert_eq!(received.delivered_bytes, without.delivered_bytes);
    assert_eq!(without.delivered_bytes, 4 * PATTERN);
    pair.assert_conserved(0, 1);
}

#[test]
fn a_test_frame_of_no_flow_to_this_adapter_is_dropped() {
    let mut pair = run(Transport::Test, false, || Impairment::Pass);
    type Change = fn(&mut [u8]);
    let changes: [Change; 3] = [
        |octets| octets[20..24].copy_from_slice(&[0, 0, 0, 5]),
        |octets| {
            let other = QueuePairNumber::planned(7, Lid::new(1)).get();
            octets[20..24].copy_from_slice(&other.to_be_bytes());
        },
        // A source that is not an adapter.
        |octets| octets[6..12].fill(2),
    ];
    for (change, dropped) in changes.into_iter().zip(1..) {
        let mut octets = bytes::BytesMut::from(&pair.seen[0].octets[..]);
        change(&mut octets);
        let (frame, now) = (Frame::intact(FrameKind::Ethernet, octets), pair.now);
        pair.nics[1].handle_frame(PortNumber::from_index(0), frame, now, now);
        assert_eq!(pair.drops(1, DropReason::QueuePair), dropped);
    }
    assert_eq!(pair.reception(1).messages, 4);
}

#[test]
fn a_frame_beyond_the_window_ends_the_wait_for_a_lost_one() {
    let mut settings = sending(Transport::Test, true);
    settings.traffic = vec![burst(2, 1500, 30)];
    if let Encapsulation::Roce(roce) = &mut settings.wire {
        let wait = ResequenceConfig { window: 16, timeout: Duration::from_us(500) };
        roce.resequence = Some(wait);
    }
    let mut pair = Pair::alike(settings).with_impairment(second(|| Impairment::Lose));
    pair.advance(us(300));
    assert_eq!(pair.reception(1).messages, 29);
    assert_eq!((pair.total(1, "rx_sequence_gaps"), pair.total(1, "rx_sequence_timeouts")), (1, 0));
}

#[test]
fn a_duplicate_of_a_test_frame_that_is_held_is_dropped() {
    let mut frames = 0;
    let impair = move |seen: &Seen| {
        frames += u32::from(seen.from == 0);
        match (seen.from, frames) {
            (0, 2) => Impairment::Late,
            (0, 3) => Impairment::Duplicate,
            _ => Impairment::Pass,
        }
    };
    let settings = sending(Transport::Test, true);
    let mut pair = Pair::alike(settings).with_impairment(impair).run_until(us(300));
    assert_eq!((pair.reception(1).messages, pair.drops(1, DropReason::Duplicate)), (4, 1));
}

#[test]
fn resequencing_hides_a_late_request_from_the_responder() {
    let mut pair = run(Transport::Rc, true, || Impairment::Late);
    let received = pair.reception(1);
    assert_eq!((received.messages, received.reordered), (4, 2));
    assert_eq!(pair.total(0, "retransmitted_packets"), 0);
    assert_eq!((pair.total(1, "out_of_sequence"), pair.total(1, "rx_sequence_gaps")), (0, 0));
    assert_eq!(pair.total(1, "rx_sequence_depth"), 2);
    pair.assert_conserved(0, 0);
    let mut without = run(Transport::Rc, false, || Impairment::Late);
    assert!(
        without.total(0, "retransmitted_packets") > 0,
        "without resequencing the late request is retransmitted"
    );
}

#[test]
fn a_lost_request_is_retransmitted_after_the_wait() {
    let mut pair = run(Transport::Rc, true, || Impairment::Lose);
    assert_eq!(pair.reception(1).messages, 4);
    assert_eq!(pair.flow(0).completed, 4);
    assert_eq!((pair.total(1, "rx_sequence_gaps"), pair.total(1, "rx_sequence_timeouts")), (1, 1));
    assert!(pair.total(0, "retransmitted_packets") > 0);
    pair.assert_conserved(1, 0);
}

#[test]
fn a_script_waits_for_messages_sent_and_received() {
    let step = |to, messages, after: &[AfterConfig]| StepConfig {
        to: Lid::new(to),
        messages,
        size: Bytes::new(1500),
        last: Bytes::new(100),
        at: Instant::ZERO,
        after: after.to_vec(),
    };
    let (peer, own) = (Lid::new(2), Lid::new(1));
    let settings = |lid: u16, steps: Vec<StepConfig>| {
        let traffic = TrafficConfig { to: Target::Script(steps), ..burst(2, 1500, 0) };
        let settings = sending(Transport::Test, true);
        let mut link = settings.link.clone();
        if let FlowControlConfig::Pause(pause) = &mut link.control {
            pause.address = plan::mac(Lid::new(lid));
        }
        let (name, lid) = (format!("h{lid}"), Lid::new(lid));
        NicConfig { name, lid, link, traffic: vec![traffic], ..settings }
    };
    let ping = step(2, 3, &[]);
    let again = step(2, 2, &[AfterConfig::Sent(peer, 3), AfterConfig::Received(peer, 2)]);
    let pong = step(1, 2, &[AfterConfig::Received(own, 3)]);
    let mut pair = Pair::new(settings(1, vec![ping, again]), settings(2, vec![pong]));
    pair = pair.run_until(us(100));
    let order: Vec<usize> = pair.seen.iter().map(|seen| seen.from).collect();
    assert_eq!(order, [0, 0, 0, 1, 1, 0, 0]);
    let sizes: Vec<usize> = pair.seen.iter().map(|seen| seen.octets.len() + 4).collect();
    assert_eq!(sizes, [1500, 1500, 100, 1500, 100, 1500, 100]);
}
