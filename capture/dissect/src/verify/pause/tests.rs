//! A pause is kept, or is not, to the nanosecond; and runs of our own break no rule.

use super::*;
use crate::verify::tests::capture_of;
use crate::verify::{Report, verify};
use capture::pcapng::{self, Interface, LinkType, Packet};
use proto::ids::{Dscp, Ecn, Priority, Psn, QueuePairNumber};
use proto::wire::ethernet::Pause;
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};

const RATE: BitRate = BitRate::gbps(40);
/// 1010 octets DA to FCS are 202 ns.
const PAYLOAD: usize = 948;
const FRAME_NS: u64 = 202;
/// A hundred quanta of 512 bits at 40 Gb/s.
const HUNDRED_NS: u64 = 1_280;
/// What 40 Gb/s gives: 118 quanta of 12.8 ns, rounded up.
const REACTION_NS: u64 = 1_511;

const NOTHING: [u64; 0] = [];

const HOST: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);

/// A frame of this priority by its DSCP.
fn data(priority: u8) -> Vec<u8> {
    let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let (dscp, ecn) = (Dscp::truncate(priority << 3), Ecn::Capable0);
    let ip = Ipv4 { dscp, ecn, source, destination, ..Ipv4::default() };
    let builder = PacketBuilder {
        destination: MacAddress::new([2, 0, 0, 0, 0, 2]),
        source: HOST,
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(50_000)),
        bth: Bth::new(Opcode::UC_SEND_ONLY, QueuePairNumber::truncate(7), Psn::truncate(0)),
        extended: ExtendedHeaders::NONE,
    };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, PAYLOAD, |place| place.fill(0x5a)).unwrap();
    octets.to_vec()
}

fn control(control: MacControl) -> Vec<u8> {
    control.to_octets(HOST).to_vec()
}

fn pfc(priority: u8, time: u16) -> Vec<u8> {
    control(MacControl::Pfc(Pfc::default().with(Priority::truncate(priority), time)))
}

/// When the last bit passed, which way, and the octets.
type Passed = (u64, Direction, Vec<u8>);

fn heard(at_ns: u64, octets: Vec<u8>) -> Passed {
    (at_ns, Direction::Rx, octets)
}

/// A frame of this priority whose first bit leaves at `begin_ns`.
fn sent(begin_ns: u64, priority: u8) -> Passed {
    (begin_ns + FRAME_NS, Direction::Tx, data(priority))
}

/// A file of one port at this rate, or at a rate it does not tell.
fn capture(rate: Option<BitRate>, frames: &[Passed], kept: usize) -> Vec<u8> {
    let mut file = Vec::new();
    pcapng::section(&mut file, "a test");
    let speed = rate.map_or(0, BitRate::get);
    let (link_type, name, description) = (LinkType::Ethernet, "h1:1", "to s1:1");
    pcapng::interface(&mut file, &Interface { link_type, snaplen: 0, name, description, speed });
    for (at_ns, direction, octets) in frames {
        let packet = Packet {
            interface: 0,
            link_type,
            at_ns: *at_ns,
            octets: &octets[..octets.len().min(kept)],
            wire_size: octets.len(),
            direction: Some(*direction),
            dropped_before: 0,
        };
        pcapng::packet(&mut file, &packet);
    }
    file
}

const BY_DSCP: Pausing =
    Pausing { priorities: Some(PriorityMap::BY_DSCP), obeyed: 0xff, response: None };
const AT_ONCE: Pausing = Pausing { response: Some(Duration::ZERO), ..BY_DSCP };

fn report(file: &[u8], pause: Option<Pausing>) -> Report {
    let settings = Settings { pause, ..Settings::default() };
    verify(file, "a test", &settings, 100).unwrap()
}

/// The frames, by number, that break the rule.
fn found(pausing: Pausing, frames: &[Passed]) -> Vec<u64> {
    let report = report(&capture(Some(RATE), frames, usize::MAX), Some(pausing));
    // All have one PSN, which is another rule's business.
    let ours = report.findings.iter().filter(|finding| finding.rule == "paused");
    ours.map(|finding| finding.frame).collect()
}

#[test]
fn a_frame_that_begins_in_a_silence_is_found_and_one_under_way_is_not() {
    let xoff = || heard(1_000, pfc(3, 100));
    // Preamble and gap are 4 ns, a tick is one: within those a frame may have begun before.
    for (begin, is_found) in
        [(999, false), (1_000, false), (1_004, false), (1_006, true), (2_000, true)]
    {
        let expected = if is_found { vec![2] } else { vec![] };
        assert_eq!(found(AT_ONCE, &[xoff(), sent(begin, 3)]), expected, "begun at {begin}");
    }
}

#[test]
fn silence_ends_with_its_quanta_at_the_links_rate_or_with_quanta_zero() {
    let end = 1_000 + HUNDRED_NS;
    for (begin, is_found) in [(end - 2, true), (end, false), (end + 500, false)] {
        let expected = if is_found { vec![2] } else { vec![] };
        assert_eq!(found(AT_ONCE, &[heard(1_000, pfc(3, 100)), sent(begin, 3)]), expected);
    }
    let xon = [heard(1_000, pfc(3, 100)), heard(1_500, pfc(3, 0)), sent(1_500, 3), sent(1_800, 3)];
    assert_eq!(found(AT_ONCE, &xon), NOTHING);
    let again =
        [heard(1_000, pfc(3, 100)), heard(2_000, pfc(3, 100)), sent(end, 3), sent(end + 1_000, 3)];
    assert_eq!(found(AT_ONCE, &again), [3], "carried on, without a gap");
}

#[test]
fn for_the_reaction_time_of_the_standard_frames_still_begin() {
    assert_eq!(ns(reaction(RATE)), REACTION_NS);
    let quanta_of = |rate: BitRate| reaction(rate).as_ps() / quanta(1, rate).as_ps();
    assert_eq!([1, 10, 40, 100].map(|gbps| quanta_of(BitRate::gbps(gbps))), [2, 60, 118, 394]);
    assert_eq!(reaction(BitRate::gbps(800)), reaction(BitRate::gbps(100)));
    let xoff = || heard(1_000, pfc(3, 10_000));
    let last = 1_000 + REACTION_NS;
    assert_eq!(found(BY_DSCP, &[xoff(), sent(1_200, 3), sent(last, 3)]), NOTHING);
    assert_eq!(found(BY_DSCP, &[xoff(), sent(last + 7, 3)]), [2]);
    // A second XOFF gives no second reaction time.
    assert_eq!(found(BY_DSCP, &[xoff(), heard(2_000, pfc(3, 10_000)), sent(last + 7, 3)]), [3]);
}

#[test]
fn other_priorities_and_what_governs_the_link_go_on() {
    let frames = [
        heard(1_000, pfc(3, 100)),
        sent(1_300, 4),
        (1_600, Direction::Tx, pfc(5, 9)),
        heard(1_700, data(3)),
        sent(1_700, 3),
    ];
    assert_eq!(found(AT_ONCE, &frames), [5]);
    assert_eq!(found(Pausing { obeyed: 1 << 4, ..AT_ONCE }, &frames), NOTHING);
}

#[test]
fn pause_silences_all_priorities_where_links_go_by_it_and_pfc_where_they_do_not() {
    let both = |time| {
        [
            MacControl::Pause(Pause { time }),
            MacControl::Pfc(Pfc::default().with(Priority::truncate(3), time)),
        ]
    };
    let global = Pausing { priorities: None, ..AT_ONCE };
    for (pausing, expected) in [(global, [vec![2, 3], vec![]]), (AT_ONCE, [vec![], vec![2]])] {
        let frames =
            both(100).map(|said| vec![heard(1_000, control(said)), sent(1_300, 3), sent(1_600, 0)]);
        assert_eq!(frames.map(|frames| found(pausing, &frames)), expected);
    }
}

#[test]
fn what_is_not_known_is_not_judged() {
    let frames = [heard(1_000, pfc(3, 100)), sent(1_300, 3)];
    let file = capture(Some(RATE), &frames, usize::MAX);
    let unasked = report(&file, None);
    assert_eq!(unasked.findings, []);
    assert_eq!(unasked.tally.not_checked["obedience to pauses (needs --pause)"], 1);
    let unknown = capture(None, &frames, usize::MAX);
    let why = "pauses at ports of unknown rate (needs --rate)";
    assert_eq!(report(&unknown, Some(AT_ONCE)).tally.not_checked[why], 1);
    let told = Settings { pause: Some(AT_ONCE), rate: Some(RATE), ..Settings::default() };
    assert_eq!(verify(&unknown[..], "", &told, 9).unwrap().counts["paused"], 1);
    // Cut frames have a size, and a priority as long as their IP header is there.
    let cut = report(&capture(Some(RATE), &frames, 60), Some(AT_ONCE));
    assert_eq!(cut.counts["paused"], 1);
    // A capture of PFC at one port alone does not show whether the peer received it.
    let mut to_one = pfc(3, 0);
    to_one[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    let file = [heard(1_000, pfc(3, 100)), heard(1_100, to_one), sent(1_300, 3)];
    let found = report(&capture(Some(RATE), &file, usize::MAX), Some(AT_ONCE));
    assert!(!found.counts.contains_key("paused"), "{:?}", found.findings);
}

/// Three to one over slow quanta: pauses begin, are repeated, run out and end.
const SCENARIO: &str = r#"
schema = 1
name   = "verify-pauses"
source = "a test of verify"
[run]
seed     = 7
duration = "2 ms"
capture  = ["s0:*", "h*:1"]
[fabric]
technology = "ethernet"
shape  = "star"
hosts  = 4
mtu    = "1024 B"
link   = { rate = "40 Gbps", delay = "1 us", PAUSE }
switch = { memory = "shared-pool", headroom = "24 KB", pool = { size = "1 MB" } }
[scheme]
kind = "none"
[[traffic]]
name = "incast"
from = "h[0-2]"
to   = "h3"
arrivals = "backlog"
size     = "100 KB"
"#;

fn captured(pause: &str) -> Vec<u8> {
    capture_of(&SCENARIO.replace("PAUSE", pause))
}

#[test]
fn devices_of_ours_keep_every_pause_from_the_first_picosecond_to_the_last() {
    let global = Pausing { priorities: None, ..AT_ONCE };
    for (pause, pausing) in [
        ("pause = \"pfc\"", AT_ONCE),
        ("pause = \"pfc\", pause_time = 200, refresh = 100", AT_ONCE),
        ("pause = \"pause\", pause_time = 400", global),
    ] {
        let report = report(&captured(pause), Some(pausing));
        assert_eq!(report.findings, [], "{pause}");
        let checked = &report.tally.checked;
        assert!(
            checked["pauses heard"] > 20 && checked["frames against pauses"] > 100,
            "{checked:?}"
        );
    }
}

/// A device that takes its time is found if it should not, and not if it may.
#[test]
fn a_slow_responder_is_found_out_by_whoever_expects_a_quick_one() {
    let file = captured("pause = \"pfc\", response = \"1 us\"");
    assert!(report(&file, Some(AT_ONCE)).counts["paused"] > 0);
    let allowed = Pausing { response: Some(Duration::from_us(1)), ..AT_ONCE };
    for pausing in [allowed, BY_DSCP] {
        assert_eq!(report(&file, Some(pausing)).findings, []);
    }
}
