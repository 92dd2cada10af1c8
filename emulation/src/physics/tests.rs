//! Each law holds for lawful frames, and names both instants of the first unlawful one.

use super::*;
use bytes::BytesMut;
use proto::ids::VirtualLane;
use proto::link::config::CreditConfig;
use proto::link::outage::Outage;
use proto::wire::classify::PriorityMap;

/// At 8 Gb/s an octet takes a nanosecond.
fn link(control: FlowControlConfig) -> LinkConfig {
    let (rate, mtu, buffer) = (BitRate::gbps(8), Bytes::new(256), Bytes::new(64 * 64));
    LinkConfig { rate, mtu, buffer, control }
}

fn ns(n: u64) -> Instant {
    Instant::from_ps(n * 1_000)
}

fn line(link: &LinkConfig) -> Line {
    Line::new(PortNumber::from_index(0), Some(link), false)
}

fn infiniband() -> Line {
    line(&link(FlowControlConfig::Credit(CreditConfig::default())))
}

fn ethernet(outages: Vec<Outage>) -> Line {
    let priorities = PriorityMap::BY_PCP;
    let pause = PauseConfig { priorities, outages, ..PauseConfig::default() };
    line(&link(FlowControlConfig::Pause(pause)))
}

/// An InfiniBand packet of lane 0.
fn packet(octets: usize) -> Frame {
    Frame::intact(FrameKind::Infiniband, BytesMut::zeroed(octets))
}

/// A tagged Ethernet frame of 100 octets with FCS, of an EtherType for local experiments.
fn tagged(priority: u8) -> Frame {
    let mut octets = BytesMut::zeroed(96);
    octets[12..18].copy_from_slice(&[0x81, 0, priority << 5, 0, 0x88, 0xb5]);
    Frame::intact(FrameKind::Ethernet, octets)
}

fn pfc(priority: usize, time: u16) -> Frame {
    let mut times = [0; Pfc::PRIORITIES];
    times[priority] = time;
    let pfc = MacControl::Pfc(Pfc { reserved: 0, enabled: 1 << priority, times });
    let octets = pfc.to_octets(MacAddress::default());
    Frame::intact(FrameKind::Ethernet, BytesMut::from(&octets[..]))
}

fn credits(op: FlowControlOp, fccl: u16) -> Frame {
    let (virtual_lane, fctbs) = (VirtualLane::ZERO, 0);
    let mut octets = BytesMut::zeroed(FlowControlPacket::LEN);
    FlowControlPacket { op, fctbs, virtual_lane, fccl }.emit(&mut octets);
    Frame::intact(FrameKind::InfinibandLink, octets)
}

/// Law, start and earliest instant of a violation, in nanoseconds.
fn broken(event: Option<Box<DeviceEvent>>) -> Option<(Law, u64, u64)> {
    let DeviceEvent { at, kind, .. } = *event?;
    let EventKind::Violation { law, earliest, .. } = kind else { panic!("{kind:?}") };
    Some((law, at.as_ps() / 1_000, earliest.as_ps() / 1_000))
}

#[test]
fn frames_are_no_closer_than_the_later_one_is_long_and_one_violation_is_reported() {
    let mut line = ethernet(Vec::new());
    let mut departs = |end, since| broken(line.departs(&tagged(0), ns(end), Step::at(ns(since))));
    assert_eq!(departs(100, 0), None);
    assert_eq!(departs(200, 100), None);
    assert_eq!(departs(299, 150), Some((Law::LineRate, 199, 200)));
    assert_eq!(departs(300, 150), None, "the first one is enough");
}

#[test]
fn a_slower_port_needs_more_room() {
    let mut line = ethernet(Vec::new());
    line.slow_down(BitRate::gbps(4));
    let mut departs = |end| broken(line.departs(&tagged(0), ns(end), Step::at(ns(0))));
    assert_eq!((departs(200), departs(300)), (None, Some((Law::LineRate, 100, 200))));
}

#[test]
fn a_frame_starts_not_before_its_cause_and_a_late_one_counts_from_its_stamp() {
    let frame = tagged(0);
    let mut line = ethernet(Vec::new());
    assert_eq!(broken(line.departs(&frame, ns(600), Step::late(ns(500), ns(900)))), None);
    let event = line.departs(&frame, ns(750), Step::at(ns(700)));
    assert_eq!(broken(event), Some((Law::Causality, 650, 700)));
}

#[test]
fn a_frame_is_received_not_before_the_delay_is_over() {
    let mut line = ethernet(Vec::new());
    line.delay = Duration::from_ns(50);
    line.approaches(ns(100), ns(150));
    assert_eq!(broken(line.arrives(&tagged(0), false, ns(150), Step::at(ns(150)))), None);
    line.approaches(ns(200), ns(249));
    let event = line.arrives(&tagged(0), false, ns(249), Step::at(ns(249)));
    assert_eq!(broken(event), Some((Law::Delay, 249, 250)));
    let event = ethernet(Vec::new()).arrives(&tagged(0), false, ns(9), Step::at(ns(8)));
    assert_eq!(broken(event), Some((Law::Delay, 8, 9)), "it is handled before it arrives");
}

#[test]
fn a_packet_needs_credit_for_all_of_it() {
    let mut line = infiniband();
    let step = Step::at(ns(0));
    assert_eq!(broken(line.arrives(&credits(FlowControlOp::Init, 2), true, ns(0), step)), None);
    assert_eq!(broken(line.departs(&packet(64), ns(64), step)), None);
    let event = line.departs(&packet(65), ns(200), step);
    assert_eq!(broken(event).map(|(law, at, _)| (law, at)), Some((Law::Credit, 135)));
}

#[test]
fn a_link_that_initializes_counts_from_zero() {
    let mut line = infiniband();
    let step = Step::at(ns(0));
    line.arrives(&credits(FlowControlOp::Normal, 1), true, ns(0), step);
    assert_eq!(broken(line.departs(&packet(64), ns(64), step)), None);
    assert_eq!(broken(line.departs(&credits(FlowControlOp::Init, 0), ns(72), step)), None);
    assert_eq!(broken(line.departs(&packet(64), ns(200), step)), None);
    line.arrives(&credits(FlowControlOp::Init, 1), true, ns(0), step);
    assert_eq!(broken(line.departs(&packet(64), ns(300), step)), None, "the peer starts again");
    // The limit of a link that trains may be anywhere in the range of the counter.
    for fccl in [2_000, 3_000, 500, 1] {
        line.arrives(&credits(FlowControlOp::Init, fccl), true, ns(0), step);
    }
    assert_eq!(broken(line.departs(&packet(64), ns(400), step)), None);
    assert!(broken(line.departs(&packet(64), ns(500), step)).is_some());
}

#[test]
fn a_line_whose_octets_take_no_whole_picoseconds_obeys_the_same_laws() {
    let mut config = link(FlowControlConfig::Credit(CreditConfig::default()));
    config.rate = BitRate::gbps(7);
    let mut line = line(&config);
    let step = Step::at(ns(0));
    line.arrives(&credits(FlowControlOp::Init, 2), true, ns(0), step);
    assert_eq!(broken(line.departs(&packet(64), ns(100), step)), None);
    assert_eq!(broken(line.departs(&credits(FlowControlOp::Normal, 0), ns(200), step)), None);
    assert_eq!(broken(line.departs(&packet(64), ns(300), step)), None);
    let event = line.departs(&packet(64), ns(400), step);
    assert_eq!(broken(event).map(|(law, ..)| law), Some(Law::Credit));
}

#[test]
fn no_frame_of_a_priority_starts_in_a_pause_of_it() {
    // 10 quanta take 640 ns.
    let step = |at| Step::at(ns(at));
    let paused = || {
        let mut line = ethernet(Vec::new());
        line.arrives(&pfc(3, 10), true, ns(1_000), step(1_000));
        line
    };
    for (start, lawful) in [(999, true), (1_000, false), (1_639, false), (1_640, true)] {
        let event = paused().departs(&tagged(3), ns(start + 100), step(0));
        let expected = (!lawful).then_some((Law::Pause, start, 1_640));
        assert_eq!(broken(event), expected, "a start at {start}");
    }
    assert_eq!(broken(paused().departs(&tagged(2), ns(1_200), step(0))), None);
    assert_eq!(broken(paused().departs(&pfc(3, 0), ns(1_200), step(0))), None, "MAC control");
    let mut resumed = paused();
    resumed.arrives(&pfc(3, 0), true, ns(1_100), step(1_100));
    assert_eq!(broken(resumed.departs(&tagged(3), ns(1_200), step(1_100))), None);
    // A pause that is handled late is obeyed from then on.
    let mut late = ethernet(Vec::new());
    late.arrives(&pfc(3, 10), true, ns(1_000), Step::late(ns(1_000), ns(1_300)));
    assert_eq!(broken(late.departs(&tagged(3), ns(1_350), step(0))), None);
    let event = late.departs(&tagged(3), ns(1_450), step(0));
    assert_eq!(broken(event), Some((Law::Pause, 1_350, 1_640)));
}

#[test]
fn an_outage_ends_all_pauses() {
    let mut line = ethernet(vec![Outage { from: ns(1_100), to: ns(1_200) }]);
    line.arrives(&pfc(3, 10), true, ns(1_000), Step::at(ns(1_000)));
    assert_eq!(broken(line.departs(&tagged(3), ns(1_350), Step::at(ns(1_250)))), None);
}
