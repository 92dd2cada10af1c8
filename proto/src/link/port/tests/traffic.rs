//! All totals of a port after one scenario, compared as a whole: an increment that is missing shows.

use super::*;
use crate::counters::{LaneCounters, LaneReading};
use crate::ids::ServiceLevel;
use crate::link::port::managed::{LevelTraffic, PacketCount, Traffic, TrafficDetail};
use crate::wire::infiniband::{Aeth, ExtendedHeaders};

/// The first multicast LID.
const GROUP: u16 = 0xc000;

/// A packet of service level 3.
fn made(opcode: Opcode, lane: u8, dlid: u16, destination: u32, [fecn, becn]: [bool; 2]) -> Frame {
    let destination = QueuePairNumber::truncate(destination);
    let bth = Bth { fecn, becn, ..Bth::new(opcode, destination, Psn::default()) };
    let aeth =
        (opcode == Opcode::RC_ACKNOWLEDGE).then(|| Aeth::parse(&[0; Aeth::LEN]).expect("zeros"));
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::truncate(lane),
        service_level: ServiceLevel::truncate(3),
        dlid: Lid::new(dlid),
        extended: ExtendedHeaders { aeth, ..ExtendedHeaders::NONE },
        ..PacketBuilder::new(bth)
    };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, 0, |_| {}).unwrap();
    Frame::unchecked(FrameKind::Infiniband, octets)
}

/// The packets of the scenario, with the class in which the port sends them.
fn packets() -> Vec<(FrameClass, Frame)> {
    let [send, ack] = [Opcode::RC_SEND_ONLY, Opcode::RC_ACKNOWLEDGE];
    vec![
        (FrameClass::Data, made(send, 0, GROUP, 1, [true, false])),
        (FrameClass::Data, made(send, 0, 9, 1, [false, false])),
        (FrameClass::Ack, made(ack, 0, 9, 1, [false, true])),
        (FrameClass::Notification, made(Opcode::CNP, 0, 9, 1, [false, true])),
        (FrameClass::Notification, made(Opcode::CNP, 0, 9, 0, [false, false])),
        (FrameClass::Management, made(send, 15, 9, 0, [false, false])),
    ]
}

/// Octets of the packets in all, and of those that are not management.
fn octets() -> [u64; 2] {
    let of = |management: bool| {
        let all = packets()
            .into_iter()
            .filter(|(class, _)| management || *class != FrameClass::Management);
        all.map(|(_, frame)| frame.line_size().get()).sum()
    };
    [of(true), of(false)]
}

/// A source that offers its frames in order, each in its class.
struct Offers(VecDeque<(FrameClass, Frame)>);

impl LaneSource for Offers {
    type Offer = ();

    fn head(&mut self, lane: VirtualLane, _: Instant) -> Option<Head<()>> {
        let (class, frame) = self.0.front()?;
        let of_lane = frame.octets[0] >> 4 == lane.get();
        let size = frame.line_size();
        of_lane.then_some(Head { size, ready: Instant::ZERO, class: *class, offer: () })
    }
}

impl Sender for Offers {
    fn take(&mut self, _: &Grant<()>) -> Frame {
        self.0.pop_front().expect("it was offered").1
    }
}

/// Two ports under a subnet manager, with their link up.
fn managed() -> ([LinkPort; 2], Instant) {
    let mut ports = [port(1), port(1)];
    ports.iter_mut().for_each(|port| port.permit(LinkState::Active, Instant::ZERO));
    let [one, other] = &mut ports;
    let now = train(one, other);
    (ports, now)
}

fn reading(port: &mut LinkPort, now: Instant) -> PortReading {
    let mut reading = PortReading::default();
    port.read(now, &mut reading);
    reading
}

/// The counters of a lane, without its gauges.
fn lane(tc: u8, counters: LaneCounters) -> LaneReading {
    LaneReading { tc, counters }
}

#[test]
fn what_arrives_is_counted_by_lane_level_and_mark() {
    let ([mut port, _], now) = managed();
    let before = reading(&mut port, now).lanes[0].counters.ctl_rx;
    let mut log = EventLog::default();
    for (_, frame) in packets() {
        assert!(matches!(port.receive(&frame, now, now, &mut log), Arrival::Packet(_)));
    }
    let [all, data] = octets();
    let received = |packets, octets| PacketCount { packets, octets };
    let expected =
        Traffic { received: received(6, all), fecn: 1, becn: 2, sent: port.traffic().sent };
    assert_eq!(port.traffic(), &expected);
    let mut detail =
        TrafficDetail { multicast_received: 1, link_received: before, ..Default::default() };
    let level =
        LevelTraffic { received: received(5, data), fecn: 1, becn: 2, ..Default::default() };
    detail.levels[3] = level;
    assert!(before > 0);
    assert_eq!(port.detail(), Some(&detail));
    let lanes = reading(&mut port, now).lanes;
    let [first, management] = &lanes[..] else { panic!("{lanes:?}") };
    let sizes: u64 = packets()[..2].iter().map(|(_, frame)| frame.line_size().get()).sum();
    let own = &first.counters;
    let counted = LaneCounters {
        rx_frames: 2,
        rx_bytes: sizes,
        ctl_rx: before + 3,
        notes_rx: 3,
        ctl_tx: own.ctl_tx,
        in_queue: own.in_queue,
        out_queue: own.out_queue,
        source_queue: own.source_queue,
        ..LaneCounters::default()
    };
    assert_eq!(first, &lane(0, counted));
    assert_eq!(management, &lane(15, LaneCounters { ctl_rx: 1, ..LaneCounters::default() }));
}

#[test]
fn what_leaves_is_counted_by_lane_and_level() {
    let ([mut port, _], now) = managed();
    let before = reading(&mut port, now).lanes[0].counters.ctl_tx;
    assert_eq!(before, port.link_local_sent());
    let (mut pool, mut log) = (FramePool::default(), EventLog::default());
    let (mut offers, mut now, mut link_local) = (Offers(packets().into()), now, before);
    while !offers.0.is_empty() {
        now = now.max(port.line_free_at());
        let sent = port.poll_departure(&mut offers, &mut pool, now, &mut log).expect("it is free");
        link_local += u64::from(sent.frame.kind == FrameKind::InfinibandLink);
        port.note_sent(&sent.frame);
    }
    let [all, data] = octets();
    let sent = |packets, octets| PacketCount { packets, octets };
    assert_eq!(port.traffic(), &Traffic { sent: sent(6, all), ..Traffic::default() });
    let link_received = port.detail().expect("it is managed").link_received;
    let mut detail = TrafficDetail { multicast_sent: 1, link_received, ..Default::default() };
    detail.levels[3] = LevelTraffic { sent: sent(5, data), ..Default::default() };
    assert_eq!(port.detail(), Some(&detail));
    let lanes = reading(&mut port, now).lanes;
    let [first, management] = &lanes[..] else { panic!("{lanes:?}") };
    let sizes: u64 = packets()[..2].iter().map(|(_, frame)| frame.line_size().get()).sum();
    let own = &first.counters;
    let counted = (own.tx_frames, own.tx_bytes, own.ctl_tx);
    assert_eq!(counted, (2, sizes, link_local + 3));
    assert_eq!(management, &lane(15, LaneCounters { ctl_tx: 1, ..LaneCounters::default() }));
    assert_eq!(port.link_local_sent(), link_local);
}

#[test]
fn what_the_owner_drops_and_a_silent_peer_are_counted() {
    let (mut port, mut peer) = (port(1), port(1));
    let now = train(&mut port, &mut peer);
    let mut log = EventLog::default();
    port.count_drop(DropReason::Hairpin, Bytes::new(64), VirtualLane::ZERO, now, &mut log);
    let (mut pool, mut none) = (FramePool::default(), Offers(VecDeque::new()));
    let mut now = now;
    while port.state() == LinkState::Active {
        now = port.poll_timeout().max(now);
        port.handle_timeout(now, &mut log);
        port.poll_departure(&mut none, &mut pool, now.max(port.line_free_at()), &mut log);
    }
    let reading = reading(&mut port, now);
    assert_eq!((reading.drops.get(DropReason::Hairpin), reading.drops.total()), (1, 1));
    assert_eq!(reading.watchdogs, 1);
}
