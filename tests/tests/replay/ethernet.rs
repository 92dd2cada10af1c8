//! RoCE captures through an Ethernet switch: unchanged, or ECN-marked where a queue builds up.

use super::python::scapy;
use super::{all_frames, replayed, replayed_live, sample, tshark};
use capture::reader::CapturedFrame;
use cli::command::Exit;
use proto::events::Direction;
use proto::units::{BitRate, Bytes};
use proto::wire::internet::mark_congestion;
use proto::wire::roce::Packet;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use std::path::{Path, PathBuf};

/// All RoCE captures in the folder of captures.
fn roce() -> Vec<PathBuf> {
    let Some(folder) = sample().and_then(|file| Some(file.parent()?.with_file_name("rocev2")))
    else {
        return Vec::new();
    };
    let files = std::fs::read_dir(folder).expect("a folder of captures");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "pcap" || end == "pcapng"));
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    files
}

/// The frames that passed a port in one direction, in order.
fn passing<'a>(
    captured: &'a [CapturedFrame],
    port: &str,
    way: Direction,
) -> Vec<&'a CapturedFrame> {
    let here = captured.iter().filter(|one| one.interface.as_deref() == Some(port));
    here.filter(|one| one.direction == Some(way)).collect()
}

fn octets<'a>(frames: &[&'a CapturedFrame]) -> Vec<&'a [u8]> {
    frames.iter().map(|one| &one.frame.octets[..]).collect()
}

/// Asserts that every frame of `input` left by both ports other than its ingress port, unchanged.
fn assert_unchanged(input: &[CapturedFrame], output: &[CapturedFrame], file: &Path) {
    let input = octets(&input.iter().collect::<Vec<_>>());
    for port in ["s0:2", "s0:3"] {
        let left = octets(&passing(output, port, Direction::Tx));
        assert!(left == input, "{}: {port} differs", file.display());
    }
    assert!(passing(output, "s0:1", Direction::Tx).is_empty());
}

#[test]
fn every_roce_capture_leaves_a_switch_unchanged_and_in_order() {
    for file in roce() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().to_str().expect("UTF-8");
        let (account, exit) = replayed(&file, &["--at", "s0:1", "--gap", "0 us", "--out", out]);
        assert_eq!(exit, Exit::Good, "{account:?}");
        let input = all_frames(&file);
        assert_eq!((account.fed, account.left), (input.len() as u64, input.len() as u64));
        let output = all_frames(&account.capture.expect("--out writes a capture"));
        assert_unchanged(&input, &output, &file);
    }
}

#[test]
fn a_live_switch_forwards_a_roce_capture_unchanged() {
    let Some(file) = roce().into_iter().next() else { return };
    let Some((_, output)) = replayed_live(&file, "s0:1", 1_500) else { return };
    assert_unchanged(&all_frames(&file), &output, &file);
}

/// Kmin and Kmax of the scenario, and the rate of its egress ports.
const LIMIT: Bytes = Bytes::new(4_000);
const SLOW_BPS: u64 = 400_000_000;

/// The queue length of `port` when each of its frames began to leave, including the frame. It follows from the
/// arrival and departure times in the capture.
fn standing(output: &[CapturedFrame], port: &str) -> Vec<Bytes> {
    let slow = BitRate::new(SLOW_BPS).expect("the rate is not zero");
    let size = |one: &CapturedFrame| one.frame.line_size();
    let came = passing(output, "s0:1", Direction::Rx);
    let begun = |left: &CapturedFrame| left.at_ns - size(left).time_at(slow).as_ps() / 1_000;
    let queue = |(index, left): (usize, &CapturedFrame)| {
        let here = came.iter().filter(|one| one.at_ns <= begun(left)).count();
        Bytes::new(came[index..here].iter().map(|one| size(one).get()).sum())
    };
    passing(output, port, Direction::Tx).into_iter().enumerate().map(queue).collect()
}

/// Replays all captures through slow ports; returns each departing frame and whether a mark was expected.
fn past_slow_ports() -> Vec<(Vec<u8>, bool)> {
    let scenario =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../topo/scenarios/replay/ethernet-slow-ports.toml");
    let mut all = Vec::new();
    for file in roce() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().to_str().expect("UTF-8");
        let words = ["--at", "s0:1", "--gap", "0 us", "--scenario", scenario, "--out", out];
        let (account, exit) = replayed(&file, &words);
        assert_eq!(exit, Exit::Good, "{account:?}");
        assert_eq!(account.left, account.fed, "no frame is lost");
        let output = all_frames(&account.capture.expect("--out writes a capture"));
        let input = all_frames(&file);
        for port in ["s0:2", "s0:3"] {
            let left = passing(&output, port, Direction::Tx);
            assert_eq!(left.len(), input.len());
            for ((sent, left), queue) in input.iter().zip(left).zip(standing(&output, port)) {
                let mut expected = sent.frame.octets.clone();
                let marked = queue > LIMIT && mark_congestion(&mut expected);
                let name = format!("{}: {port}, {queue} in the queue", file.display());
                assert!(left.frame.octets == expected, "{name}");
                all.push((left.frame.octets.to_vec(), marked));
            }
        }
    }
    all
}

/// Real input: one adapter sends data and acknowledgements as ECT(0); Linux sends them without ECT.
#[test]
fn ect_frames_behind_a_full_queue_leave_marked_with_valid_checks() {
    let frames = past_slow_ports();
    if frames.is_empty() {
        return;
    }
    let marked = frames.iter().filter(|(_, marked)| *marked).count();
    assert!(marked >= 190 && marked < frames.len(), "{marked} of {} marked", frames.len());
    for (octets, _) in &frames {
        assert_eq!((verify_icrc(octets), verify_checksums(octets)), (Ok(()), Ok(())));
    }
    let octets: Vec<Vec<u8>> = frames.iter().map(|(octets, _)| octets.clone()).collect();
    let Some(told) = scapy(&octets) else { return };
    for ((octets, marked), told) in frames.iter().zip(&told) {
        let packet = Packet::parse(octets).expect("a valid frame").expect("a RoCE frame");
        let icrc: String = packet.icrc.to_le_bytes().iter().map(|o| format!("{o:02x}")).collect();
        assert_eq!((&told["icrc"], &told["computed_icrc"]), (&icrc.clone().into(), &icrc.into()));
        assert_eq!(told["ip_checksum"], told["computed_ip_checksum"], "marked: {marked}");
    }
    println!("{marked} of {} captured frames marked; scapy computes the same checks", frames.len());
}

#[test]
fn tshark_dissects_the_marked_output_without_errors() {
    let Some(file) = roce().into_iter().next() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("UTF-8");
    let scenario =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../topo/scenarios/replay/ethernet-slow-ports.toml");
    let words = ["--at", "s0:1", "--gap", "0 us", "--scenario", scenario, "--out", out];
    replayed(&file, &words);
    let capture = folder.path().join("capture.pcapng");
    // Some source ports of the capture are the TFTP port.
    let asked = |filter: &str| {
        let sums = ["--disable-protocol", "tftp", "-o", "ip.check_checksum:TRUE", "-Y", filter];
        Some(tshark(&capture, &sums)?.len())
    };
    let Some(malformed) = asked("_ws.malformed || ip.checksum.status != 1") else {
        skip::because!("tshark is not installed");
        return;
    };
    let frames = all_frames(&file).len();
    let marked = asked("infiniband.bth && ip.dsfield.ecn == 3 && frame.interface_name == \"s0:2\"");
    assert_eq!((malformed, asked("infiniband.bth")), (0, Some(3 * frames)));
    assert!(marked > Some(90), "{marked:?} of {frames} marked at s0:2");
}
