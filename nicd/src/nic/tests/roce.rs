//! RoCEv2: CE to CNP, the resulting rate, damaged frames and frames for others.

use super::cable::*;
use super::*;
use crate::config::{NicConfig, RoceVersion};
use proto::congestion::SchemeConfig;
use proto::counters::DropReason;
use proto::events::EventKind;
use proto::ids::{Dscp, Ecn, Lid, QueuePairNumber};
use proto::units::Duration;
use proto::wire::ethernet::plan;
use proto::wire::infiniband::{ExtendedHeaders, Grh, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder, notification};
use std::net::Ipv4Addr;

/// DA to FCS of a full frame over IPv4: 62 octets around 2048.
const FULL_ROCE: u64 = 2110;

/// NIC 0 sends `messages` of one full frame each at 8 Gb/s under `dcqcn` with these parameters.
fn sending(messages: u64, params: &str) -> NicConfig {
    let scheme = SchemeConfig { kind: "dcqcn".to_owned(), params: params.parse().expect("TOML") };
    let traffic = vec![burst(2, 2048, messages)];
    on_ethernet(NicConfig { traffic, scheme, ..config(1) }, RoceVersion::V2Ipv4)
}

fn mark_data(seen: &Seen) -> Impairment {
    if seen.is_data() { Impairment::Mark } else { Impairment::Pass }
}

#[test]
fn marked_data_returns_one_cnp_per_interval_on_its_own_priority() {
    let mut pair = Pair::alike(sending(60, "reaction = \"frozen\""))
        .with_impairment(mark_data)
        .run_until(us(200));
    let cnps: Vec<Seen> = pair.sent(1, Opcode::ROCEV2_CNP).into_iter().cloned().collect();
    // 60 frames take 127 µs from 5 µs on: one CNP at the start, one after 50 µs, one after 100 µs.
    assert_eq!(cnps.len(), 3);
    assert!(cnps.windows(2).all(|two| two[1].at.since(two[0].at) >= Duration::from_us(50)));
    let packet = cnps[0].roce();
    let NetworkHeaders::Ipv4(ip, ..) = packet.network else { panic!("not over IPv4") };
    assert_eq!((ip.dscp.get(), ip.ecn), (48, Ecn::NotCapable));
    let number = QueuePairNumber::planned(0, Lid::new(2));
    assert_eq!(packet.transport.bth, notification::bth(number, 0xffff));
    assert_eq!((packet.transport.payload, cnps[0].octets.len()), (&[0; 16][..], 74));
    let acks = pair.sent(1, Opcode::RC_ACKNOWLEDGE);
    assert!(acks.iter().all(|ack| !ack.transport().bth.becn));
    assert_eq!(pair.total(1, "np_ecn_marked_roce_packets"), 60);
    assert_eq!((pair.total(1, "np_cnp_sent"), pair.total(0, "rp_cnp_handled")), (3, 3));
    assert_eq!((pair.reception(1).marked, pair.flow(0).notes), (60, 3));
    let lanes = pair.reading(1).ports[0].lanes.clone();
    assert_eq!((lanes[6].counters.notes_tx, lanes[3].counters.notes_tx), (3, 0));
    assert_eq!(pair.flow(0).rate.value, 8_000_000_000, "a frozen reaction point ignores CNPs");
    pair.assert_conserved(0, 0);
}

#[test]
fn a_cnp_halves_the_rate_on_the_wire() {
    let mut first = true;
    let impair = move |seen: &Seen| match seen.is_data() && std::mem::take(&mut first) {
        true => Impairment::Mark,
        false => Impairment::Pass,
    };
    let pair = Pair::alike(sending(20, "")).with_impairment(impair).run_until(us(50));
    let departures: Vec<Instant> = pair.data_from(0).iter().map(|seen| seen.at).collect();
    let full = OCTET * FULL_ROCE;
    // The CNP arrives before the third frame has left. From then on each frame takes twice its time.
    let gaps: Vec<_> = departures.windows(2).map(|two| two[1].since(two[0])).collect();
    assert_eq!(gaps[0], full);
    assert!(gaps[2..].iter().all(|gap| *gap == full * 2), "{gaps:?}");
    let reacted = pair.happened(0, |kind| matches!(kind, EventKind::React { .. }));
    assert_eq!(reacted, 1);
}

#[test]
fn infiniband_names_of_totals_are_not_those_of_roce() {
    let named = |settings: NicConfig| -> Vec<String> {
        let mut pair = Pair::alike(settings);
        pair.reading(0).ports[0].named.iter().map(|(name, _)| name.clone()).collect()
    };
    let (ib, roce) = (named(config(1)), named(sending(1, "")));
    assert!(!ib.iter().any(|name| name.contains("roce")), "{ib:?}");
    assert!(ib.contains(&"np_becn_sent".to_owned()) && !roce.contains(&"np_becn_sent".to_owned()));
    assert!(roce.contains(&"np_ecn_marked_roce_packets".to_owned()));
}

/// Conformance case ROCE-15.
#[test]
fn a_wrong_icrc_is_dropped_without_a_cnp_and_retransmitted() {
    let mut hit = false;
    let impair = move |_: &Seen| match std::mem::replace(&mut hit, true) {
        true => Impairment::Pass,
        false => Impairment::MarkAndCorrupt,
    };
    let mut pair = Pair::alike(sending(5, "")).with_impairment(impair).run_until(us(300));
    assert_eq!(pair.drops(1, DropReason::Icrc), 1);
    assert!(pair.sent(1, Opcode::ROCEV2_CNP).is_empty());
    assert_eq!((pair.reception(1).messages, pair.flow(0).completed), (5, 5));
    assert_eq!(pair.total(0, "packet_seq_err"), 1);
    pair.assert_conserved(0, 0);
}

/// A valid CNP from adapter 2 to adapter 1 for `queue_pair`.
fn cnp_for(queue_pair: QueuePairNumber) -> Frame {
    cnp_from(plan::ipv4(Lid::new(2)), queue_pair)
}

/// The same from this address.
fn cnp_from(source: Ipv4Addr, queue_pair: QueuePairNumber) -> Frame {
    let ip = Ipv4 {
        dscp: Dscp::truncate(48),
        ecn: Ecn::NotCapable,
        source,
        destination: plan::ipv4(Lid::new(1)),
        ..Ipv4::default()
    };
    cnp_over(NetworkHeaders::Ipv4(ip, &[], Udp::roce(0xc001)), queue_pair)
}

fn cnp_over(network: NetworkHeaders<'_>, queue_pair: QueuePairNumber) -> Frame {
    let builder = PacketBuilder {
        destination: plan::mac(Lid::new(1)),
        source: plan::mac(Lid::new(2)),
        tag: None,
        network,
        bth: notification::bth(queue_pair, 0xffff),
        extended: ExtendedHeaders::NONE,
    };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, 16, |_| {}).unwrap();
    Frame::unchecked(FrameKind::Ethernet, octets)
}

fn receive(pair: &mut Pair, frame: Frame) {
    let now = pair.now;
    pair.nics[0].handle_frame(PortNumber::from_index(0), frame, now, now);
}

#[test]
fn a_cnp_for_an_unknown_queue_pair_is_counted_and_changes_nothing() {
    let mut pair = Pair::alike(sending(3, "")).run_until(us(50));
    let before = pair.flow(0);
    // An unknown class; adapter 3, to which there is no connection; a number outside the plan.
    let unknown = [
        QueuePairNumber::planned(7, Lid::new(2)),
        QueuePairNumber::planned(0, Lid::new(3)),
        QueuePairNumber::truncate(1),
    ];
    for queue_pair in unknown {
        receive(&mut pair, cnp_for(queue_pair));
    }
    assert_eq!((pair.total(0, "rp_cnp_ignored"), pair.total(0, "rp_cnp_handled")), (3, 0));
    assert_eq!(pair.drops(0, DropReason::QueuePair), 3);
    receive(&mut pair, cnp_from(Ipv4Addr::new(192, 0, 2, 1), unknown[0]));
    assert_eq!(pair.drops(0, DropReason::QueuePair), 4, "no adapter has this address");
    receive(&mut pair, cnp_over(NetworkHeaders::Global(Grh::default()), unknown[0]));
    assert_eq!(pair.drops(0, DropReason::NotRoce), 1, "RoCEv1");
    assert_eq!(pair.flow(0), before);
    receive(&mut pair, cnp_for(QueuePairNumber::planned(0, Lid::new(2))));
    assert_eq!((pair.total(0, "rp_cnp_handled"), pair.flow(0).rate.value), (1, 4_000_000_000));
}

/// Conformance cases ROCE-07 and ROCE-16: these frames change no state.
#[test]
fn invalid_frames_are_counted_and_change_no_flow() {
    let mut pair = Pair::alike(sending(3, "")).run_until(us(50));
    let before = (pair.flow(0), pair.reading(0).receptions);
    let good = cnp_for(QueuePairNumber::planned(0, Lid::new(2)));
    type Change = fn(&mut [u8]);
    let cases: [(Change, DropReason); 8] = [
        (|octets| octets[37] += 1, DropReason::NotRoce), // port 4792
        (|octets| octets[39] -= 4, DropReason::PacketLength), // UDP shorter than IP says
        (|octets| octets[39] += 4, DropReason::PacketLength),
        (|octets| octets[17] += 8, DropReason::PacketLength), // IP longer than the frame
        (|octets| octets[22] ^= 1, DropReason::Checksum),     // TTL
        (|octets| octets[23] = 6, DropReason::NotRoce),       // TCP
        (|octets| octets[60] ^= 1, DropReason::Icrc),
        (|octets| octets[5] ^= 4, DropReason::NotForUs), // another adapter's MAC
    ];
    for (change, reason) in cases {
        let mut frame = good.clone();
        change(&mut frame.octets);
        let drops = pair.drops(0, reason);
        receive(&mut pair, frame);
        assert_eq!(pair.drops(0, reason), drops + 1, "{reason:?}");
    }
    assert_eq!((pair.flow(0), pair.reading(0).receptions), before);
    assert_eq!(pair.total(0, "rp_cnp_handled"), 0);
}

#[test]
fn marked_cnps_return_no_cnp() {
    let mut pair = Pair::alike(sending(1, "")).run_until(us(50));
    let mut cnp = cnp_for(QueuePairNumber::planned(0, Lid::new(2)));
    cnp.octets[15] |= 3;
    let checksum = proto::wire::internet::checksum::ipv4_header(&cnp.octets[14..34]);
    cnp.octets[24..26].copy_from_slice(&checksum.to_be_bytes());
    receive(&mut pair, cnp);
    pair.advance(us(100));
    assert!(pair.sent(0, Opcode::ROCEV2_CNP).is_empty());
    assert_eq!(pair.total(0, "np_ecn_marked_roce_packets"), 0);
    assert_eq!(pair.total(0, "rp_cnp_handled"), 1, "a marked CNP still takes effect");
}

#[test]
fn the_infiniband_cnp_opcode_is_refused_on_ethernet() {
    let mut pair = Pair::alike(sending(1, "")).run_until(us(50));
    let number = QueuePairNumber::planned(0, Lid::new(2));
    let mut frame = cnp_for(number);
    let layout = proto::wire::roce::Layout::find(&frame.octets).unwrap().unwrap();
    frame.octets[layout.bth_at] = 0x80;
    let icrc = proto::wire::roce::checks::icrc(&frame.octets, &layout).to_le_bytes();
    frame.octets[layout.icrc_at()..layout.end].copy_from_slice(&icrc);
    receive(&mut pair, frame);
    assert_eq!(pair.drops(0, DropReason::Opcode), 1);
}
