//! Captured frames through a switch, octet for octet, and every way in which a replay is refused.
//!
//! The capture is in `../shared/captures` beside the repository, or in the folder that `PAUSEBED_CAPTURES`
//! names. Without the capture, tshark or the built program the tests are skipped. The tests call the library
//! function behind the command; only the live replay, which has daemons, starts the program.

// Like a user, the tests open the output with tshark.
#![expect(clippy::disallowed_methods, reason = "tests here start tshark and pausebed")]

#[path = "replay/ethernet.rs"]
mod ethernet;
#[path = "witnesses/python.rs"]
mod python;

use capture::reader::{CaptureReader, CapturedFrame};
use cli::command::{Exit, Failure, replay};
use emulation::wiring::End;
use launch::replay::{Account, account};
use proto::events::Direction;
use proto::frame::FrameKind;
use proto::ids::{PortNumber, VirtualLane};
use proto::link::credit::CreditFlow;
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::classify::classify;
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

const SAMPLE: &str = "ib/infiniband-wiki-frames-1-25.pcap";
const ONE_SWITCH: &str = include_str!("../../topo/scenarios/replay/one-switch.toml");

fn sample() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PAUSEBED_CAPTURES") {
        let file = PathBuf::from(named).join(SAMPLE);
        assert!(file.is_file(), "PAUSEBED_CAPTURES is set, but {} is not a file", file.display());
        return Some(file);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures").join(SAMPLE);
    if !file.is_file() {
        skip::because!("no capture at {}; set PAUSEBED_CAPTURES", file.display());
        return None;
    }
    Some(file)
}

fn options(file: &Path, more: &[&str]) -> replay::Options {
    let file = file.to_str().expect("a path in UTF-8");
    replay::Options::parse(&[&[file], more].concat()).expect("the options are valid")
}

/// Replays `file`; returns the account and the resulting exit code.
fn replayed(file: &Path, more: &[&str]) -> (Account, Exit) {
    let options = options(file, more);
    let account = replay::replay(&options, "a test").expect("the replay succeeds");
    let exit = replay::exit_of(&account);
    (account, exit)
}

fn all_frames(file: &Path) -> Vec<CapturedFrame> {
    let input = BufReader::new(File::open(file).expect("a readable file"));
    let reader = CaptureReader::new(input).expect("a capture");
    reader.map(|frame| frame.expect("a whole capture")).collect()
}

fn frames(file: &Path) -> Vec<CapturedFrame> {
    let mut packets = all_frames(file);
    packets.retain(|captured| captured.frame.kind == FrameKind::Infiniband);
    packets
}

fn counts<const N: usize>(rows: [(&str, u64); N]) -> BTreeMap<String, u64> {
    rows.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

fn destination(octets: &[u8]) -> u64 {
    classify(FrameKind::Infiniband, octets).expect("a valid packet").destination.number()
}

#[test]
fn every_frame_of_the_sample_is_accounted_for() {
    let Some(file) = sample() else { return };
    let (account, exit) = replayed(&file, &["--at", "s0:4"]);
    assert_eq!(exit, Exit::Good, "{account:?}");
    assert_eq!((account.fed, account.left, account.inside), (25, 21, 0));
    // Eight unicast frames each for LIDs 1 and 4, and five multicast frames by all three ports.
    assert_eq!(account.left_by, counts([("s0:1", 13), ("s0:2", 13), ("s0:3", 5)]));
    assert_eq!(account.ended, counts([("management", 4)]));
    assert!(account.accounted && account.conservation.closes());
    // The adapters have no queue pair for these frames; the multicast frames reach all three adapters.
    let no_queue_pair = counts([("queue_pair", 8)]);
    let beyond = [("h1:1", no_queue_pair.clone()), ("h4:1", no_queue_pair)];
    let beyond = beyond.map(|(port, ended)| (port.to_owned(), ended));
    assert_eq!(account.ended_beyond, BTreeMap::from(beyond));
    assert_eq!(account.delivered, counts([("h1", 5), ("h4", 5), ("h5", 5)]));
    assert_eq!(
        account.conservation.injected,
        25 + 5 * 2,
        "each multicast copy counts as one injected frame"
    );
    assert_eq!(account.capture, None, "without --out there is no capture");
}

#[test]
fn replayed_frames_leave_the_switch_unchanged() {
    let Some(file) = sample() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("UTF-8");
    let (account, _) = replayed(&file, &["--at", "s0:4", "--out", out]);
    let capture = account.capture.expect("--out writes a capture");
    assert_eq!(capture, folder.path().join("capture.pcapng"));
    let output = frames(&capture);
    let passing = |port: &str, direction| -> Vec<&[u8]> {
        let here = output.iter().filter(|one| one.interface.as_deref() == Some(port));
        let way = here.filter(|one| one.direction == Some(direction));
        way.map(|one| &one.frame.octets[..]).collect()
    };
    let input = frames(&file);
    let input: Vec<&[u8]> = input.iter().map(|one| &one.frame.octets[..]).collect();
    assert_eq!(passing("s0:4", Direction::Rx), input, "all frames enter in order");
    assert!(passing("s0:4", Direction::Tx).is_empty(), "no frame leaves by the ingress port");
    // The lane is unchanged and there is no congestion, so even the VCRC must be equal.
    for (port, lid) in [("s0:1", 1), ("s0:2", 4), ("s0:3", 5)] {
        let due = |octets: &&&[u8]| [lid, 0xc000].contains(&destination(octets));
        let expected: Vec<&[u8]> = input.iter().filter(due).copied().collect();
        assert_eq!(passing(port, Direction::Tx), expected, "{port}");
    }
}

/// Standard output of tshark, one line for each packet; `None` if tshark cannot be started.
fn tshark(file: &Path, more: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("tshark").arg("-n").arg("-r").arg(file).args(more).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("fields are text");
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn tshark_dissects_the_output_without_errors() {
    let Some(file) = sample() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("UTF-8");
    replayed(&file, &["--at", "s0:4", "--out", out]);
    let capture = folder.path().join("capture.pcapng");
    let Some(malformed) = tshark(&capture, &["-Y", "_ws.malformed"]) else {
        skip::because!("tshark is not installed");
        return;
    };
    assert!(malformed.is_empty(), "{malformed:?}");
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "infiniband.lrh.dlid"];
    let listed = |filter| tshark(&capture, &[&["-Y", filter], &fields[..]].concat());
    let packets = listed("infiniband").expect("the program started before");
    let count = |port: &str, lid: &str| {
        packets.iter().filter(|line| **line == format!("{port}\t{lid}")).count()
    };
    assert_eq!(packets.len(), 25 + 13 + 13 + 5);
    assert_eq!((count("s0:1", "1"), count("s0:1", "49152")), (8, 5));
    assert_eq!((count("s0:2", "4"), count("s0:2", "49152")), (8, 5));
    assert_eq!((count("s0:3", "5"), count("s0:3", "49152")), (0, 5));
    assert_eq!((count("s0:4", "65535"), count("s0:4", "1")), (4, 8));
    // Compare the full dissection, packet by packet, with that of the sample.
    let deep = ["-Y", "infiniband", "-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"];
    let output = tshark(&capture, &[&deep[..], &["-e", "frame.interface_name"]].concat());
    let output = output.expect("the program started before");
    let came_in = output.iter().filter_map(|line| line.strip_suffix("\ts0:4"));
    let input = tshark(&file, &deep).expect("the program started before");
    assert_eq!(came_in.collect::<Vec<_>>(), input);
}

#[test]
fn frames_routed_to_their_ingress_port_are_dropped() {
    let Some(file) = sample() else { return };
    let (account, exit) = replayed(&file, &["--at", "s0:2"]);
    assert_eq!(exit, Exit::Good);
    assert_eq!(account.ended, counts([("hairpin", 8), ("management", 4)]));
    assert_eq!(account.left_by, counts([("s0:1", 13), ("s0:3", 5)]));
}

#[test]
fn multicast_frames_without_a_route_are_dropped_and_counted() {
    let Some(file) = sample() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = folder.path().join("no-group.toml");
    let (before, _) =
        ONE_SWITCH.split_once("[[fabric.multicast]]").expect("the scenario has a multicast group");
    std::fs::write(&scenario, before).expect("a writable folder");
    let scenario = scenario.to_str().expect("UTF-8");
    let (account, exit) = replayed(&file, &["--at", "s0:4", "--scenario", scenario]);
    assert_eq!(exit, Exit::Good);
    assert_eq!(account.ended, counts([("management", 4), ("no_multicast_route", 5)]));
    assert_eq!(account.left_by, counts([("s0:1", 8), ("s0:2", 8)]));
}

#[test]
fn overrides_and_background_traffic_keep_the_replay_account_complete() {
    let Some(file) = sample() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = folder.path().join("busy.toml");
    let busy = "\n[[traffic]]\nname = \"beside\"\nfrom = [\"h1\", \"h4\"]\nto = \"h5\"\n\
         load = 0.4\nsize = \"2048 B\"\n";
    std::fs::write(&scenario, format!("{ONE_SWITCH}{busy}")).expect("a writable folder");
    let scenario = scenario.to_str().expect("UTF-8");
    let slow = "fabric.link.rate=\"4 Gbps\"";
    let arguments = ["--at", "s0:4", "--scenario", scenario, "--set", slow];
    let (account, exit) = replayed(&file, &arguments);
    assert_eq!(exit, Exit::Good, "{account:?}");
    assert!(
        account.conservation.injected > 500,
        "the background traffic ran: {:?}",
        account.conservation
    );
    assert_eq!((account.fed, account.left, account.inside), (25, 21, 0));
    assert_eq!(account.left_by, counts([("s0:1", 13), ("s0:2", 13), ("s0:3", 5)]));
    assert_eq!(account.ended, counts([("management", 4)]), "no buffer was overrun");
}

#[test]
fn a_replay_at_line_rate_into_a_slow_port_counts_buffer_overruns() {
    let Some(file) = sample() else { return };
    // Frames to LID 4 leave at a hundredth of the rate; the buffer holds two frames.
    let slow = "fabric.links=[{a=\"h1:1\",b=\"s0:1\"},{a=\"h4:1\",b=\"s0:2\",rate=\"80 Mbps\"},\
         {a=\"h5:1\",b=\"s0:3\"},{a=\"h6:1\",b=\"s0:4\"}]";
    let arguments = ["--at", "s0:4", "--gap", "0 ns", "--set", slow];
    let tight = ["--set", "fabric.switch.buffer=\"512 B\"", "--set", "fabric.mtu=\"256 B\""];
    let (account, exit) = replayed(&file, &[&arguments[..], &tight].concat());
    assert_eq!(exit, Exit::Good, "overruns are counted, so no frame is missing: {account:?}");
    assert!(account.ended["buffer_overrun"] > 0, "{account:?}");
    assert_eq!(account.left + account.ended.values().sum::<u64>() + account.inside, 25);
}

#[test]
fn a_recorded_capture_can_be_replayed_without_its_link_packets() {
    let Some(file) = sample() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().to_str().expect("UTF-8");
    replayed(&file, &["--at", "s0:4", "--out", out]);
    let capture = folder.path().join("capture.pcapng");
    let (account, exit) = replayed(&capture, &["--at", "s0:4", "--speed", "0.5"]);
    assert_eq!(exit, Exit::Good, "{account:?}");
    assert_eq!(account.fed, 25 + 13 + 13 + 5);
    assert!(account.skipped["link packet"] > 20, "{:?}", account.skipped);
    // The capture contains each frame once at its ingress port and once for each egress port.
    assert_eq!(account.ended, counts([("management", 4)]));
    assert_eq!(account.left, account.fed - 4);
}

#[test]
fn two_replays_give_identical_captures() {
    let Some(file) = sample() else { return };
    let capture = |folder: &Path| {
        let out = folder.to_str().expect("UTF-8");
        replayed(&file, &["--at", "s0:4", "--out", out]);
        std::fs::read(folder.join("capture.pcapng")).expect("the capture was written")
    };
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    assert!(
        capture(folders[0].path()) == capture(folders[1].path()),
        "the captures are equal octet for octet"
    );
}

/// Replays `file` live, as users do; returns the account in JSON, which must equal that of its twin, and the captured
/// frames. Returns `None` if the program is not built.
///
/// On a busy host the run is inconclusive, but the account must still be equal.
fn replayed_live(
    file: &Path,
    at: &str,
    dilation: u64,
) -> Option<(serde_json::Value, Vec<CapturedFrame>)> {
    let own = std::env::current_exe().expect("a test has a path");
    let profile = own.parent().and_then(Path::parent).expect("target/<profile>/deps/<test>");
    let program = profile.join("pausebed");
    if !program.is_file() {
        skip::because!("{} is not built", program.display());
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(program);
    command.arg("replay").arg(file).arg("--out").arg(folder.path());
    command.args(["--at", at, "--backend", "udp", "--json"]);
    command.arg("--set").arg(format!("run.dilate={dilation}"));
    let output = command.output().expect("the program starts");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{:?}: {talk}", output.status);
    let live: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (twin, _) = replayed(file, &["--at", at]);
    let twin = serde_json::to_value(&twin).expect("plain data");
    for key in ["fed", "left", "left_by", "ended", "ended_beyond", "delivered", "inside"] {
        assert_eq!(live[key], twin[key], "{key}");
    }
    assert_eq!((&live["accounted"], &live["backend"]), (&true.into(), &"udp".into()));
    let captured = all_frames(&folder.path().join("capture.pcapng"));
    Some((live, captured))
}

#[test]
fn a_live_replay_has_the_same_account() {
    let Some(file) = sample() else { return };
    let Some((_, captured)) = replayed_live(&file, "s0:4", 500) else { return };
    let packets = captured.iter().filter(|one| one.frame.kind == FrameKind::Infiniband);
    assert_eq!(packets.count(), 25 + 13 + 13 + 5);
}

/// Checks the statement of `launch::replay` about credits with the port's credit meter.
#[test]
fn credit_for_replayed_frames_is_withdrawn_by_the_next_flow_control_packet() {
    let lane = VirtualLane::truncate(0);
    let (room, full) = (Bytes::new(36 * 2112), Bytes::new(2112));
    let at = |us: u64| Instant::ZERO + Duration::from_us(us);
    let mut port = CreditFlow::new(1, room, full, BitRate::gbps(8), 4, at(0));
    let word = |op, fctbs| FlowControlPacket { op, fctbs, virtual_lane: lane, fccl: 100 };
    port.on_control(&word(FlowControlOp::Init, 0), at(0));
    port.on_control(&word(FlowControlOp::Normal, 0), at(1));
    let told = |port: &mut CreditFlow, us| {
        port.handle_timeout(at(us));
        let mut last = None;
        while let Some(packet) = port.poll_control(at(us)) {
            last = Some(packet.fccl);
        }
        last.expect("a credit refresh is due")
    };
    let honest = told(&mut port, 2);
    for _ in 0..10 {
        assert!(port.admit(lane, full, at(0)));
        port.release(lane, full, at(3));
    }
    assert_eq!(port.in_use(lane), Bytes::new(0), "no buffer leaks");
    assert_eq!(
        told(&mut port, 100),
        honest + 10 * 33,
        "the limit includes room for the replayed frames"
    );
    port.on_control(&word(FlowControlOp::Normal, 0), at(101));
    assert_eq!(told(&mut port, 200), honest, "the next packet withdraws the credit");
}

fn refusal(file: &Path, more: &[&str]) -> String {
    let Failure { exit, message: reason } =
        replay::replay(&options(file, more), "a test").expect_err("bad input");
    assert_eq!(exit, Exit::Usage, "{reason}");
    reason
}

#[test]
fn bad_files_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = |octets: &[u8]| {
        let file = folder.path().join("bad.pcap");
        std::fs::write(&file, octets).expect("a writable folder");
        refusal(&file, &["--at", "s0:4"])
    };
    assert!(refused(b"").contains("empty"));
    assert!(refused(b"a text").contains("neither pcap nor pcapng"));
    let header = |link_type: u8| {
        let mut header =
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        header.extend([link_type, 0, 0, 0]);
        header
    };
    assert!(refused(&header(197)).contains("no InfiniBand frames"));
    assert!(refused(&header(197)[..20]).contains("in the middle of a file header"));
    let record = [&[0; 8][..], &[60, 0, 0, 0, 60, 0, 0, 0], &[0; 60]].concat();
    // Without a scenario the first frame determines the technology; this scenario is InfiniBand.
    let ethernet = folder.path().join("ethernet.pcap");
    std::fs::write(&ethernet, [header(1), record.clone()].concat()).expect("a writable folder");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../topo/scenarios/replay/one-switch.toml");
    let refused_frame = refusal(&ethernet, &["--at", "s0:4", "--scenario", scenario]);
    assert!(refused_frame.contains("1 × Ethernet frame"), "{refused_frame}");
    assert!(refused(&[header(113), record.clone()].concat()).contains("1 × link type 113"));
    let cut = refused(&[header(247), record[..40].to_vec()].concat());
    assert!(cut.contains("in the middle of a"), "{cut}");
    assert!(refusal(folder.path(), &["--at", "s0:4"]).contains("directory"));
    assert!(refusal(&folder.path().join("none"), &["--at", "s0:4"]).contains("No such file"));
}

#[test]
fn bad_ports_and_paces_are_refused_with_a_hint() {
    // The port is checked before the file.
    let none = Path::new("no file");
    assert!(refusal(none, &["--at", "s0:9"]).contains("s0 has ports 1 to 4"));
    assert!(refusal(none, &["--at", "s9:1"]).contains("no node is called"));
    assert!(refusal(none, &["--at", "s0"]).contains("NODE:PORT"));
    assert!(refusal(none, &["--at", "s0:*"]).contains("s0:1, s0:2"));
    let spare = "fabric.nodes=[{name=\"s0\",kind=\"switch\",ports=5},{name=\"h1\",kind=\"nic\"}]";
    let links = "fabric.links=[{a=\"h1:1\",b=\"s0:1\"}]";
    let group = "fabric.multicast=[]";
    let uncabled = ["--at", "s0:5", "--set", spare, "--set", links, "--set", group];
    assert!(refusal(none, &uncabled).contains("no cabled port"));
    assert!(refusal(none, &["--at", "s0:4", "--gap", "10 parsecs"]).contains("--gap"));
    assert!(refusal(none, &["--at", "s0:4", "--set", "fabric.colour=1"]).contains("colour"));
    for wrong in [["--speed", "0"], ["--speed", "-1"], ["--speed", "NaN"]] {
        let arguments = [&["a file", "--at", "s0:4"], &wrong[..]].concat();
        assert!(replay::Options::parse(&arguments).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_captured_ports_are_those_of_the_node_and_of_the_scenario() {
    let Some(file) = sample() else { return };
    let options = options(&file, &["--at", "s0:4", "--set", "run.capture=[\"h5:1\"]"]);
    let prepared = replay::prepare(&options).expect("the input is valid");
    let end = |node, index| End { node, port: PortNumber::from_index(index) };
    let switch: Vec<End> = (0..4).map(|index| end(4, index)).collect();
    assert_eq!(prepared.0.capture, [vec![end(2, 0)], switch].concat());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let experiment = replay::perform(&options, "a test", &prepared, folder.path());
    let experiment = experiment.expect("the run succeeds");
    assert_eq!(account::captures(&experiment).count(), 1);
    let arrived = frames(&folder.path().join("capture.pcapng"));
    let at_h5 = arrived.iter().filter(|one| one.interface.as_deref() == Some("h5:1"));
    assert_eq!(at_h5.filter(|one| one.direction == Some(Direction::Rx)).count(), 5);
}
