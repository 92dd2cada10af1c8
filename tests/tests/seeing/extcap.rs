//! Ports of labs as Wireshark interfaces: a test in the role of Wireshark, and tshark itself.

use crate::laboratory::{eventually, pause, pausebed};
use crate::{INFINIBAND, Lab, if_there};
use capture::reader::CaptureReader;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A capture as Wireshark starts it: a named pipe with `pausebed` at its other end.
struct Capture {
    child: Child,
    fifo: PathBuf,
}

impl Capture {
    fn begin(lab: &Lab, interface: &str, words: &[&str]) -> Capture {
        let fifo = lab.root().join(format!("{interface}.fifo"));
        mkfifo(&fifo, Mode::S_IRWXU).expect("a pipe");
        let at = fifo.display().to_string();
        let first = ["--extcap-interface", interface, "--capture", "--fifo", &at];
        let mut command = lab.command(&[&first[..], words].concat());
        let child = command.stderr(Stdio::inherit()).spawn().expect("the program starts");
        Capture { child, fifo }
    }

    fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("the process is a child of the test").is_some()
    }

    /// The octets from the pipe until the capture is ended after `seconds`.
    fn read(mut self, seconds: f64) -> Vec<u8> {
        let mut pipe = File::open(&self.fifo).expect("pausebed opens the pipe");
        let reader = std::thread::spawn(move || {
            let mut octets = Vec::new();
            pipe.read_to_end(&mut octets).expect("the capture ends");
            octets
        });
        pause(seconds);
        self.end();
        reader.join().expect("the thread does not panic")
    }

    fn end(&mut self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM)
            .expect("the test may signal the process");
        assert!(eventually(20.0, || self.is_over()), "the capture does not end");
        let status = self.child.wait().expect("the process is a child of the test");
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // The process still runs only after a failed test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For each interface the number of frames and their directions.
fn frames(octets: &[u8]) -> BTreeMap<String, (u64, BTreeSet<String>)> {
    let mut reader = CaptureReader::new(octets).expect("a capture");
    let mut found: BTreeMap<String, (u64, BTreeSet<String>)> = BTreeMap::new();
    while let Some(packet) = reader.next_raw().expect("the capture is complete") {
        let packet = packet.expect("the packet has an InfiniBand or RoCE type");
        let name = packet.interface.expect("the interface has a name").to_string();
        let (count, ways) = found.entry(name).or_default();
        *count += 1;
        ways.insert(format!("{:?}", packet.direction.expect("the packet has a direction")));
    }
    found
}

#[test]
fn extcap_lists_ports_and_delivers_their_frames() {
    let lab = Lab::up(INFINIBAND, "one");
    let listing = lab.good(&["--extcap-interfaces", "--extcap-version=4.0"]);
    let lines: Vec<&str> = listing.lines().collect();
    assert!(lines[0].starts_with("extcap {version="), "{listing}");
    // Five cables have ten ends; two interfaces combine several ends.
    assert_eq!(lines.len(), 1 + 2 + 10, "{listing}");
    assert!(listing.contains("interface {value=pausebed-one-s0:3}{display=lab one, s0:3 → s1:3}"));
    let about = |what: &str| lab.good(&["--extcap-interface", "pausebed-one-s0:3", what]);
    assert!(about("--extcap-dlts").starts_with("dlt {number=197}"));
    assert!(about("--extcap-config").contains("{call=--snaplen}"));
    let wrong = lab.run(&["--extcap-interface", "pausebed-one-s9:3", "--extcap-dlts"]);
    assert_eq!(wrong.status.code(), Some(2));

    let found = frames(&Capture::begin(&lab, "pausebed-one-all-ports", &[]).read(3.0));
    // Ten ends, each with data and with flow control packets.
    assert_eq!(found.len(), 20, "{found:?}");
    assert!(found.values().all(|(count, ways)| *count > 5 && ways.len() == 2), "{found:?}");

    let words = ["--direction", "received", "--only-control"];
    let found = frames(&Capture::begin(&lab, "pausebed-one-s0:1", &words).read(2.0));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["s0:1/link"], "only flow control packets");
    assert_eq!(found["s0:1/link"].1.iter().collect::<Vec<_>>(), ["Rx"]);

    let octets = Capture::begin(&lab, "pausebed-one-all-switches", &["--snaplen", "64"]).read(2.0);
    assert!(frames(&octets).keys().all(|name| name.starts_with('s')));
    let mut reader = CaptureReader::new(octets.as_slice()).expect("a capture");
    let mut cut = 0;
    while let Some(packet) = reader.next_raw().expect("the capture is complete") {
        let packet = packet.expect("the packet has an InfiniBand or RoCE type");
        // An ERF header precedes the frame.
        assert!(packet.octets.len() <= 64 + 16);
        cut += usize::from(packet.wire_size as usize > packet.octets.len());
    }
    assert!(cut > 10, "{cut}");
    assert_eq!(lab.good(&["status", "--json"]).matches("\"state\": \"up\"").count(), 1);
}

#[test]
fn extcap_ends_when_wireshark_or_the_lab_ends() {
    let lab = Lab::up(INFINIBAND, "one");
    // Wireshark reads a few octets and closes the pipe.
    let mut capture = Capture::begin(&lab, "pausebed-one-s0:3", &[]);
    let mut pipe = File::open(&capture.fifo).expect("pausebed opens the pipe");
    pipe.read_exact(&mut [0; 4]).expect("a section");
    drop(pipe);
    assert!(eventually(20.0, || capture.is_over()), "the capture ends when the pipe is closed");
    // Wireshark never opens the pipe.
    let mut capture = Capture::begin(&lab, "pausebed-one-s0:2", &[]);
    pause(0.3);
    assert!(!capture.is_over());
    capture.end();
    // The lab ends.
    let mut capture = Capture::begin(&lab, "pausebed-one-s0:1", &[]);
    let mut pipe = File::open(&capture.fifo).expect("pausebed opens the pipe");
    pause(1.0);
    lab.good(&["down"]);
    pipe.read_to_end(&mut Vec::new()).expect("the capture ends");
    assert!(eventually(20.0, || capture.is_over()), "the capture ends with the lab");
    assert_eq!(
        lab.good(&["--extcap-interfaces"]).lines().count(),
        1,
        "without a lab there are no interfaces"
    );
}

#[test]
fn tshark_lists_ports_and_captures_them() {
    let lab = Lab::up(INFINIBAND, "one");
    // Use a separate home: tshark 4.0 finds a user's extcap programs only beside its configuration.
    let at_home = |program: &std::ffi::OsStr, words: &[&str]| {
        let mut command = lab.program(program, words);
        command.env("HOME", lab.root()).env_remove("XDG_CONFIG_HOME");
        if_there(&mut command)
    };
    let installed = at_home(pausebed().as_os_str(), &["wireshark", "install"]);
    let installed =
        String::from_utf8_lossy(&installed.expect("the program starts").stdout).into_owned();
    let link = installed.lines().last().expect("the last line names the link");
    assert_eq!(fs::read_link(link).expect("a link"), pausebed());
    let tshark = |words: &[&str]| at_home("tshark".as_ref(), words);
    let Some(listed) = tshark(&["-D"]) else { return };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("pausebed-one-all-ports"), "{listed}");
    let file = lab.root().join("t.pcapng");
    let output =
        tshark(&["-i", "pausebed-one-s0:3", "-a", "duration:4", "-w", &file.display().to_string()]);
    let output = output.expect("the program started before");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let found = frames(&fs::read(&file).expect("a capture"));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["s0:3", "s0:3/link"], "{said}");
    assert!(found["s0:3"].0 > 20, "{found:?}");
}
