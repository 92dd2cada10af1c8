//! What a port refuses, in which order it sends, and that the line never idles nor doubles.

use super::*;
use crate::departure::Step;
use crate::frame::{FrameKind, FramePool, Integrity};
use crate::ids::{Lid, Psn, QueuePairNumber};
use crate::link::config::{CreditConfig, FlowControlConfig};
use crate::wire::infiniband::flow_control_packet::{FlowControlOp, FlowControlPacket};
use crate::wire::infiniband::{Bth, Opcode, PacketBuilder, relabel};
use std::collections::VecDeque;

mod ethernet;
mod pair;
mod traffic;

fn config(data_lanes: u8) -> LinkConfig {
    LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(36 * 2112),
        control: FlowControlConfig::Credit(CreditConfig { data_lanes, ..CreditConfig::default() }),
    }
}

fn port(data_lanes: u8) -> LinkPort {
    LinkPort::new(PortNumber::from_index(0), &config(data_lanes), Instant::ZERO)
}

fn packet(lane: u8, payload: usize) -> Frame {
    let bth =
        Bth::new(Opcode::RC_SEND_ONLY, QueuePairNumber::planned(0, Lid::new(9)), Psn::default());
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::truncate(lane),
        dlid: Lid::new(9),
        slid: Lid::new(1),
        ..PacketBuilder::new(bth)
    };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, payload, |_| {}).unwrap();
    Frame::unchecked(FrameKind::Infiniband, octets)
}

/// Frames by lane, all ready from the start.
struct Queues(Vec<(VirtualLane, VecDeque<Frame>)>);

impl Queues {
    fn of(frames: &[(u8, usize)]) -> Queues {
        let mut queues = Queues(Vec::new());
        for (lane, payload) in frames {
            let key = VirtualLane::truncate(*lane);
            if !queues.0.iter().any(|(lane, _)| *lane == key) {
                queues.0.push((key, VecDeque::new()));
            }
            queues.queue(key).unwrap().push_back(packet(*lane, *payload));
        }
        queues
    }

    fn queue(&mut self, lane: VirtualLane) -> Option<&mut VecDeque<Frame>> {
        self.0.iter_mut().find(|(key, _)| *key == lane).map(|(_, queue)| queue)
    }
}

/// A source that builds the granted frames.
trait Sender: LaneSource {
    fn take(&mut self, grant: &Grant<Self::Offer>) -> Frame;
}

impl LinkPort {
    fn poll_departure<S: Sender>(
        &mut self,
        source: &mut S,
        pool: &mut FramePool,
        now: Instant,
        log: &mut EventLog,
    ) -> Option<Departure> {
        self.poll_step(source, pool, Step::at(now), log)
    }

    fn poll_step<S: Sender>(
        &mut self,
        source: &mut S,
        pool: &mut FramePool,
        step: Step,
        log: &mut EventLog,
    ) -> Option<Departure> {
        match self.poll_transmit(source, pool, step, log)? {
            Transmission::Control(departure) => Some(departure),
            Transmission::Granted(grant) => Some(grant.departure(source.take(&grant))),
        }
    }
}

impl LaneSource for Queues {
    type Offer = ();

    fn head(&mut self, lane: VirtualLane, _: Instant) -> Option<Head<()>> {
        let size = self.queue(lane)?.front()?.line_size();
        Some(Head { size, ready: Instant::ZERO, class: FrameClass::Data, offer: () })
    }
}

impl Sender for Queues {
    fn take(&mut self, grant: &Grant<()>) -> Frame {
        self.queue(grant.lane).and_then(VecDeque::pop_front).unwrap()
    }
}

/// Exchanges flow-control packets between a port and a peer until both are active.
fn train(port: &mut LinkPort, peer: &mut LinkPort) -> Instant {
    let (mut pool, mut log, mut none) = (FramePool::default(), EventLog::default(), Queues(vec![]));
    let mut now = Instant::ZERO;
    while port.state() != LinkState::Active || peer.state() != LinkState::Active {
        now = now + crate::units::Duration::from_ns(8);
        if let Some(sent) = port.poll_departure(&mut none, &mut pool, now, &mut log) {
            peer.receive(&sent.frame, now, now, &mut log);
        }
        if let Some(sent) = peer.poll_departure(&mut none, &mut pool, now, &mut log) {
            port.receive(&sent.frame, now, now, &mut log);
        }
    }
    now.max(port.line_free_at()).max(peer.line_free_at())
}

#[test]
fn what_fails_a_check_is_counted_by_its_reason_and_takes_no_buffer() {
    let (mut port, mut peer) = (port(2), port(2));
    let now = train(&mut port, &mut peer);
    let mut log = EventLog::default();
    let mut lost = |frame: &Frame| port.receive(frame, now, now, &mut log);
    let mut bad_vcrc = packet(0, 256);
    *bad_vcrc.octets.last_mut().unwrap() ^= 0xff;
    assert_eq!(lost(&bad_vcrc), Arrival::Lost(DropReason::Vcrc));
    let mut short = packet(0, 256);
    short.octets.truncate(100);
    assert_eq!(lost(&short), Arrival::Lost(DropReason::PacketLength));
    assert_eq!(lost(&packet(2, 256)), Arrival::Lost(DropReason::Lane));
    assert_eq!(lost(&packet(0, 2052)), Arrival::Lost(DropReason::Mtu));
    let mut bad_lpcrc = Frame::unchecked(FrameKind::InfinibandLink, [0u8; 6][..].into());
    assert_eq!(lost(&bad_lpcrc), Arrival::Lost(DropReason::Lpcrc));
    bad_lpcrc.octets.clear();
    assert_eq!(lost(&bad_lpcrc), Arrival::Lost(DropReason::LinkPacket));
    let mut aborted = bad_lpcrc;
    aborted.integrity = Integrity::Aborted;
    assert_eq!(lost(&aborted), Arrival::Lost(DropReason::LinkPacket));
    let mut of_no_lane = [0; FlowControlPacket::LEN];
    let virtual_lane = VirtualLane::truncate(9);
    FlowControlPacket { op: FlowControlOp::Normal, fctbs: 0, virtual_lane, fccl: 0 }
        .emit(&mut of_no_lane);
    let of_no_lane = Frame::unchecked(FrameKind::InfinibandLink, of_no_lane[..].into());
    assert_eq!(lost(&of_no_lane), Arrival::Lost(DropReason::LinkPacket));
    assert!(matches!(lost(&packet(0, 2048)), Arrival::Packet(_)));
    assert_eq!(port.in_use(VirtualLane::ZERO), Bytes::new(2112));
    let mut reading = PortReading::default();
    port.read(now, &mut reading);
    assert_eq!(reading.drops.total(), 8);
    assert_eq!(reading.lanes[0].counters.rx_bytes, 2074);
}

#[test]
fn what_its_sender_gave_up_is_discarded_whatever_its_crcs_say() {
    let (mut port, mut peer) = (port(2), port(2));
    let now = train(&mut port, &mut peer);
    let mut log = EventLog::default();
    let aborted = Frame { integrity: Integrity::Aborted, ..packet(0, 256) };
    let outcome = port.receive(&aborted, now, now, &mut log);
    assert_eq!(outcome, Arrival::Lost(DropReason::Aborted));
    assert_eq!(port.in_use(VirtualLane::ZERO), Bytes::ZERO);
}

#[test]
fn a_packet_has_six_words_and_a_raw_one_five() {
    for (next_header, least) in [(0u8, 5u8), (1, 5), (2, 6), (3, 6)] {
        let (mut port, mut log) = (port(1), EventLog::default());
        let mut outcome = |words: u8| {
            let mut octets = vec![0; usize::from(words) * 4 + 2];
            (octets[1], octets[5]) = (next_header, words);
            crate::wire::infiniband::refresh_vcrc(&mut octets);
            let frame = Frame::unchecked(FrameKind::Infiniband, octets[..].into());
            port.receive(&frame, Instant::ZERO, Instant::ZERO, &mut log)
        };
        assert_eq!(outcome(least - 1), Arrival::Lost(DropReason::PacketLength));
        assert_ne!(outcome(least), Arrival::Lost(DropReason::PacketLength));
    }
}

#[test]
fn the_management_lane_carries_nothing_raw() {
    let mut port = port(1);
    for next_header in 0..2 {
        let mut raw = packet(15, 64);
        raw.octets[1] = raw.octets[1] & !0b11 | next_header;
        crate::wire::infiniband::refresh_vcrc(&mut raw.octets);
        let mut log = EventLog::default();
        let outcome = port.receive(&raw, Instant::ZERO, Instant::ZERO, &mut log);
        assert_eq!(outcome, Arrival::Lost(DropReason::Lane));
    }
}

#[test]
fn data_before_the_link_is_up_is_dropped_but_management_passes() {
    let mut port = port(1);
    let mut log = EventLog::default();
    let early = port.receive(&packet(0, 64), Instant::ZERO, Instant::ZERO, &mut log);
    assert_eq!(early, Arrival::Lost(DropReason::LinkState));
    let managed = port.receive(&packet(15, 64), Instant::ZERO, Instant::ZERO, &mut log);
    assert!(matches!(managed, Arrival::Packet(_)));
    port.permit(LinkState::Down, Instant::ZERO);
    let disabled = port.receive(&packet(15, 64), Instant::ZERO, Instant::ZERO, &mut log);
    assert_eq!(disabled, Arrival::Lost(DropReason::LinkState));
}

#[test]
fn blocks_lost_on_the_line_are_counted_where_they_did_not_arrive() {
    let (mut port, mut peer) = (port(1), port(1));
    let now = train(&mut port, &mut peer);
    let (mut pool, mut log) = (FramePool::default(), EventLog::default());
    let mut queues = Queues::of(&[(0, 2048), (0, 2048)]);
    let mut now = now.max(peer.line_free_at());
    for _ in 0..2 {
        // Both packets are lost.
        peer.poll_departure(&mut queues, &mut pool, now, &mut log).expect("the line is free");
        now = peer.line_free_at();
    }
    now = now.max(peer.poll_timeout());
    peer.handle_timeout(now, &mut log);
    let control = peer.poll_departure(&mut queues, &mut pool, now, &mut log);
    port.receive(&control.expect("a refresh is due").frame, now, now, &mut log);
    let mut named = Vec::new();
    port.read_named(now, &mut named);
    assert_eq!(named, [(BLOCKS_LOST.to_owned(), 66)]);
}

#[test]
fn a_sender_beyond_its_credits_is_counted_as_an_overrun() {
    let (mut port, mut peer) = (port(1), port(1));
    let now = train(&mut port, &mut peer);
    let mut log = EventLog::default();
    let full = packet(0, 2048);
    for _ in 0..36 {
        assert!(matches!(port.receive(&full, now, now, &mut log), Arrival::Packet(_)));
    }
    let beyond = port.receive(&full, now, now, &mut log);
    assert_eq!(beyond, Arrival::Lost(DropReason::BufferOverrun));
    let mut reading = PortReading::default();
    port.read(now, &mut reading);
    let want_of_room = [reading.drops.get(DropReason::BufferOverrun), reading.drops.total()];
    assert_eq!((want_of_room, reading.lanes[0].counters.no_room), ([1, 1], 1));
}

#[test]
fn management_goes_first_then_lanes_in_turn_and_the_line_is_never_idle() {
    let (mut port, mut peer) = (port(2), port(2));
    let mut now = train(&mut port, &mut peer);
    let mut queues = Queues::of(&[(0, 2048), (1, 2048), (0, 2048), (1, 2048), (15, 256)]);
    let (mut pool, mut log) = (FramePool::default(), EventLog::default());
    let mut lanes = Vec::new();
    let mut last_end = None;
    while let Some(sent) = port.poll_departure(&mut queues, &mut pool, now, &mut log) {
        if sent.frame.kind == FrameKind::Infiniband {
            lanes.push(sent.frame.octets[0] >> 4);
            let start = last_end.unwrap_or(port.line_free_at());
            assert!(sent.at >= start);
        }
        last_end = Some(sent.at);
        now = port.line_free_at();
    }
    assert_eq!(lanes, [15, 0, 1, 0, 1]);
}

#[test]
fn without_credit_a_ready_frame_is_held_and_leaves_when_the_limit_arrives() {
    let (mut port, mut peer) = (port(1), port(1));
    let mut now = train(&mut port, &mut peer);
    let mut queues = Queues::of(&[(0, 2048); 37]);
    let (mut pool, mut log) = (FramePool::default(), EventLog::default());
    let mut sent = 0;
    while let Some(departure) = port.poll_departure(&mut queues, &mut pool, now, &mut log) {
        sent += usize::from(departure.frame.kind == FrameKind::Infiniband);
        peer.receive(&departure.frame, departure.at, departure.at, &mut log);
        now = port.line_free_at();
    }
    assert_eq!(sent, 36);
    assert_eq!(port.blocked_since(VirtualLane::ZERO), Some(now));
    // One frame leaves the peer's buffer; its limit reaches us a microsecond later.
    peer.release(VirtualLane::ZERO, Bytes::new(2074), now);
    let told = peer.poll_departure(&mut Queues(vec![]), &mut pool, now, &mut log).unwrap();
    let arrived = told.at + crate::units::Duration::from_us(1);
    port.receive(&told.frame, arrived, arrived, &mut log);
    let freed = port.poll_departure(&mut queues, &mut pool, arrived, &mut log).unwrap();
    assert_eq!(freed.at, arrived + Bytes::new(2074).time_at(BitRate::gbps(8)));
    let mut reading = PortReading::default();
    port.read(freed.at, &mut reading);
    assert_eq!(reading.lanes[0].counters.hold_ps, arrived.since(now).as_ps());
    let kinds: Vec<_> = std::iter::from_fn(|| log.pop()).map(|event| event.kind).collect();
    assert!(matches!(kinds[..], [EventKind::Hold { .. }, EventKind::Free { waited, .. }]
        if waited == arrived.since(now)));
}

#[test]
fn frames_after_a_late_input_keep_the_schedule_of_a_punctual_one() {
    let (mut port, mut peer) = (port(1), port(1));
    let began = train(&mut port, &mut peer);
    let mut queues = Queues::of(&[(0, 2048), (0, 2048), (0, 2048)]);
    let (mut pool, mut log) = (FramePool::default(), EventLog::default());
    let late = began + crate::units::Duration::from_us(50);
    let step = Step::late(began, late);
    let ends: Vec<Instant> = std::iter::from_fn(|| {
        port.poll_step(&mut queues, &mut pool, step, &mut log).map(|sent| sent.at)
    })
    .collect();
    let frame = Bytes::new(2074).time_at(BitRate::gbps(8));
    assert_eq!(ends.len(), 3);
    assert_eq!(ends[0], began + frame);
    assert_eq!(ends[1], ends[0] + frame);
    assert_eq!(ends[2], ends[1] + frame);
    assert!(ends[2] < late, "all three lie in the past and keep their own instants");
}

#[test]
fn a_frame_relabelled_by_a_switch_still_passes_its_checks() {
    let (mut port, mut peer) = (port(2), port(2));
    let now = train(&mut port, &mut peer);
    let mut frame = packet(0, 2048);
    relabel::relabel(&mut frame.octets, VirtualLane::truncate(1), true);
    let mut log = EventLog::default();
    let Arrival::Packet(headers) = port.receive(&frame, now, now, &mut log) else { panic!() };
    assert!(headers.fecn && headers.lane.get() == 1);
}
