//! Whom the congestion point speaks to, how often, and of what.

use super::*;
use crate::tests::bottleneck::{CPID, FRAME, frame, params, place, sample};

/// Samples every frame; Qeq is 150 000 octets.
fn eager(more: &str) -> Sampler {
    sampler(&format!("p_sample = 1.0\n{more}"))
}

fn sampler(text: &str) -> Sampler {
    Sampler::new(&params(text), place("output")).expect("it has an identifier")
}

fn hear(point: &mut Sampler, by: Option<CongestionPointId>, queue: u64) -> Option<BcnBody> {
    match point.on_enqueue(&frame(by), &sample(queue), Instant::ZERO) {
        Marking::Notify(Notification::Bcn(body)) => Some(body),
        Marking::Pass => None,
        other => panic!("{other:?}"),
    }
}

fn units(body: Option<BcnBody>) -> Option<(i16, i16)> {
    body.map(|body| (body.q_offset, body.q_delta))
}

#[test]
fn offset_and_delta_are_whole_units_of_64_octets_and_a_growing_queue_is_bad_news() {
    let mut point = eager("");
    // Qoff = 150000 − 160000, Qdelta = 160000 − 0.
    assert_eq!(units(hear(&mut point, None, 160_000)), Some((-156, 2_500)));
    assert_eq!(units(hear(&mut point, None, 160_640)), Some((-166, 10)));
    // Fb = 64·(−81 + 2·85) > 0, but the queue is above its equilibrium: nobody is told.
    assert_eq!(hear(&mut point, Some(CPID), 155_200), None);
    assert_eq!(units(hear(&mut point, Some(CPID), 155_200)), Some((-81, 0)));
}

#[test]
fn both_are_clamped_to_their_range() {
    let mut point = eager("");
    // ±Qeq and ±2·Qeq: 2343 and 4687 whole units.
    assert_eq!(units(hear(&mut point, None, 2_000_000)), Some((-2_343, 4_687)));
    assert_eq!(units(hear(&mut point, Some(CPID), 0)), Some((2_343, -4_687)));
}

#[test]
fn good_news_goes_only_to_frames_whose_tag_names_this_point_and_only_below_equilibrium() {
    let other = CongestionPointId::new(CPID.get() ^ 1);
    let mut point = eager("");
    hear(&mut point, None, 100_000);
    assert_eq!(hear(&mut point, None, 100_000), None);
    assert_eq!(hear(&mut point, other, 100_000), None);
    assert_eq!(units(hear(&mut point, Some(CPID), 100_000)), Some((781, 0)));
    hear(&mut point, None, 400_000);
    assert_eq!(hear(&mut point, Some(CPID), 150_000), None, "at equilibrium, though it shrank");
}

#[test]
fn bad_news_goes_to_whoever_sent_the_sampled_frame() {
    for tag in [None, Some(CPID), CongestionPointId::new(7)] {
        assert!(hear(&mut eager(""), tag, 200_000).is_some());
    }
}

#[test]
fn only_data_is_sampled() {
    let mut point = eager("");
    for class in [FrameClass::Ack, FrameClass::Notification, FrameClass::Management] {
        let other = FrameHeaders { class, ..frame(None) };
        assert_eq!(point.on_enqueue(&other, &sample(300_000), Instant::ZERO), Marking::Pass);
    }
    assert_eq!(point.totals.samples, 0);
}

#[test]
fn random_sampling_takes_its_share_of_frames() {
    let mut point = sampler("p_sample = 0.02");
    let told = (0..1_000_000).filter(|_| hear(&mut point, None, 200_000).is_some()).count();
    // σ is 140.
    assert!((19_400..=20_600).contains(&told), "{told}");
}

#[test]
fn sampling_by_octets_takes_a_frame_in_so_many() {
    let mut point = sampler("sampling = \"octets\"\nsample_octets = \"75 KB\"");
    let told: Vec<usize> =
        (1..=200).filter(|_| hear(&mut point, None, 200_000).is_some()).collect();
    assert_eq!(told, [50, 100, 150, 200], "75 000 octets are fifty frames of {FRAME}");
}

#[test]
fn bcn_zero_and_bcn_max_are_off_until_asked_for() {
    let said = hear(&mut eager(""), None, 600_000).expect("bad news");
    assert_eq!(said.flags, BcnFlags { mild: true, severe: true, stop: false });
    assert_eq!(hear(&mut eager(""), None, 300_000).map(|body| body.flags.severe), Some(false));

    let stop = hear(&mut eager("bcn_zero = \"on\""), None, 450_001).expect("a stop");
    assert_eq!((stop.q_offset, stop.q_delta, stop.flags.stop), (0, 0, true));
    assert!(!hear(&mut eager("bcn_zero = \"on\""), None, 450_000).expect("bad news").flags.stop);

    let mut point = eager("bcn_max = \"on\"\nq_max = \"200 KB\"");
    hear(&mut point, None, 200_100);
    assert_eq!(units(hear(&mut point, None, 200_100)), Some((-2_343, 4_687)));
}

#[test]
fn a_point_without_a_name_does_not_speak() {
    let place = Place { congestion_point: None, ..place("output") };
    assert!(Sampler::new(&params(""), place).is_none());
}

#[test]
fn what_was_told_is_counted() {
    let mut point = eager("");
    for queue in [200_000, 100_000, 100_000] {
        hear(&mut point, Some(CPID), queue);
    }
    let mut named = Vec::new();
    point.read("queue3", &mut named);
    let expected = [("samples", 3), ("negative", 1), ("positive", 2), ("stop", 0)];
    assert_eq!(named, expected.map(|(name, n)| (format!("queue3_bcn_{name}"), n)));
}
