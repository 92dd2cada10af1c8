//! Ports with a cable to another program: the example peer of the documents, strangers, floods, and a peer that goes
//! and returns.

use super::Place;
use super::laboratory::{eventually, in_repository, pause};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

const PROGRAMS: &str = "tests/tests/lab/programs.toml";
/// The address of the example peer, and that of the test.
const THEIRS: [u8; 4] = [198, 18, 0, 1];
const OURS: [u8; 4] = [198, 18, 0, 2];
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const EVERYONE: [u8; 6] = [0xff; 6];

/// The state of an attached port of the lab "one".
fn port(place: &Place, name: &str) -> Value {
    let status = place.json(&["status", "--json"]);
    let ports = status["one"]["attached"].as_array().expect("a list");
    ports.iter().find(|port| port["port"] == name).expect("the port is attached").clone()
}

fn folder(place: &Place) -> PathBuf {
    place.labs().join("one").join("run")
}

/// A datagram socket with a time limit.
fn bind(path: &PathBuf) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).expect("a free path");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
    socket
}

/// An ARP message of the test.
fn arp(operation: u8, to: [u8; 6], target: [u8; 6]) -> Vec<u8> {
    let header = [8, 6, 0, 1, 8, 0, 6, 4, 0, operation];
    [&to[..], &MAC, &header, &MAC, &OURS, &target, &THEIRS].concat()
}

/// The next frame that `accept` accepts, of at most 100.
fn frame(socket: &UnixDatagram, accept: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut room = [0; 65_536];
    for _ in 0..100 {
        let count = socket.recv(&mut room).expect("a frame within ten seconds");
        if accept(&room[..count]) {
            return room[..count].to_vec();
        }
    }
    panic!("100 frames, and not the one expected");
}

struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        // It runs until it is killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_peer_answers_arp_and_sends_a_frame_with_a_right_icrc() {
    let place = Place::new();
    if place.program("python3", &["--version"]).output().is_err() {
        skip::because!("no python3");
        return;
    }
    place.up(PROGRAMS, "one");
    let folder = folder(&place);
    let mode = fs::metadata(&folder).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let socket = bind(&folder.join("test.peer"));
    let lab = folder.join("test.lab");
    let cable = folder.join("python").display().to_string();
    let script = in_repository("docs/tasks/peer.py").display().to_string();
    let mut command = place.program("python3", &[&script, &cable, "198.18.0.1", "198.18.0.2"]);
    let peer = Peer(command.stdout(Stdio::null()).spawn().expect("python3"));
    let is_arp = |operation: u8| {
        move |octets: &[u8]| {
            octets.len() >= 42 && octets[12..14] == [8, 6] && octets[21] == operation
        }
    };
    let request = frame(&socket, is_arp(1));
    assert_eq!((&request[28..32], &request[38..42]), (&THEIRS[..], &OURS[..]));
    let theirs: [u8; 6] = request[6..12].try_into().expect("six octets");
    socket.send_to(&arp(1, EVERYONE, [0; 6]), &lab).expect("the lab is there");
    let reply = frame(&socket, is_arp(2));
    assert_eq!((&reply[..6], &reply[22..28]), (&MAC[..], &theirs[..]));
    socket.send_to(&arp(2, theirs, theirs), &lab).expect("the lab is there");
    let roce = frame(&socket, |octets| octets[12..14] == [8, 0]);
    assert_eq!(roce[36..38], 4791u16.to_be_bytes());
    verify_icrc(&roce).expect("the ICRC is right");
    verify_checksums(&roce).expect("the checksum is right");
    place.good(&["down", "one"]);
    drop(peer);
    place.assert_empty();
}

#[test]
fn what_a_peer_does_wrong_is_counted_and_costs_other_ports_nothing() {
    let place = Place::new();
    let [peer, stranger, free] =
        [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports"));
    let [remote, local] =
        [&peer, &free].map(|socket| socket.local_addr().expect("it is bound").to_string());
    drop(free);
    let attach = format!(
        "lab.attach=[{{port='s1:1',socket='a'}},{{port='s1:2',socket='b'}},\
         {{port='s1:3',local='udp:{local}',remote='udp:{remote}'}}]"
    );
    place.up_with(PROGRAMS, "one", &["--set", &attach]);
    let folder = folder(&place);
    let a = folder.join("a.lab");
    let first = bind(&folder.join("a.peer"));
    let broadcast = |last: u8| [&EVERYONE[..], &MAC, &[0x88, 0xb6], &[last; 50]].concat();
    // The peer of b is not there yet: the frame is dropped and counted.
    first.send_to(&broadcast(1), &a).expect("the lab is there");
    assert!(eventually(5.0, || port(&place, "s1:2")["state"] == "no-peer"));
    assert!(port(&place, "s1:2")["interface_down"].as_u64() > Some(0));
    let second = bind(&folder.join("b.peer"));
    pause(0.01);
    first.send_to(&broadcast(2), &a).expect("the lab is there");
    assert_eq!(frame(&second, |_| true), broadcast(2), "nothing is sent later");
    assert!(eventually(5.0, || port(&place, "s1:2")["state"] == "up"));
    // Wrong sizes and strangers.
    for octets in [0, 1, 13, 20_000] {
        first.send_to(&vec![0xff; octets], &a).expect("the lab is there");
        stranger.send_to(&broadcast(9), &local).expect("loopback");
    }
    // A flood of frames without a receiver does not stop another port.
    let own = [&MAC[..], &MAC, &[0x88, 0xb6], &[0; 1_000]].concat();
    for _ in 0..20_000 {
        first.send_to(&own, &a).expect("the lab is there");
    }
    peer.send_to(&broadcast(3), &local).expect("loopback");
    assert_eq!(frame(&second, |octets| octets[12..14] == [0x88, 0xb6]), broadcast(3));
    // A peer that does not read is given up, and its frames are counted.
    for _ in 0..100 {
        peer.send_to(&broadcast(4), &local).expect("loopback");
        pause(0.001);
    }
    assert!(eventually(5.0, || port(&place, "s1:2")["state"] == "no-peer"));
    place.good(&["down", "one"]);
    place.assert_empty();
}

#[test]
fn a_path_that_is_too_long_or_not_ours_is_refused() {
    let place = Place::new();
    let file = in_repository(PROGRAMS).display().to_string();
    let up = |attach: &str| {
        let attach = format!("lab.attach=[{{port='s1:1',{attach}}}]");
        let output = place.run(&["up", &file, "--name", "one", "--set", &attach]);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let long = "x".repeat(120);
    let said = up(&format!("local='unix:/{long}',remote='unix:/b'"));
    assert!(said.contains("at most 107"), "{said}");
    let path = place.folder.path().join("kept");
    fs::write(&path, "kept").expect("a file");
    let said = up(&format!("local='unix:{}',remote='unix:/b'", path.display()));
    assert!(said.contains("is not a socket"), "{said}");
    assert_eq!(fs::read_to_string(&path).expect("the file is there"), "kept");
    let said = up("local='udp:10.0.0.1:5000',remote='udp:127.0.0.1:5001'");
    assert!(said.contains("loopback"), "{said}");
    let said = up("iface='lo',socket='a'");
    assert!(said.contains("one of three ways"), "{said}");
}
