//! Messages of a switch's congestion points, the border of their domain, and an output that serves less
//! than its line. Names in comments are cases of the conformance list.

use super::bench::{BOTH, Bench, Look, P3, bench, config};
use crate::config::{Defence, DomainConfig, ServiceConfig, SwitchConfig};
use bytes::BytesMut;
use proto::congestion::SchemeConfig;
use proto::counters::DropReason;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber, Priority, VlanId};
use proto::link::FlowControlConfig;
use proto::units::{BitRate, Duration, Instant};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::{
    CnTag, Cnm, CongestionTag, Envelope, MacAddress, Preface, VlanTag, ethertype, plan,
};
use proto::wire::project::{Bcn, ProjectTypes, RateTag, SUBTYPE_LEN, TestFrame};
use testbed::Bed;

const TYPES: ProjectTypes = ProjectTypes::DEFAULT;
const OCTETS: usize = 996;
const TRANSMITTED: &str = "queue3_cp_transmitted_cnms";

/// Ports go by tags and have addresses; priority 3 is the domain's; queues are to be all but empty.
fn notifying(scheme: &str, params: &str) -> SwitchConfig {
    let mut config = config();
    let params = toml::from_str(params).expect("a table");
    config.scheme = SchemeConfig { kind: scheme.to_owned(), params };
    for (index, port) in config.ports.iter_mut().enumerate() {
        if let FlowControlConfig::Pause(pause) = &mut port.link.control {
            pause.address = address(index);
            pause.priorities = PriorityMap::BY_PCP;
        }
        port.domain = DomainConfig::new(1 << P3, Defence::InteriorReady);
    }
    config
}

fn address(port: usize) -> MacAddress {
    plan::port_mac(Lid::new(100), PortNumber::from_index(port))
}

fn qcn() -> SwitchConfig {
    notifying("qcn", "cp_q_sp = '2 KB'\ncp_sample_base = '10 KB'")
}

/// A test frame of one adapter to another, with a tag of congestion control or without.
fn test_frame(from: MacAddress, to: u16, pcp: u8, tag: Option<CongestionTag>) -> Frame {
    let priority = Priority::truncate(pcp);
    let vlan = VlanTag { priority, drop_eligible: false, id: VlanId::truncate(5), ethertype: 0 };
    let to = plan::mac(Lid::new(to));
    let plain = Preface::untagged(Envelope::untagged(to, from, TYPES.test_frame()).tagged(vlan));
    let preface = tag.map_or(plain, |tag| plain.tagged(tag, &TYPES));
    let mut octets = BytesMut::zeroed(OCTETS);
    preface.emit(&mut octets);
    let at = preface.octets_len();
    octets[at] = TestFrame::SUBTYPE;
    Frame::intact(FrameKind::Ethernet, octets)
}

fn data(from: u16, tag: Option<CongestionTag>) -> Frame {
    test_frame(plan::mac(Lid::new(from)), 4, P3, tag)
}

fn cn_tag(flow_id: u16) -> CongestionTag {
    CongestionTag::Cn(CnTag { flow_id, ethertype: 0 })
}

/// Frames from port 1 to port 4, which is paused.
fn crowded(config: SwitchConfig, frames: usize, frame: &Frame) -> Bench {
    let mut bench = bench(config);
    bench.pfc(4, BOTH, u16::MAX);
    for _ in 0..frames {
        bench.inject(1, frame.clone());
    }
    // What was made meanwhile leaves.
    bench.run_for(Duration::from_us(5));
    bench
}

/// QCN-03, QCN-05, QCN-12 and ENC-10.
#[test]
fn the_congested_port_notifies_the_source_of_a_sampled_frame() {
    let bench = &mut crowded(qcn(), 30, &data(1, Some(cn_tag(7))));
    let messages = bench.sent(1);
    assert!(!messages.is_empty(), "30 KB in a queue that should hold 2");
    assert_eq!(bench.counts()[1..], [0; 3], "and no other station gets a message");
    for message in &messages {
        let preface = Preface::parse(&message.octets, &TYPES).unwrap();
        let Envelope { header, tag, .. } = preface.envelope;
        assert_eq!((header.destination, header.source), (plan::mac(Lid::new(1)), address(3)));
        let tag = tag.expect("messages have a priority");
        assert_eq!((tag.priority.get(), tag.id.get()), (6, 5));
        assert_eq!((preface.flow_id(), preface.ethertype()), (7, ethertype::CNM));
        let (cnm, msdu) = Cnm::parse_message(&message.octets[preface.octets_len()..]).unwrap();
        assert_eq!(cnm.cpid, address(3).number() << 16 | u64::from(P3));
        assert_eq!(cnm.encapsulated_destination, plan::mac(Lid::new(4)));
        assert_eq!((cnm.encapsulated_priority.get(), msdu.len()), (P3, 0));
        assert!(cnm.quantized_feedback > 0 && cnm.q_offset < 0);
    }
    let sent = messages.len() as u64;
    assert_eq!(bench.named(4, TRANSMITTED), sent);
    let reading = bench.reading();
    assert_eq!(reading.balance.injected, sent);
    assert_eq!(reading.ports[3].lanes[usize::from(P3)].counters.notes_tx, sent);
}

#[test]
fn a_message_holds_the_configured_part_of_the_sampled_frame() {
    let mut config = qcn();
    config.ports[3].domain.header_octets = 64;
    let bench = crowded(config, 30, &data(1, Some(cn_tag(7))));
    let message = &bench.sent(1)[0].octets;
    let at = Preface::parse(message, &TYPES).unwrap().octets_len();
    let (_, msdu) = Cnm::parse_message(&message[at..]).unwrap();
    let sampled = &data(1, None).octets;
    // Behind all tags: from the EtherType of the test frame on.
    assert_eq!(msdu, &sampled[16..16 + 64]);
}

/// QCN-03.
#[test]
fn no_message_is_sent_outside_the_domain_or_to_a_group_or_about_messages() {
    let outside = test_frame(plan::mac(Lid::new(1)), 4, 0, None);
    let group = test_frame(MacAddress::from_number(0x0300_0000_0001), 4, P3, None);
    let mut cnm = data(1, None);
    cnm.octets[16..18].copy_from_slice(&ethertype::CNM.to_be_bytes());
    for frame in [outside, group, cnm] {
        let mut bench = crowded(qcn(), 30, &frame);
        assert_eq!(bench.counts(), [0; 4]);
        assert_eq!(bench.named(4, TRANSMITTED), 0);
    }
    // A sampled frame from a group address has no source to notify.
    let group = test_frame(MacAddress::from_number(0x0300_0000_0001), 4, P3, None);
    assert!(crowded(qcn(), 30, &group).named(4, "queue3_cp_samples") > 0);
}

#[test]
fn a_message_of_bcn_gives_the_timestamp_and_the_first_octets_back() {
    let cpid = address(3).number() << 16 | u64::from(P3);
    let tag = RateTag { cpid, timestamp: 0x0102_0304, ..RateTag::default() };
    let frame = data(1, Some(CongestionTag::RateRegulated(tag)));
    let config = notifying("bcn", "q_eq = '2 KB'\nsampling = 'octets'\nsample_octets = '10 KB'");
    let bench = crowded(config, 30, &frame);
    let message = &bench.sent(1)[0].octets;
    let preface = Preface::parse(message, &TYPES).unwrap();
    let body = &message[preface.octets_len()..];
    assert_eq!((preface.ethertype(), body[0]), (TYPES.bcn(), Bcn::SUBTYPE));
    let (bcn, sample) = Bcn::parse_message(&body[SUBTYPE_LEN..]).unwrap();
    assert_eq!((bcn.cpid, bcn.timestamp), (cpid, 0x0102_0304));
    assert_eq!(sample, &frame.octets[..Bcn::SAMPLE_MAX]);
}

#[test]
fn messages_beyond_what_an_output_keeps_are_counted() {
    let mut bench = bench(qcn());
    bench.pfc(4, 1 << P3, u16::MAX);
    bench.pfc(1, 1 << 6, u16::MAX);
    // Inputs take turns, so that none is at its limit.
    for _ in 0..10_000 {
        if bench.drops(1, DropReason::NotificationOverflow) > 0 {
            break;
        }
        let held = bench.reading().balance.buffered;
        assert!(held < 200, "no message was refused");
        for input in 1..4 {
            bench.inject(input, data(1, None));
        }
        if bench.reading().balance.buffered - bench.device.egress[0].own_frames() > 60 {
            bench.pfc(4, 1 << P3, 0);
            bench.run_for(Duration::from_us(20));
            bench.pfc(4, 1 << P3, u16::MAX);
        }
    }
    let waiting = bench.device.egress[0].own_frames();
    let (reading, lost) = (bench.reading(), bench.drops(1, DropReason::NotificationOverflow));
    assert!(lost > 0);
    assert_eq!(reading.balance.injected, waiting + lost, "what was made waits or is counted");
    bench.pfc(1, 1 << 6, 0);
    assert!(!bench.sent(1).is_empty(), "and goes when it may");
}

/// What a frame of adapter 1 with flow id 7 looks like behind output 4: priority and tag.
fn through(input: Defence, output: Defence) -> (u8, Option<u16>) {
    let mut config = notifying("none", "");
    config.ports[0].domain = DomainConfig::new(1 << P3, input);
    config.ports[3].domain = DomainConfig::new(1 << P3, output);
    let mut bench = bench(config);
    bench.inject(1, data(1, Some(cn_tag(7))));
    bench.run_for(Duration::from_us(10));
    assert!(bench.is_empty());
    let preface = Preface::parse(&bench.sent(4)[0].octets, &TYPES).unwrap();
    let tag = preface.tag.map(|tag| match tag {
        CongestionTag::Cn(tag) => tag.flow_id,
        CongestionTag::RateRegulated(_) => panic!("no frame has this tag"),
    });
    (preface.envelope.tag.expect("it had one").priority.get(), tag)
}

/// QCN-07 and QCN-08.
#[test]
fn a_border_changes_priorities_on_the_way_in_and_tags_on_the_way_out() {
    use Defence::{Disabled, Edge, Interior, InteriorReady};
    assert_eq!(through(InteriorReady, InteriorReady), (3, Some(7)));
    assert_eq!(through(Interior, InteriorReady), (3, Some(7)));
    assert_eq!(through(Disabled, Disabled), (3, Some(7)));
    assert_eq!(through(InteriorReady, Interior), (3, None));
    assert_eq!(through(InteriorReady, Edge), (3, None));
    // The next lower priority outside the domain, where nothing is touched.
    assert_eq!(through(Edge, Edge), (2, Some(7)));
    assert_eq!(through(Edge, InteriorReady), (2, Some(7)));
}

#[test]
fn a_slow_output_serves_data_at_its_rate_and_lets_the_rest_pass() {
    let mut config = notifying("none", "");
    let spell = ServiceConfig {
        rate: BitRate::gbps(1),
        start: Instant::ZERO,
        stop: Instant::ZERO + Duration::from_us(20),
    };
    config.ports[3].service = vec![spell];
    let mut bench = bench(config);
    (0..6).for_each(|_| bench.inject(1, data(1, None)));
    let mut cnm = test_frame(plan::mac(Lid::new(2)), 4, 6, None);
    cnm.octets[16..18].copy_from_slice(&ethertype::CNM.to_be_bytes());
    bench.inject(2, cnm);
    // 1000 octets take 8 us at 1 Gb/s and 0.8 us at the line's rate: three start by 20 us, and what
    // began under the slow rate is paid for.
    let mut left = Vec::new();
    for _ in 0..40 {
        bench.run_for(Duration::from_us(1));
        left.push(bench.counts()[3]);
    }
    assert_eq!(left[2], 2, "the first frame, and the message");
    assert_eq!(left[9], 3);
    assert_eq!(left[20], 4);
    assert_eq!(left[22], 4);
    assert_eq!(left[39], 7, "the rest at the line's rate from 24 us on");
}
