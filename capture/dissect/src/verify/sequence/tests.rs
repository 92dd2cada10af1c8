//! Retransmissions of every kind: what is legal stays unreported, what came too early is found at its frame.

use super::rnr_ns;
use crate::verify::{Report, Settings, verify};
use capture::pcapng::{self, LinkType};
use proto::ids::{Psn, QueuePairNumber};
use proto::wire::ethernet::MacAddress;
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};

/// Syndromes: ACK with unlimited credits, NAK of a sequence error, RNR NAK with timer code 12 (0.64 ms).
const ACK: u8 = 0x1f;
const NAK: u8 = 0x60;
const RNR: u8 = 0x2c;

/// 4.096 µs · 2^14 in nanoseconds.
const T14: u64 = 67_108_864;

/// A packet at a time in nanoseconds.
#[derive(Clone, Copy)]
struct Shot {
    at_ns: u64,
    /// From host 1 to host 2, or back.
    back: bool,
    queue_pair: u32,
    opcode: Opcode,
    psn: u32,
    asks: bool,
    syndrome: u8,
    /// Of a READ request, octets.
    dma_length: u32,
    payload: usize,
    /// IP identification; 0 numbers the packets in the order of the file.
    identification: u16,
}

/// A SEND Only of host 1 to queue pair 7 of host 2.
fn send(at_ns: u64, psn: u32) -> Shot {
    let (opcode, identification) = (Opcode::RC_SEND_ONLY, 0);
    let (back, queue_pair, asks, syndrome, dma_length, payload) = (false, 7, true, 0, 0, 40);
    Shot {
        at_ns,
        back,
        queue_pair,
        opcode,
        psn,
        asks,
        syndrome,
        dma_length,
        payload,
        identification,
    }
}

/// An answer of host 2 to queue pair 17 of host 1.
fn answer(at_ns: u64, psn: u32, syndrome: u8) -> Shot {
    let opcode = Opcode::RC_ACKNOWLEDGE;
    Shot {
        back: true,
        queue_pair: 17,
        opcode,
        syndrome,
        asks: false,
        payload: 0,
        ..send(at_ns, psn)
    }
}

impl Shot {
    fn octets(&self, number: u16) -> Vec<u8> {
        let ends = [[192, 0, 2, 1], [192, 0, 2, 2]];
        let [source, destination] = if self.back { [ends[1], ends[0]] } else { ends };
        let mac = |end: [u8; 4]| MacAddress::new([2, 0, 0, 0, 0, end[3]]);
        let identification = if self.identification == 0 { number } else { self.identification };
        let (from, to) = (source.into(), destination.into());
        let ip = Ipv4 { identification, source: from, destination: to, ..Ipv4::default() };
        let mut headers = [0; 32];
        headers[0] = self.syndrome;
        headers[12..16].copy_from_slice(&self.dma_length.to_be_bytes());
        let set = self.opcode.extended_headers();
        let psn = Psn::truncate(self.psn & Psn::MAX);
        let queue_pair = QueuePairNumber::truncate(self.queue_pair);
        let builder = PacketBuilder {
            destination: mac(destination),
            source: mac(source),
            tag: None,
            network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(50_000)),
            bth: Bth { ack_request: self.asks, ..Bth::new(self.opcode, queue_pair, psn) },
            extended: ExtendedHeaders::parse(set, &headers, 0).unwrap(),
        };
        let mut buffer = bytes::BytesMut::new();
        builder.emit(&mut buffer, self.payload, |place| place.fill(0x5a)).unwrap();
        buffer.to_vec()
    }
}

/// A pcap file with nanoseconds that keeps `snaplen` octets of each frame.
fn pcap(shots: &[Shot], snaplen: usize) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1]);
    for (number, shot) in (1..).zip(shots) {
        let frame = shot.octets(number);
        let kept = &frame[..frame.len().min(snaplen)];
        let (s, ns) = (shot.at_ns / 1_000_000_000, shot.at_ns % 1_000_000_000);
        file.extend(words(&[s as u32, ns as u32, kept.len() as u32, frame.len() as u32]));
        file.extend(kept);
    }
    file
}

fn settings(timeout: Option<u8>) -> Settings {
    Settings { timeout, ..Settings::default() }
}

fn report(shots: &[Shot], timeout: Option<u8>) -> Report {
    verify(&pcap(shots, 65_535)[..], "a test", &settings(timeout), 100).unwrap()
}

fn names(report: &Report) -> Vec<(u64, &'static str)> {
    report.findings.iter().map(|finding| (finding.frame, finding.rule)).collect()
}

fn found(shots: &[Shot], timeout: Option<u8>) -> Vec<(u64, &'static str)> {
    names(&report(shots, timeout))
}

/// A first message and its acknowledgement, so that the requester behind queue pair 17 is known.
fn opened(rest: &[Shot]) -> Vec<Shot> {
    let mut shots = vec![send(0, 99), answer(10_000, 99, ACK)];
    shots.extend(rest);
    shots
}

const MS: u64 = 1_000_000;

#[test]
fn a_time_out_is_due_at_its_end_and_not_before() {
    let at = |after| opened(&[send(MS, 100), send(MS + after, 100), answer(200 * MS, 100, ACK)]);
    assert_eq!(found(&at(T14), Some(14)), []);
    assert_eq!(
        found(&at(4 * T14), Some(14)),
        [],
        "four times T and more is not a fault of this rule"
    );
    let early = report(&at(T14 - 2_000), Some(14));
    assert_eq!((names(&early), early.verdict), (vec![(4, "retry-early")], "fail"));
    assert_eq!(early.findings[0].expected, "at least 67108864 ns (timeout 14 by --timeout)");
    assert_eq!(found(&at(T14 - 2_000), Some(13)), []);
    assert_eq!(found(&at(T14 - 2_000), None), [], "nothing in the file contradicts T = 33 ms");
}

#[test]
fn progress_restarts_the_timer_and_a_second_acknowledgement_of_the_same_does_not() {
    let after = |answers: &[Shot]| {
        let mut shots = opened(&[send(MS, 100), send(MS, 101)]);
        shots.extend(answers);
        shots.push(send(MS + T14 + 1_000, 101));
        shots.push(answer(200 * MS, 101, ACK));
        found(&shots, Some(14))
    };
    assert_eq!(after(&[answer(2 * MS, 100, ACK)]), [(6, "retry-early")]);
    assert_eq!(after(&[]), []);
    assert_eq!(after(&[answer(60 * MS, 99, ACK)]), []);
    // The acknowledgement of the packet itself may not have reached the requester.
    assert_eq!(after(&[answer(60 * MS, 101, ACK)]), []);
}

/// A repetition from the oldest packet on whose first packet is lost before the port.
#[test]
fn the_oldest_packet_decides() {
    let shots = |oldest_lost: u32| {
        let mut shots = opened(&[send(MS, 100), send(40 * MS, 101)]);
        shots.extend((100 + oldest_lost..102).map(|psn| send(MS + T14, psn)));
        shots.push(answer(200 * MS, 101, ACK));
        shots
    };
    assert_eq!(found(&shots(0), Some(14)), []);
    assert_eq!(found(&shots(1), Some(14)), []);
}

#[test]
fn an_expired_timer_starts_again() {
    let repeats = |second| {
        let shots = [send(MS, 100), send(MS + T14, 100), send(MS + T14 + second, 100)];
        let mut shots = opened(&shots);
        shots.push(answer(300 * MS, 100, ACK));
        found(&shots, Some(14))
    };
    assert_eq!(repeats(T14), []);
    assert_eq!(repeats(T14 - 2_000), [(5, "retry-early")]);
}

#[test]
fn without_a_stated_timeout_the_longest_wait_bounds_it() {
    let with = |wait_ms: u64, again_ms: u64| {
        let shots = [
            send(MS, 100),
            send(MS + again_ms * MS, 100),
            answer((again_ms + 20) * MS, 100, ACK),
            send(200 * MS, 101),
            answer((200 + wait_ms) * MS, 101, ACK),
        ];
        report(&opened(&shots), None)
    };
    let early = with(400, 10);
    assert_eq!(names(&early), [(4, "retry-early")]);
    let why = "at least 80 ms: before frame 7 it waited 400 ms and sent nothing again";
    assert_eq!(early.findings[0].expected, why);
    assert_eq!(names(&with(400, 85)), []);
    assert_eq!(names(&with(40, 10)), []);
    assert_eq!(with(40, 10).tally.checked["retransmissions by time-out"], 1);
    // No timeout is shorter than 8.192 µs.
    let shots = [send(MS, 100), send(MS + 5_000, 100), answer(MS + 9_000, 100, ACK)];
    assert_eq!(found(&opened(&shots), None), [(4, "retry-early")]);
}

#[test]
fn a_nak_asks_for_everything_from_its_number_once() {
    let run = [100, 101, 102].map(|psn| send(MS, psn));
    let again = |from: u32| (from..103).map(|psn| send(2 * MS, psn)).collect::<Vec<_>>();
    let nak = answer(MS + 50_000, 100, NAK);
    let cases = [
        (vec![nak], again(100), vec![]),
        // The first of the repetition was lost before the port.
        (vec![nak], again(101), vec![]),
        (vec![nak, nak], [again(100), again(100)].concat(), vec![]),
        (vec![nak], [again(100), again(100)].concat(), vec![(10, "retry-early")]),
        (vec![answer(MS + 50_000, 102, NAK)], again(101), vec![(7, "retry-early")]),
        (vec![], again(100), vec![(6, "retry-early")]),
    ];
    for (naks, again, expected) in cases {
        let end = answer(3 * MS, 102, ACK);
        let shots = [opened(&run), naks, again, vec![end]].concat();
        assert_eq!(found(&shots, Some(14)), expected);
    }
}

#[test]
fn a_loss_before_the_port_is_a_note_and_the_repetition_that_fills_it_is_none() {
    let shots = [
        send(MS, 100),
        send(MS, 102),
        answer(2 * MS, 101, NAK),
        send(3 * MS, 101),
        send(3 * MS, 102),
    ];
    let report = report(&opened(&shots), Some(14));
    assert_eq!((names(&report), report.verdict), (vec![(4, "psn-gap")], "pass"));
    assert_eq!(report.tally.checked["retransmissions after a NAK"], 1);
    // Two packets change places on the way.
    let swapped = [send(MS, 101), send(MS, 100), send(MS, 102), answer(2 * MS, 102, ACK)];
    assert_eq!(found(&opened(&swapped), Some(14)), [(3, "psn-gap")]);
}

/// A packet that is only out of order proves nothing about the timer.
#[test]
fn a_late_packet_is_no_time_out() {
    let shots = [
        send(MS, 100),
        send(MS, 102),
        send(60 * MS, 101),
        send(MS + T14, 100),
        send(MS + T14, 101),
        send(MS + T14, 102),
        answer(200 * MS, 102, ACK),
    ];
    assert_eq!(found(&opened(&shots), Some(14)), [(4, "psn-gap")]);
}

#[test]
fn an_rnr_nak_is_waited_for() {
    let at = |again_ns: u64, asked_ns: u64| {
        let (sent, rnr) = (MS, MS + asked_ns);
        let mut shots =
            opened(&[send(sent, 100), answer(rnr, 100, RNR), send(rnr + again_ns, 100)]);
        shots.push(answer(9 * MS, 100, ACK));
        shots
    };
    assert_eq!(found(&at(640_000, 20_000), Some(14)), []);
    assert_eq!(found(&at(638_000, 20_000), Some(14)), [(5, "rnr-early")]);
    assert_eq!(found(&at(300_000, 20_000), None), [(5, "rnr-early")]);
    // A time-out that was due may have crossed the RNR NAK; with a known timeout it was not due.
    let crossed = report(&at(15_000, 20_000), None);
    assert_eq!(names(&crossed), []);
    assert_eq!(crossed.tally.not_checked["retransmissions that may have crossed an RNR NAK"], 1);
    assert_eq!(found(&at(15_000, 20_000), Some(14)), [(5, "rnr-early")]);
    let waits = [0, 1, 2, 3, 4, 5, 30, 31].map(rnr_ns);
    let expected = [65_536, 1, 2, 3, 4, 6, 32_768, 49_152].map(|units| units * 10_000);
    assert_eq!(waits, expected);
}

#[test]
fn numbers_wrap() {
    let shots = |again| {
        let top = Psn::MAX;
        [
            vec![send(0, top - 2), answer(10_000, top - 2, ACK)],
            (0..4).map(|n| send(MS, top - 1 + n)).collect(),
            vec![answer(2 * MS, top, ACK), send(2 * MS + again, 0), answer(200 * MS, 1, ACK)],
        ]
        .concat()
    };
    assert_eq!(found(&shots(T14), Some(14)), []);
    assert_eq!(found(&shots(T14 - 2_000), Some(14)), [(8, "retry-early")]);
}

/// Two queue pairs a way, and both ways; each NAK excuses only its own requester.
#[test]
fn queue_pairs_and_directions_are_told_apart() {
    let pair = |shot: Shot, n: u32| Shot { queue_pair: shot.queue_pair + n, ..shot };
    let turned = |shot: Shot, turn: bool| Shot { back: shot.back != turn, ..shot };
    let flows = [(0, false), (1, false), (0, true), (1, true)];
    for acknowledged in 0..4 {
        let mut shots = Vec::new();
        let step = |shots: &mut Vec<Shot>, shot: &dyn Fn(u32) -> Shot| {
            for (n, (queue_pair, turn)) in (0u32..).zip(flows) {
                shots.push(turned(pair(shot(1000 * n), queue_pair), turn));
            }
        };
        step(&mut shots, &|psn| send(0, psn));
        step(&mut shots, &|psn| answer(10_000, psn, ACK));
        step(&mut shots, &|psn| send(MS, psn + 1));
        step(&mut shots, &|psn| {
            let is_positive = psn == 1000 * acknowledged;
            answer(2 * MS, psn + 1, if is_positive { ACK } else { NAK })
        });
        step(&mut shots, &|psn| send(3 * MS, psn + 1));
        assert_eq!(found(&shots, Some(14)), [(17 + u64::from(acknowledged), "retry-early")]);
    }
}

/// Queue pairs in lockstep from the same number: an answer may belong to each, so nothing is concluded.
#[test]
fn an_answer_that_may_belong_to_several_proves_nothing() {
    let other = |shot: Shot| Shot { queue_pair: shot.queue_pair + 1, ..shot };
    let shots = [
        send(0, 0),
        other(send(0, 0)),
        other(answer(MS, 0, NAK)),
        other(send(2 * MS, 0)),
        send(3 * MS, 0),
    ];
    let report = report(&shots, Some(14));
    assert_eq!(names(&report), []);
}

#[test]
fn what_the_file_does_not_show_is_not_judged() {
    let early = [send(MS, 100), send(2 * MS, 100)];
    let count = |report: Report, why: &str| {
        assert_eq!(names(&report), []);
        let reasons = &report.tally.not_checked;
        assert!(reasons.keys().any(|reason| reason.contains(why)), "{why}: {reasons:?}");
    };
    assert_eq!(found(&opened(&early), Some(14)), [(4, "retry-early")]);
    count(report(&early, Some(14)), "does not hold");
    let back = [send(3 * MS, 100), send(2 * MS, 101), send(2 * MS + 1, 100)];
    count(report(&opened(&back), Some(14)), "run back");
    // Each direction is in order, and the file holds them one after the other.
    let mixed = [answer(MS + 10, 99, ACK), send(MS, 100), send(2 * MS, 100)];
    assert_eq!(found(&opened(&mixed), Some(14)), [(5, "retry-early")]);
    let unsent = [send(MS, 100), answer(MS, 105, ACK), send(2 * MS, 100)];
    count(report(&opened(&unsent), Some(14)), "cannot be attributed");
    let cut = |snaplen| verify(&pcap(&opened(&early), snaplen)[..], "", &settings(Some(14)), 9);
    // Ethernet, IPv4, UDP and BTH have 54 octets; the syndrome is behind them.
    assert_eq!(names(&cut(60).unwrap()), [(4, "retry-early")]);
    count(cut(54).unwrap(), "cannot be attributed");
    let before = [send(MS, 50), send(MS, 51)];
    count(report(&opened(&before), Some(14)), "before the file");
}

#[test]
fn a_copy_by_the_network_is_a_note() {
    let first = Shot { identification: 77, ..send(MS, 100) };
    let copy = Shot { at_ns: MS + 3_000, ..first };
    let shots = [first, copy, send(MS + 4_000, 101), answer(2 * MS, 101, ACK)];
    let copied = report(&opened(&shots), Some(14));
    assert_eq!((names(&copied), copied.verdict), (vec![(4, "psn-copy")], "pass"));
    // The sender numbers its packets: the same packet under another number is a retransmission.
    let again = Shot { identification: 78, ..copy };
    let shots = [first, again, send(MS + 4_000, 101), answer(2 * MS, 101, ACK)];
    assert_eq!(found(&opened(&shots), Some(14)), [(4, "retry-early")]);
}

#[test]
fn an_unreliable_connection_repeats_nothing_and_may_lose() {
    let uc = |psn, identification| Shot {
        opcode: Opcode::UC_SEND_ONLY,
        identification,
        ..send(MS, psn)
    };
    assert_eq!(found(&[uc(1, 1), uc(2, 2), uc(5, 3)], None), [(3, "psn-gap")]);
    assert_eq!(found(&[uc(1, 1), uc(2, 2), uc(2, 2), uc(3, 3)], None), [(3, "psn-copy")]);
    let again = report(&[uc(1, 1), uc(2, 2), uc(2, 3), uc(3, 4)], None);
    assert_eq!((names(&again), again.verdict), (vec![(3, "psn-repeat")], "fail"));
}

#[test]
fn a_read_is_asked_for_again_from_any_of_its_packets() {
    let read = |at, psn, dma_length| {
        let opcode = Opcode::RC_READ_REQUEST;
        Shot { opcode, dma_length, payload: 0, ..send(at, psn) }
    };
    let part = |at, psn, opcode, payload| Shot { opcode, payload, ..answer(at, psn, ACK) };
    let (first, middle, last) = (
        Opcode::RC_READ_RESPONSE_FIRST,
        Opcode::RC_READ_RESPONSE_MIDDLE,
        Opcode::RC_READ_RESPONSE_LAST,
    );
    let shots = [
        read(MS, 100, 4096),
        part(MS + 1, 100, first, 1024),
        part(MS + 2, 101, middle, 1024),
        // The rest is asked for again, and the response begins with First where it was to go on with Middle.
        read(MS + 3, 102, 2048),
        part(MS + 4, 102, first, 1024),
        part(MS + 5, 103, last, 1024),
        // All of it again.
        read(MS + 6, 100, 4096),
        part(MS + 7, 100, first, 1024),
        part(MS + 8, 101, middle, 1024),
        part(MS + 9, 102, middle, 1024),
        part(MS + 10, 103, last, 1024),
        send(MS + 20, 104),
        answer(MS + 30, 104, ACK),
    ];
    let report = report(&opened(&shots), Some(14));
    assert_eq!(report.findings, []);
    assert_eq!(report.tally.noted["READ and atomic requests again"], 1);
}

#[test]
fn a_far_number_begins_a_new_connection() {
    let far = [send(MS, 9_000_000), answer(MS, 9_000_000, ACK), send(2 * MS, 9_000_001)];
    assert_eq!(found(&opened(&far), Some(14)), []);
    let early = [far.to_vec(), vec![send(3 * MS, 9_000_001)]].concat();
    assert_eq!(found(&opened(&early), Some(14)), [(6, "retry-early")]);
}

#[test]
fn coalesced_and_repeated_acknowledgements_are_legal() {
    let run = (100..164).map(|psn| Shot { asks: psn == 163, ..send(MS, psn) });
    let shots = [run.collect(), vec![answer(2 * MS, 131, ACK), answer(3 * MS, 163, ACK)]].concat();
    let twice = [shots.clone(), vec![answer(4 * MS, 163, ACK), send(5 * MS, 164)]].concat();
    assert_eq!(found(&opened(&shots), Some(14)), []);
    assert_eq!(found(&opened(&twice), Some(14)), []);
}

#[test]
fn a_connection_request_states_the_timeout_of_its_recipient() {
    let mut request = Shot { opcode: Opcode::UD_SEND_ONLY, ..send(0, 0) };
    (request.back, request.queue_pair, request.payload) = (true, 1, 256);
    let shots = [request, send(MS, 99), answer(MS, 99, ACK), send(2 * MS, 100), send(30 * MS, 100)];
    let mut file = pcap(&shots, 65_535);
    assert_eq!(names(&verify(&file[..], "", &settings(None), 9).unwrap()), []);
    // The MAD is 62 octets into the frame, which is behind two headers of the file.
    let mad = 24 + 16 + 62;
    file[mad..mad + 4].copy_from_slice(&[1, 7, 2, 3]);
    file[mad + 16..mad + 18].copy_from_slice(&[0, 0x10]);
    file[mad + 56..mad + 59].copy_from_slice(&[0, 0, 7]);
    file[mad + 119] = 14 << 3;
    let end = 24 + 16 + 62 + 256;
    let frame = proto::wire::roce::Layout::find(&file[40..end + 4]).unwrap().unwrap();
    let icrc = proto::wire::roce::checks::icrc(&file[40..end + 4], &frame);
    file[end..end + 4].copy_from_slice(&icrc.to_le_bytes());
    let report = verify(&file[..], "", &settings(None), 9).unwrap();
    assert_eq!(names(&report), [(5, "retry-early")]);
    assert_eq!(report.findings[0].expected, "at least 67108864 ns (timeout 14 by frame 1)");
}

#[test]
fn other_formats_hold_the_same() {
    let shots = opened(&[send(MS, 100), send(MS + T14 - 2_000, 100), answer(200 * MS, 100, ACK)]);
    let mut file = Vec::new();
    pcapng::section(&mut file, "a test");
    let (link_type, snaplen, speed) = (LinkType::Ethernet, 0, 1_000_000_000);
    let interface = pcapng::Interface { link_type, snaplen, name: "s0:1", description: "", speed };
    pcapng::interface(&mut file, &interface);
    for (number, shot) in (1..).zip(&shots) {
        let octets = &shot.octets(number)[..];
        let direction =
            if shot.back { proto::events::Direction::Tx } else { proto::events::Direction::Rx };
        let packet = pcapng::Packet {
            interface: 0,
            link_type,
            at_ns: shot.at_ns,
            octets,
            wire_size: octets.len(),
            direction: Some(direction),
            dropped_before: 0,
        };
        pcapng::packet(&mut file, &packet);
    }
    let report = verify(&file[..], "", &settings(Some(14)), 9).unwrap();
    assert_eq!(names(&report), [(4, "retry-early")]);
    assert_eq!(report.findings[0].direction, Some(proto::events::Direction::Rx));
}
