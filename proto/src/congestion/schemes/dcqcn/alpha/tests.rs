//! Decay, rise, the two timers, and how far fixed point is off.

use super::super::tests::{settings, us};
use super::*;
use crate::random::Random;

fn real(alpha: &Alpha) -> f64 {
    alpha.get() as f64 / ONE as f64
}

fn started(text: &str) -> Alpha {
    let mut alpha = Alpha::new(&settings(text, 40));
    alpha.start(us(0));
    alpha.on_cnp(us(0));
    alpha
}

/// ROCE-10, and the vector of docs/spec/algorithms.md 10.6.
#[test]
fn each_quiet_interval_keeps_one_minus_g_of_it() {
    let mut alpha = started("");
    alpha.advance(us(54));
    assert_eq!(alpha.get(), ONE);
    for k in 1..=10 {
        alpha.advance(us(55 * k));
        let exact = (255.0f64 / 256.0).powi(k as i32);
        assert!((real(&alpha) - exact).abs() < 2f64.powi(-41), "{k}");
    }
    assert_eq!(format!("{:.4}", real(&alpha)), "0.9616");
}

#[test]
fn asked_once_it_is_what_it_is_when_asked_at_each_tick() {
    let (mut often, mut once) = (started(""), started(""));
    for k in 0..=3_000 {
        often.advance(us(55 * k));
    }
    once.advance(us(55 * 3_000));
    assert_eq!(once.get(), often.get());
}

#[test]
fn a_second_of_quiet_leaves_next_to_nothing_and_takes_no_time() {
    let mut alpha = started("alpha_interval = \"1 ps\"");
    alpha.advance(us(1_000_000));
    assert!(real(&alpha) < 1e-9);
    assert!(alpha.tick > us(1_000_000) && alpha.tick <= us(1_000_000) + Duration::from_ps(1));
}

#[test]
fn a_notification_puts_the_next_decay_off() {
    let mut alpha = started("");
    alpha.advance(us(110));
    let before = alpha.get();
    alpha.on_cnp(us(110));
    let raised = before - before / 256 + ONE / 256;
    assert!(alpha.get().abs_diff(raised) <= 1);
    alpha.advance(us(164));
    assert!(alpha.get().abs_diff(raised) <= 1);
    alpha.advance(us(165));
    assert!(alpha.get() < raised);
}

#[test]
fn a_free_timer_counts_all_notifications_between_two_ticks_as_one() {
    let mut alpha = started("profile = \"hpcc\"");
    alpha.seen = false;
    alpha.advance(us(2));
    let fallen = alpha.get();
    for _ in 0..5 {
        alpha.on_cnp(us(2));
    }
    assert_eq!(alpha.get(), fallen, "not before the timer rings");
    alpha.advance(us(3));
    assert!(alpha.get().abs_diff(fallen - fallen / 256 + ONE / 256) <= 1);
}

#[test]
fn ten_places_are_what_an_adapter_keeps() {
    let mut alpha = started("profile = \"cx\"");
    alpha.seen = false;
    let unit = ONE / 1_024;
    let mut expected = 1_024;
    for k in 1..=500 {
        expected = expected * 1_019 / 1_024;
        alpha.advance(us(k));
        assert_eq!(alpha.get(), expected * unit, "after {k}");
    }
    assert_eq!(expected, 0, "truncation brings it down for good");
}

/// The bound that the module claims: 2^-49 / g.
#[test]
fn fixed_point_is_never_further_off_than_its_bound() {
    for (g, inverse, bound) in [("0.00390625", 256, 41), ("0.0625", 16, 45)] {
        let mut random = Random::stream(1, "alpha", "steps");
        let mut alpha = started(&format!("g = {g}"));
        // The exact value in units of 2^-112: what this is rounded by itself does not count.
        let one = 1u128 << 112;
        let mut exact = one;
        for _ in 0..20_000 {
            let rises = random.chance(1, 3);
            alpha.step(rises);
            exact = exact - exact / inverse + if rises { one / inverse } else { 0 };
            let off = (u128::from(alpha.get()) << 64).abs_diff(exact);
            assert!(off <= 1 << (112 - bound), "{off}");
        }
    }
}
