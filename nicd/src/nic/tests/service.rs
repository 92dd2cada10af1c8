//! Order of service, unreliable services, traffic items, and invalid input.

use super::cable::*;
use super::*;
use crate::config::*;
use proptest::prelude::*;
use proto::counters::DropReason;
use proto::ids::{Lid, Psn, QueuePairNumber};
use proto::units::{Bytes, Duration};
use proto::wire::infiniband::{Bth, Opcode, PacketBuilder};

fn targets(pair: &Pair) -> Vec<u16> {
    pair.data_from(0).iter().map(|seen| seen.packet().lrh.dlid.get()).collect()
}

#[test]
fn posting_order_sends_the_oldest_message_and_round_robin_each_in_turn() {
    let posted = |qp_order| {
        // Six messages to LID 2 are posted before three to LID 3, all before the line is free.
        let later = TrafficConfig { start: us(5) + Duration::from_ns(1), ..burst(3, 2048, 3) };
        let traffic = vec![burst(2, 2048, 6), later];
        Pair::alike(NicConfig { qp_order, traffic, ..config(1) }).run_until(us(60))
    };
    assert_eq!(targets(&posted(QueuePairOrder::Posting)), [2, 2, 2, 2, 2, 2, 3, 3, 3]);
    assert_eq!(targets(&posted(QueuePairOrder::RoundRobin)), [2, 2, 3, 2, 3, 2, 3, 2, 2]);
}

#[test]
fn classes_to_one_peer_have_queue_pairs_and_lanes_of_their_own() {
    let other = ClassConfig {
        service_level: proto::ids::ServiceLevel::truncate(1),
        ..class(Transport::Uc, Operation::Write)
    };
    let classes = vec![class(Transport::Rc, Operation::Send), other];
    let second = TrafficConfig { class: 1, ..burst(2, 2048, 3) };
    let traffic = vec![burst(2, 2048, 3), second];
    let mut pair = Pair::alike(NicConfig { classes, traffic, ..config(1) }).run_until(us(60));
    let flows = pair.reading(0).flows;
    assert_eq!(flows.iter().map(|flow| flow.flow.class).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(flows[1].items[..], [1]);
    let lanes = pair.reading(0).ports[0].lanes.clone();
    assert_eq!(lanes.iter().map(|lane| lane.counters.tx_frames).collect::<Vec<_>>(), [3, 3]);
    let only = pair.sent(0, Opcode::UC_WRITE_ONLY)[0].packet();
    assert_eq!(only.bth.unwrap().destination, QueuePairNumber::planned(1, Lid::new(1)));
}

#[test]
fn an_unreliable_connection_drops_only_the_message_with_the_gap() {
    let classes = vec![class(Transport::Uc, Operation::Send)];
    let traffic = vec![burst(2, 5000, 4)];
    let mut pair = Pair::alike(NicConfig { classes, traffic, ..config(1) }).with_impairment({
        let mut count = 0;
        // Lose the middle packet of the second message.
        move |_| {
            count += 1;
            if count == 5 { Impairment::Lose } else { Impairment::Pass }
        }
    });
    pair.advance(us(100));
    let (flow, reception) = (pair.flow(0), pair.reception(1));
    assert_eq!((flow.completed, reception.messages), (4, 3));
    assert_eq!(pair.drops(1, DropReason::OutOfSequence), 1, "the last packet of that message");
    assert_eq!(pair.seen.len(), 12, "nothing is retransmitted");
    pair.assert_conserved(1, 0);
}

#[test]
fn datagrams_carry_key_and_source_and_may_be_lost_without_consequence() {
    let classes = vec![class(Transport::Ud, Operation::Send)];
    let traffic = vec![burst(2, 100, 6)];
    let mut pair = Pair::alike(NicConfig { classes, traffic, ..config(1) }).with_impairment({
        let mut count = 0;
        move |_| {
            count += 1;
            if count == 2 { Impairment::Lose } else { Impairment::Pass }
        }
    });
    pair.advance(us(100));
    assert_eq!((pair.flow(0).completed, pair.reception(1).messages), (6, 5));
    let deth = pair.data_from(0)[0].packet().extended.deth.unwrap();
    assert_eq!(deth.source, QueuePairNumber::planned(0, Lid::new(2)));
    assert_eq!(pair.reception(1).reordered, 1, "the one after the gap");
    pair.assert_conserved(1, 0);
}

#[test]
fn stopping_an_item_withdraws_messages_that_have_not_started() {
    let item = TrafficConfig { stop: us(10), ..burst(2, 5000, 50) };
    let mut pair = Pair::alike(NicConfig { traffic: vec![item], ..config(1) });
    pair.advance(us(200));
    let flow = pair.flow(0);
    // At 10 µs the first message, which takes three frames or 5.1 µs, is incomplete: it continues.
    assert_eq!((flow.messages, flow.completed, flow.withdrawn), (50, 1, 49));
    assert_eq!(pair.reading(0).balance.withdrawn, 49);
    assert_eq!(pair.reading(0).ports[0].lanes[0].counters.source_queue.value, 0);
    assert_eq!(pair.reception(1).messages, 1);
}

#[test]
fn a_backlog_keeps_the_line_full_and_posts_no_more_than_it_must() {
    let item = TrafficConfig {
        arrivals: Arrivals::Backlog,
        to: Target::Uniform,
        stop: us(500),
        ..burst(2, 2048, 0)
    };
    let mut pair = Pair::alike(NicConfig { traffic: vec![item], ..config(1) });
    pair.advance(us(400));
    let frames = pair.data_from(0).len() as u64;
    let most = 395_000 / FULL + 1;
    assert!((most - 3..=most).contains(&frames), "{frames} of {most}");
    assert_eq!(pair.reading(0).flows.len(), 3, "a flow to each of the others");
    pair.advance(us(600));
    let flows = pair.reading(0).flows;
    assert_eq!(
        flows.iter().map(|flow| flow.withdrawn).sum::<u64>(),
        3,
        "one message waited for each receiver"
    );
}

#[test]
fn an_idle_nic_wakes_for_the_next_arrival_and_a_busy_one_for_the_end_of_the_frame() {
    let item = TrafficConfig { interval: Duration::from_us(50), ..burst(2, 3000, 0) };
    let mut pair = Pair::alike(NicConfig { traffic: vec![item], ..config(1) });
    pair.advance(us(10));
    // The next flow control packet is due at 65.5 µs.
    assert_eq!(pair.nics[0].poll_timeout(), Some(us(55)));
    pair.advance(us(55));
    let first = us(55) + OCTET * FULL;
    assert_eq!(pair.data_from(0)[2].at, first);
    assert_eq!(pair.nics[0].poll_timeout(), Some(first), "the message's second frame waits");
    pair.advance(us(59));
    let idle_until = pair.nics[0].poll_timeout().unwrap();
    assert!(idle_until > us(60), "no frame waits");
}

#[test]
fn a_reading_that_posts_an_arrival_keeps_its_timeout() {
    let item = TrafficConfig { start: us(20), ..burst(2, 2048, 1) };
    let mut pair = Pair::alike(NicConfig { traffic: vec![item], ..config(1) });
    pair.advance(us(19));
    pair.now = us(21);
    pair.reading(0);
    assert_eq!(pair.nics[0].poll_timeout(), Some(us(21)), "there is something to send");
    let departure = pair.nics[0].poll_transmit(us(21)).expect("a frame leaves");
    assert_eq!(
        departure.at,
        us(21) + OCTET * FULL,
        "no frame leaves before the step that sends it"
    );
    let next = pair.nics[0].poll_timeout().unwrap();
    assert!(next > us(21));
}

/// NIC 1 receives a packet from `builder` on an idle link.
fn received(builder: PacketBuilder, payload: usize) -> Pair {
    let mut pair = Pair::alike(config(1)).run_until(us(5));
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, payload, |payload| payload.fill(0x5a)).unwrap();
    let frame = Frame::unchecked(FrameKind::Infiniband, octets);
    pair.nics[1].handle_frame(PortNumber::from_index(0), frame, us(5), us(5));
    pair.advance(us(10));
    pair
}

fn only(number: QueuePairNumber) -> PacketBuilder {
    let bth = Bth::new(Opcode::RC_SEND_ONLY, number, Psn::default());
    PacketBuilder { slid: Lid::new(1), dlid: Lid::new(2), ..PacketBuilder::new(bth) }
}

#[test]
fn packets_for_others_are_dropped_with_the_right_reason() {
    let good = only(QueuePairNumber::planned(0, Lid::new(1)));
    let with_bth = |change: fn(&mut Bth)| {
        let mut builder = good;
        change(&mut builder.bth);
        builder
    };
    let unknown = |class, lid| only(QueuePairNumber::planned(class, Lid::new(lid)));
    let level = proto::ids::VirtualLane::MANAGEMENT;
    let cases = [
        (PacketBuilder { dlid: Lid::new(3), ..good }, DropReason::NotForUs),
        (unknown(0, 3), DropReason::QueuePair),
        (unknown(1, 1), DropReason::QueuePair),
        (only(QueuePairNumber::truncate(1)), DropReason::QueuePair),
        (PacketBuilder { slid: Lid::new(9), ..unknown(0, 9) }, DropReason::QueuePair),
        (with_bth(|bth| bth.partition_key = 0x7fff), DropReason::PartitionKey),
        (with_bth(|bth| bth.opcode = Opcode::UC_SEND_ONLY), DropReason::Opcode),
        (with_bth(|bth| bth.opcode = Opcode::RC_READ_RESPONSE_MIDDLE), DropReason::Opcode),
        (with_bth(|bth| bth.opcode = Opcode::RC_SEND_LAST), DropReason::Opcode),
        (with_bth(|bth| bth.opcode = Opcode(0x1f)), DropReason::Opcode),
        (with_bth(|bth| bth.opcode = Opcode::ROCEV2_CNP), DropReason::Opcode),
        (PacketBuilder { virtual_lane: level, ..good }, DropReason::Management),
    ];
    assert_eq!(received(good, 64).reception(1).messages, 1);
    for (builder, reason) in cases {
        let mut pair = received(builder, 64);
        assert_eq!(pair.drops(1, reason), 1, "{reason:?}");
        assert_eq!(pair.reading(1).balance.delivered, 0);
        let lane = pair.reading(1).ports[0].lanes[0];
        assert_eq!(lane.counters.in_queue.value, 0, "its input buffer is free");
    }
}

#[test]
fn multicast_counts_as_delivered_and_returns_no_acknowledgement() {
    let number = QueuePairNumber::truncate(0xff_ffff);
    let mut builder = only(number);
    (builder.dlid, builder.bth.fecn) = (Lid::new(0xc001), true);
    let mut pair = received(builder, 64);
    assert_eq!(pair.reading(1).balance.delivered, 1);
    assert_eq!(pair.total(1, "multicast_rcv_packets"), 1);
    assert!(pair.seen.is_empty());
}

#[test]
fn the_same_seed_gives_the_same_frames_at_the_same_instants() {
    let run = |seed| {
        let item = TrafficConfig {
            arrivals: Arrivals::Poisson,
            interval: Duration::from_us(4),
            to: Target::Uniform,
            ..burst(2, 3000, 0)
        };
        let settings = NicConfig { seed, traffic: vec![item], ..config(1) };
        let mut pair = Pair::alike(settings).run_until(us(2_000));
        let seen: Vec<_> = pair.seen.drain(..).map(|seen| (seen.at, seen.octets)).collect();
        (seen, pair.reading(0), pair.reading(1))
    };
    assert!(run(1) == run(1));
    assert!(run(1).0 != run(2).0);
}

#[test]
fn impossible_configurations_are_refused() {
    use crate::config::check::ConfigError;
    let refused = |change: fn(&mut NicConfig)| {
        let mut settings = NicConfig { traffic: vec![burst(2, 2048, 1)], ..config(1) };
        change(&mut settings);
        Nic::new(settings).err().expect("the configuration is refused").to_string()
    };
    assert_eq!(refused(|c| c.traffic[0].class = 1), "traffic \"burst\": its class does not exist");
    assert!(refused(|c| c.traffic[0].to = Target::Lids(vec![Lid::new(1)])).contains("another"));
    assert!(refused(|c| c.traffic[0].interval = Duration::ZERO).contains("interval"));
    assert!(refused(|c| c.sl2vl[0] = 15).contains("class 0"));
    assert!(refused(|c| c.scheme.kind = "tcp".to_owned()).contains("\"tcp\""));
    assert!(refused(|c| c.link.mtu = Bytes::new(8192)).contains("mtu is 8192"));
    assert!(refused(|c| c.adapters = vec![Lid::new(2)]).contains("LID 1"));
    let unreliable = |c: &mut NicConfig| {
        c.classes[0].transport = Transport::Ud;
        c.traffic[0].size = Bytes::new(2049);
    };
    assert!(refused(unreliable).contains("one MTU"));
    let write = |c: &mut NicConfig| c.classes = vec![class(Transport::Ud, Operation::Write)];
    let mut config = config(1);
    write(&mut config);
    let rule = "class 0: a UD message cannot be an RDMA WRITE".to_owned();
    assert_eq!(Nic::new(config).err(), Some(ConfigError::Rule(rule)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Arbitrary octets, and valid packets with changed octets, are counted and have no other effect.
    #[test]
    fn any_input_is_counted_and_never_panics(
        frames in proptest::collection::vec(
            (any::<bool>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..120),
             proptest::collection::vec((0usize..60, any::<u8>()), 0..4)),
            1..40),
    ) {
        let settings = NicConfig { traffic: vec![burst(2, 3000, 20)], ..config(1) };
        let mut pair = Pair::alike(settings).run_until(us(10));
        let genuine = pair.seen[0].octets.clone();
        let before = pair.reading(1);
        let mut given = 0;
        for (is_link, is_genuine, octets, changes) in frames {
            let mut octets = bytes::BytesMut::from(if is_genuine { &genuine } else { &octets }.as_slice());
            for (at, value) in changes {
                if let Some(octet) = octets.get_mut(at) { *octet = value; }
            }
            let kind = if is_link { FrameKind::InfinibandLink } else { FrameKind::Infiniband };
            if is_genuine && !is_link {
                // Correct CRCs, so that the transport parses the packet.
                proto::wire::infiniband::crc::refresh_both(&mut octets);
            }
            let now = pair.now;
            pair.nics[1].handle_frame(PortNumber::from_index(0), Frame::unchecked(kind, octets), now, now);
            given += u64::from(!is_link);
        }
        let after = pair.reading(1);
        let ended = |reading: &DeviceReading| {
            let drops = &reading.ports[0].drops;
            let packets = drops.iter().filter(|(reason, _)| reason.is_end_to_end());
            reading.balance.delivered + packets.map(|(_, n)| n).sum::<u64>()
        };
        prop_assert_eq!(ended(&after) - ended(&before), given);
        pair.advance(us(1_000));
    }
}
