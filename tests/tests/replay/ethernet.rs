//! Captures of RoCE through a switch of Ethernet: octet for octet, or marked where a queue stands.

use super::python::scapy;
use super::{all_frames, replayed, replayed_live, sample, tshark};
use capture::reader::CapturedFrame;
use proto::events::Direction;
use proto::units::{BitRate, Bytes};
use proto::wire::internet::mark_congestion;
use proto::wire::roce::Packet;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use std::path::{Path, PathBuf};
use topo::command::Exit;

/// All captures of RoCE that lie beside the sample.
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

/// Of what passed a port one way: the frames, in order.
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

/// Every frame of `input` has left `output` by the two ports it did not come in by, and by no other.
fn assert_unchanged(input: &[CapturedFrame], output: &[CapturedFrame], file: &Path) {
    let input = octets(&input.iter().collect::<Vec<_>>());
    for port in ["s0:2", "s0:3"] {
        let left = octets(&passing(output, port, Direction::Tx));
        assert!(left == input, "{}: {port} differs", file.display());
    }
    assert!(passing(output, "s0:1", Direction::Tx).is_empty());
}

#[test]
fn every_capture_of_roce_comes_out_of_a_switch_octet_for_octet_and_in_order() {
    for file in roce() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().to_str().expect("UTF-8");
        let (account, exit) = replayed(&file, &["--at", "s0:1", "--gap", "0 us", "--out", out]);
        assert_eq!(exit, Exit::Good, "{account:?}");
        let input = all_frames(&file);
        assert_eq!((account.fed, account.left), (input.len() as u64, input.len() as u64));
        let output = all_frames(&account.capture.expect("it was to be kept"));
        assert_unchanged(&input, &output, &file);
    }
}

#[test]
fn a_live_switch_lets_a_capture_of_roce_through_octet_for_octet() {
    let Some(file) = roce().into_iter().next() else { return };
    let Some((_, output)) = replayed_live(&file, "s0:1", 1_500) else { return };
    assert_unchanged(&all_frames(&file), &output, &file);
}

/// Kmin and Kmax of the scenario, and the rate of its ways out.
const LIMIT: Bytes = Bytes::new(4_000);
const SLOW_BPS: u64 = 400_000_000;

/// What stood in the queue of `port` when each of its frames began to leave, the frame included: what
/// had come in by then and not left, by the times in the capture.
fn standing(output: &[CapturedFrame], port: &str) -> Vec<Bytes> {
    let slow = BitRate::new(SLOW_BPS).expect("it is not zero");
    let size = |one: &CapturedFrame| one.frame.line_size();
    let came = passing(output, "s0:1", Direction::Rx);
    let begun = |left: &CapturedFrame| left.at_ns - size(left).time_at(slow).as_ps() / 1_000;
    let queue = |(index, left): (usize, &CapturedFrame)| {
        let here = came.iter().filter(|one| one.at_ns <= begun(left)).count();
        Bytes::new(came[index..here].iter().map(|one| size(one).get()).sum())
    };
    passing(output, port, Direction::Tx).into_iter().enumerate().map(queue).collect()
}

/// Replays all captures past slow ports; each frame as it left, with whether it was to be marked.
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
        assert_eq!(account.left, account.fed, "nothing is lost on the way");
        let output = all_frames(&account.capture.expect("it was to be kept"));
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

/// Real input: an adapter that says ECT(0) of data and acknowledgements alike, and Linux that does not.
#[test]
fn behind_a_full_queue_what_says_ect_leaves_marked_with_all_checks_right() {
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
        let packet = Packet::parse(octets).expect("genuine").expect("RoCE");
        let icrc: String = packet.icrc.to_le_bytes().iter().map(|o| format!("{o:02x}")).collect();
        assert_eq!((&told["icrc"], &told["computed_icrc"]), (&icrc.clone().into(), &icrc.into()));
        assert_eq!(told["ip_checksum"], told["computed_ip_checksum"], "marked: {marked}");
    }
    println!("{marked} of {} captured frames marked; scapy finds all checks right", frames.len());
}

#[test]
fn tshark_takes_the_marked_output_apart_and_finds_nothing_malformed() {
    let Some(file) = roce().into_iter().next() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("UTF-8");
    let scenario =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../topo/scenarios/replay/ethernet-slow-ports.toml");
    let words = ["--at", "s0:1", "--gap", "0 us", "--scenario", scenario, "--out", out];
    replayed(&file, &words);
    let capture = folder.path().join("capture.pcapng");
    // Some of its source ports are those of TFTP.
    let asked = |filter: &str| {
        let sums = ["--disable-protocol", "tftp", "-o", "ip.check_checksum:TRUE", "-Y", filter];
        Some(tshark(&capture, &sums)?.len())
    };
    let Some(malformed) = asked("_ws.malformed || ip.checksum.status != 1") else {
        eprintln!("SKIPPED: tshark is not here");
        return;
    };
    let frames = all_frames(&file).len();
    let marked = asked("infiniband.bth && ip.dsfield.ecn == 3 && frame.interface_name == \"s0:2\"");
    assert_eq!((malformed, asked("infiniband.bth")), (0, Some(3 * frames)));
    assert!(marked > Some(90), "{marked:?} of {frames} marked at s0:2");
}
