//! Every attribute of performance management in a congested fabric, compared with the counters of the devices.

use super::*;
use management::attribute::congestion as cc;
use management::attribute::performance as pm;
use management::attribute::{Attribute, Field};

/// Words of a full data packet: 2048 octets of payload, LRH, BTH and ICRC.
const WORDS: u64 = 518;
/// The attributes that count packets by opcode, sampling, and extended speeds.
const UNKNOWN: [u16; 7] = [0x0010, 0x0011, 0x0017, 0x0019, 0x001a, 0x001b, 0x001f];

/// Asks for an attribute of a port.
fn ask(manager: &mut Manager, node: usize, number: u8, attribute: u16) {
    let mut request = Datagram::request(datagram::PERFORMANCE, method::GET, attribute, 0, 0);
    request.data_mut()[1] = number;
    let lid = manager.fabric.node(guid(node)).expect("it was found").lid;
    manager.ask(lid, request);
}

/// The answer about an attribute from a node and its port, in the order of the questions.
struct Answers(Vec<((usize, u8), Datagram)>);

impl Answers {
    fn find(&self, at: (usize, u8), attribute: &Attribute) -> &Datagram {
        let is_it = |(place, it): &&_| *place == at && Datagram::attribute(it) == attribute.id;
        &self.0.iter().find(is_it).expect("it was asked").1
    }

    fn one(&self, at: (usize, u8), attribute: &Attribute, field: Field) -> u64 {
        let answer = self.find(at, attribute);
        assert_eq!(answer.status(), 0, "{}", attribute.name);
        field.get(answer.data())
    }

    fn row(&self, at: (usize, u8), attribute: &Attribute, field: Field) -> Vec<u64> {
        let answer = self.find(at, attribute);
        assert_eq!(answer.status(), 0, "{}", attribute.name);
        (0..16).map(|index| field.at(index, answer.data())).collect()
    }
}

/// Marking at every switch, and a table with long delays at every adapter.
fn control(manager: &mut Manager) {
    for node in manager.fabric.nodes.clone() {
        let mut ask = |attribute, values: &[(Field, u64)]| {
            let class = datagram::CONGESTION;
            let mut request = Datagram::request(class, method::SET, attribute, 0, 0);
            values.iter().for_each(|(field, value)| field.set(request.data_mut(), *value));
            if attribute == 0x17 {
                for index in 0..64 {
                    let data = request.data_mut();
                    cc::congestion_control_table::MULTIPLIER.set_at(index, data, 2 * index as u64);
                }
            }
            manager.ask(node.lid, request);
        };
        if node.is_switch {
            use cc::switch_congestion_setting::*;
            ask(0x14, &[(CONTROL_MAP, 0x1f), (THRESHOLD, 15)]);
        } else {
            use cc::ca_congestion_setting::*;
            ask(0x16, &[(CONTROL_MAP, 3), (CCTI_TIMER, 31), (CCTI_INCREASE, 4)]);
            ask(0x17, &[(cc::congestion_control_table::CCTI_LIMIT, 63)]);
        }
    }
}

/// A packet with a wrong VCRC, and one for a LID without a route.
fn faulty() -> [Frame; 2] {
    use proto::ids::{Psn, QueuePairNumber};
    use proto::wire::infiniband::{Bth, Opcode, PacketBuilder};
    [lid(3), Lid::new(90)].map(|dlid| {
        let bth = Bth::new(Opcode::UC_SEND_ONLY, QueuePairNumber::truncate(99), Psn::default());
        let packet = PacketBuilder { slid: lid(1), dlid, ..PacketBuilder::new(bth) };
        let mut octets = BytesMut::new();
        packet.emit(&mut octets, 64, |payload| payload.fill(7)).expect("it fits");
        if dlid == lid(3) {
            *octets.last_mut().expect("octets") ^= 1;
        }
        Frame::unchecked(FrameKind::Infiniband, octets)
    })
}

#[test]
fn every_attribute_counts_what_the_device_has_counted() {
    let flood = |from, class| Stream {
        class,
        gap: Duration::from_ns(2_100),
        messages: 800,
        ..Stream::new(from, 3, 0)
    };
    let streams = [flood(0, 0), flood(1, 0), flood(2, 1)];
    // The receiver, a sender, the congested output, and the input of faulty packets.
    let places = [(3, 1), (1, 1), (S2, 2), (S1, 2)];
    let asked = move |manager: &mut Manager| {
        for (node, number) in places {
            for attribute in pm::ATTRIBUTES.iter().skip(1).map(|it| it.id).chain(UNKNOWN) {
                ask(manager, node, number, attribute);
            }
        }
    };
    let input = End { node: S1, port: port(2) };
    let fed: Vec<_> = faulty().into_iter().map(|frame| (input, us(1_500), frame)).collect();
    let run = run_on(&wiring(), &fed, &streams, us(19_000), |beside| {
        beside.at(us(800), control).at(us(18_000), asked)
    });
    assert_eq!(run.received(3), 2_400);
    let count = pm::ATTRIBUTES.len() - 1 + UNKNOWN.len();
    let at = |index: usize| places[index / count];
    let manager = run.manager();
    let first = manager.answers.len() - places.len() * count;
    let answers = manager.answers[first..].iter().cloned().enumerate();
    let answers = Answers(answers.map(|(index, it)| (at(index), it)).collect());
    let unknown = answers.0.iter().filter(|(_, answer)| UNKNOWN.contains(&answer.attribute()));
    unknown.for_each(|(_, it)| assert_eq!(it.status(), datagram::status::ATTRIBUTE, "{it:?}"));
    let [receiver, sender, output, faults] = places;
    let lanes =
        |(node, number): (usize, u8)| &run.readings[node].ports[usize::from(number) - 1].lanes;
    for place in places {
        // A tick is the time of four octets at 8 Gb/s.
        let waits: Vec<u64> = lanes(place).iter().map(|it| it.counters.hold_ps / 4_000).collect();
        let shown =
            answers.row(place, &pm::port_vl_xmit_wait::ATTRIBUTE, pm::port_vl_xmit_wait::WAIT);
        assert!(
            shown.iter().zip(&waits).all(|(shown, wait)| *shown == (*wait).min(0xffff)),
            "{shown:?}"
        );
        let short = &pm::port_counters::ATTRIBUTE;
        let sum = answers.one(place, short, pm::port_counters::XMIT_WAIT);
        assert_eq!(sum, waits.iter().sum::<u64>());
        use pm::port_rcv_con_ctrl as marks;
        for (row, field, all) in [
            (&pm::port_sl_rcv_fecn::ATTRIBUTE, pm::port_sl_rcv_fecn::FECN, marks::RCV_FECN),
            (&pm::port_sl_rcv_becn::ATTRIBUTE, pm::port_sl_rcv_becn::BECN, marks::RCV_BECN),
        ] {
            let all = answers.one(place, &marks::ATTRIBUTE, all);
            assert_eq!(answers.row(place, row, field).iter().sum::<u64>(), all);
        }
        let long = |field| answers.one(place, &pm::port_counters_extended::ATTRIBUTE, field);
        use pm::port_counters_extended::*;
        assert_eq!(long(MULTICAST_XMIT_PACKETS) + long(MULTICAST_RCV_PACKETS), 0);
        assert!(long(UNICAST_XMIT_PACKETS) == long(XMIT_PACKETS) && long(XMIT_PACKETS) > 0);
        use pm::port_flow_ctl_counters as flow;
        let flows = [flow::XMIT_FLOW_PACKETS, flow::RCV_FLOW_PACKETS];
        assert!(flows.iter().all(|field| answers.one(place, &flow::ATTRIBUTE, *field) > 50));
    }
    // Data of class 1 have level 1 and nothing else has.
    let data = |place, attribute: &Attribute, field| answers.row(place, attribute, field)[1];
    let sent = data(output, &pm::port_xmit_data_sl::ATTRIBUTE, pm::port_xmit_data_sl::DATA);
    let got = data(receiver, &pm::port_rcv_data_sl::ATTRIBUTE, pm::port_rcv_data_sl::DATA);
    assert_eq!((sent, got), (800 * WORDS, 800 * WORDS));
    // Marks, and what they do to a sender.
    let marked = answers.row(
        output,
        &pm::sw_port_vl_congestion::ATTRIBUTE,
        pm::sw_port_vl_congestion::MARKED,
    );
    let counted: Vec<u64> = lanes(output).iter().map(|lane| lane.counters.marks).collect();
    assert!(marked[0] > 0 && marked.iter().zip(&counted).all(|(a, b)| a == b), "{marked:?}");
    let fecn =
        answers.one(receiver, &pm::port_rcv_con_ctrl::ATTRIBUTE, pm::port_rcv_con_ctrl::RCV_FECN);
    let named = &run.readings[receiver.0].ports[0].named;
    let received = named.iter().find(|(name, _)| name == "port_rcv_fecn").map(|(_, count)| *count);
    // The port counts management packets, too.
    let others = run.general(receiver.0, receiver.1);
    assert!(received.is_some_and(|count| (count..=count + others).contains(&fecn)), "{fecn}");
    use pm::{port_vl_xmit_time_cong as by_lane, port_xmit_con_ctrl as in_all};
    let congested = |place| {
        let row = answers.row(place, &by_lane::ATTRIBUTE, by_lane::TIME_CONGESTED);
        let all = answers.one(place, &in_all::ATTRIBUTE, in_all::TIME_CONGESTED);
        assert_eq!(row.iter().sum::<u64>(), all);
        all
    };
    // A sender gets a third of the line for about 5 ms of 250 000 ticks each. The receiver sends nothing that is held.
    assert!((100_000..5_000_000).contains(&congested(sender)), "{}", congested(sender));
    assert_eq!(congested(receiver), 0);
    // Attributes of the other kind of node.
    for (place, attribute) in
        [(sender, &pm::sw_port_vl_congestion::ATTRIBUTE), (output, &in_all::ATTRIBUTE)]
    {
        assert_eq!(answers.find(place, attribute).status(), datagram::status::ATTRIBUTE);
    }
    let errors = |field| answers.one(faults, &pm::port_rcv_error_details::ATTRIBUTE, field);
    use pm::port_rcv_error_details::*;
    let found = [LOCAL_PHYSICAL_ERRORS, DLID_MAPPING_ERRORS, MALFORMED_PACKETS, LOOPING_ERRORS];
    assert_eq!(found.map(errors), [1, 1, 0, 0]);
}
