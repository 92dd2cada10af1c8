//! The law of rates to the digit, and the life of a limiter.

use super::*;
use crate::congestion::{BcnFlags, Travel};
use crate::tests::bottleneck::{CPID, FRAME, LINE, params, place};
use proptest::prelude::*;

const GBPS: u64 = 1_000_000_000;

fn limiter(text: &str) -> Limiter {
    Limiter::new(&params(text), place("sender"))
}

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

/// Feedback of so many units of 64 octets.
fn bcn(q_offset: i16) -> BcnBody {
    BcnBody { cpid: CPID, q_offset, q_delta: 0, flags: BcnFlags::default(), timestamp: 0 }
}

fn tell(limiter: &mut Limiter, body: BcnBody, at: Instant) -> Effect {
    limiter.on_notification(&Notification::Bcn(body), at)
}

/// docs/spec/algorithms.md 10.6, BCN base gains.
#[test]
fn the_unit_vectors_of_the_base_gains_hold_to_the_digit() {
    let law = limiter("").law;
    assert_eq!(law.apply(10 * GBPS, -150_000), 7_500_000_000);
    assert_eq!(law.apply(10 * GBPS, -750_000), 10_000_000, "Rmin");
    assert_eq!(law.apply(5 * GBPS, 150_000), 6 * GBPS);
    assert_eq!(law.apply(10 * GBPS, 150_000), 10 * GBPS, "and never more than the line");
}

/// docs/spec/algorithms.md 4.3: Gd0·Fb_max is one half for both memories of the benchmark.
#[test]
fn gd0_halves_at_the_largest_feedback() {
    for (gd, fb_max) in [("1/1500000", 750_000), ("1/375000", 187_500)] {
        let law = limiter(&format!("gd = \"{gd}\"")).law;
        assert_eq!(law.apply(10 * GBPS, -fb_max), 5 * GBPS);
    }
    // As the slides print it, with five digits.
    let law = limiter("gd = 6.6667e-7").law;
    assert_eq!(law.apply(10 * GBPS, -750_000), 4_999_975_000);
}

#[test]
fn the_first_bad_news_makes_a_limiter_that_remembers_who_called_for_it() {
    let mut limiter = limiter("");
    assert!(limiter.is_released() && limiter.tag(us(3)).is_none());
    assert_eq!(tell(&mut limiter, bcn(-1_000), us(3)), Effect::Valid);
    // 1 − 64000/600000 of 10 Gb/s.
    assert_eq!(limiter.current, 8_933_333_333);
    let tag = Tag::RateRegulated { cpid: CPID, timestamp: 4_000 };
    assert_eq!(limiter.tag(us(4)), Some(tag));
    assert_eq!(limiter.poll_timeout(), None, "it waits for news");
}

#[test]
fn good_news_of_another_point_is_ignored_and_bad_news_of_another_takes_over() {
    let other = CongestionPointId::new(9).expect("not zero");
    let mut limiter = limiter("");
    assert_eq!(tell(&mut limiter, bcn(1_000), us(0)), Effect::Ignored, "there is no limiter");
    tell(&mut limiter, bcn(-1_000), us(0));
    let held = limiter.current;
    let foreign = BcnBody { cpid: other, ..bcn(1_000) };
    assert_eq!((tell(&mut limiter, foreign, us(1)), limiter.current), (Effect::Ignored, held));
    assert_eq!(tell(&mut limiter, bcn(100), us(1)), Effect::Valid);
    // 6400/1500·10 Mb/s.
    assert_eq!(limiter.current, held + 42_666_667);
    tell(&mut limiter, BcnBody { cpid: other, ..bcn(-1) }, us(2));
    assert_eq!(tell(&mut limiter, bcn(100), us(3)), Effect::Ignored);
}

#[test]
fn a_limiter_is_gone_when_it_has_the_line_and_nothing_waits() {
    let mut limiter = limiter("");
    tell(&mut limiter, bcn(-10), us(0));
    limiter.on_queue_empty(us(1));
    assert!(limiter.tag(us(1)).is_some() && !limiter.is_released(), "it has not the line yet");
    tell(&mut limiter, bcn(2_000), us(2));
    assert!(limiter.is_released() && limiter.tag(us(2)).is_some(), "its queue still is tagged");
    limiter.on_queue_empty(us(3));
    assert_eq!(limiter.tag(us(3)), None);
    assert_eq!(tell(&mut limiter, bcn(10), us(4)), Effect::Ignored, "its CPID is cleared");
}

#[test]
fn nonsense_changes_nothing_and_is_refused() {
    let mut limiter = limiter("");
    tell(&mut limiter, bcn(-1_000), us(0));
    let held = limiter.current;
    let stop = BcnFlags { stop: true, ..BcnFlags::default() };
    // Qoff − W·Qdelta = 4 − 2·2.
    let balanced = BcnBody { q_offset: 4, q_delta: 2, ..bcn(0) };
    for body in [bcn(0), balanced, BcnBody { flags: stop, ..bcn(-5) }] {
        assert_eq!((tell(&mut limiter, body, us(1)), limiter.current), (Effect::Refused, held));
    }
    let becn = Notification::becn(Travel::Cnp);
    assert_eq!((limiter.on_notification(&becn, us(1)), limiter.current), (Effect::Refused, held));
}

#[test]
fn with_an_rtt_news_of_frames_from_before_the_last_decrease_is_not_heeded() {
    let mut limiter = limiter("rtt = \"12 us\"");
    let of = |sent: u32| BcnBody { timestamp: sent * 1_000, ..bcn(-10) };
    assert_eq!(tell(&mut limiter, of(90), us(100)), Effect::Valid);
    assert_eq!(tell(&mut limiter, of(87), us(101)), Effect::Ignored);
    assert_eq!(tell(&mut limiter, of(88), us(102)), Effect::Valid);
    assert_eq!(tell(&mut limiter, BcnBody { timestamp: 0, ..of(0) }, us(103)), Effect::Valid);
    // 2^32 ns are 4.29 s: timestamps begin anew, and age is still told.
    let wrapped = us(4_294_968);
    assert_eq!(tell(&mut limiter, BcnBody { timestamp: 100, ..of(0) }, wrapped), Effect::Valid);
    let old = BcnBody { timestamp: u32::MAX - 20_000, ..of(0) };
    assert_eq!(tell(&mut limiter, old, wrapped), Effect::Ignored);
}

#[test]
fn bcn_zero_stops_for_a_random_time_and_restarts_at_a_share_of_the_line() {
    let flags = BcnFlags { mild: true, severe: true, stop: true };
    let mut pauses = Vec::new();
    let mut limiter = limiter("stop_max = \"10 us\"");
    for n in 0..100 {
        let at = us(n * 100);
        assert_eq!(tell(&mut limiter, BcnBody { flags, ..bcn(0) }, at), Effect::Valid);
        assert_eq!(limiter.may_send_at(None), Permission::Stopped);
        assert_eq!(tell(&mut limiter, bcn(-10), at), Effect::Ignored);
        let due = limiter.poll_timeout().expect("it will go on");
        pauses.push(due.since(at).as_ps());
        limiter.handle_timeout(due);
        assert_eq!((limiter.current, limiter.poll_timeout()), (GBPS, None));
        assert!(limiter.tag(due).is_some());
    }
    let mean = pauses.iter().sum::<u64>() / 100;
    assert!(pauses.iter().all(|pause| (1..=10_000_000).contains(pause)));
    assert!((4_000_000..6_000_000).contains(&mean), "{mean} ps");
}

#[test]
fn self_increase_ends_silence_step_by_step_and_news_begins_it_anew() {
    let mut limiter = limiter("self_increase = \"5 Mbps\"\nself_increase_every = \"1 ms\"");
    tell(&mut limiter, bcn(-9_000), us(0));
    let held = limiter.current;
    assert_eq!(limiter.poll_timeout(), Some(us(1_000)));
    tell(&mut limiter, bcn(10), us(500));
    let told = limiter.current;
    assert!(told > held);
    assert_eq!(limiter.poll_timeout(), Some(us(1_500)));
    limiter.handle_timeout(us(3_600));
    assert_eq!(limiter.current, told + 3 * 5_000_000, "at 1.5, 2.5 and 3.5 ms");
    limiter.handle_timeout(us(10_000_000));
    assert_eq!((limiter.is_released(), limiter.poll_timeout()), (true, None));
}

#[test]
fn the_gap_makes_the_rate() {
    let mut limiter = limiter("");
    limiter.current = LINE.get() / 10;
    limiter.on_transmit(FRAME, us(7));
    let gap = FRAME.time_at(LINE) * 9;
    assert_eq!(limiter.may_send_at(Some(us(7))), Permission::At(us(7) + gap));
    assert_eq!(limiter.state().gap, gap);
}

proptest! {
    /// Whatever is told: between Rmin and the line, down for bad news and up for good.
    #[test]
    fn rates_stay_in_range_and_follow_the_sign(
        told in prop::collection::vec((any::<i16>(), any::<i16>(), any::<bool>()), 1..200),
        w in 0i64..=64,
    ) {
        let mut limiter = limiter(&format!("w = {w}"));
        for (n, (q_offset, q_delta, own)) in told.into_iter().enumerate() {
            let cpid = if own { CPID } else { CongestionPointId::new(1).expect("not zero") };
            let body = BcnBody { cpid, q_delta, ..bcn(q_offset) };
            let before = limiter.current;
            let effect = tell(&mut limiter, body, us(n as u64));
            let now = limiter.current;
            prop_assert!((10_000_000..=LINE.get()).contains(&now));
            match (effect, feedback(&body, w)) {
                (Effect::Valid, ..0) => prop_assert!(now <= before),
                (Effect::Valid, _) => prop_assert!(now >= before),
                _ => prop_assert_eq!(now, before),
            }
        }
    }
}
