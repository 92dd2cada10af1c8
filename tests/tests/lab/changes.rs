//! A line that is slowed down carries what it is told to; a capture is read while frames come.

use super::laboratory::{alone, eventually};
use super::{INFINIBAND, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

/// The adapter that is looked at; half of its 8 Gb/s is offered to it.
const PORT: &str = "h0:1";

/// When, in picoseconds of fabric time, and how many octets the port has sent until then.
fn sent(place: &Place) -> (u64, u64) {
    let shown = place.json(&["show", "links", PORT, "--json"]);
    let nodes = shown["nodes"].as_array().expect("nodes").iter();
    let ports = nodes.flat_map(|node| node["ports"].as_array().expect("ports"));
    let own = ports.filter(|port| port["port"] == PORT);
    let lanes = own.flat_map(|port| port["lanes"].as_array().expect("lanes"));
    let octets: u64 = lanes.filter_map(|lane| lane["tx_bytes"].as_u64()).sum();
    (shown["at_ps"].as_u64().expect("a time"), octets)
}

/// Bits a second of fabric time that the port sends, over at least so many frame times.
fn rate(place: &Place, frame_times: u64) -> f64 {
    const FRAME_TIME_PS: u64 = 2_074_000;
    let (begin, before) = sent(place);
    let mut now = (begin, before);
    let long = eventually(60.0, || {
        now = sent(place);
        now.0 - begin >= frame_times * FRAME_TIME_PS
    });
    assert!(long, "fabric time stands still");
    (now.1 - before) as f64 * 8e12 / (now.0 - begin) as f64
}

#[test]
fn a_line_carries_what_it_was_slowed_down_to_and_all_of_it_again() {
    let _alone = alone();
    let place = Place::new();
    place.up(INFINIBAND, "one");
    assert!(eventually(20.0, || sent(&place).1 > 100_000), "traffic goes on");
    place.good(&["set", "link", PORT, "--rate", "1 Gbps"]);
    // A frame that was on the line goes on as it was.
    rate(&place, 10);
    let slowed = rate(&place, 800);
    assert!((0.85e9..=1.03e9).contains(&slowed), "{slowed:e} bit/s on a line of 1 Gb/s");
    place.good(&["set", "link", PORT, "--rate", "8 Gbps"]);
    // What has waited meanwhile goes first.
    let mended = rate(&place, 200);
    assert!(mended > 2.5e9, "{mended:e} bit/s on a line of 8 Gb/s");
    place.good(&["down"]);
    place.assert_empty();
}

/// A capture to standard output that would go on for long, and the first octets of it.
fn begin(place: &Place) -> (Child, Vec<u8>) {
    let mut command = place.command(&["capture", PORT, "-w", "-", "--seconds", "90"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let mut octets = vec![0; 20_000];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut octets).expect("frames come");
    assert_eq!(child.try_wait().expect("it is ours"), None, "it prints while it goes on");
    (child, octets)
}

#[test]
fn a_capture_is_printed_while_frames_come_until_it_is_ended_or_nobody_reads() {
    let _alone = alone();
    let place = Place::new();
    place.up(INFINIBAND, "one");
    let (mut child, mut octets) = begin(&place);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it is ours");
    let mut output = child.stdout.take().expect("a pipe");
    output.read_to_end(&mut octets).expect("it ends");
    assert_eq!(child.wait().expect("it is ours").code(), Some(0));
    let file = place.folder.path().join("printed.pcapng");
    fs::write(&file, &octets).expect("a file");
    let verified = place.json(&["verify", "--json", &file.display().to_string()]);
    assert_ne!(verified, Value::Null);
    // The reader goes away.
    let (mut child, _) = begin(&place);
    drop(child.stdout.take());
    let ended = eventually(20.0, || child.try_wait().expect("it is ours").is_some());
    let _ = child.kill();
    assert_eq!((ended, child.wait().expect("it is ours").code()), (true, Some(0)));
    assert!(eventually(20.0, || place.run(&["show", "links"]).status.success()), "it answers");
    place.good(&["down"]);
    place.assert_empty();
}
