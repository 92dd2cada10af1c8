//! Feedback to the digit, when samples are taken, and who is told.

use super::*;
use crate::tests::bottleneck::{CPID, FRAME, frame, params, place, sample};
use proptest::prelude::*;

fn sampler(text: &str) -> Sampler {
    Sampler::new(&params(text), place("output")).expect("it has an identifier")
}

/// Octets until the sample after one with this queue and the queue before it.
fn interval(point: &mut Sampler, queue: u64, before: u64) -> i64 {
    point.queue_before = before;
    point.sample(queue);
    point.left
}

/// docs/spec/algorithms.md 10.6, QCN max.
#[test]
fn cl_32_8_the_unit_vector_of_feedback_holds_to_the_digit() {
    let gauge = Gauge::new(Bytes::new(26_000), 1);
    // Fb = −26000 − 2·26000 = −78000 of 130000: 37.8.
    let found = gauge.find(52_000, 26_000);
    assert_eq!(found, Finding { quantized: 38, offset: -26_000, delta: 26_000 });
    assert_eq!(SAMPLING[usize::from(found.quantized >> 3)], 30_000);
}

/// QCN-01.
#[test]
fn cl_32_8_feedback_is_clipped_and_only_bad_news_counts() {
    let gauge = Gauge::new(Bytes::new(26_000), 1);
    let quantized = |queue, before| gauge.find(queue, before).quantized;
    assert_eq!(quantized(26_000, 26_000), 0);
    assert_eq!(quantized(0, 26_000), 0);
    assert_eq!(quantized(20_000, 10_000), 7, "below the set point, but growing: 14000 of 130000");
    assert_eq!(quantized(156_000, 156_000), 63, "the largest feedback");
    assert_eq!(quantized(u64::MAX, 0), 63);
    assert_eq!(quantized(0, u64::MAX), 0);
    // Half of a 63rd of 130000 is 1031.7: below it nothing is said.
    assert_eq!([27_031, 27_032].map(|queue| quantized(queue, queue)), [0, 1]);
}

#[test]
fn cl_32_8_the_weight_is_a_power_of_two() {
    // Fb = −1000 − W·1000, of (2W + 1)·26000.
    let quantized = |exponent| {
        let gauge = Gauge::new(Bytes::new(26_000), exponent);
        gauge.find(52_000, 51_000).quantized
    };
    // 63·26000/26000·(1 + W/26)/(1 + 2W) to the nearest.
    let expected = |w: f64| (63.0 * (1.0 + w / 26.0) / (1.0 + 2.0 * w)).round() as u8;
    for exponent in -10..=10 {
        assert_eq!(quantized(exponent), expected(2f64.powi(exponent as i32)), "2^{exponent}");
    }
}

/// QCN-02.
#[test]
fn cl_32_8_the_next_sample_comes_the_sooner_the_worse_it_was() {
    let mut point = sampler("");
    let bands = [(0, 150_000), (8, 75_000), (16, 50_000), (24, 37_500), (32, 30_000)];
    let rest = [(40, 25_000), (48, 21_500), (56, 18_500)];
    for (quantized, base) in bands.into_iter().chain(rest) {
        let lengths: Vec<i64> = (0..20_000).map(|_| point.until_next(quantized)).collect();
        let mean = lengths.iter().sum::<i64>() / 20_000;
        assert!((mean - base).abs() * 500 < base, "QntzFb {quantized}: {mean} of {base}");
        let (low, high) = (base * 85 / 100, base * 115 / 100);
        assert!(lengths.iter().all(|length| (low..=high).contains(length)), "{quantized}");
        assert!(lengths.iter().any(|length| *length < low + base / 100));
        assert!(lengths.iter().any(|length| *length > high - base / 100));
        assert_eq!(
            point.until_next(quantized + 7) / (base * 2),
            0,
            "the lower three bits do not count"
        );
    }
}

#[test]
fn cl_32_8_another_base_scales_the_whole_table() {
    let mut point = sampler("cp_sample_base = \"15 KB\"");
    let mean = (0..20_000).map(|_| point.until_next(63)).sum::<i64>() / 20_000;
    assert!((1_840..=1_860).contains(&mean), "{mean}");
}

#[test]
fn cl_32_8_octets_are_counted_that_come_or_are_dropped() {
    let mut point = sampler("");
    point.left = 3_000;
    let come = |point: &mut Sampler| {
        point.on_enqueue(&frame(None), &sample(100_000), Instant::ZERO) != Marking::Pass
    };
    assert!(!come(&mut point), "1500 are left");
    point.on_drop(FRAME, &sample(100_000), Instant::ZERO);
    assert_eq!(point.left, 0);
    assert!(come(&mut point), "below zero a sample is due");
    assert!(point.left > 15_000 && !come(&mut point));
}

#[test]
fn only_data_is_counted_and_told() {
    let mut point = sampler("");
    let left = point.left;
    for class in [FrameClass::Ack, FrameClass::Notification, FrameClass::Management] {
        let other = FrameHeaders { class, ..frame(None) };
        assert_eq!(point.on_enqueue(&other, &sample(300_000), Instant::ZERO), Marking::Pass);
    }
    assert_eq!(point.left, left);
}

/// QCN-04.
#[test]
fn cl_33_4_offset_and_delta_are_signed_units_of_64_octets_and_saturate() {
    let mut point = sampler("");
    let mut told = |queue, before| {
        point.queue_before = before;
        point.sample(queue).map(|body| (body.q_offset, body.q_delta))
    };
    assert_eq!(told(52_000, 26_000), Some((-406, 406)));
    assert_eq!(told(25_936, 16_336), Some((1, 150)));
    assert_eq!(told(60_000, 70_000), Some((-531, -156)));
    assert_eq!(told(9_000_000, 0), Some((i16::MIN, i16::MAX)));
    assert_eq!(told(26_000, 26_000), None);
}

#[test]
fn a_sample_is_told_under_the_points_name_and_counted() {
    let mut point = sampler("");
    let body = point.sample(52_000).expect("bad news");
    assert_eq!((body.cpid, body.quantized_feedback), (CPID, 63), "78000 + 52000 of 130000");
    point.sample(0);
    assert_eq!((point.samples, point.queue_before), (2, 0));
    let counted = |point: &Sampler| {
        let mut named = Vec::new();
        point.read("queue3", &mut named);
        named
    };
    let named = |cnms| {
        [("queue3_cp_samples", 2), ("queue3_cp_transmitted_cnms", cnms)]
            .map(|(name, count)| (name.to_owned(), count))
    };
    assert_eq!(counted(&point), named(0), "what was said is not a message yet");
    point.on_message();
    assert_eq!(counted(&point), named(1));
}

#[test]
fn good_news_brings_the_longest_interval_back() {
    let mut point = sampler("");
    assert!(interval(&mut point, 200_000, 200_000) < 18_500 * 115 / 100);
    assert!(interval(&mut point, 0, 200_000) >= 150_000 * 85 / 100);
}

proptest! {
    #[test]
    fn feedback_is_nothing_exactly_where_it_rounds_to_nothing(
        queue in 0u64..1 << 40, before in 0u64..1 << 40,
        set_point in 100u64..1 << 32, exponent in -10i64..=10,
    ) {
        let found = Gauge::new(Bytes::new(set_point), exponent).find(queue, before);
        let w = 2f64.powi(exponent as i32);
        let feedback = set_point as f64 - queue as f64 - w * (queue as f64 - before as f64);
        let exact = (63.0 * -feedback / (set_point as f64 * (1.0 + 2.0 * w))).clamp(0.0, 63.0);
        prop_assert!((f64::from(found.quantized) - exact).abs() <= 0.5 + 1e-6);
    }
}
