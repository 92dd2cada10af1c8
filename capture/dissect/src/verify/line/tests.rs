//! Frames that a line cannot carry are found to the nanosecond, or beyond the error of foreign stamps; and runs of our own break no rule.

use super::*;
use crate::verify::tests::capture_of;
use crate::verify::{Report, verify};
use capture::pcapng::{self, Interface, LinkType, Packet};
use proto::events::Direction;
use proto::events::Direction::{Rx, Tx};

const RATE: BitRate = BitRate::gbps(8);
/// Octets without FCS; with it and at 8 Gb/s a frame takes as many nanoseconds, and preamble and gap 20 more.
const OCTETS: usize = 996;
const FRAME_NS: u64 = 1_000;
const NOTHING: [u64; 0] = [];
const FABRIC: &str = "virtual clock; times are fabric time";
const LIVE: &str = "dilation 9; times are fabric time";
const FOREIGN: &str = "a test";

/// Stamp, direction, and the last octet of the source.
type Passed = (u64, Option<Direction>, u8);

fn octets(source: u8) -> Vec<u8> {
    let mut octets = vec![0; OCTETS];
    octets[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, source, 0x88, 0xb5]);
    octets
}

fn capture(comment: &str, description: &str, frames: &[Passed]) -> Vec<u8> {
    let mut file = Vec::new();
    pcapng::section(&mut file, comment);
    let link_type = LinkType::Ethernet;
    let name = "h1:1";
    pcapng::interface(&mut file, &Interface { link_type, snaplen: 0, name, description, speed: 0 });
    for (at_ns, direction, source) in frames {
        let octets = octets(*source);
        let (octets, wire_size) = (&octets[..60], octets.len());
        let (at_ns, direction) = (*at_ns, *direction);
        let packet = Packet {
            interface: 0,
            link_type,
            at_ns,
            octets,
            wire_size,
            direction,
            dropped_before: 0,
        };
        pcapng::packet(&mut file, &packet);
    }
    file
}

fn judged(file: &[u8], jitter: Option<Duration>) -> Report {
    let settings = Settings { rate: Some(RATE), jitter, ..Settings::default() };
    verify(file, "a test", &settings, 100).expect("a capture")
}

/// The frames, by number, that break the rule.
fn found(report: &Report) -> Vec<u64> {
    let ours = report.findings.iter().filter(|finding| finding.rule == "line-rate");
    ours.map(|finding| finding.frame).collect()
}

fn sent(at: &[u64]) -> Vec<Passed> {
    at.iter().map(|at| (*at, Some(Tx), 1)).collect()
}

fn fabric(frames: &[Passed]) -> Vec<u64> {
    found(&judged(&capture(FABRIC, "to s0:1", frames), None))
}

#[test]
fn fabric_time_is_judged_to_the_nanosecond() {
    let first = 5_000;
    assert_eq!(fabric(&sent(&[first, first + FRAME_NS, first + 2 * FRAME_NS])), NOTHING);
    // Stamps are rounded down: a nanosecond of one gap may be owed to that, and of ten together no more.
    assert_eq!(fabric(&sent(&[first, first + FRAME_NS - 1])), [2]);
    let short: Vec<u64> = (0..10).map(|n| first + n * FRAME_NS - u64::from(n > 4)).collect();
    assert_eq!(fabric(&sent(&short)), [6]);
    let all_at_once = judged(&capture(FABRIC, "to s0:1", &sent(&[first; 4])), None);
    assert_eq!(found(&all_at_once), [2, 3, 4]);
    let finding = &all_at_once.findings[0];
    let text = (&finding.found[..], &finding.expected[..]);
    assert_eq!(text, ("1000 octets in 0 ps", "at least 1 us at 8 Gbps"));
    assert_eq!(all_at_once.verdict, "fail");
}

#[test]
fn directions_and_without_them_sources_are_judged_apart() {
    let both = |at| [(at, Some(Tx), 1), (at, Some(Rx), 2)];
    assert_eq!(fabric(&[both(5_000), both(6_000)].concat()), NOTHING);
    assert_eq!(fabric(&[both(5_000), both(5_900)].concat()), [3, 4]);
    let sources = |from: [u8; 3]| from.map(|source| (5_000, None, source));
    assert_eq!(fabric(&sources([1, 2, 3])), NOTHING);
    assert_eq!(fabric(&sources([1, 2, 1])), [3]);
}

/// `count` frames that a kernel stamps in groups of ten, at `percent` of what the line carries.
fn polled(count: u64, percent: u64) -> Vec<Passed> {
    let pace = (FRAME_NS + 20) * 100 / percent;
    sent(&(1..=count).map(|n| 1_000_000 + n / 10 * 10 * pace).collect::<Vec<_>>())
}

#[test]
fn other_stamps_are_judged_beyond_their_error() {
    let report = |description, frames: &[Passed], jitter| {
        found(&judged(&capture(FOREIGN, description, frames), jitter))
    };
    let close = Some(Duration::from_us(20));
    for jitter in [None, close] {
        // Clocks differ, and a line that is full stays full.
        assert_eq!(report("eth0", &polled(200_000, 100), jitter), NOTHING);
    }
    // Twice the rate gains 1 ms in 2 ms.
    let double = report("eth0", &polled(10_000, 200), None);
    assert!((4..=5).contains(&double.len()) && double[0] > 1_900, "{double:?}");
    assert_eq!(report("eth0", &polled(1_900, 200), None), NOTHING);
    assert!(report("eth0", &polled(1_900, 200), close).len() > 30);
    assert!(report("eth0", &polled(100_000, 101), close).len() > 10, "one in a hundred too fast");
    // What comes on the wall clock has stamps of the host, and what leaves a lab and enters it.
    let burst = |direction| [5_000; 4].map(|at| (at, Some(direction), 1));
    let live = |to, direction| found(&judged(&capture(LIVE, to, &burst(direction)), None)).len();
    let found = [("to s0:1", Tx), ("to s0:1", Rx), ("to interface eth1", Tx)];
    assert_eq!(found.map(|(to, direction)| live(to, direction)), [3, 0, 0]);
}

#[test]
fn what_is_not_known_is_not_judged() {
    let file = capture(FABRIC, "to s0:1", &sent(&[0, 0, 7_000, 5_000, 5_000]));
    let report = judged(&file, None);
    assert_eq!(found(&report), [5]);
    let passed_over = &report.tally.not_checked;
    assert_eq!(passed_over["line rate of frames without a time stamp"], 2);
    assert_eq!(passed_over["line rate where time stamps run back"], 1);
    let unknown = verify(&file[..], "", &Settings::default(), 9).expect("a capture");
    assert_eq!(unknown.tally.not_checked["line rate (needs --rate)"], 5);
}

/// Seven to one over two technologies.
const SCENARIO: &str = r#"
schema = 1
name   = "verify-line"
source = "a test of verify"
[run]
seed     = 7
duration = "300 us"
capture  = ["s0:*", "h*:1"]
[fabric]
technology = "TECHNOLOGY"
shape  = "star"
hosts  = 8
mtu    = "1024 B"
link   = { rate = "40 Gbps", delay = "1 us"PAUSE }
switch = { memory = "per-input", buffer = "64 KB" }
[scheme]
kind = "none"
[[traffic]]
name = "incast"
from = "h[0-6]"
to   = "h7"
arrivals = "backlog"
size     = "3000 B"
"#;

#[test]
fn runs_of_our_own_keep_the_rate_and_none_below_it() {
    for (technology, pause) in [("ethernet", ", pause = \"none\""), ("infiniband", "")] {
        let scenario = SCENARIO.replace("TECHNOLOGY", technology).replace("PAUSE", pause);
        let file = capture_of(&scenario);
        let report = verify(&file[..], "ours", &Settings::default(), 9).expect("a capture");
        assert_eq!(report.counts.get("line-rate"), None, "{technology}");
        let judged = report.tally.checked["frames against the line's rate"];
        // All but the first of each direction.
        assert!(judged > 5_000);
        assert_eq!(judged + 32, report.frames);
        // The mutant: lines that are one in forty slower than the devices take them for.
        let states = |rate: BitRate| [&[8, 0, 8, 0][..], &rate.get().to_le_bytes()].concat();
        let mut slower = file.clone();
        let was = states(BitRate::gbps(40));
        for at in 0..slower.len() - was.len() {
            if slower[at..].starts_with(&was) {
                slower[at..at + was.len()].copy_from_slice(&states(BitRate::gbps(39)));
            }
        }
        let report = verify(&slower[..], "ours", &Settings::default(), 9).expect("a capture");
        assert!(report.counts["line-rate"] > 500, "{technology}: {:?}", report.counts);
    }
}
