//! Counters, the transmit test, healing after loss, training and the watchdog.

use super::*;
use crate::units::BitRate;
use proptest::prelude::*;

const LANE: VirtualLane = VirtualLane::ZERO;
const FULL: Bytes = Bytes::new(2074);

fn flow(blocks: u32) -> CreditFlow {
    CreditFlow::new(1, block_octets(blocks), FULL, BitRate::gbps(8), 4, Instant::ZERO)
}

fn normal(fctbs: u16, fccl: u16) -> FlowControlPacket {
    FlowControlPacket { op: FlowControlOp::Normal, fctbs, virtual_lane: LANE, fccl }
}

fn at(ns: u64) -> Instant {
    Instant::from_ps(ns * 1000)
}

/// Carries every due packet of each end to the other until neither has any.
fn settle(a: &mut CreditFlow, b: &mut CreditFlow, now: Instant) {
    loop {
        let from_a = a.control_due(now).and_then(|_| a.poll_control(now));
        let from_b = b.control_due(now).and_then(|_| b.poll_control(now));
        if from_a.is_none() && from_b.is_none() {
            return;
        }
        if let Some(packet) = from_a {
            b.on_control(&packet, now);
        }
        if let Some(packet) = from_b {
            a.on_control(&packet, now);
        }
    }
}

fn trained(blocks: u32) -> (CreditFlow, CreditFlow) {
    let (mut a, mut b) = (flow(blocks), flow(blocks));
    settle(&mut a, &mut b, at(0));
    assert_eq!((a.state(), b.state()), (LinkState::Active, LinkState::Active));
    (a, b)
}

#[test]
fn a_full_packet_costs_33_blocks_and_rounding_is_up() {
    assert_eq!([63, 64, 65, 2074, 2090].map(|n| blocks(Bytes::new(n))), [1, 1, 2, 33, 33]);
}

#[test]
fn the_limit_is_blocks_received_plus_free_buffer_capped_and_modulo_4096() {
    for (buffer, expected) in [(0, 0), (1, 1), (63, 63), (2047, 2047), (2048, 2048), (5000, 2048)] {
        let packet = flow(buffer).poll_control(at(0)).unwrap();
        assert_eq!(packet.fccl, expected);
    }
    let mut wrapped = flow(10);
    wrapped.on_control(&normal(4090, 0), at(0));
    assert_eq!(wrapped.poll_control(at(1)).unwrap().fccl, 4);
}

#[test]
fn the_gate_opens_up_to_the_limit_and_across_the_wrap() {
    let mut gate = flow(100);
    gate.on_control(&normal(0, 0), at(0));
    assert_eq!(gate.state(), LinkState::Active);
    let lane = &mut gate.lanes[0];
    (lane.total_blocks_sent, lane.credit_limit) = (4090, 4);
    assert!(gate.may_transmit(LANE, block_octets(10)));
    assert!(!gate.may_transmit(LANE, block_octets(11)));
    gate.on_transmit(LANE, block_octets(10));
    assert_eq!(gate.lanes[0].total_blocks_sent, 4);
    assert_eq!(gate.credits(LANE), 0);
}

#[test]
fn the_transmit_test_holds_for_each_side_of_half_the_modulus() {
    let mut gate = flow(100);
    gate.on_control(&normal(0, 0), at(0));
    for (difference, allowed) in
        [(0, true), (2047, true), (2048, true), (2049, false), (4095, false)]
    {
        gate.lanes[0].total_blocks_sent = 0;
        gate.lanes[0].credit_limit = (1 + difference) % 4096;
        assert_eq!(gate.may_transmit(LANE, Bytes::new(64)), allowed, "{difference}");
    }
}

#[test]
fn training_takes_one_packet_of_each_kind_from_each_end() {
    let (mut a, mut b) = (flow(100), flow(100));
    let first = a.poll_control(at(0)).unwrap();
    assert_eq!((first.op, first.fctbs, first.fccl), (FlowControlOp::Init, 0, 100));
    assert_eq!(b.on_control(&first, at(1)), ControlOutcome::StateChanged);
    assert_eq!(b.state(), LinkState::Arm);
    let answer = b.poll_control(at(1)).unwrap();
    assert_eq!(answer.op, FlowControlOp::Normal);
    a.on_control(&answer, at(2));
    assert_eq!(a.state(), LinkState::Active);
    b.on_control(&a.poll_control(at(2)).unwrap(), at(3));
    assert_eq!(b.state(), LinkState::Active);
}

#[test]
fn a_lost_first_packet_only_delays_training_by_a_refresh() {
    let (mut a, mut b) = (flow(100), flow(100));
    a.poll_control(at(0)).unwrap();
    b.poll_control(at(0)).unwrap();
    assert_eq!(a.control_due(at(1)), None);
    let refresh = a.poll_timeout();
    assert_eq!(refresh, at(4 * 16_384));
    a.handle_timeout(refresh);
    b.handle_timeout(refresh);
    settle(&mut a, &mut b, refresh);
    assert_eq!((a.state(), b.state()), (LinkState::Active, LinkState::Active));
}

#[test]
fn lost_data_returns_its_credit_with_the_next_flow_control_packet() {
    let (mut a, mut b) = trained(66);
    a.on_transmit(LANE, FULL);
    assert!(a.may_transmit(LANE, FULL));
    a.on_transmit(LANE, FULL);
    assert!(!a.may_transmit(LANE, FULL), "the window is used up");
    // Both frames are lost. The receiver learns from FCTBS what was sent, and offers its buffer.
    let refresh = at(70_000);
    a.handle_timeout(refresh);
    b.on_control(&a.poll_control(refresh).unwrap(), refresh);
    b.handle_timeout(refresh);
    a.on_control(&b.poll_control(refresh).unwrap(), refresh);
    assert_eq!(a.credits(LANE), 66);
}

#[test]
fn freed_buffer_is_announced_once_it_has_grown_by_a_full_frame() {
    let (mut a, mut b) = trained(66);
    a.on_transmit(LANE, FULL);
    assert!(b.admit(LANE, FULL, at(8)));
    b.release(LANE, Bytes::new(64), at(9));
    assert_eq!(b.control_due(at(9)), None);
    b.release(LANE, block_octets(32), at(10));
    assert_eq!(
        b.control_due(at(11)),
        Some(at(10)),
        "due since the release, not since the question"
    );
}

#[test]
fn a_new_limit_is_announced_once_the_peer_has_used_half_of_its_credits() {
    let (mut a, mut b) = trained(297);
    for n in 0..4 {
        a.on_transmit(LANE, FULL);
        assert!(b.admit(LANE, FULL, at(n)));
        b.release(LANE, FULL, at(n));
        assert_eq!(b.control_due(at(n)), None, "297 - 33 * {} of 297 blocks are left", n + 1);
    }
    assert!(b.admit(LANE, FULL, at(9)));
    assert_eq!(b.control_due(at(9)), Some(at(9)), "132 are left, and 132 have been freed");
}

/// Packets of `size` blocks that cross a link in `frame_times` of 2.074 us, through a buffer of `window` blocks from
/// which every packet leaves as soon as it has arrived.
fn carried(window: u32, size: u32, frame_times: u64) -> u64 {
    let (mut a, mut b) = trained(window);
    let size = block_octets(size);
    let mut packets = 0;
    for n in 1..=frame_times {
        let now = at(n * 2_074);
        if a.may_transmit(LANE, size) {
            a.on_transmit(LANE, size);
            assert!(b.admit(LANE, size, now));
            b.release(LANE, size, now);
            packets += 1;
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut a, &mut b];
            ends[from].handle_timeout(now);
            while let Some(packet) = ends[from].poll_control(now) {
                ends[to].on_control(&packet, now);
            }
        }
    }
    packets
}

#[test]
fn no_window_that_holds_a_packet_waits_for_the_refresh() {
    for window in 33..=99 {
        for size in [1, 2, 17, 27, 32, 33] {
            assert_eq!(carried(window, size, 100), 100, "packets of {size}, window of {window}");
        }
    }
}

#[test]
fn lost_data_is_announced_at_once_and_counted() {
    let (mut a, mut b) = trained(66);
    a.on_transmit(LANE, FULL);
    a.on_transmit(LANE, FULL);
    let fctbs = a.lanes[0].total_blocks_sent;
    b.on_control(&normal(fctbs, 66), at(9));
    assert_eq!(b.control_due(at(9)), Some(at(9)), "the refresh would be 65 us later");
    a.on_control(&b.poll_control(at(9)).unwrap(), at(9));
    assert_eq!((a.credits(LANE), b.blocks_lost()), (66, 66));
    b.on_control(&normal(fctbs, 66), at(10));
    assert_eq!((b.control_due(at(10)), b.blocks_lost()), (None, 66), "nothing more is lost");
}

#[test]
fn a_peer_that_begins_anew_has_lost_nothing() {
    let (mut a, mut b) = trained(66);
    a.on_transmit(LANE, FULL);
    assert!(b.admit(LANE, FULL, at(1)));
    let init = FlowControlPacket { op: FlowControlOp::Init, ..normal(0, 66) };
    b.on_control(&init, at(2));
    assert_eq!(b.blocks_lost(), 0);
    b.on_control(&normal(4000, 66), at(3));
    assert_eq!(b.blocks_lost(), 0, "FCTBS behind ABR is not loss");
}

#[test]
fn a_packet_without_room_is_refused_and_changes_nothing() {
    let mut meter = flow(33);
    assert!(meter.admit(LANE, FULL, at(1)));
    let before = meter.lanes[0].adjusted_blocks_received;
    assert!(!meter.admit(LANE, Bytes::new(64), at(1)));
    assert_eq!(meter.lanes[0].adjusted_blocks_received, before);
    assert_eq!(meter.in_use(LANE), block_octets(33));
}

#[test]
fn no_flow_control_for_400_000_symbols_retrains_both_ends() {
    let (mut a, mut b) = trained(66);
    a.on_transmit(LANE, FULL);
    let dead = at(4 * 400_000);
    let mut now = at(0);
    while now < dead {
        now = a.poll_timeout();
        let retrained = a.handle_timeout(now);
        assert_eq!(retrained, now >= dead);
        a.poll_control(now);
    }
    assert_eq!(a.state(), LinkState::Initialize);
    let lonely = a.on_control(&normal(0, 0), now);
    assert_eq!(lonely, ControlOutcome::StateChanged, "a packet of the peer ends the time-out");
    let init = FlowControlPacket { op: FlowControlOp::Init, ..normal(0, 66) };
    b.on_control(&init, now);
    assert_eq!(b.lanes[0].total_blocks_sent, 0, "the peer's new start is ours too");
    settle(&mut a, &mut b, now);
    assert_eq!((a.state(), b.state()), (LinkState::Active, LinkState::Active));
    assert_eq!(a.credits(LANE), 66);
}

#[test]
fn after_a_peer_that_is_gone_the_link_trains_with_the_one_that_comes() {
    let (mut a, _) = trained(66);
    a.on_transmit(LANE, FULL);
    a.break_off(at(10));
    assert_eq!((a.state(), a.may_transmit(LANE, FULL)), (LinkState::Initialize, false));
    let (_, mut other) = trained(40);
    other.break_off(at(20));
    settle(&mut a, &mut other, at(20));
    assert_eq!((a.state(), other.state()), (LinkState::Active, LinkState::Active));
    assert_eq!(a.credits(LANE), 40, "what was sent to the other peer costs nothing");
}

#[test]
fn unknown_operations_and_lanes_change_nothing() {
    let (mut a, _) = trained(66);
    let before = a.lanes[0].credit_limit;
    let odd = FlowControlPacket { op: FlowControlOp::Unknown(7), ..normal(9, 9) };
    assert_eq!(a.on_control(&odd, at(5)), ControlOutcome::Discarded);
    let far = FlowControlPacket { virtual_lane: VirtualLane::truncate(3), ..normal(9, 9) };
    assert_eq!(a.on_control(&far, at(5)), ControlOutcome::Discarded);
    assert_eq!(a.lanes[0].credit_limit, before);
}

proptest! {
    /// Frames and flow-control packets are lost at will; a frame that arrives always has room, and
    /// once losses end the whole buffer is on offer again.
    #[test]
    fn no_loss_ever_overruns_the_buffer_or_leaks_credit(
        steps in proptest::collection::vec((0u8..5, 1u64..2100), 1..400),
    ) {
        let (mut a, mut b) = trained(200);
        let mut held: Vec<Bytes> = Vec::new();
        let mut now = at(1);
        for (action, size) in steps {
            now = now + Duration::from_ns(100);
            let size = Bytes::new(size);
            match action {
                0 | 1 if a.may_transmit(LANE, size) => {
                    a.on_transmit(LANE, size);
                    if action == 0 {
                        prop_assert!(b.admit(LANE, size, now), "credit was given without room");
                        held.push(size);
                    }
                }
                2 => if let Some(size) = held.pop() { b.release(LANE, size, now) },
                3 => { b.poll_control(now); }
                4 => {
                    // FCTBS first, as frames and packets of one link keep order.
                    let fctbs = a.lanes[0].total_blocks_sent;
                    b.on_control(&normal(fctbs, 0), now);
                    b.lanes[0].due_since = Some(now);
                    let packet = b.poll_control(now).unwrap();
                    a.on_control(&packet, now);
                }
                _ => {}
            }
        }
        for size in held.drain(..) { b.release(LANE, size, now); }
        b.on_control(&normal(a.lanes[0].total_blocks_sent, 0), now);
        b.lanes[0].due_since = Some(now);
        let packet = b.poll_control(now).unwrap();
        a.on_control(&packet, now);
        prop_assert_eq!(a.credits(LANE), 200);
    }
}
