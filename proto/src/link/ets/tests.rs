//! Shares to within one frame, strict before weighted, and that a pause neither saves nor loses.

use super::*;
use crate::ids::Priority;
use proptest::prelude::*;
use std::num::NonZeroU8;

fn weighted(weight: u8) -> Selection {
    Selection::Weighted(NonZeroU8::new(weight).expect("a weight"))
}

fn arbiter(selection: &[(usize, Selection)]) -> EtsArbiter {
    let mut config = EtsConfig::default();
    for (class, how) in selection {
        config.selection[*class] = *how;
    }
    EtsArbiter::new(&config)
}

/// Serves frames of these sizes (by priority) `frames` times; octets sent by priority.
fn run(arbiter: &mut EtsArbiter, eligible: u8, sizes: [u64; 8], frames: usize) -> [u64; 8] {
    let mut sent = [0; 8];
    for _ in 0..frames {
        let served = arbiter.serve(eligible, |lane| Bytes::new(sizes[lane.index()]));
        let lane = served.expect("a lane is eligible").index();
        assert!(eligible >> lane & 1 == 1, "priority {lane} has nothing to send");
        sent[lane] += sizes[lane];
    }
    sent
}

#[test]
fn two_classes_of_25_and_75_share_to_within_a_frame_whatever_their_frames() {
    for sizes in [[1500; 8], [64, 9000, 0, 0, 0, 0, 0, 0], [9000, 64, 0, 0, 0, 0, 0, 0]] {
        let mut arbiter = arbiter(&[(0, weighted(25)), (1, weighted(75))]);
        let largest = *sizes.iter().max().unwrap() as i64;
        let mut sent = [0; 2];
        for _ in 0..20_000 {
            let [a, b, ..] = run(&mut arbiter, 0b11, sizes, 1);
            sent = [sent[0] + a as i64, sent[1] + b as i64];
            let total = sent[0] + sent[1];
            let off = (4 * sent[0] - total).abs();
            assert!(off <= 4 * (largest + 75), "{off} quarter octets of {total}");
        }
    }
}

#[test]
fn strict_classes_starve_weighted_ones_and_the_higher_strict_one_goes_first() {
    let mut arbiter = arbiter(&[(2, Selection::Strict), (6, Selection::Strict)]);
    assert_eq!(run(&mut arbiter, 0b0100_0111, [100; 8], 50), [0, 0, 0, 0, 0, 0, 5000, 0]);
    assert_eq!(run(&mut arbiter, 0b0000_0111, [100; 8], 50), [0, 0, 5000, 0, 0, 0, 0, 0]);
    assert_eq!(run(&mut arbiter, 0b0000_0011, [100; 8], 50), [2500, 2500, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn what_a_paused_class_does_not_use_goes_to_the_others_and_is_not_owed_to_it() {
    let mut arbiter = arbiter(&[]);
    run(&mut arbiter, 0b111, [1500; 8], 30);
    assert_eq!(run(&mut arbiter, 0b101, [1500; 8], 3000)[..3], [2_250_000, 0, 2_250_000]);
    // Back again it gets its third, and no more.
    assert_eq!(run(&mut arbiter, 0b111, [1500; 8], 30)[..3], [15_000; 3]);
}

#[test]
fn priorities_of_one_class_share_its_weight_in_turn() {
    let classes = [0, 0, 1, 1, 1, 1, 1, 1].map(Priority::truncate);
    let mut arbiter = EtsArbiter::new(&EtsConfig { classes, ..EtsConfig::default() });
    assert_eq!(run(&mut arbiter, 0b111, [1000; 8], 400)[..3], [100_000, 100_000, 200_000]);
}

#[test]
fn without_eligible_lanes_none_is_served() {
    assert_eq!(arbiter(&[]).serve(0, |_| Bytes::new(64)), None);
}

proptest! {
    /// A class that waits all the time gets its weight's share among such classes, to within one frame
    /// each and one round, however the others come and go.
    #[test]
    fn no_class_gains_on_another_that_waits_as_long(
        weights: [u8; 4],
        steps in prop::collection::vec((any::<u8>(), 64u64..9000), 1..300),
    ) {
        let weights = weights.map(|weight| weight.max(1));
        let selection: Vec<_> =
            weights.iter().map(|weight| weighted(*weight)).enumerate().collect();
        let mut arbiter = arbiter(&selection);
        let mut sent = [0i64; 4];
        for (others, size) in steps {
            // Priorities 0 and 1 always wait.
            let eligible = 0b11 | others & 0b1100;
            let lane = arbiter.serve(eligible, |_| Bytes::new(size)).unwrap().index();
            sent[lane] += size as i64;
            let [a, b] = [0, 1].map(|n| (sent[n], i64::from(weights[n])));
            let apart = (a.0 * b.1 - b.0 * a.1).abs();
            prop_assert!(apart <= (9000 + 255) * (a.1 + b.1), "{sent:?} of {weights:?}");
        }
    }
}
