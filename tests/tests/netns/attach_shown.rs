//! What captures, reports, counters and faults show of attached ports.

use super::attach::{Bench, has};
use super::laboratory::{eventually, in_repository, pausebed};
use super::permitted;
use capture::reader::CaptureReader;
use emulation::cable::namespace::within;
use emulation::cable::packet_socket::{OutgoingFrame, PacketSocket};
use proto::events::Direction;
use serde_json::Value;
use std::fs;
use std::io::BufReader;
use std::path::Path;

const TWO: &str = "tests/tests/netns/attach.toml";
/// PAUSE for 65535 quanta. Source: IEEE 802.3, 31B.
const PAUSE: [u8; 18] = [0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0, 1, 0xff, 0xff];
/// Quanta count bit times of 100 Mb/s: that pause lasts 335.5 ms.
const SLOW: &str = "lab.attach=[{port='s1:1',iface='a',pause='pause',pause_rate='100Mbps'},\
                    {port='s1:2',iface='b',pause='pause',pause_rate='100Mbps'}]";

/// A lab of the scenario in the switch's namespace; it is stopped on drop.
struct Shown {
    bench: Bench,
}

impl Shown {
    fn up(sets: &[&str]) -> Shown {
        let lab = Shown { bench: Bench::new().with_addresses() };
        let sets: String = sets.iter().map(|set| format!(" --set {set}")).collect();
        let file = in_repository(TWO);
        lab.succeeds(&format!("up {} --name shown{sets}", file.display()));
        let answers =
            eventually(20.0, || lab.bench.output(0, "ping -c 1 -W 1 198.18.0.2").status.success());
        assert!(answers, "no answer through the lab");
        lab
    }

    /// The command line of `pausebed`; words contain no spaces.
    fn line(&self, words: &str) -> String {
        let labs = self.bench.folder.path().join("labs");
        format!("env PAUSEBED_LABS={} {} {words}", labs.display(), pausebed().display())
    }

    fn succeeds(&self, words: &str) -> String {
        self.bench.succeeds(2, &self.line(words))
    }

    /// The row of a port in `show SUBJECT`, as numbers by column.
    fn row(&self, subject: &str, port: &str) -> Vec<u64> {
        let text = self.succeeds(&format!("show {subject}"));
        let row = text.lines().find(|line| line.split_whitespace().next() == Some(port));
        let row = row.unwrap_or_else(|| panic!("no row {port}: {text}"));
        row.split_whitespace().skip(2).map(|cell| cell.parse().expect("a number")).collect()
    }

    fn ping_passes(&self) -> bool {
        self.bench.output(0, "ping -c 1 -W 1 198.18.0.2").status.success()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // The lab is down already if the test has passed.
        let _ = self.bench.output(2, &self.line("down shown"));
    }
}

/// Frames of a capture by direction.
fn directions(file: &Path) -> [usize; 2] {
    let opened = fs::File::open(file).expect("the capture is written");
    let frames: Vec<_> = CaptureReader::new(BufReader::new(opened))
        .expect("it is a capture")
        .map(|frame| frame.expect("it is complete"))
        .collect();
    assert!(frames.iter().all(|frame| frame.interface.as_deref() == Some("s1:1")));
    [Direction::Rx, Direction::Tx]
        .map(|way| frames.iter().filter(|frame| frame.direction == Some(way)).count())
}

#[test]
fn a_run_captures_both_directions_and_its_report_names_the_hosts() {
    if !permitted() || !has("ping") {
        return;
    }
    let mut bench = Bench::new().with_addresses();
    let out = bench.folder.path().join("out");
    let folder = out.display().to_string();
    let words = ["--set", "run.duration=\"4 s\"", "--set", "run.capture=[\"s1:1\"]"];
    bench.start(TWO, &[&words[..], &["--out", &folder]].concat());
    bench.succeeds(0, "ping -c 20 -i 0.02 198.18.0.2");
    let run = bench.finish();
    assert_eq!(run["verdict"], "pass", "{run:#}");
    let [received, sent] = directions(&out.join("capture.pcapng"));
    assert!(received >= 20 && sent >= 20, "{received} received, {sent} sent");
    let text = fs::read_to_string(out.join("topology.json")).expect("it is written");
    let topology: Value = serde_json::from_str(&text).expect("JSON");
    let kinds: Vec<_> = topology["nodes"].as_array().expect("nodes").iter().collect();
    assert_eq!(kinds.iter().filter(|node| node["kind"] == "host").count(), 2, "{text}");
    assert_eq!(topology["links"][0]["a"], "s1:1");
    assert_eq!(topology["links"][0]["b"], "a:1");
    bench.succeeds(2, &format!("{} report {folder}", pausebed().display()));
    let page = fs::read_to_string(out.join("report.html")).expect("it is written");
    assert!(!page.contains("of 0.10 frame times"));
}

#[test]
fn a_lab_shows_faults_and_pauses_of_attached_ports() {
    if !permitted() || !has("ping") {
        return;
    }
    let lab = Shown::up(&[SLOW, "fabric.switch.headroom=128KB"]);
    let file = lab.bench.folder.path().join("lab.pcapng");
    let capturing = lab.line(&format!("capture s1:1 -w {} --seconds 2", file.display()));
    let mut capturing = lab.bench.command(2, &capturing).spawn().expect("it starts");
    assert!(eventually(5.0, || file.is_file()), "the capture has begun");
    lab.bench.succeeds(0, "ping -c 10 -i 0.02 198.18.0.2");
    assert!(capturing.wait().expect("a child").success());
    let [received, sent] = directions(&file);
    assert!(received >= 10 && sent >= 10, "{received} received, {sent} sent");

    let state = lab.succeeds("status --json");
    let state: Value = serde_json::from_str(&state).expect("JSON");
    assert!(state["shown"]["late_p99_thousandths"].is_null(), "{state:#}");

    // ICMP has a checksum over its payload: a corrupt request gets no answer, and is sent.
    let before = lab.row("links", "s1:2");
    lab.succeeds("fault s1:2 corrupt");
    assert!(!lab.ping_passes(), "the checksum is wrong");
    let after = lab.row("links", "s1:2");
    assert!(after[0] > before[0] && after[7] > before[7], "{before:?} {after:?}");
    lab.succeeds("fault s1:2 mend");
    assert!(eventually(5.0, || lab.ping_passes()), "the port is repaired");

    // PAUSE of 335 ms holds the echo request.
    let namespace = std::path::PathBuf::from(lab.bench.path(1));
    within(Some(&namespace), || {
        let mut socket = PacketSocket::open("eth0")?;
        let mut octets = PAUSE.to_vec();
        octets.resize(60, 0);
        socket.send([OutgoingFrame { head: &[], octets: &octets }].into_iter())
    })
    .expect("the frame is sent");
    let paused = || lab.row("pfc", "s1:2");
    assert!(eventually(5.0, || paused()[4] > 330_000), "{:?}", paused());
    // Each priority shows it.
    assert!(paused()[2] == 1 && paused()[4] < 345_000, "{:?}", paused());

    lab.succeeds("set link s1:1 --down");
    assert!(!lab.ping_passes(), "both directions are cut");
    let carrier = || lab.bench.succeeds(0, "ip -o link show eth0");
    assert!(!carrier().contains("NO-CARRIER"), "the host senses nothing");
    lab.succeeds("set link s1:1 --up");
    assert!(eventually(5.0, || lab.ping_passes()), "the link is whole");
    lab.succeeds("set link s1:1 --down --carrier");
    assert!(eventually(5.0, || carrier().contains("NO-CARRIER")), "{}", carrier());
    lab.succeeds("set link s1:1 --up --carrier");
    assert!(eventually(5.0, || !carrier().contains("NO-CARRIER")), "{}", carrier());
    lab.succeeds("down shown");
}
