//! The machine, walked state by state; rates to the digit.

use super::*;
use crate::congestion::{CnmBody, Travel};
use crate::tests::bottleneck::{CPID, FRAME, LINE, params, place};
use crate::units::BitRate;
use proptest::prelude::*;

const MBPS: u64 = 1_000_000;
const BYTE_RESET: Bytes = Bytes::new(150_000);

fn limiter(text: &str) -> RateLimiter {
    RateLimiter::new(&params(text), &place("sender"))
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n * 1_000)
}

fn tell(limiter: &mut RateLimiter, quantized_feedback: u8, at: Instant) -> Effect {
    let body = CnmBody { quantized_feedback, cpid: CPID, q_offset: 0, q_delta: 0 };
    limiter.on_notification(&Notification::Cnm(body), at)
}

/// One byte cycle.
fn cycle(limiter: &mut RateLimiter) {
    let left = Bytes::new(limiter.byte_count);
    limiter.on_transmit(left, Instant::ZERO);
}

/// docs/spec/algorithms.md 10.6, QCN: 10·65/128, then four pure averages, then one with rpgAiRate.
#[test]
fn cl_32_14_the_unit_vector_of_cut_and_recovery_holds_to_the_digit() {
    let mut limiter = limiter("");
    assert_eq!(tell(&mut limiter, 63, ms(0)), Effect::Valid);
    assert_eq!(limiter.current, 5_078_125_000);
    let expected = [7_539_062_500, 8_769_531_250, 9_384_765_625, 9_692_382_813u64];
    for (n, rate) in expected.into_iter().enumerate() {
        cycle(&mut limiter);
        assert_eq!((limiter.current, limiter.byte_stage), (rate, n as u32 + 1));
        assert_eq!((limiter.state, limiter.target), (State::FastRecovery, LINE.get()));
    }
    // In Gb/s to three places, as the vector is written.
    assert_eq!(expected.map(|rate| (rate + 500_000) / MBPS), [7_539, 8_770, 9_385, 9_692]);
    cycle(&mut limiter);
    assert_eq!((limiter.state, limiter.byte_stage), (State::ActiveIncrease, 5));
}

/// QCN-09.
#[test]
fn cl_32_14_each_feedback_takes_so_many_128ths_and_no_cut_more_than_half() {
    for feedback in 1..=63u8 {
        let mut limiter = limiter("");
        tell(&mut limiter, feedback, ms(0));
        assert_eq!(limiter.current, LINE.get() / 128 * (128 - u64::from(feedback)));
    }
    let cut = |text: &str, feedback| {
        let mut limiter = limiter(text);
        tell(&mut limiter, feedback, ms(0));
        limiter.current
    };
    assert_eq!(cut("rpg_gd = 6", 63), LINE.get() / 2);
    assert_eq!(cut("rpg_gd = -10", 1), LINE.get() / 2);
    assert_eq!(cut("rpg_gd = 0\nrpg_min_dec_fac = 90", 1), LINE.get() / 10 * 9);
    assert_eq!(cut("rpg_min_rate = \"6 Gbps\"", 63), 6_000 * MBPS);
}

#[test]
fn cl_32_14_a_rate_is_never_cut_below_rpg_min_rate() {
    let mut limiter = limiter("");
    for _ in 0..100 {
        tell(&mut limiter, 63, ms(0));
    }
    assert_eq!(limiter.current, 5 * MBPS);
}

#[test]
fn cl_32_14_the_target_follows_only_after_a_byte_stage() {
    let mut limiter = limiter("");
    tell(&mut limiter, 32, ms(0));
    tell(&mut limiter, 32, ms(0));
    assert_eq!((limiter.target, limiter.current), (LINE.get(), 5_625 * MBPS));
    limiter.handle_timeout(ms(15));
    assert_eq!((limiter.time_stage, limiter.byte_stage), (1, 0));
    tell(&mut limiter, 1, ms(16));
    assert_eq!(limiter.target, LINE.get(), "a stage of the timer is none of the byte counter");
    cycle(&mut limiter);
    limiter.on_transmit(FRAME, ms(17));
    let before = limiter.current;
    tell(&mut limiter, 1, ms(17));
    assert_eq!(limiter.target, before);
    assert_eq!((limiter.byte_stage, limiter.time_stage), (0, 0));
    assert_eq!(limiter.byte_count, BYTE_RESET.get(), "the counter begins anew");
}

#[test]
fn cl_32_14_a_cut_before_the_first_stage_leaves_the_byte_counter_where_it_is() {
    let mut limiter = limiter("");
    tell(&mut limiter, 1, ms(0));
    limiter.on_transmit(FRAME, ms(0));
    tell(&mut limiter, 1, ms(0));
    assert_eq!(limiter.byte_count, 148_500);
}

/// QCN-10.
#[test]
fn cl_32_15_the_machine_passes_through_its_states_as_the_counters_say() {
    // A target that is out of reach, so that increases show.
    let mut limiter = limiter("");
    (limiter.target, limiter.current) = (2_000 * MBPS, 2_000 * MBPS);
    limiter.byte_stage = 1;
    tell(&mut limiter, 2, ms(0));
    assert_eq!(limiter.state, State::FastRecovery);
    let walk: [(bool, State, u64); 11] = [
        // By octets or by time, the state, and what the target has grown by.
        (true, State::FastRecovery, 0),
        (true, State::FastRecovery, 0),
        (true, State::FastRecovery, 0),
        (true, State::FastRecovery, 0),
        (true, State::ActiveIncrease, 5),
        (true, State::ActiveIncrease, 10),
        (false, State::ActiveIncrease, 15),
        (false, State::ActiveIncrease, 20),
        (false, State::ActiveIncrease, 25),
        (false, State::ActiveIncrease, 30),
        (false, State::HyperActiveIncrease, 80),
    ];
    for (n, (by_octets, state, grown)) in walk.into_iter().enumerate() {
        if by_octets {
            cycle(&mut limiter);
        } else {
            limiter.handle_timeout(limiter.timer);
        }
        assert_eq!((limiter.state, limiter.target), (state, (2_000 + grown) * MBPS), "step {n}");
    }
    // min(byteStage, timeStage) − (rpgThreshold − 1) times rpgHaiRate: 5 and 6, then 6 and 6.
    limiter.handle_timeout(limiter.timer);
    assert_eq!((limiter.time_stage, limiter.byte_stage), (6, 6));
    assert_eq!(limiter.target, 2_180 * MBPS);
}

#[test]
fn cl_32_15_both_periods_are_halved_in_hyper_increase_alone() {
    let mut limiter = limiter("");
    limiter.byte_stage = 1;
    (limiter.target, limiter.current) = (2_000 * MBPS, 2_000 * MBPS);
    tell(&mut limiter, 2, ms(0));
    for _ in 0..6 {
        cycle(&mut limiter);
        assert_eq!(limiter.byte_count, 150_000);
    }
    for n in 1..=4 {
        assert_eq!(limiter.timer, ms(15 * n));
        limiter.handle_timeout(ms(15 * n));
    }
    limiter.handle_timeout(ms(75));
    assert_eq!((limiter.state, limiter.timer), (State::HyperActiveIncrease, ms(75) + half(15)));
    cycle(&mut limiter);
    assert_eq!(limiter.byte_count, 75_000);
}

fn half(ms: u64) -> Duration {
    Duration::from_us(ms * 500)
}

#[test]
fn halve_in_active_halves_a_counter_past_its_own_threshold() {
    let mut limiter = limiter("halve_in_active = \"on\"");
    limiter.byte_stage = 1;
    (limiter.target, limiter.current) = (2_000 * MBPS, 2_000 * MBPS);
    tell(&mut limiter, 2, ms(0));
    let counts = [1, 2, 3, 4, 5].map(|_| {
        cycle(&mut limiter);
        limiter.byte_count
    });
    assert_eq!(counts, [150_000, 150_000, 150_000, 150_000, 75_000]);
    limiter.handle_timeout(ms(15));
    assert_eq!(limiter.timer, ms(30), "the timer is not past its own");
}

#[test]
fn cl_32_14_a_target_ten_times_the_rate_falls_to_an_eighth_at_the_first_stage() {
    let mut limiter = limiter("");
    for _ in 0..4 {
        tell(&mut limiter, 63, ms(0));
    }
    let cut = limiter.current;
    assert!(cut * 10 < LINE.get());
    cycle(&mut limiter);
    assert_eq!(limiter.target, LINE.get() / 8);
    assert_eq!(limiter.current, (cut + LINE.get() / 8).div_ceil(2));
    cycle(&mut limiter);
    assert_eq!(limiter.target, LINE.get() / 8, "and then no more");
}

#[test]
fn cl_32_14_the_limiter_is_released_at_rpg_max_rate_and_gone_when_nothing_waits() {
    let mut limiter = limiter("rpg_max_rate = \"9 Gbps\"");
    assert_eq!((limiter.current, limiter.is_released()), (9_000 * MBPS, true));
    tell(&mut limiter, 1, ms(0));
    limiter.on_queue_empty(ms(0));
    assert_eq!(limiter.state, State::FastRecovery, "it still holds back");
    let mut cycles = 0;
    while !limiter.is_released() {
        cycle(&mut limiter);
        cycles += 1;
        assert!(cycles < 100 && limiter.current <= 9_000 * MBPS);
    }
    assert_eq!(limiter.poll_timeout(), None);
    assert!(limiter.byte_stage > 0);
    limiter.on_queue_empty(ms(1));
    assert_eq!((limiter.state, limiter.byte_stage, limiter.time_stage), (State::Disabled, 0, 0));
    assert_eq!(limiter.byte_count, BYTE_RESET.get());
}

/// docs/spec/algorithms.md 5.3 reckons 0.12 s from half a Gb/s: 75 ms are five stages of the timer, the rest is
/// hyper increase. There the standard halves both periods, which that sum leaves out: 20 ms, not 45.
#[test]
fn recovery_from_a_deep_cut_takes_the_stages_of_the_timer_and_a_few_halved_ones() {
    let mut limiter = limiter("");
    limiter.byte_stage = 1;
    (limiter.target, limiter.current) = (500 * MBPS, 500 * MBPS);
    tell(&mut limiter, 1, ms(0));
    limiter.target = limiter.current;
    let mut now = ms(0);
    while !limiter.is_released() {
        assert!(now < ms(1_000));
        let frame = FRAME.time_at(BitRate::new(limiter.current).expect("above zero"));
        now = now + frame;
        limiter.handle_timeout(now);
        limiter.on_transmit(FRAME, now);
    }
    assert!((ms(75 + 15)..ms(75 + 23)).contains(&now), "{now}");
}

#[test]
fn nonsense_changes_nothing_and_is_refused() {
    let mut limiter = limiter("");
    tell(&mut limiter, 9, ms(0));
    let held = limiter.current;
    for feedback in [0, 64, 255] {
        assert_eq!(tell(&mut limiter, feedback, ms(1)), Effect::Refused);
    }
    let becn = Notification::becn(Travel::Cnp);
    assert_eq!(limiter.on_notification(&becn, ms(1)), Effect::Refused);
    assert_eq!((limiter.current, limiter.timer), (held, ms(15)));
}

proptest! {
    /// Whatever happens in whichever order: no rate outside its range, no timer in the past.
    #[test]
    fn rates_stay_in_range(steps in prop::collection::vec((0u8..4, 1u8..=63, 0u64..40_000), 1..300)) {
        let mut limiter = limiter("");
        let mut now = ms(0);
        for (what, feedback, us) in steps {
            now = now + Duration::from_us(us);
            limiter.handle_timeout(now);
            let before = limiter.current;
            match what {
                0 => {
                    tell(&mut limiter, feedback, now);
                    prop_assert!(limiter.current < before || before == 5 * MBPS);
                }
                1 => limiter.on_queue_empty(now),
                _ => {
                    limiter.on_transmit(Bytes::new(us), now);
                    prop_assert!(limiter.current >= before.min(limiter.target));
                }
            }
            prop_assert!((5 * MBPS..=LINE.get()).contains(&limiter.current));
            prop_assert!(limiter.target <= LINE.get());
            prop_assert!(limiter.poll_timeout().is_none_or(|due| due > now));
        }
    }
}
