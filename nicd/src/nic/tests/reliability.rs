//! Reliable connection: order, loss, duplicates, RNR, error state, memory protection.

use super::cable::*;
use super::*;
use crate::config::{NicConfig, Operation, TrafficConfig, Transport};
use proto::counters::DropReason;
use proto::events::EventKind;
use proto::units::{Bytes, Duration};
use proto::wire::infiniband::{NakCode, Opcode, Syndrome};

fn sending(size: u64, messages: u64) -> NicConfig {
    NicConfig { traffic: vec![burst(2, size, messages)], ..config(1) }
}

/// `messages` of `size` octets were each delivered once and acknowledged.
fn assert_delivered(pair: &mut Pair, size: u64, messages: u64) {
    let (flow, reception) = (pair.flow(0), pair.reception(1));
    assert_eq!((flow.messages, flow.completed, flow.withdrawn), (messages, messages, 0));
    assert_eq!((reception.messages, reception.delivered_bytes), (messages, messages * size));
    let lane = pair.reading(0).ports[0].lanes[0];
    assert_eq!(lane.counters.source_queue.value, 0);
}

#[test]
fn messages_of_every_size_around_the_mtu_arrive_in_order() {
    for size in [0, 1, 3, 23, 24, 2047, 2048, 2049, 4096, 4097, 6144] {
        for settings in in_each_wire_format(sending(size, 20)) {
            let mut pair = Pair::alike(settings).run_until(us(400));
            assert_delivered(&mut pair, size, 20);
            let packets = 20 * size.div_ceil(2048).max(1);
            assert_eq!(pair.data_from(0).len() as u64, packets, "nothing is retransmitted");
            assert_eq!(pair.sent(1, Opcode::RC_ACKNOWLEDGE).len() as u64, packets);
            assert_eq!(pair.reading(1).ports[0].drops.total(), 0);
            pair.assert_conserved(0, 0);
        }
    }
}

#[test]
fn a_message_is_segmented_and_its_latency_ends_with_the_last_packet() {
    let mut pair = Pair::alike(sending(5000, 1)).run_until(us(100));
    let opcodes: Vec<Opcode> = pair.data_from(0).iter().map(|seen| seen.opcode()).collect();
    assert_eq!(opcodes, [Opcode::RC_SEND_FIRST, Opcode::RC_SEND_MIDDLE, Opcode::RC_SEND_LAST]);
    assert_eq!(pair.data_from(0)[2].packet().payload.len(), 5000 - 2 * 2048);
    let latency = pair.reading(1).latencies.remove(0);
    assert_eq!((latency.item, latency.buckets.iter().sum::<u64>()), (40, 1));
    // Three frames back to back and the propagation delay. A flow control packet may be in between.
    let least = u128::from(2 * FULL + 904 + 26 + 100);
    assert!((least..=least + 32).contains(&latency.sum_ns), "{} {least}", latency.sum_ns);
}

#[test]
fn any_single_frame_may_be_lost_in_either_direction() {
    let cases = in_each_wire_format(sending(5000, 4));
    for (lost, settings) in (0..24).flat_map(|lost| cases.clone().map(|one| (lost, one))) {
        let mut count = 0;
        let mut pair = Pair::alike(settings).with_impairment(move |_| {
            count += 1;
            if count == lost + 1 { Impairment::Lose } else { Impairment::Pass }
        });
        pair.advance(us(1_000));
        assert_delivered(&mut pair, 5000, 4);
        pair.assert_conserved(1, 0);
    }
}

#[test]
fn a_gap_returns_one_nak_and_is_retransmitted_from_there() {
    let mut pair = Pair::alike(sending(2048, 10)).with_impairment({
        let mut count = 0;
        move |seen| {
            count += u32::from(seen.is_data());
            if seen.is_data() && count == 3 { Impairment::Lose } else { Impairment::Pass }
        }
    });
    pair.advance(us(90));
    assert_delivered(&mut pair, 2048, 10);
    let naks = pair.sent(1, Opcode::RC_ACKNOWLEDGE);
    let naks = naks.iter().filter(|seen| {
        let aeth = seen.packet().extended.aeth.unwrap();
        aeth.syndrome == Syndrome::Nak(NakCode::PsnSequence)
    });
    assert_eq!(naks.count(), 1);
    let refused = pair.drops(1, DropReason::OutOfSequence);
    assert!(refused > 0);
    assert_eq!(pair.reception(1).reordered, refused);
    assert_eq!(pair.total(1, "out_of_sequence"), refused);
    assert_eq!(pair.total(0, "packet_seq_err"), 1);
    assert_eq!(pair.total(0, "local_ack_timeout_err"), 0);
    assert_eq!(pair.total(0, "retransmitted_packets"), refused + 1);
}

#[test]
fn a_lost_last_frame_is_found_by_the_timeout() {
    let mut pair = Pair::alike(sending(2048, 1)).with_impairment({
        let mut lost = false;
        move |_| {
            if std::mem::replace(&mut lost, true) { Impairment::Pass } else { Impairment::Lose }
        }
    });
    pair.advance(us(300));
    assert_delivered(&mut pair, 2048, 1);
    let sent: Vec<Instant> = pair.data_from(0).iter().map(|seen| seen.at).collect();
    let gap = sent[1].since(sent[0]);
    assert_eq!(gap, Duration::from_us(100) + OCTET * FULL, "the timeout, then the frame");
    assert_eq!(pair.total(0, "local_ack_timeout_err"), 1);
}

#[test]
fn duplicates_are_acknowledged_again_and_delivered_once() {
    for settings in in_each_wire_format(sending(2048, 5)) {
        let mut pair = Pair::alike(settings)
            .with_impairment(
                |seen| if seen.is_data() { Impairment::Duplicate } else { Impairment::Pass },
            )
            .run_until(us(200));
        assert_delivered(&mut pair, 2048, 5);
        assert_eq!(pair.drops(1, DropReason::Duplicate), 5);
        assert_eq!(pair.total(1, "duplicate_request"), 5);
        assert_eq!(pair.sent(1, Opcode::RC_ACKNOWLEDGE).len(), 10);
        pair.assert_conserved(0, 5);
    }
}

#[test]
fn damaged_frames_are_counted_and_retransmitted() {
    for (impairment, reason) in [
        (Impairment::CorruptPayload, DropReason::Icrc),
        (Impairment::CorruptLink, DropReason::Vcrc),
    ] {
        let mut hit = false;
        let mut pair = Pair::alike(sending(2048, 3)).with_impairment(move |_| {
            if std::mem::replace(&mut hit, true) { Impairment::Pass } else { impairment }
        });
        pair.advance(us(300));
        assert_delivered(&mut pair, 2048, 3);
        assert_eq!(pair.drops(1, reason), 1);
        pair.assert_conserved(0, 0);
    }
}

#[test]
fn heavy_loss_both_ways_still_delivers_everything_once() {
    let mut random = proto::random::Random::stream(3, "test", "loss");
    let settings = NicConfig { ack_every: 4, ..sending(5000, 200) };
    let lost = std::rc::Rc::new(std::cell::Cell::new(0));
    let mut pair = Pair::alike(settings).with_impairment({
        let lost = lost.clone();
        move |_| {
            let hit = random.chance(1, 20);
            lost.set(lost.get() + u64::from(hit));
            if hit { Impairment::Lose } else { Impairment::Pass }
        }
    });
    pair.advance(us(40_000));
    assert_delivered(&mut pair, 5000, 200);
    assert!(lost.get() > 20, "some frames were lost");
    pair.assert_conserved(lost.get(), 0);
}

#[test]
fn acknowledgements_are_coalesced_by_count_and_by_delay() {
    let ack_delay = Duration::from_us(20);
    let settings = NicConfig { ack_every: 4, ack_delay, ..sending(2048, 10) };
    let mut pair = Pair::alike(settings).run_until(us(200));
    assert_delivered(&mut pair, 2048, 10);
    let acks = pair.sent(1, Opcode::RC_ACKNOWLEDGE);
    let psns: Vec<u32> = acks.iter().map(|ack| ack.packet().bth.unwrap().psn.get()).collect();
    assert_eq!(psns, [3, 7, 9]);
    // The eighth frame was acknowledged. The ninth frame started the delay.
    let ninth = pair.data_from(0)[8].at + FLIGHT;
    let expected = ninth + ack_delay + OCTET * 30;
    assert_eq!(acks[2].at, expected);
}

#[test]
fn the_requester_waits_for_a_receiver_without_buffers() {
    let settings =
        NicConfig { receive_depth: 1, receive_refill: Duration::from_us(15), ..sending(2048, 4) };
    let mut pair = Pair::alike(settings).run_until(us(400));
    assert_delivered(&mut pair, 2048, 4);
    let refused = pair.drops(1, DropReason::ReceiverNotReady);
    assert!(refused >= 3, "{refused}");
    assert_eq!(pair.total(0, "rnr_nak_retry_err"), refused);
    assert_eq!(pair.total(1, "out_of_buffer"), refused);
    let timers: Vec<Syndrome> = pair
        .sent(1, Opcode::RC_ACKNOWLEDGE)
        .iter()
        .map(|ack| ack.packet().extended.aeth.unwrap().syndrome)
        .filter(|syndrome| matches!(syndrome, Syndrome::Rnr { .. }))
        .collect();
    assert!(timers.iter().all(|timer| *timer == Syndrome::Rnr { timer: 1 }), "10 us is code 1");
    pair.assert_conserved(0, 0);
}

#[test]
fn a_receiver_that_is_never_ready_exhausts_a_finite_rnr_retry() {
    let settings = NicConfig {
        receive_depth: 1,
        receive_refill: Duration::from_us(1_000_000),
        rnr_retry: 2,
        ..sending(2048, 2)
    };
    let mut pair = Pair::alike(settings).run_until(us(400));
    assert_eq!(pair.happened(0, |kind| matches!(kind, EventKind::QueuePairError { .. })), 1);
    assert_eq!(pair.total(0, "rnr_nak_retry_err"), 3);
    let flow = pair.flow(0);
    assert_eq!((flow.completed, flow.withdrawn), (1, 1));
}

#[test]
fn missing_acknowledgements_exhaust_the_retries_and_stop_the_queue_pair() {
    // The third message is posted in the error state.
    let late = TrafficConfig { start: us(1_000), ..burst(2, 5000, 1) };
    let traffic = vec![burst(2, 5000, 2), late];
    let settings = NicConfig { retry_count: 3, traffic, ..config(1) };
    let mut pair = Pair::alike(settings).with_impairment(|_| Impairment::Lose).run_until(us(2_000));
    assert_eq!(pair.happened(0, |kind| matches!(kind, EventKind::QueuePairError { .. })), 1);
    assert_eq!(pair.data_from(0).len(), 6 * 4, "all six packets, four times");
    let flow = pair.flow(0);
    assert_eq!((flow.messages, flow.completed, flow.withdrawn), (3, 0, 3));
    assert_eq!((pair.reading(0).balance.withdrawn, pair.total(0, "qp_errors")), (3, 1));
    assert_eq!(pair.reading(0).ports[0].lanes[0].counters.source_queue.value, 0);
}

#[test]
fn a_datagram_without_a_buffer_is_lost_and_counted() {
    let settings = NicConfig {
        receive_depth: 1,
        receive_refill: Duration::from_us(1_000_000),
        classes: vec![class(Transport::Ud, Operation::Send)],
        ..sending(2048, 3)
    };
    let mut pair = Pair::alike(settings).run_until(us(100));
    assert_eq!((pair.reception(1).messages, pair.drops(1, DropReason::ReceiverNotReady)), (1, 2));
}

fn writing(size: u64) -> NicConfig {
    let classes = vec![class(Transport::Rc, Operation::Write)];
    NicConfig { classes, ..sending(size, 3) }
}

#[test]
fn writes_carry_key_and_length_once_per_message() {
    let mut pair = Pair::alike(NicConfig { receive_depth: 1, ..writing(5000) });
    pair.advance(us(200));
    assert_delivered(&mut pair, 5000, 3);
    let data = pair.data_from(0);
    assert_eq!(data[0].opcode(), Opcode::RC_WRITE_FIRST);
    assert_eq!(data[0].packet().extended.reth.unwrap().dma_length, 5000);
    assert_eq!(data[2].opcode(), Opcode::RC_WRITE_LAST);
    assert_eq!(pair.drops(1, DropReason::ReceiverNotReady), 0, "a WRITE takes no receive buffer");
}

/// The receiver gets one RDMA WRITE whose RETH `change` has altered; both CRCs are correct.
fn forged_write(change: fn(&mut [u8])) -> Pair {
    let mut sender =
        Pair::alike(writing(2048)).with_impairment(|_| Impairment::Lose).run_until(us(9));
    let mut octets = bytes::BytesMut::from(&sender.seen.remove(0).octets[..]);
    change(&mut octets[20..36]);
    proto::wire::infiniband::crc::refresh_both(&mut octets);
    let mut pair = Pair::alike(NicConfig { traffic: vec![], ..writing(2048) }).run_until(us(5));
    let frame = Frame::unchecked(FrameKind::Infiniband, octets);
    pair.nics[1].handle_frame(PortNumber::from_index(0), frame, us(5), us(5));
    pair.advance(us(20));
    pair
}

fn ack_of(pair: &Pair) -> Syndrome {
    let acks = pair.sent(1, Opcode::RC_ACKNOWLEDGE);
    assert_eq!(acks.len(), 1);
    acks[0].packet().extended.aeth.unwrap().syndrome
}

#[test]
fn a_write_with_a_wrong_key_address_or_length_is_refused() {
    assert_eq!(ack_of(&forged_write(|_| {})), Syndrome::ACK);
    let mut pair = forged_write(|reth| reth[8] ^= 1);
    assert_eq!(ack_of(&pair), Syndrome::Nak(NakCode::RemoteAccess));
    assert_eq!(pair.drops(1, DropReason::Key), 1);
    let pair = forged_write(|reth| reth[0] ^= 1);
    assert_eq!(ack_of(&pair), Syndrome::Nak(NakCode::RemoteAccess));
    let mut pair = forged_write(|reth| reth[15] ^= 1);
    assert_eq!(ack_of(&pair), Syndrome::Nak(NakCode::InvalidRequest));
    assert_eq!(pair.drops(1, DropReason::PacketLength), 1);
    assert_eq!(pair.happened(1, |kind| matches!(kind, EventKind::QueuePairError { .. })), 1);
}

#[test]
fn both_directions_share_a_queue_pair_without_disturbing_each_other() {
    let mut both = sending(3000, 5);
    both.link.mtu = Bytes::new(1024);
    let mut other = NicConfig { traffic: vec![burst(1, 700, 5)], ..both.clone() };
    (other.name, other.lid) = ("h2".to_owned(), proto::ids::Lid::new(2));
    let mut pair = Pair::new(both, other).run_until(us(200));
    assert_eq!((pair.flow(0).completed, pair.flow(1).completed), (5, 5));
    assert_eq!((pair.reception(1).messages, pair.reception(0).messages), (5, 5));
    pair.assert_conserved(0, 0);
}
