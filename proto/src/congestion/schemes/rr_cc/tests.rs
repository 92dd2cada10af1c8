//! Receivers that judge and measure, senders that obey, octets that make no sense.

use super::*;
use crate::ids::{Lid, PortNumber};
use crate::params::defaults;
use crate::random::Random;
use crate::units::BitRate;

const LINE: u64 = 8_000_000_000;
const FRAME: Bytes = Bytes::new(2_000);
/// 2000 octets at 8 Gb/s.
const TAU: Duration = Duration::from_us(2);

fn place() -> Place {
    Place {
        line_rate: BitRate::gbps(8),
        full_frame: FRAME,
        buffer: Bytes::new(64 << 10),
        port: PortNumber::from_index(0),
        faces_adapter: false,
        congestion_point: None,
        random: Random::stream(1, "h0", "test"),
    }
}

fn at(taus: u64) -> Instant {
    Instant::ZERO + TAU * taus
}

fn data(fecn: bool) -> FrameHeaders {
    FrameHeaders {
        source: Lid::new(1).into(),
        destination: Lid::new(2).into(),
        queue_pair: 0x11,
        size: FRAME,
        payload: FRAME,
        fecn,
        ..FrameHeaders::default()
    }
}

/// A frame every `gap` τ, `marked` of ten of them marked, for `taus`; what was told.
fn receive(gap: u64, marked: u64, taus: u64) -> Vec<(TransportNote, Body)> {
    let mut receiver = Receiver::new(&defaults(), &place());
    let mut told = Vec::new();
    for n in 0..taus / gap {
        let now = at(n * gap);
        while let Some(due) = receiver.poll_timeout().filter(|due| *due < now) {
            told.extend(receiver.handle_timeout(due));
        }
        told.extend(receiver.on_receive(&data(n % 10 < marked), FRAME, now));
    }
    let body = |note: TransportNote| (note, Body::parse(&note.body).expect("our own octets"));
    told.into_iter().map(body).collect()
}

#[test]
fn a_flow_at_line_rate_without_marks_is_told_nothing() {
    assert_eq!(receive(1, 0, 400), []);
}

#[test]
fn a_flow_with_every_frame_marked_is_told_each_period_what_got_through() {
    let told = receive(4, 10, 400);
    assert_eq!(told.len(), 24, "one period of 16 τ after another, from the first frame on");
    for (note, body) in told {
        assert!(note.becn && note.travel == Travel::Cnp);
        assert_eq!(body.rate_kbps, LINE / 4 / 1_000);
        assert_eq!((body.frames, body.marked), (4, 4));
    }
}

#[test]
fn a_flow_with_few_marks_is_a_victim_and_is_told_so() {
    let told = receive(2, 5, 200);
    assert!(!told.is_empty());
    assert!(told.iter().all(|(note, body)| !note.becn && body.rate_kbps == LINE / 2 / 1_000));
}

#[test]
fn slow_flows_are_measured_over_the_time_that_really_passed() {
    let told = receive(40, 10, 4_000);
    for (_, body) in &told[1..] {
        assert_eq!(
            body.rate_kbps,
            LINE / 40 / 1_000,
            "a fixed period could not see less than C/16"
        );
    }
}

#[test]
fn a_flow_that_falls_idle_closes_its_period_and_then_waits_for_a_new_beginning() {
    let mut receiver = Receiver::new(&defaults(), &place());
    receiver.on_receive(&data(false), FRAME, at(0));
    receiver.on_receive(&data(true), FRAME, at(5));
    assert_eq!(receiver.poll_timeout(), Some(at(16)));
    let note = receiver.handle_timeout(at(16)).expect("the period is over");
    assert_eq!(Body::parse(&note.body).map(|body| body.closed), Some(Closed::ByTimer));
    assert_eq!(receiver.poll_timeout(), None, "nothing arrived: the period goes on");
    assert_eq!(receiver.on_receive(&data(true), FRAME, at(9_000)), None, "it was idle");
    assert_eq!(receiver.periods(), Periods { judged: 1, congested: 1 });
}

fn sender() -> Sender {
    Sender::new(&defaults(), &place())
}

fn note(becn: bool, rate_kbps: u64) -> TransportNote {
    let closed = Closed::ByArrival;
    let body = Body { rate_kbps, closed, period: TAU * 16, frames: 16, marked: 0 };
    TransportNote { travel: Travel::Cnp, becn, body: body.emit() }
}

#[test]
fn becn_brings_a_sender_to_what_got_through_and_the_third_good_news_lets_it_grow() {
    let mut sender = sender();
    sender.on_notification(&note(true, 1_000_000).into(), at(0));
    assert_eq!((sender.current, sender.target), (930_000_000, LINE));
    for _ in 0..2 {
        sender.on_notification(&note(false, 900_000).into(), at(0));
    }
    assert_eq!((sender.current, sender.target), (6_232_500_000, LINE), "half of the way, twice");
    sender.on_notification(&note(true, 5_000_000).into(), at(0));
    assert_eq!((sender.current, sender.target), (4_650_000_000, 6_232_500_000));
    for _ in 0..3 {
        sender.on_notification(&note(false, 4_000_000).into(), at(0));
    }
    assert_eq!(sender.target, 6_232_500_000 + 96_000_000, "R_AI is 1.2 % of the line");
}

#[test]
fn a_becn_never_raises_a_rate_and_the_floor_holds() {
    let mut sender = sender();
    sender.on_notification(&note(true, 1_000).into(), at(0));
    assert_eq!(sender.current, LINE / 1_000);
    sender.on_notification(&note(true, 4_000_000).into(), at(0));
    assert_eq!(sender.current, LINE / 1_000);
}

#[test]
fn good_news_alone_brings_a_sender_back_to_its_line() {
    let mut sender = sender();
    sender.on_notification(&note(true, 1_000_000).into(), at(0));
    assert!(!sender.is_released());
    for _ in 0..60 {
        sender.on_notification(&note(false, 900_000).into(), at(0));
    }
    assert!(sender.is_released());
    assert_eq!(sender.state().gap, Duration::ZERO);
}

#[test]
fn nonsense_changes_nothing_and_is_refused() {
    let mut bad = vec![note(false, LINE / 1_000 + 1), note(true, LINE / 1_000 + 1)];
    for at in 0..3 {
        let mut other = note(false, 1_000);
        other.body[at] ^= 0x40;
        bad.push(other);
    }
    let mut none = note(false, 1);
    none.body[4..8].fill(0);
    bad.push(none);
    let mut sender = sender();
    sender.on_notification(&note(true, 1_000_000).into(), at(0));
    let before = (sender.current, sender.target, sender.increases);
    for note in bad {
        assert_eq!(sender.on_notification(&note.into(), at(0)), Effect::Refused);
        assert_eq!((sender.current, sender.target, sender.increases), before);
    }
}

#[test]
fn a_plain_becn_counts_as_what_is_sent_now() {
    let mut sender = sender();
    let effect = sender.on_notification(&Notification::becn(Travel::AckOrCnp), at(0));
    assert_eq!((effect, sender.current), (Effect::Valid, LINE / 100 * 93));
}

#[test]
fn the_gap_makes_the_rate() {
    let mut sender = sender();
    sender.on_notification(&note(true, 4_000_000).into(), at(0));
    sender.current = LINE / 4;
    assert_eq!(sender.state().gap, TAU * 3);
    assert_eq!(sender.may_send_at(Some(at(7))), Permission::At(at(10)));
}
