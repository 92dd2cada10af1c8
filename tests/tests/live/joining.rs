//! Daemons that a test starts itself and that join their launcher over TCP.

use super::laboratory::{Running, alone, eventually, pausebed};
use super::{assert_passes_or_host_is_busy, repeated, small};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub const TOKEN: &str = "PAUSEBED_TOKEN=0123456789abcdef0123456789abcdef";

fn waiting(words: &[&str]) -> (Running, String) {
    waiting_with(&small(), words)
}

/// A launcher that waits for daemons of `file`, and its address.
pub fn waiting_with(file: &Path, words: &[&str]) -> (Running, String) {
    let front = ["env", TOKEN, "PAUSEBED_LISTEN=127.0.0.1:0"];
    let running = Running::start_by(&front, file, words);
    let mut address = String::new();
    let found = eventually(15.0, || {
        let talk = running.talk();
        let waits = talk.lines().find_map(|line| line.strip_prefix("waiting at "));
        address = waits.and_then(|line| line.split(' ').next()).unwrap_or_default().to_owned();
        !address.is_empty()
    });
    assert!(found, "{}", running.talk());
    (running, address)
}

/// A daemon, killed when dropped.
pub struct Guest(Child);

impl Guest {
    /// Starts a daemon that joins the launcher at `address`.
    pub fn join(part: &str, address: &str, process: &str, token: &str) -> Guest {
        let mut command = Command::new("env");
        command.arg(token).arg(pausebed()).args([part, "--join", address, "--process", process]);
        Guest(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("env is installed"))
    }

    fn ends_within(&mut self, seconds: f64) -> Option<i32> {
        let mut status = None;
        eventually(seconds, || {
            status = self.0.try_wait().expect("the process is a child of the test");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // An error means that the daemon has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn joined_daemons_run_the_fabric_despite_foreign_connections() {
    let _alone = alone();
    let ended = repeated(|| {
        let (running, address) = waiting(&["--backend", "remote"]);
        let mut stranger = TcpStream::connect(&address).expect("the server listens");
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("the launcher reads");
        let mut forger = Guest::join("nicd", &address, "0", "PAUSEBED_TOKEN=guessed");
        assert_eq!(forger.ends_within(15.0), Some(5), "the launcher refuses a wrong token");
        let mut guests = [
            Guest::join("switchd", &address, "1", TOKEN),
            Guest::join("nicd", &address, "0", TOKEN),
        ];
        let ended = running.end(60.0);
        let ends = guests.each_mut().map(|guest| guest.ends_within(10.0));
        assert_eq!(ends, [Some(0); 2], "{}", ended.talk);
        ended
    });
    assert_passes_or_host_is_busy(&ended);
    assert_eq!(ended.json()["backend"], "remote");
    assert_eq!(ended.json()["cables"], serde_json::json!({ "memory": 0, "udp": 5 }));
}

#[test]
fn a_dead_joined_daemon_ends_the_run_and_a_dead_launcher_its_daemons() {
    let _alone = alone();
    let long = ["--backend", "remote", "--set", "run.duration=\"20000 mtu\""];
    let start = || {
        let (running, address) = waiting(&long);
        let guests = [
            Guest::join("nicd", &address, "0", TOKEN),
            Guest::join("switchd", &address, "1", TOKEN),
        ];
        let began = eventually(20.0, || running.talk().contains(" of 20000 τ"));
        assert!(began, "{}", running.talk());
        (running, guests)
    };
    let (running, guests) = start();
    let [nicd, mut switchd] = guests;
    drop(nicd);
    let ended = running.end(30.0);
    assert_eq!(ended.code, Some(5), "{}", ended.talk);
    assert!(
        ended.talk.contains("nicd (process 0)"),
        "the message names the daemon: {}",
        ended.talk
    );
    assert_eq!(switchd.ends_within(10.0), Some(130));
    let (running, mut guests) = start();
    drop(running);
    assert_eq!(guests.each_mut().map(|guest| guest.ends_within(10.0)), [Some(130); 2]);
}

#[test]
fn a_launcher_without_a_token_does_not_wait() {
    let ended = Running::start(&small(), &["--backend", "remote"]).end(10.0);
    assert_eq!(ended.code, Some(3), "{}", ended.talk);
    assert!(ended.talk.contains("PAUSEBED_TOKEN is not set"), "{}", ended.talk);
    let front = ["env", TOKEN, "PAUSEBED_LISTEN=nowhere"];
    let ended = Running::start_by(&front, &small(), &["--backend", "remote"]).end(10.0);
    assert_eq!(ended.code, Some(3), "{}", ended.talk);
    assert!(ended.talk.contains("\"nowhere\" is not an address"), "{}", ended.talk);
}
