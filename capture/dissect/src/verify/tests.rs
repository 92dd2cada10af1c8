//! Our own captures are clean, and each kind of damage is found at its frame.

use super::*;
use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use proto::ids::VirtualLane;
use proto::wire::infiniband::crc::refresh_both;
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use scenario::Scenario;
use scenario::run::Backend;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Messages of three packets and of one, RC and UC, SEND and WRITE, over one switch.
const SCENARIO: &str = r#"
schema = 1
name   = "verified"

[run]
duration = "200 mtu"
capture  = ["s0:*", "h1:1"]

[fabric]
shape      = "star"
hosts      = 4
technology = "infiniband"
mtu        = "256 B"
link       = { rate = "8 Gbps", delay = "0.125 mtu", lanes = 4 }
switch     = { memory = "per-input", buffer = "36 mtu" }

[[traffic]]
name      = "long"
from      = "h[0-2]"
to        = "h3"
load      = 0.5
arrivals  = "poisson"
size      = "700 B"

[[traffic]]
name      = "written"
from      = "h3"
to        = "h[0-2]"
load      = 0.3
arrivals  = "poisson"
size      = "601 B"
transport = "uc"
operation = "write"
"#;

/// A capture of ours, made once.
static CAPTURE: LazyLock<Vec<u8>> = LazyLock::new(|| capture_of(SCENARIO));

/// The capture of a run of `scenario`.
pub fn capture_of(scenario: &str) -> Vec<u8> {
    let scenario = Scenario::parse(scenario, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let folder = tempfile::tempdir().unwrap();
    let conditions = Conditions {
        folder: Some(folder.path()),
        ..Conditions::new(substrate(Backend::Virtual), "a test")
    };
    Experiment::run(&scenario, conditions, &mut |_| {}).unwrap();
    std::fs::read(folder.path().join("capture.pcapng")).unwrap()
}

fn report(octets: &[u8]) -> Report {
    verify(octets, "a test", &Settings::default(), 1000).unwrap()
}

/// The blocks of a file, with packets separated from other blocks.
#[derive(Clone)]
struct Blocks(Vec<Vec<u8>>);

/// Where the frame begins in the block of an interface with ERF records, and of the others.
const ERF_FRAME: usize = 28 + 16;
const USER0_FRAME: usize = 28;

impl Blocks {
    fn of(octets: &[u8]) -> Blocks {
        let (mut blocks, mut rest) = (Vec::new(), octets);
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
            let (block, next) = rest.split_at(length);
            blocks.push(block.to_vec());
            rest = next;
        }
        Blocks(blocks)
    }

    fn octets(&self) -> Vec<u8> {
        self.0.concat()
    }

    fn is_packet(block: &[u8]) -> bool {
        block[..4] == 6u32.to_le_bytes()
    }

    /// Data interfaces have even numbers: each port's stands before that of its link packets.
    fn is_data(block: &[u8]) -> bool {
        Self::is_packet(block) && block[8].is_multiple_of(2)
    }

    /// The `n`th packet block that `wanted` picks: its place in the file and its frame number.
    fn find(&self, n: usize, wanted: impl Fn(&[u8]) -> bool) -> (usize, u64) {
        let packets = self.0.iter().enumerate().filter(|(_, block)| Self::is_packet(block));
        let numbered = packets.zip(1u64..).filter(|((_, block), _)| wanted(block));
        let ((place, _), number) = { numbered }.nth(n).expect("the capture is long enough");
        (place, number)
    }

    /// The frame in a block.
    fn frame(&mut self, place: usize) -> &mut [u8] {
        let block = &mut self.0[place];
        let at = if Self::is_data(block) { ERF_FRAME } else { USER0_FRAME };
        let length = u32::from_le_bytes(block[20..24].try_into().unwrap()) as usize;
        &mut block[at..28 + length]
    }
}

fn opcode_is(code: u8) -> impl Fn(&[u8]) -> bool {
    move |block| Blocks::is_data(block) && block[ERF_FRAME + 8] == code
}

/// (frame, rule) of each finding.
fn found(blocks: &Blocks) -> Vec<(u64, &'static str)> {
    report(&blocks.octets()).findings.iter().map(|f| (f.frame, f.rule)).collect()
}

#[test]
fn a_capture_of_ours_is_clean_and_everything_in_it_was_checked() {
    let settings = Settings { symbol: Some(Duration::from_ns(4)), ..Settings::default() };
    let report = verify(&CAPTURE[..], "ours", &settings, 1000).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.verdict, report.error), ("pass", None));
    assert_eq!(report.tally.not_checked, BTreeMap::new(), "nothing is left out");
    let checked = &report.tally.checked;
    assert_eq!(checked["vcrc"] + checked["lpcrc"], report.frames);
    assert_eq!(checked["vcrc"], checked["icrc"]);
    assert_eq!(checked["lengths"], report.frames);
    assert!(checked["flows"] >= 12 && checked["lanes, each way"] == 10, "{checked:?}");
    for what in ["psn", "message packets", "fctbs", "fccl", "packets against credit", "refresh"] {
        assert!(checked[what] > 100, "{what}: {checked:?}");
    }
}

#[test]
fn every_flipped_bit_of_a_packet_is_found_at_its_frame_and_nowhere_else() {
    let clean = Blocks::of(&CAPTURE);
    let (place, number) = clean.find(7, Blocks::is_data);
    let length = clean.clone().frame(place).len();
    for bit in 0..length * 8 {
        let mut damaged = clean.clone();
        damaged.frame(place)[bit / 8] ^= 1 << (bit % 8);
        let found = found(&damaged);
        assert!(found.contains(&(number, "vcrc")), "bit {bit}: {found:?}");
        assert!(found.iter().all(|(frame, _)| *frame == number), "bit {bit}: {found:?}");
    }
}

#[test]
fn every_flipped_bit_of_a_link_packet_is_found() {
    let clean = Blocks::of(&CAPTURE);
    let (place, number) = clean.find(40, |block| !Blocks::is_data(block));
    for bit in 0..FlowControlPacket::LEN * 8 {
        let mut damaged = clean.clone();
        damaged.frame(place)[bit / 8] ^= 1 << (bit % 8);
        assert!(found(&damaged).contains(&(number, "lpcrc")), "bit {bit}");
    }
}

#[test]
fn a_missing_packet_is_a_gap_in_its_flow_and_in_the_count_of_blocks() {
    let mut blocks = Blocks::of(&CAPTURE);
    let (place, number) = blocks.find(4, opcode_is(0x01));
    blocks.0.remove(place);
    let found = found(&blocks);
    let of = |rule: &str| found.iter().filter(|(_, name)| *name == rule).count();
    assert_eq!((of("psn-gap"), of("fctbs")), (1, 1), "{found:?}");
    assert!(found.iter().all(|(frame, _)| *frame >= number), "{found:?}");
}

#[test]
fn a_repeated_packet_is_no_gap() {
    let mut blocks = Blocks::of(&CAPTURE);
    let (place, number) = blocks.find(4, opcode_is(0x01));
    blocks.0.insert(place, blocks.0[place].clone());
    let found = found(&blocks);
    assert!(found.contains(&(number + 1, "retry-early")), "{found:?}");
    assert!(found.iter().any(|(_, rule)| *rule == "fctbs"), "{found:?}");
    assert!(!found.iter().any(|(_, rule)| *rule == "psn-gap"), "{found:?}");
}

/// Changes a packet and mends its CRCs; what is found then.
fn amended(n: usize, code: u8, change: impl Fn(&mut [u8])) -> (u64, Vec<(u64, &'static str)>) {
    let mut blocks = Blocks::of(&CAPTURE);
    let (place, number) = blocks.find(n, opcode_is(code));
    let frame = blocks.frame(place);
    change(frame);
    refresh_both(frame);
    (number, found(&blocks))
}

#[test]
fn each_length_and_version_is_compared_with_the_octets() {
    let cases: [(u8, usize, u8, &str); 6] = [
        (0x00, 5, 0x01, "pktlen"),
        (0x00, 0, 0x01, "version"),
        (0x00, 9, 0x03, "version"),
        (0x00, 9, 0x10, "full-mtu"),
        (0x02, 9, 0x20, "dma-length"),
        (0x11, 9, 0x30, "padcnt"),
    ];
    for (code, at, bits, rule) in cases {
        // PadCnt of a SEND Last changes its size, which no header announces.
        let code = if rule == "dma-length" { 0x28 } else { code };
        let (number, found) = amended(3, code, |frame| frame[at] ^= bits);
        assert_eq!(found, [(number, rule)], "octet {at} of opcode {code:#04x}");
    }
}

#[test]
fn messages_keep_their_order() {
    // A Middle that says First begins a message within one; a First that says Middle continues none.
    let (number, found) = amended(30, 0x01, |frame| frame[8] = 0x00);
    assert!(found.contains(&(number, "message-order")), "{found:?}");
    let (number, found) = amended(30, 0x00, |frame| frame[8] = 0x01);
    assert!(found.contains(&(number, "message-order")), "{found:?}");
    let (number, found) = amended(3, 0x11, |frame| frame[8] = 0x0c);
    assert_eq!(found.first(), Some(&(number, "short")), "a READ request has a RETH");
}

/// Changes the `n`th link packet from `way` (1 received, 2 sent) and mends its CRC.
fn told(n: usize, change: impl Fn(&mut FlowControlPacket)) -> (u64, Vec<(u64, &'static str)>) {
    let mut blocks = Blocks::of(&CAPTURE);
    let (place, number) = blocks.find(n, |block| !Blocks::is_data(block));
    let frame = blocks.frame(place);
    let mut packet = FlowControlPacket::parse(frame).unwrap();
    change(&mut packet);
    packet.emit(frame);
    (number, found(&blocks))
}

#[test]
fn what_link_packets_say_is_compared_with_what_was_sent() {
    let (number, found) = told(60, |packet| packet.fctbs = (packet.fctbs + 5) % 4096);
    assert_eq!(found[0], (number, "fctbs"));
    let (number, found) = told(60, |packet| packet.fccl = (packet.fccl + 2100) % 4096);
    assert!(found.contains(&(number, "fccl-back")), "{found:?}");
    let (number, found) = told(60, |packet| packet.fccl = (packet.fccl + 2000) % 4096);
    assert!(found.contains(&(number, "fccl-window")), "{found:?}");
    let (number, found) = told(60, |packet| packet.fccl = (packet.fccl + 4000) % 4096);
    assert!(found.contains(&(number, "fccl-back")), "{found:?}");
    let (number, found) = told(60, |packet| packet.virtual_lane = VirtualLane::MANAGEMENT);
    assert_eq!(found, [(number, "fcp-lane")]);
    let (number, found) = told(60, |packet| packet.op = FlowControlOp::Unknown(7));
    assert_eq!(found, [(number, "fcp-op")]);
    let (number, found) = told(0, |packet| packet.fctbs = 1);
    assert!(found.contains(&(number, "fctbs-start")), "{found:?}");
}

#[test]
fn data_beyond_the_last_limit_is_found() {
    // Every offer that the switch's neighbours make is taken back to nothing.
    let mut blocks = Blocks::of(&CAPTURE);
    let (place, _) = blocks.find(0, Blocks::is_data);
    let interface = blocks.0[place][8];
    for place in 0..blocks.0.len() {
        let block = &blocks.0[place];
        if Blocks::is_packet(block) && block[8] == interface + 1 {
            let frame = blocks.frame(place);
            let mut packet = FlowControlPacket::parse(frame).unwrap();
            packet.fccl = 0;
            packet.emit(frame);
        }
    }
    let found = found(&blocks);
    assert!(found.iter().any(|(_, rule)| *rule == "credit"), "{found:?}");
}

#[test]
fn silence_is_found_where_the_symbol_time_is_known() {
    let mut blocks = Blocks::of(&CAPTURE);
    let (place, number) = blocks.find(60, |block| !Blocks::is_data(block));
    // Its stamp, in nanoseconds, and 65 536 symbols of 4 ns are 262 144 ns.
    let stamp = &mut blocks.0[place][16..20];
    let later = u32::from_le_bytes(stamp.try_into().unwrap()) + 300_000;
    stamp.copy_from_slice(&later.to_le_bytes());
    let settings = Settings { symbol: Some(Duration::from_ns(4)), ..Settings::default() };
    let report = verify(&blocks.octets()[..], "silent", &settings, 1000).unwrap();
    let found: Vec<_> = report.findings.iter().map(|f| (f.frame, f.rule)).collect();
    assert_eq!(found, [(number, "refresh")]);
}

#[test]
fn a_cut_frame_is_not_checked_and_not_called_wrong() {
    let cut = SCENARIO.replace("[\"s0:*\", \"h1:1\"]", "[\"s0:*\"]\nsnaplen = \"64 B\"");
    let report = report(&capture_of(&cut));
    assert_eq!(report.findings, []);
    let cut = report.tally.not_checked["CRCs of frames cut in the file"];
    assert!(cut > 100 && report.tally.checked["psn"] > 100, "{:?}", report.tally);
    assert_eq!(report.tally.checked["vcrc"] + report.tally.checked["lpcrc"] + cut, report.frames);
}

#[test]
fn a_file_that_breaks_off_is_checked_up_to_there() {
    let mut torn = 0;
    for end in CAPTURE.len() / 2..CAPTURE.len() / 2 + 300 {
        let report = report(&CAPTURE[..end]);
        assert!(report.frames > 100);
        assert_eq!(report.findings, [], "what is not all there is not judged");
        let error = report.error.unwrap_or_default();
        let cut = report.tally.not_checked.get("CRCs of frames cut in the file").copied();
        assert_eq!(report.verdict, if error.is_empty() { "pass" } else { "unreadable" });
        assert!(cut.is_none() || error.contains("is torn"), "{error}");
        torn += cut.unwrap_or(0);
    }
    assert!(torn > 30, "{torn} of 300 ends are within frames");
    assert!(verify(&b"nonsense"[..], "", &Settings::default(), 1).is_err());
}

#[test]
fn findings_are_kept_up_to_a_limit_and_counted_beyond() {
    let mut blocks = Blocks::of(&CAPTURE);
    for place in 0..blocks.0.len() {
        if Blocks::is_data(&blocks.0[place]) {
            *blocks.frame(place).last_mut().unwrap() ^= 1;
        }
    }
    let octets = blocks.octets();
    let report = verify(&octets[..], "", &Settings::default(), 3).unwrap();
    assert_eq!(report.findings.len(), 3);
    assert!(report.counts["vcrc"] > 100, "{:?}", report.counts);
    assert_eq!(report.counts.len(), 1, "what damaged frames say is not believed");
}

#[test]
fn every_rule_has_its_own_id() {
    let rules: Vec<_> = rules::FAMILIES.iter().flat_map(|row| row.rules).collect();
    let ids: std::collections::BTreeSet<_> = rules.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), rules.len());
}
