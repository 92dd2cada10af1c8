//! All of BCN around one queue, and what its parameters may be.

use super::*;
use crate::congestion::BcnFlags;
use crate::tests::bottleneck::{Bottleneck, CPID, Outcome, refused};
use crate::units::Duration;

fn settle(params: &str, senders: usize, gbps: u64) -> Outcome {
    let ms = |n: u64| Duration::from_us(n * 1_000);
    Bottleneck::new(&SCHEME, params, senders, gbps).measure(ms(200), ms(100))
}

/// Qeq of the default is 150 KB.
#[test]
fn the_queue_settles_between_its_equilibrium_and_twice_that_and_the_line_stays_full() {
    for (senders, gbps) in [(2, 10), (4, 10), (15, 2)] {
        let outcome = settle("", senders, gbps);
        let sum: f64 = outcome.shares.iter().sum();
        assert!((0.97..=1.01).contains(&sum), "{senders} into {gbps} Gb/s: {outcome:?}");
        assert!((75e3..=300e3).contains(&outcome.queue), "{senders} into {gbps} Gb/s: {outcome:?}");
    }
}

#[test]
fn sampling_by_octets_settles_alike() {
    let outcome = settle("sampling = \"octets\"", 4, 10);
    assert!((75e3..=300e3).contains(&outcome.queue), "{outcome:?}");
}

/// The gains of docs/spec/algorithms.md 10.2: with a tenth of Gd0 = 1/1500000 the queue runs away, with ten
/// times as much it swings by as much as it is long.
#[test]
fn too_small_a_decrease_lets_the_queue_grow_and_too_large_a_one_lets_it_swing() {
    let with = |gd: &str, gi: &str| settle(&format!("gd = \"{gd}\"\ngi = \"{gi}\""), 15, 2);
    let low = with("1/15000000", "1/37500");
    let base = with("1/600000", "1/1500");
    let high = with("1/150000", "1/375");
    assert!(low.queue > 2.0 * base.queue, "{low:?} {base:?}");
    assert!(high.deviation / high.queue > 2.0 * base.deviation / base.queue, "{high:?} {base:?}");
}

#[test]
fn feedback_is_in_octets_and_weighs_the_change() {
    let body =
        BcnBody { cpid: CPID, q_offset: -3, q_delta: 5, flags: BcnFlags::default(), timestamp: 0 };
    assert_eq!(feedback(&body, 2), -64 * (3 + 2 * 5));
    assert_eq!(feedback(&BcnBody { q_delta: -5, ..body }, 2), 64 * (10 - 3));
    assert_eq!(
        feedback(&BcnBody { q_offset: i16::MIN, q_delta: i16::MAX, ..body }, 64),
        -136_310_784
    );
}

#[test]
fn a_wrong_parameter_is_named() {
    let fields = |text: &str| refused(&SCHEME, text);
    assert_eq!(fields("gd = \"1/600000\"\ngi = 6.6667e-4\nw = 0"), [""; 0]);
    assert_eq!(fields("gd = 0\ngi = \"3/2\""), ["gd", "gi"]);
    assert_eq!(fields("q_eq = \"63 B\""), ["q_eq"]);
    assert_eq!(fields("kmin = \"5 KB\"\nw = -1"), ["kmin", "w"]);
}
