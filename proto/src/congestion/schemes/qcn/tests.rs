//! All of QCN around one queue, and what its parameters may be.

use super::*;
use crate::tests::bottleneck::{Bottleneck, Outcome, refused};
use crate::units::Duration;

fn settle(params: &str, senders: usize, gbps: u64) -> Outcome {
    let ms = |n: u64| Duration::from_us(n * 1_000);
    Bottleneck::new(&SCHEME, params, senders, gbps).measure(ms(200), ms(100))
}

/// QCN-11: within half of the set point, and no more than a twentieth of the line lost.
#[test]
fn the_queue_settles_at_the_set_point_and_the_line_stays_full() {
    for (senders, gbps) in [(1, 5), (4, 10), (8, 10)] {
        let outcome = settle("cp_q_sp = \"150 KB\"", senders, gbps);
        let sum: f64 = outcome.shares.iter().sum();
        assert!((0.95..=1.01).contains(&sum), "{senders} into {gbps} Gb/s: {outcome:?}");
        assert!((75e3..=225e3).contains(&outcome.queue), "{senders} into {gbps} Gb/s: {outcome:?}");
    }
}

#[test]
fn the_default_set_point_keeps_a_shorter_queue() {
    let outcome = settle("", 4, 10);
    assert!((13e3..=39e3).contains(&outcome.queue), "{outcome:?}");
}

#[test]
fn a_sender_has_as_many_reaction_points_as_it_is_given() {
    let roles = |text: &str| SCHEME.configure(&text.parse().expect("TOML")).expect("sound");
    assert_eq!(roles("").reaction_points(), 100);
    assert_eq!(roles("max_rps = 1").reaction_points(), 1);
    assert_eq!(roles("max_rps = 1").scope(), Scope::Destination);
}

#[test]
fn a_wrong_parameter_is_named() {
    let fields = |text: &str| refused(&SCHEME, text);
    assert_eq!(fields("cp_weight = -10\nrpg_gd = 7\nmax_rps = 127"), [""; 0]);
    assert_eq!(fields("cp_sample_base = \"9999 B\""), ["cp_sample_base"]);
    assert_eq!(fields("cp_weight = 11\nrpg_min_dec_fac = 0"), ["cp_weight", "rpg_min_dec_fac"]);
    assert_eq!(fields("ccti_timer = 5"), ["ccti_timer"]);
}
