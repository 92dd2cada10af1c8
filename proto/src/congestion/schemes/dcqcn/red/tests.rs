//! The marking curve, and who is never marked.

use super::super::tests::{FRAME, frame, settings};
use super::*;
use crate::ids::PortNumber;
use crate::units::BitRate;

const KB: u64 = 1_000;

fn red(text: &str) -> Red {
    Red::new(&settings(text, 40), Random::stream(1, "s1", "marking"))
}

fn sample(queue: u64) -> QueueSample {
    QueueSample {
        ingress: PortNumber::from_index(0),
        queue: Bytes::new(queue),
        ingress_buffer: Bytes::ZERO,
        line_rate: BitRate::gbps(40),
        blocked_since: None,
        last_departure: None,
    }
}

/// How many of `frames` ECT(0) data frames are marked at this queue.
fn marked(red: &mut Red, queue: u64, frames: u64) -> u64 {
    let data = frame(FrameClass::Data, Ecn::Capable0);
    let judged = (0..frames).map(|_| red.on_dequeue(&data, &sample(queue), Instant::ZERO));
    judged.filter(|marking| *marking != Marking::Pass).count() as u64
}

/// ROCE-01.
#[test]
fn below_kmin_nothing_is_marked_and_above_kmax_everything() {
    let mut red = red("kmin = \"300 KB\"\nkmax = \"300001 B\"\npmax = 0.01");
    assert_eq!(marked(&mut red, 200 * KB, 10_000), 0);
    assert_eq!(marked(&mut red, 300 * KB, 10_000), 0, "at Kmin, not above");
    assert_eq!(marked(&mut red, 450 * KB, 10_000), 10_000);
}

/// ROCE-02: χ² over 20 bins, p > 0.001.
#[test]
fn the_share_of_marks_follows_the_curve_and_jumps_to_one_above_kmax() {
    const BINS: u64 = 20;
    const FRAMES: u64 = 20_000;
    let mut red = red("kmin = \"500 KB\"\nkmax = \"2000 KB\"\npmax = 0.05");
    let mut all = 0;
    let statistic: f64 = (1..=BINS)
        .map(|bin| {
            let above = 1_500 * KB * bin / BINS;
            let chance = 0.05 * above as f64 / (1_500 * KB) as f64;
            let found = marked(&mut red, 500 * KB + above, FRAMES);
            all += found;
            let expected = chance * FRAMES as f64;
            (found as f64 - expected).powi(2) / (expected * (1.0 - chance))
        })
        .sum();
    assert!(statistic < 45.3, "χ² is {statistic:.1} with {BINS} degrees of freedom");
    assert_eq!(marked(&mut red, 2_000 * KB + 1, FRAMES), FRAMES);
    let mut named = Vec::new();
    red.read("", &mut named);
    let totals: Vec<u64> = named.into_iter().map(|(_, total)| total).collect();
    assert_eq!(totals, [BINS * FRAMES, all, FRAMES, FRAMES], "what was judged and marked");
}

/// ROCE-04 and ROCE-06: who is markable.
#[test]
fn what_says_ect_is_marked_but_for_notifications() {
    let mut red = red("");
    let full = sample(10_000 * KB);
    let mut judge = |class, ecn| red.on_dequeue(&frame(class, ecn), &full, Instant::ZERO);
    let marked = Marking::Ce { limit: Bytes::new(200 * KB) };
    for class in [FrameClass::Data, FrameClass::Ack] {
        assert_eq!(judge(class, Ecn::Capable0), marked);
        assert_eq!(judge(class, Ecn::Capable1), marked);
        assert_eq!(judge(class, Ecn::NotCapable), Marking::Pass);
        assert_eq!(judge(class, Ecn::CongestionExperienced), Marking::Pass, "it has it");
    }
    for ecn in [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced] {
        assert_eq!(judge(FrameClass::Notification, ecn), Marking::Pass);
    }
}

#[test]
fn a_frame_is_judged_once_where_the_parameter_says() {
    let data = frame(FrameClass::Data, Ecn::Capable0);
    for (text, at_enqueue) in [("", false), ("mark_at = \"enqueue\"", true)] {
        let mut red = red(text);
        let full = sample(10_000 * KB);
        let marks = [
            red.on_enqueue(&data, &full, Instant::ZERO),
            red.on_head(&data, &full, Instant::ZERO),
            red.on_dequeue(&data, &full, Instant::ZERO),
        ];
        assert_eq!(marks.map(|marking| marking != Marking::Pass), [at_enqueue, false, !at_enqueue]);
    }
    assert_eq!(FRAME, data.size);
}

#[test]
fn equal_thresholds_are_a_step() {
    let mut red = red("kmin = \"100 KB\"\nkmax = \"100 KB\"");
    assert_eq!(marked(&mut red, 100 * KB, 1_000), 0);
    assert_eq!(marked(&mut red, 100 * KB + 1, 1_000), 1_000);
}
