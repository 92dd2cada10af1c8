//! FECN to BECN, on acknowledgements and in CNPs; pacing and its scope.

use super::cable::*;
use super::*;
use crate::config::{CnpBody, NicConfig, Operation, QueuePairOrder, Transport};
use proto::counters::DropReason;
use proto::events::{Direction, EventKind, NoteKind};
use proto::ids::Lid;
use proto::ids::{Psn, QueuePairNumber, ServiceLevel};
use proto::units::Duration;
use proto::wire::infiniband::{Bth, Opcode, PacketBuilder};

fn marked(settings: NicConfig) -> Pair {
    Pair::alike(settings)
        .with_impairment(|seen| if seen.is_data() { Impairment::Mark } else { Impairment::Pass })
}

fn sending(transport: Transport, messages: u64) -> NicConfig {
    NicConfig {
        traffic: vec![burst(2, 2048, messages)],
        classes: vec![class(transport, Operation::Send)],
        scheme: throttled_by(3),
        ..config(1)
    }
}

fn becns(pair: &Pair, opcode: Opcode) -> Vec<bool> {
    pair.sent(1, opcode).iter().map(|seen| seen.packet().bth.unwrap().becn).collect()
}

#[test]
fn each_marked_frame_returns_one_becn_on_its_acknowledgement() {
    let mut pair = marked(sending(Transport::Rc, 4)).run_until(us(200));
    assert_eq!(becns(&pair, Opcode::RC_ACKNOWLEDGE), [true; 4]);
    assert!(pair.sent(1, Opcode::CNP).is_empty());
    assert_eq!(pair.reception(1).marked, 4);
    assert_eq!(pair.flow(0).notes, 4);
    let (sent, handled) = (pair.total(1, "np_becn_sent"), pair.total(0, "rp_becn_handled"));
    assert_eq!((sent, handled), (4, 4));
    let lanes = [pair.reading(1).ports[0].lanes[0], pair.reading(0).ports[0].lanes[0]];
    assert_eq!((lanes[0].counters.notes_tx, lanes[1].counters.notes_rx), (4, 4));
    let notes = |dir: Direction| {
        move |event: &&(usize, DeviceEvent)| {
            matches!(event.1.kind, EventKind::Note { flow, note: NoteKind::Becn, dir: way }
                if way == dir && flow.source == 1 && flow.destination == 2)
        }
    };
    assert_eq!(pair.events.iter().filter(notes(Direction::Tx)).count(), 4);
    assert_eq!(pair.events.iter().filter(notes(Direction::Rx)).count(), 4);
}

#[test]
fn coalesced_acknowledgements_merge_becns() {
    let ack_delay = Duration::from_us(100);
    let settings = NicConfig { ack_every: 4, ack_delay, ..sending(Transport::Rc, 8) };
    let pair = marked(settings).run_until(us(300));
    assert_eq!(becns(&pair, Opcode::RC_ACKNOWLEDGE), [true, true]);
}

#[test]
fn a_marked_frame_without_acknowledgement_returns_a_cnp() {
    for transport in [Transport::Uc, Transport::Ud] {
        let mut pair = marked(sending(transport, 3)).run_until(us(200));
        assert_eq!(becns(&pair, Opcode::CNP), [true; 3]);
        let cnp = pair.sent(1, Opcode::CNP)[0].clone();
        assert_eq!(cnp.octets.len(), 42);
        let packet = cnp.packet();
        let bth = packet.bth.unwrap();
        assert_eq!(bth.destination, QueuePairNumber::planned(0, Lid::new(2)));
        assert_eq!((bth.psn.get(), bth.ack_request, packet.payload), (0, false, &[0; 16][..]));
        assert_eq!((pair.total(1, "np_cnp_sent"), pair.total(0, "rp_cnp_handled")), (3, 3));
        assert_eq!(pair.flow(0).notes, 3);
        pair.assert_conserved(0, 0);
    }
}

#[test]
fn a_cnp_without_payload_has_the_same_effect() {
    let settings = NicConfig { cnp_body: CnpBody::None, ..sending(Transport::Uc, 1) };
    let mut pair = marked(settings).run_until(us(200));
    let cnp = pair.sent(1, Opcode::CNP)[0].clone();
    assert_eq!((cnp.octets.len(), cnp.packet().lrh.packet_length), (26, 6));
    assert_eq!(pair.flow(0).scalar, 1);
}

#[test]
fn a_scheme_may_request_cnps_on_a_reliable_connection() {
    let mut settings = sending(Transport::Rc, 2);
    settings.scheme.params.insert("becn".to_owned(), "cnp".into());
    let pair = marked(settings).run_until(us(200));
    assert_eq!(becns(&pair, Opcode::RC_ACKNOWLEDGE), [false; 2]);
    assert_eq!(becns(&pair, Opcode::CNP), [true; 2]);
}

#[test]
fn marked_acknowledgements_and_cnps_return_no_notification() {
    let mut pair = Pair::alike(sending(Transport::Rc, 3))
        .with_impairment(|seen| if seen.is_data() { Impairment::Pass } else { Impairment::Mark })
        .run_until(us(200));
    assert_eq!(pair.seen.iter().filter(|seen| seen.from == 0).count(), 3);
    assert_eq!(pair.total(0, "port_rcv_fecn"), 3);
    assert_eq!(pair.total(0, "np_ecn_marked_packets"), 0);
}

/// NIC 0, which has a flow to LID 2, receives a CNP from LID 2 with this BECN and payload.
fn cnp_received(becn: bool, body: &[u8]) -> Pair {
    let mut pair = Pair::alike(sending(Transport::Rc, 1)).run_until(us(50));
    let number = QueuePairNumber::planned(0, Lid::new(2));
    let bth = Bth { becn, ..Bth::new(Opcode::CNP, number, Psn::default()) };
    let (slid, dlid) = (Lid::new(2), Lid::new(1));
    let builder = PacketBuilder { slid, dlid, ..PacketBuilder::new(bth) };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, body.len(), |payload| payload.copy_from_slice(body)).unwrap();
    let frame = Frame::unchecked(FrameKind::Infiniband, octets);
    pair.nics[0].handle_frame(PortNumber::from_index(0), frame, us(50), us(50));
    pair
}

#[test]
fn cnps_of_both_lengths_take_effect_and_empty_ones_are_ignored() {
    assert_eq!(cnp_received(true, &[]).flow(0).scalar, 1);
    assert_eq!(cnp_received(true, &[0; 16]).flow(0).scalar, 1);
    let mut ignored = cnp_received(false, &[0; 16]);
    assert_eq!((ignored.flow(0).scalar, ignored.total(0, "rp_cnp_ignored")), (0, 1));
    let mut odd = cnp_received(true, &[0; 8]);
    assert_eq!((odd.flow(0).scalar, odd.drops(0, DropReason::PacketLength)), (0, 1));
}

#[test]
fn a_throttled_flow_keeps_exactly_the_gap_of_its_table() {
    let pair = marked(sending(Transport::Rc, 12)).run_until(us(400));
    let departures: Vec<Instant> = pair.data_from(0).iter().map(|seen| seen.at).collect();
    assert_eq!(departures.len(), 12);
    // The first BECN arrives within two frames. From then on each frame takes its own time and a gap of
    // three.
    for pair in departures[3..].windows(2) {
        assert_eq!(pair[1].since(pair[0]), OCTET * FULL * 4);
    }
}

#[test]
fn idle_time_is_not_credited() {
    let mut settings = sending(Transport::Rc, 4);
    let late = crate::config::TrafficConfig { start: us(1_000), ..burst(2, 2048, 4) };
    settings.traffic.push(late);
    let pair = marked(settings).run_until(us(2_000));
    let late: Vec<Instant> =
        pair.data_from(0).iter().map(|seen| seen.at).filter(|at| *at > us(1_000)).collect();
    assert_eq!(late[0].since(us(1_000)), OCTET * FULL, "the first frame leaves immediately");
    assert!(late.windows(2).all(|two| two[1].since(two[0]) == OCTET * FULL * 4));
}

/// The receivers of the frames sent: one marked flow to LID 2 and an unmarked flow to LID 3.
fn two_flows(scope: &str, order: QueuePairOrder) -> Vec<Lid> {
    let mut settings = sending(Transport::Rc, 20);
    settings.scheme.params.insert("scope".to_owned(), scope.into());
    settings.qp_order = order;
    settings.traffic.push(burst(3, 2048, 20));
    let pair = Pair::alike(settings)
        .with_impairment(|seen| {
            let hot = seen.is_data() && seen.packet().lrh.dlid == Lid::new(2);
            if hot { Impairment::Mark } else { Impairment::Pass }
        })
        .run_until(us(5) + OCTET * FULL * 20);
    pair.data_from(0).iter().map(|seen| seen.packet().lrh.dlid).collect()
}

#[test]
fn a_throttled_queue_pair_delays_no_other() {
    for order in [QueuePairOrder::Posting, QueuePairOrder::RoundRobin] {
        let targets = two_flows("queue-pair", order);
        let cold = targets.iter().filter(|lid| **lid == Lid::new(3)).count();
        assert!(targets.len() >= 19, "the line is never idle: {targets:?}");
        assert!(cold >= 12, "{cold} of {}", targets.len());
    }
}

#[test]
fn a_throttled_service_level_delays_all_its_queue_pairs() {
    let targets = two_flows("service-level", QueuePairOrder::Posting);
    assert!(targets.len() <= 8, "{targets:?}");
}

#[test]
fn a_reading_shows_when_the_flow_was_limited_and_released() {
    let mut settings = sending(Transport::Rc, 1);
    settings.scheme.params.insert("ccti_timer".to_owned(), toml::Value::Integer(100));
    settings.scheme.params.insert("trigger_threshold".to_owned(), toml::Value::Integer(1));
    let mut pair = marked(settings);
    pair.advance(us(20));
    let held = pair.flow(0);
    assert_eq!((held.neutral_since, held.ever_reacted, held.scalar), (None, true, 1));
    assert_eq!(held.gap.value, (OCTET * FULL * 3).as_ps());
    assert_eq!(held.rate.value, 2_000_000_000);
    let trigger = EventKind::Trigger {
        flow: held.flow,
        qp: QueuePairNumber::planned(0, Lid::new(2)),
        sl: ServiceLevel::default(),
        ccti: 1,
    };
    assert_eq!(pair.events.iter().filter(|(from, e)| *from == 0 && e.kind == trigger).count(), 1);
    assert_eq!(pair.total(0, "rp_trigger_events"), 1);
    pair.advance(us(300));
    let released = pair.flow(0);
    let reacted = pair.events.iter().filter_map(|(_, event)| match event.kind {
        EventKind::React { scalar, .. } => Some((event.at, scalar)),
        _ => None,
    });
    let reacted: Vec<_> = reacted.collect();
    assert_eq!(reacted.iter().map(|(_, scalar)| *scalar).collect::<Vec<_>>(), [1, 0]);
    let timer = Duration::from_ps(100 * 1_024_000);
    assert_eq!(reacted[1].0, reacted[0].0 + timer);
    assert_eq!(released.neutral_since, Some(reacted[0].0 + timer));
    assert_eq!(released.gap.integral, u128::from(held.gap.value) * u128::from(timer.as_ps()));
}
