//! A link carries the rate set at run time; a capture is readable while frames arrive.

use super::laboratory::eventually;
use super::{ETHERNET, INFINIBAND, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

/// The observed adapter. Its traffic offers half of its 8 Gb/s.
const PORT: &str = "h0:1";

/// Fabric time in picoseconds, and the octets that the port has sent until then.
fn sent(place: &Place) -> (u64, u64) {
    let shown = place.json(&["show", "links", PORT, "--json"]);
    let nodes = shown["nodes"].as_array().expect("nodes").iter();
    let ports = nodes.flat_map(|node| node["ports"].as_array().expect("ports"));
    let own = ports.filter(|port| port["port"] == PORT);
    let lanes = own.flat_map(|port| port["lanes"].as_array().expect("lanes"));
    let octets: u64 = lanes.filter_map(|lane| lane["tx_bytes"].as_u64()).sum();
    (shown["at_ps"].as_u64().expect("a time"), octets)
}

/// Rate of the port in bits per second of fabric time, over at least `frame_times` frame times.
fn rate(place: &Place, frame_times: u64) -> f64 {
    const FRAME_TIME_PS: u64 = 2_074_000;
    let (begin, before) = sent(place);
    let mut now = (begin, before);
    let long = eventually(60.0, || {
        now = sent(place);
        now.0 - begin >= frame_times * FRAME_TIME_PS
    });
    assert!(long, "fabric time does not advance");
    (now.1 - before) as f64 * 8e12 / (now.0 - begin) as f64
}

#[test]
fn a_link_carries_its_reduced_rate_and_then_its_full_rate() {
    let place = Place::new();
    place.up(INFINIBAND, "one");
    assert!(eventually(20.0, || sent(&place).1 > 100_000), "traffic is running");
    place.good(&["set", "link", PORT, "--rate", "1 Gbps"]);
    // A frame on the line keeps its old rate.
    rate(&place, 10);
    let slowed = rate(&place, 800);
    assert!((0.85e9..=1.03e9).contains(&slowed), "{slowed:e} bit/s on a link of 1 Gb/s");
    place.good(&["set", "link", PORT, "--rate", "8 Gbps"]);
    // Queued frames leave first.
    let mended = rate(&place, 200);
    assert!(mended > 2.5e9, "{mended:e} bit/s on a link of 8 Gb/s");
    place.good(&["down"]);
    place.assert_empty();
}

#[test]
fn settings_of_a_running_switch_change_whole_or_not_at_all() {
    let place = Place::new();
    place.up(ETHERNET, "one");
    place.good(&["set", "switch", "all", "switch.pool.threshold=30 KB", "scheme.kmin=5 KB"]);
    place.good(&["set", "switch", "s0:1", "link.scheduling=[1, 1, 1, 4, 1, 1, 1, \"strict\"]"]);
    for wrong in ["link.rate=1 Gbps", "scheme.nonsense=1", "switch.pool.size=1 MB"] {
        let refused = place.run(&["set", "switch", "s0", "switch.pool.threshold=20 KB", wrong]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("s0: "), "{wrong}: {said}");
    }
    place.down("one");
    place.assert_empty();
}

/// Starts a long capture to standard output; returns the process and the first octets.
fn begin(place: &Place) -> (Child, Vec<u8>) {
    let mut command = place.command(&["capture", PORT, "-w", "-", "--seconds", "90"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let mut octets = vec![0; 20_000];
    child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut octets)
        .expect("the capture prints frames");
    assert_eq!(
        child.try_wait().expect("the process is a child of the test"),
        None,
        "the capture prints before it ends"
    );
    (child, octets)
}

#[test]
fn a_capture_streams_until_it_is_interrupted_or_its_reader_closes() {
    let place = Place::new();
    place.up(INFINIBAND, "one");
    let (mut child, mut octets) = begin(&place);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT)
        .expect("the test may signal the process");
    let mut output = child.stdout.take().expect("a pipe");
    output.read_to_end(&mut octets).expect("the capture ends");
    assert_eq!(child.wait().expect("the process is a child of the test").code(), Some(0));
    let file = place.folder.path().join("printed.pcapng");
    fs::write(&file, &octets).expect("a file");
    let verified = place.json(&["verify", "--json", &file.display().to_string()]);
    assert_ne!(verified, Value::Null);
    // The reader closes the pipe.
    let (mut child, _) = begin(&place);
    drop(child.stdout.take());
    let ended = eventually(20.0, || {
        child.try_wait().expect("the process is a child of the test").is_some()
    });
    let _ = child.kill();
    assert_eq!(
        (ended, child.wait().expect("the process is a child of the test").code()),
        (true, Some(0))
    );
    assert!(eventually(20.0, || place.run(&["show", "links"]).status.success()), "the lab answers");
    place.good(&["down"]);
    place.assert_empty();
}
