//! The agents of two NICs on a cable: every verb, without and with losses.

use crate::config::{HostConfig, NicConfig, RoceVersion};
use crate::nic::tests::cable::{Impairment, Pair, Seen, config, on_ethernet};
use proto::counters::DeviceReading;
use proto::device::{Control, Instrumented};
use proto::ids::Ecn;
use proto::units::Duration;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use testbed::verbs::stream::{Plan, VERBS, Verb, memory_for};
use testbed::verbs::{AnyClient, End, Fault, Terms, connect, datagrams, stream};
use verbs::attributes::{QpAttributes, Service, State};
use verbs::client::{Client, Transport};
use verbs::line::NumberedAnswer;
use verbs::pattern::{Pattern, Stream};
use verbs::work::{Operation, Places, ReceiveWork, SendWork, Status};

/// Fabric time that passes with each call.
const CALL: Duration = Duration::from_us(300);

/// The agent of one NIC.
struct Line {
    pair: Rc<RefCell<Pair>>,
    nic: usize,
}

impl Transport for Line {
    fn exchange(&mut self, _: u64, line: &[u8]) -> io::Result<NumberedAnswer> {
        let mut pair = self.pair.borrow_mut();
        let (now, text) = (pair.now, std::str::from_utf8(line).expect("JSON is UTF-8"));
        let answer = pair.nics[self.nic].answer(text, now).expect("the NIC has an agent");
        let until = now + CALL;
        pair.advance(until);
        Ok(serde_json::from_str(&answer)?)
    }
}

fn pair(impair: impl FnMut(&Seen) -> Impairment + 'static) -> Rc<RefCell<Pair>> {
    let config = NicConfig { host: Some(HostConfig::default()), ..config(1) };
    let pair = Pair::alike(on_ethernet(config, RoceVersion::V2Ipv4));
    Rc::new(RefCell::new(pair.with_impairment(impair)))
}

fn client(pair: &Rc<RefCell<Pair>>, nic: usize) -> AnyClient {
    let line: Box<dyn Transport> = Box::new(Line { pair: Rc::clone(pair), nic });
    Client::greet(line, 1).expect("an agent").0
}

fn ends(pair: &Rc<RefCell<Pair>>, service: (Service, bool), octets: u64) -> [End; 2] {
    [0, 1].map(|nic| {
        End::open(&format!("nic {nic}"), client(pair, nic), service, octets).expect("an end")
    })
}

/// Every ninth frame of the queue pairs is lost, comes twice or late.
fn rough() -> impl FnMut(&Seen) -> Impairment {
    let mut count = 0u64;
    move |_| {
        count += 1;
        match count % 27 {
            5 => Impairment::Lose,
            14 => Impairment::Duplicate,
            23 => Impairment::Late,
            _ => Impairment::Pass,
        }
    }
}

fn stream_all(pair: &Rc<RefCell<Pair>>, terms: &Terms, messages: u64, over_ipv4: bool) {
    let length = 3000;
    let mut ends = ends(pair, (Service::Rc, over_ipv4), memory_for(length));
    let [a, b] = &mut ends;
    connect(a, b, terms).expect("both agree");
    for verb in VERBS {
        let atomic = matches!(verb, Verb::CompareSwap | Verb::FetchAdd);
        let length = if atomic { 8 } else { length };
        let plan = Plan { verb, messages, length, first: 0 };
        stream::run(&plan, a, b).unwrap_or_else(|Fault(why)| panic!("{verb:?}: {why}"));
    }
}

#[test]
fn each_verb_passes_over_both_versions_of_ip() {
    for over_ipv4 in [true, false] {
        stream_all(&pair(|_| Impairment::Pass), &Terms::default(), 512, over_ipv4);
    }
}

#[test]
fn each_verb_passes_with_frames_lost_repeated_and_late() {
    // A timeout of 262 µs, and 131 µs.
    for (path_mtu, timeout, reads) in [(3, 6, 4), (1, 5, 1)] {
        let terms = Terms { path_mtu, timeout, reads, ..Terms::default() };
        stream_all(&pair(rough()), &terms, 256, true);
    }
}

#[test]
fn datagrams_arrive_unaltered_or_not_at_all() {
    let counts = Rc::new(RefCell::new((0u64, 0u64)));
    let (seen, mut rough) = (Rc::clone(&counts), rough());
    let pair = pair(move |frame| {
        // ARP, too, may be lost.
        if frame.octets[12..14] != [8, 0] {
            return Impairment::Pass;
        }
        let impairment = rough(frame);
        let mut counts = seen.borrow_mut();
        counts.0 += u64::from(impairment == Impairment::Lose);
        counts.1 += u64::from(impairment == Impairment::Duplicate);
        impairment
    });
    let mut ends = ends(&pair, (Service::Ud, true), datagrams::memory_for(1000));
    let [a, b] = &mut ends;
    datagrams::open([&mut *a, &mut *b]).expect("both agree");
    let arrived = datagrams::run(a, b, 1280, 1000).unwrap_or_else(|Fault(why)| panic!("{why}"));
    let (lost, duplicated) = *counts.borrow();
    assert!(lost > 0 && duplicated > 0);
    assert_eq!(arrived, 1280 - lost + duplicated);
    let mut reading = DeviceReading::default();
    let now = pair.borrow().now;
    pair.borrow_mut().nics[1].read(now, &mut reading);
    let counted = |(name, count): &&(String, u64)| name == "host_messages" && *count == arrived;
    let named = &reading.ports[0].named;
    assert!(named.iter().any(|named| counted(&named)), "{named:?}");
}

#[test]
fn a_message_that_is_too_long_fails_both_ends_and_flushes_the_rest() {
    let pair = pair(|_| Impairment::Pass);
    let mut ends = ends(&pair, (Service::Rc, true), 8192);
    let [a, b] = &mut ends;
    connect(a, b, &Terms::default()).expect("both agree");
    let places =
        |end: &End, length| Places { memory: end.memory.handle, offset: 0, length, stride: 0 };
    let room = places(b, 100);
    b.client.post_receive(b.qp, ReceiveWork { id: 7, places: room }, 2).expect("room");
    let work = SendWork::new(1, Operation::Send, places(a, 101));
    a.client.post_send(a.qp, work, 2).expect("room");
    let statuses = |end: &mut End, cq| {
        let runs = end.client.poll(cq, 10, 0).expect("completions");
        runs.iter().map(|run| (run.first.id, run.first.status, run.count)).collect::<Vec<_>>()
    };
    let (sends, receives) = (a.sends, b.receives);
    assert_eq!(statuses(a, sends), [(1, Status::RemoteInvalidRequest, 1), (2, Status::Flushed, 1)]);
    assert_eq!(statuses(b, receives), [(7, Status::LocalLength, 1), (8, Status::Flushed, 1)]);
    assert_eq!(a.client.query_qp(a.qp).expect("attributes").state, Some(State::Error));
    a.client.post_send(a.qp, work, 1).expect("it is flushed at once");
    assert_eq!(statuses(a, sends), [(1, Status::Flushed, 1)]);
    a.client.modify_qp(a.qp, QpAttributes::to(State::Reset)).expect("from any state");
}

#[test]
fn a_sender_without_an_answer_gives_up_and_a_receiver_that_is_not_ready_is_waited_for() {
    let lost = Rc::new(RefCell::new(false));
    let is_lost = Rc::clone(&lost);
    let cut = move |_: &Seen| if *is_lost.borrow() { Impairment::Lose } else { Impairment::Pass };
    let pair = pair(cut);
    let mut ends = ends(&pair, (Service::Rc, true), 8192);
    let [a, b] = &mut ends;
    connect(a, b, &Terms { timeout: 3, ..Terms::default() }).expect("both agree");
    let places = |end: &End| Places { memory: end.memory.handle, offset: 0, length: 64, stride: 0 };
    let work = SendWork::new(1, Operation::Send, places(a));
    a.client.post_send(a.qp, work, 1).expect("room");
    assert_eq!(a.client.poll(a.sends, 1, 0).expect("none"), [], "RNR");
    let pattern = Pattern::of(Stream::Constant(0));
    let room = places(b);
    b.client.post_receive(b.qp, ReceiveWork { id: 5, places: room }, 1).expect("room");
    assert_eq!(b.poll(b.receives, 1, 20).expect("it arrives").len(), 1);
    assert_eq!(b.client.check(room, 1, pattern).expect("memory"), None);
    assert_eq!(a.poll(a.sends, 1, 20).expect("it is confirmed").len(), 1);
    *lost.borrow_mut() = true;
    a.client.post_send(a.qp, work, 1).expect("room");
    let runs = (0..20).find_map(|_| {
        let runs = a.client.poll(a.sends, 1, 0).expect("an answer");
        (!runs.is_empty()).then_some(runs)
    });
    assert_eq!(runs.expect("it gives up")[0].first.status, Status::RetriesExceeded);
}

#[test]
fn a_message_that_is_longer_than_the_window_needs_no_timeout() {
    let pair = pair(|_| Impairment::Pass);
    let length = 100_000;
    let mut ends = ends(&pair, (Service::Rc, true), u64::from(length));
    let [a, b] = &mut ends;
    // Packets of 256 octets; a timeout of 67 ms.
    connect(a, b, &Terms { path_mtu: 1, timeout: 14, ..Terms::default() }).expect("both agree");
    let places = |end: &End| Places::adjacent(end.memory.handle, 0, length);
    let (to, from) = (places(b), places(a));
    b.client.post_receive(b.qp, ReceiveWork { id: 1, places: to }, 1).expect("room");
    a.client.post_send(a.qp, SendWork::new(2, Operation::Send, from), 1).expect("room");
    assert_eq!(a.poll(a.sends, 1, 8).expect("it is confirmed").len(), 1);
    assert!(pair.borrow().now < crate::nic::tests::cable::us(20_000), "{:?}", pair.borrow().now);
}

#[test]
fn packets_have_the_traffic_class_of_their_address_vector() {
    // DSCP and ECN that are asked for, and those that leave: zero asks for the adapter's own.
    for (asked, dscp, ecn) in
        [(0, 24, Ecn::Capable0), (26 << 2 | 1, 26, Ecn::Capable1), (28 << 2, 28, Ecn::NotCapable)]
    {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let marks = Rc::clone(&seen);
        let pair = pair(move |frame| {
            let is_ipv4 = frame.octets[12..14] == [8, 0];
            marks.borrow_mut().extend(is_ipv4.then(|| frame.octets[15]));
            Impairment::Pass
        });
        let plan = Plan { verb: Verb::Read, messages: 4, length: 64, first: 0 };
        let mut connected = ends(&pair, (Service::Rc, true), memory_for(plan.length));
        let [a, b] = &mut connected;
        connect(a, b, &Terms { traffic_class: asked, ..Terms::default() }).expect("both agree");
        stream::run(&plan, a, b).unwrap_or_else(|Fault(why)| panic!("{why}"));
        let seen = std::mem::take(&mut *seen.borrow_mut());
        assert!(seen.len() >= 8, "four requests, four responses: {seen:?}");
        let all = |octet: &u8| (octet >> 2, Ecn::from_bits(*octet)) == (dscp, ecn);
        assert!(seen.iter().all(all), "{asked:02x}: {seen:02x?}");
    }
    let pair = pair(|_| Impairment::Pass);
    let [mut a, b] = ends(&pair, (Service::Ud, true), 4096);
    let other = a.address_of(&b, 46 << 2);
    let refused = a.client.create_ah(a.pd, other).expect_err("another priority");
    assert!(
        refused.to_string().contains("DSCP 46 has priority 5, and the host sends in 3"),
        "{refused}"
    );
}

#[test]
fn calls_without_sense_are_refused_by_name() {
    let pair = pair(|_| Impairment::Pass);
    let [mut a, b] = ends(&pair, (Service::Rc, true), 4096);
    let client = &mut a.client;
    let name = |result: Result<(), verbs::client::ClientError>| match result {
        Err(verbs::client::ClientError::Refused(refusal)) => refusal.name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(client.destroy(a.device)), "busy");
    assert_eq!(name(client.destroy(99)), "unknown");
    assert_eq!(name(client.modify_qp(a.qp, QpAttributes::to(State::Rts))), "EINVAL");
    assert_eq!(name(client.modify_qp(a.sends, QpAttributes::to(State::Init))), "unknown");
    let places = Places::adjacent(a.memory.handle, 4000, 100);
    assert_eq!(name(client.fill(places, 1, Pattern::of(Stream::Constant(0)))), "invalid");
    let work = SendWork::new(1, Operation::Send, places);
    assert_eq!(name(client.post_send(a.qp, work, 1)), "EINVAL", "not in RTS");
    assert_eq!(name(client.create_cq(a.device, u32::MAX).map(|_| ())), "limit");
    let huge = client.register_memory(a.pd, 1 << 40, verbs::attributes::Access::ALL);
    assert_eq!(name(huge.map(|_| ())), "limit");
    client.clear().expect("everything ends");
    assert_eq!(name(client.destroy(a.device)), "unknown");
    drop(b);
}
