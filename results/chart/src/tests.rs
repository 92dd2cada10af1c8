//! Figures' parts, one by one.

use super::bullet::Bullet;
use super::path::{Precision, area, band, line};
use super::scale::{Linear, Log, round_up, ticks};
use super::{number, palette, quantiles};

#[test]
fn numbers_are_written_for_people() {
    assert_eq!(number::grouped(387_021), "387\u{2009}021");
    assert_eq!(number::grouped(7), "7");
    assert_eq!(number::measured(0.30039), "0.300");
    assert_eq!(number::measured(30.695), "30.7");
    assert_eq!([1.0, 3.0, 3.5].map(number::measured), ["1.000", "3", "3.500"]);
    assert_eq!(number::measured(4314.16), "4\u{2009}314");
    assert_eq!(number::measured(f64::NAN), "–");
    assert_eq!((number::bound(0.8), number::bound(31.0)), ("0.8".into(), "31".into()));
    assert_eq!(number::bound(0.0), "0");
    assert_eq!(number::seconds(16.8e9), "16.8\u{a0}ms");
    assert_eq!(number::tau(8200.0), "8\u{2009}200\u{a0}τ");
    assert_eq!(number::octets(68_428.0), "66.8\u{a0}KiB");
    assert_eq!(number::count(1, "link", "links"), "1 link");
    assert_eq!(number::sentence(&number::words("cold_ports")), "Cold ports");
}

#[test]
fn ticks_are_round_and_inside() {
    assert_eq!(
        ticks(0.0, 14_000.0, 7),
        [0., 2_000., 4_000., 6_000., 8_000., 10_000., 12_000., 14_000.]
    );
    assert_eq!(ticks(900.0, 2_100.0, 3), [1_000.0, 1_500.0, 2_000.0]);
    assert_eq!(ticks(1.0, 1.0, 5), [0.0; 0]);
    assert_eq!((round_up(0.93), round_up(31.0), round_up(0.0)), (1.0, 50.0, 1.0));
    let scale = Linear { low: 0.0, high: 10.0, from: 100.0, to: 0.0 };
    assert_eq!((scale.at(2.5), scale.at(11.0)), (75.0, 0.0));
    let log = Log::over([3.0, 900.0].into_iter(), 0.0, 300.0).expect("two values");
    assert_eq!((log.low, log.high), (0, 3));
    assert!((log.at(10.0) - 100.0).abs() < 1e-9);
    assert_eq!(Log::over([0.0].into_iter(), 0.0, 1.0), None);
}

#[test]
fn paths_are_relative_and_leave_gaps() {
    let points = [(25.0, 100.0), (75.0, 97.0), (125.0, 99.0)];
    assert_eq!(line(points, Precision::Whole), "M25 100l50-3 50 2");
    let gap = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, 3.0)];
    assert_eq!(line(gap, Precision::Whole), "M0 1M2 3l1 0");
    assert_eq!(line([(0.5, 0.25), (1.0, -0.05)], Precision::Hundredths), "M0.5 0.25l0.5-0.3");
    let hole = [(0.0, 0.0, 2.0), (1.0, f64::NAN, 1.0), (2.0, 0.0, 1.0)];
    assert_eq!(band(&hole, Precision::Whole), "M0 2l0-2zM2 1l0-1z");
    assert_eq!(area(&[(0.0, 1.0), (5.0, 1.0)], 4.0, Precision::Whole), "M0 1l5 0 0 3-5 0z");
}

#[test]
fn waiting_more_is_wider_and_of_another_class() {
    assert_eq!((palette::level(0.0), palette::level(0.02), palette::level(f64::NAN)), (0, 0, 0));
    assert_eq!((palette::level(0.05), palette::level(1.0)), (1, palette::LEVELS - 1));
    assert!((1..palette::LEVELS).all(|level| palette::width(level) > palette::width(level - 1)));
    // The ends of the ramp are the table's own colours, in both themes.
    assert!(palette::variables(false).contains("--w0:#d4d8dd;"));
    assert!(palette::variables(true).contains("--w12:#fff1c9;"));
}

#[test]
fn a_bullet_shows_its_range_and_what_was_measured() {
    let bullet = Bullet { value: Some(0.53), min: Some(0.0), max: Some(1.06), ..Bullet::default() };
    let text = bullet.svg(108.0, "half").into_string();
    assert!(text.contains("aria-label=\"half\""), "{text}");
    assert!(text.contains("M54.0 4l6 7l-6 7l-6 -7z"), "0.53 of 1.06 is the middle: {text}");
    assert!(!text.contains("class=\"was\""), "no baseline, no circle");
}

#[test]
fn a_row_without_completions_says_so() {
    let rows = [
        quantiles::Row {
            name: "cold <b>".into(),
            role: "run",
            quantiles: Some([1.0, 2.0, 10.0, 20.0, 100.0]),
            note: quantiles::unfinished(3),
        },
        quantiles::Row { name: "hot".into(), role: "hot", quantiles: None, note: "none".into() },
    ];
    let text = quantiles::svg(&rows, 600.0, "l", |v| v.to_string()).into_string();
    assert!(text.contains("cold &lt;b&gt;") && text.contains("3 unfinished"), "{text}");
    assert!(text.contains("class=\"none\""), "{text}");
}
