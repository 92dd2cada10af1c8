//! Labs that stay, as users have them: up, looked at, changed, taken down, killed on the way.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

#[path = "lab/census.rs"]
mod census;
#[path = "lab/changes.rs"]
mod changes;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "lab/lateness.rs"]
mod lateness;
#[path = "live/objects.rs"]
#[allow(dead_code, reason = "the tests of netns.rs use more of it")]
mod objects;
#[path = "lab/rights.rs"]
mod rights;
#[path = "lab/tcp.rs"]
mod tcp;

use emulation::cable::namespace::Namespace;
use laboratory::{alone, eventually, in_repository, pause, pausebed};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A place for labs, whose labs end with it.
struct Place {
    folder: TempDir,
    /// Where everything is instead of in that folder itself.
    root: Option<PathBuf>,
    /// The network namespace that all is started in, if it is not that of the test.
    namespace: Option<Namespace>,
}

/// The two networks of these tests.
const INFINIBAND: &str = "tests/tests/live/scenario.toml";
const ETHERNET: &str = "tests/tests/live/ethernet.toml";

impl Place {
    fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("pb").tempdir().expect("a folder");
        Place { folder, root: None, namespace: None }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = match self.namespace_file() {
            None => Command::new(pausebed()),
            Some(file) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", file.display())).arg(pausebed());
                command
            }
        };
        command.args(words).env("PAUSEBED_LABS", self.labs()).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.root()).env("TMPDIR", self.root());
        command
    }

    fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(self.folder.path())
    }

    /// The file that its namespace is entered by.
    fn namespace_file(&self) -> Option<PathBuf> {
        let namespace = self.namespace.as_ref()?;
        let (process, number) = (std::process::id(), namespace.descriptor());
        Some(PathBuf::from(format!("/proc/{process}/fd/{number}")))
    }

    fn labs(&self) -> PathBuf {
        self.root().join("labs")
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program starts")
    }

    /// What the program prints, having ended well.
    fn good(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.good(words)).expect("JSON")
    }

    fn up(&self, file: &str, name: &str) {
        self.up_with(file, name, &[]);
    }

    fn up_with(&self, file: &str, name: &str, words: &[&str]) {
        let file = in_repository(file).display().to_string();
        self.good(&[&["up", &file, "--name", name, "--backend", "udp"], words].concat());
    }

    /// The processes of a lab: its keeper and its daemons.
    fn processes(&self, name: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.labs().join(name).join("lab.json")).expect("a journal");
        let journal: Value = serde_json::from_str(&text).expect("JSON");
        let number = |value: &Value| value.as_u64().map(|pid| pid as u32);
        let daemons = journal["daemons"].as_array().expect("a list");
        let daemons = daemons.iter().filter_map(|daemon| number(&daemon["pid"]));
        daemons.chain(number(&journal["owner"]["process"])).collect()
    }

    /// Processes of this place, whosever children they are by now, and files.
    fn census(&self) -> (BTreeSet<u32>, Vec<PathBuf>) {
        let mark = self.folder.path().display().to_string();
        let processes = fs::read_dir("/proc").expect("every Linux has it").flatten();
        let processes = processes.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&line).contains(&mark).then_some(pid)
        });
        let files = fs::read_dir(self.labs()).into_iter().flatten().flatten();
        (processes.collect(), files.map(|entry| entry.path()).collect())
    }

    /// Nothing of any lab is left here.
    fn assert_empty(&self) {
        let mut left = self.census();
        let gone = eventually(20.0, || {
            left = self.census();
            left.0.is_empty() && left.1.is_empty()
        });
        assert!(gone, "{left:?}");
    }

    fn total(&self, lab: &str, of: &str) -> u64 {
        let shown = self.json(&["show", "links", "--json", "--lab", lab]);
        let nodes = shown["nodes"].as_array().expect("nodes").iter();
        let ports = nodes.flat_map(|node| node["ports"].as_array().expect("ports"));
        let lanes = ports.flat_map(|port| port["lanes"].as_array().expect("lanes"));
        lanes.filter_map(|lane| lane[of].as_u64()).sum()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Only a test that has failed leaves anything.
        let _ = self.command(&["down", "--all"]).output();
    }
}

fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_lab_stays_is_looked_at_changed_and_goes_without_a_trace() {
    let _alone = alone();
    let place = Place::new();
    place.up(INFINIBAND, "one");
    let again =
        place.run(&["up", &in_repository(INFINIBAND).display().to_string(), "--name", "one"]);
    assert_eq!(again.status.code(), Some(2), "a lab of that name is up");
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["one"]["state"], "up");
    assert!(eventually(20.0, || place.total("one", "tx_frames") > 100), "traffic goes on");
    let table = place.good(&["show", "links"]);
    assert!(table.lines().count() > 4, "{table}");
    place.good(&["clear"]);
    let shown = place.json(&["show", "queues", "--json"]);
    assert!(shown["cleared_ps"].as_u64().is_some_and(|at| at > 0), "{shown:#}");
    assert_eq!(place.run(&["show", "links", "nobody:1"]).status.code(), Some(2));
    place.good(&["traffic", "stop"]);
    // What has been posted is sent; then nothing is.
    let mut before = 0;
    let quiet = eventually(30.0, || {
        let now = place.total("one", "tx_frames");
        pause(0.5);
        std::mem::replace(&mut before, now) == now && now > 0
    });
    assert!(quiet, "{before} frames and more");
    place.good(&["traffic", "start"]);
    assert!(eventually(20.0, || place.total("one", "tx_frames") > before), "it goes on");
    let port = shown["nodes"][0]["ports"][0]["port"].as_str().expect("a port").to_owned();
    let captured = place.folder.path().join("frames.pcapng").display().to_string();
    place.good(&["capture", &port, "-w", &captured, "--seconds", "2"]);
    let verified = place.run(&["verify", &captured]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(
        verified.status.success() && fs::metadata(&captured).is_ok_and(|f| f.len() > 4096),
        "{said}"
    );
    place.good(&["fault", &port, "drop", "--prob", "0.5"]);
    let injected = |place: &Place| {
        place.json(&["status", "--json"])["one"]["injected_lost"].as_u64().expect("a number")
    };
    assert!(eventually(20.0, || injected(&place) > 10), "frames are lost on purpose");
    place.good(&["fault", &port, "mend"]);
    place.good(&["set", "link", &port, "--down"]);
    place.good(&["set", "link", &port, "--up"]);
    place.good(&["set", "link", &port, "--rate", "1 Mbps"]);
    assert_eq!(place.run(&["set", "link", &port, "--rate", "1 Tbps"]).status.code(), Some(2));
    assert_eq!(place.run(&["set", "link", "nobody:1", "--down"]).status.code(), Some(2));
    assert_eq!(place.run(&["fault", &port, "drop", "--prob", "7"]).status.code(), Some(2));
    assert_eq!(place.good(&["down"]), "lab one is down\n");
    place.assert_empty();
    assert_eq!(place.run(&["down"]).status.code(), Some(0), "what is down is down");
}

#[test]
fn two_labs_side_by_side_do_not_collide() {
    let _alone = alone();
    let place = Place::new();
    place.up(INFINIBAND, "one");
    place.up(ETHERNET, "two");
    assert_eq!(place.run(&["show", "links"]).status.code(), Some(2), "which of them?");
    for lab in ["one", "two"] {
        assert!(eventually(20.0, || place.total(lab, "rx_frames") > 50), "{lab} has traffic");
    }
    place.good(&["down", "one"]);
    let before = place.total("two", "rx_frames");
    assert!(eventually(20.0, || place.total("two", "rx_frames") > before), "two goes on");
    assert!(place.processes("two").into_iter().all(is_alive));
    place.good(&["down", "--all"]);
    place.assert_empty();
}

#[test]
fn what_kills_leave_at_any_step_the_next_command_removes() {
    let _alone = alone();
    let place = Place::new();
    let file = in_repository(INFINIBAND).display().to_string();
    let begin = || -> Child {
        let mut command = place.command(&["up", &file, "--name", "one", "--backend", "udp"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    };
    for step_ms in [0u32, 3, 10, 30, 60, 100, 200, 400] {
        let mut up = begin();
        pause(f64::from(step_ms) / 1e3);
        up.kill().expect("it is ours");
        up.wait().expect("it is ours");
        place.good(&["down", "one"]);
        place.assert_empty();
    }
    // Killed twice over: `up` on its way, and what it started; then another of the same name.
    let mut up = begin();
    pause(0.1);
    up.kill().expect("it is ours");
    up.wait().expect("it is ours");
    place.up(INFINIBAND, "one");
    let processes = place.processes("one");
    let keeper = Pid::from_raw(*processes.last().expect("a keeper") as i32);
    kill(keeper, Signal::SIGKILL).expect("it is ours");
    assert!(eventually(10.0, || !processes.iter().copied().any(is_alive)), "daemons outlive it");
    let status = place.run(&["status"]);
    assert_eq!(status.status.code(), Some(5), "a lab has died");
    place.up(INFINIBAND, "one");
    let processes = place.processes("one");
    // A daemon that dies ends its lab, and the lab says so until it is down.
    kill(Pid::from_raw(processes[0] as i32), Signal::SIGKILL).expect("it is ours");
    let state = |place: &Place| {
        let shown = place.run(&["status", "--json"]).stdout;
        let shown: Value = serde_json::from_slice(&shown).expect("JSON");
        shown["one"]["state"].as_str().expect("a word").to_owned()
    };
    assert!(eventually(10.0, || state(&place).contains("ended before its report")));
    assert!(!place.good(&["logs", "one"]).contains("panicked"));
    place.good(&["down"]);
    place.assert_empty();
}

#[test]
fn a_thousand_slow_connections_and_a_huge_body_harm_nothing() {
    let _alone = alone();
    let place = Place::new();
    place.up(INFINIBAND, "one");
    let socket = place.labs().join("one/run/process-0.sock");
    let before = place.total("one", "tx_frames");
    let mut lorises = Vec::new();
    for _ in 0..1_000 {
        // A full backlog lets nobody in for a moment; whoever gets no place does not wait here.
        if let Ok(mut stream) = UnixStream::connect(&socket) {
            let _ = stream.write_all(b"POST /traffic HTTP/1.1\r\nHost: ");
            lorises.push(stream);
        }
        if lorises.len() % 100 == 99 {
            pause(0.05);
        }
    }
    let mut huge = UnixStream::connect(&socket).expect("it listens");
    huge.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
    let head = "POST /traffic HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n";
    let block = vec![b'x'; 1 << 20];
    let mut sent = huge.write_all(head.as_bytes());
    for _ in 0..100 {
        sent = sent.and_then(|()| huge.write_all(&block));
    }
    assert!(sent.is_err(), "nobody takes in so much");
    let mut answer = Vec::new();
    let _ = huge.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    drop(lorises);
    assert!(eventually(30.0, || place.run(&["show", "links"]).status.success()), "it answers");
    assert!(eventually(20.0, || place.total("one", "tx_frames") > before), "frames go on");
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["one"]["lost"], 0, "{status:#}");
    place.good(&["down"]);
    place.assert_empty();
}
