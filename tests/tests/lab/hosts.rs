//! Hosts of labs: virtual machines that start with a lab, take commands, and leave nothing behind.

use super::is_alive;
use super::laboratory::{eventually, in_repository, pause};
use super::place::{ORDINARY, Place};
use host::image::Image;
use host::vm::Qemu;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const TWO: &str = "topo/scenarios/hosts/two.toml";

/// Whether this user has an image; without it, or without QEMU, the tests say so and do nothing.
fn has_image() -> bool {
    match Qemu::find().and_then(|_| Image::find(None)) {
        Ok(_) => true,
        Err(error) => {
            skip::because!("{error}");
            false
        }
    }
}

/// A place whose commands an ordinary user executes, with a copy of the image in a cache of that user.
fn ordinary_place() -> Place {
    let mut place = Place::new();
    if !geteuid().is_root() {
        return place;
    }
    let program = place.root().join("pausebed");
    fs::copy(super::laboratory::pausebed(), &program).expect("the program is there");
    let image = Image::find(None).expect("it was found before").folder;
    let images = place.root().join("cache/pausebed/vm/images");
    fs::create_dir_all(images.join("copy")).expect("a folder");
    for entry in fs::read_dir(image).expect("the image is there").flatten() {
        fs::copy(entry.path(), images.join("copy").join(entry.file_name())).expect("a file");
    }
    symlink("copy", images.join("default")).expect("a link");
    give(place.folder.path());
    place.ordinary = Some(program);
    place
}

/// Gives a folder and all in it to the ordinary user.
fn give(folder: &Path) {
    chown(folder, Some(ORDINARY), Some(ORDINARY)).expect("root may do that");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
    for entry in fs::read_dir(folder).expect("it is ours").flatten() {
        let kind = entry.file_type().expect("it is there");
        if kind.is_dir() {
            give(&entry.path());
        } else if kind.is_file() {
            chown(entry.path(), Some(ORDINARY), Some(ORDINARY)).expect("root may do that");
        }
    }
}

fn up(place: &Place, name: &str) {
    let file = in_repository(TWO).display().to_string();
    place.good(&["up", &file, "--name", name]);
}

/// A command on a host of the lab "one".
fn exec(place: &Place, host: &str, words: &[&str]) -> Command {
    place.command(&[&["exec", "--lab", "one", host, "--"], words].concat())
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
    (status.code(), text(stdout), text(stderr))
}

/// The state of a lab.
fn status(place: &Place, lab: &str) -> Value {
    let shown = place.run(&["status", "--json"]).stdout;
    serde_json::from_slice::<Value>(&shown).expect("JSON")[lab].clone()
}

fn pid_of(place: &Place, lab: &str, host: usize) -> u32 {
    let pid = status(place, lab)["hosts"][host]["pid"].as_u64();
    u32::try_from(pid.expect("the host has a process")).expect("a process id")
}

fn kill_hard(process: u32) {
    kill(Pid::from_raw(process as i32), Signal::SIGKILL).expect("the test may signal the process");
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended unless the test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on v1 and repeats a client on v2 until it succeeds; both must.
fn between_hosts(place: &Place, server: &[&str], client: &[&str]) -> String {
    let mut command = exec(place, "v1", server);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Server(command.spawn().expect("the program starts"));
    let mut last = (None, String::new(), String::new());
    let done = eventually(30.0, || {
        last = output(exec(place, "v2", client));
        last.0 == Some(0)
    });
    assert!(done, "{client:?}: {last:?}");
    let ended = server.0.wait().expect("the server is a child of the test");
    assert_eq!(ended.code(), Some(0), "{server:?}", server = server.0);
    last.1
}

#[test]
fn an_ordinary_user_starts_two_hosts_and_connects_them() {
    if !has_image() {
        return;
    }
    let place = ordinary_place();
    up(&place, "one");
    let lab = status(&place, "one");
    let host = &lab["hosts"][0];
    assert_eq!((&host["name"], &host["state"]), (&"v1".into(), &"up".into()), "{lab:#}");
    assert_eq!((&host["port"], &host["kind"]), (&"s1:1".into(), &"vm".into()));
    assert_eq!(host["addresses"][1], "2001:db8::1/64");
    let mode = fs::metadata(place.labs().join("one/run")).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    streams_pass(&place);
    between_hosts(
        &place,
        &["rping", "-s", "-a", "2001:db8::1", "-C", "20"],
        &["rping", "-c", "-a", "2001:db8::1", "-C", "20"],
    );
    let ping_pong = ["ibv_rc_pingpong", "-d", "rxe0", "-g", "1", "-n", "100"];
    let said = between_hosts(&place, &ping_pong, &[&ping_pong[..], &["198.18.0.1"]].concat());
    assert!(said.contains("100 iters in"), "{said}");
    // A port with a host counts as any other.
    let links = place.good(&["show", "links", "s1:1"]);
    assert!(links.contains("v1"), "{links}");
    assert!(place.total("one", "tx_frames") > 400);
    let hosts = [0, 1].map(|host| pid_of(&place, "one", host));
    place.down("one");
    assert!(!hosts.into_iter().any(is_alive));
    place.assert_empty();
}

/// Exit codes, streams, errors, and the console.
fn streams_pass(place: &Place) {
    let said = output(exec(place, "v1", &["sh", "-c", "echo out; echo err >&2; exit 7"]));
    assert_eq!(said, (Some(7), "out\n".to_owned(), "err\n".to_owned()));
    let (code, out, _) =
        output(exec(place, "v2", &["printf", "%s|", "a b", "$HOME", "'", "\"", ""]));
    assert_eq!((code, out.as_str()), (Some(0), "a b|$HOME|'|\"||"));
    assert_eq!(output(exec(place, "v1", &["no-such-program"])).0, Some(127));
    let mut cat = exec(place, "v1", &["cat"]);
    let mut cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
    let octets: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let (mut input, sent) = (cat.stdin.take().expect("a pipe"), octets.clone());
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let back = cat.wait_with_output().expect("the program ends");
    writer.join().expect("no panic").expect("cat reads all");
    assert!(back.status.success() && back.stdout == octets, "{} octets", back.stdout.len());
    let (code, _, why) = output(exec(place, "v3", &["true"]));
    assert_eq!(code, Some(125));
    assert!(why.contains("lab one has no host \"v3\""), "{why}");
    console_passes_a_line(place);
    let log = place.good(&["logs", "v1"]);
    assert!(log.contains("console-is-v1") && !log.contains('\x1b'), "{log}");
}

fn console_passes_a_line(place: &Place) {
    let mut console = place.command(&["console", "v1"]);
    let mut console =
        console.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program");
    let mut keys = console.stdin.take().expect("a pipe");
    keys.write_all(b"\necho console-is-$(hostname)\n").expect("it reads");
    let mut printed = console.stdout.take().expect("a pipe");
    let mut seen = String::new();
    let mut buffer = [0; 1024];
    while !seen.contains("console-is-v1") {
        let length = printed.read(&mut buffer).expect("it prints");
        assert!(length > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    let other = place.run(&["console", "v1"]);
    assert!(!other.status.success(), "one at a time");
    keys.write_all(b"ignored\x1dnot sent").expect("it reads");
    assert_eq!(console.wait().expect("it ends").code(), Some(0));
}

#[test]
fn two_labs_with_hosts_and_a_path_full_of_signs_do_not_collide() {
    if !has_image() {
        return;
    }
    let mut place = Place::new();
    // A comma begins the next option of QEMU, and the rest would do harm in a shell.
    let root = place.folder.path().join("a,b=c $(d);'e");
    fs::create_dir(&root).expect("a folder");
    place.root = Some(root);
    up(&place, "one");
    up(&place, "two");
    let (code, _, why) = output(place.command(&["exec", "v1", "--", "true"]));
    assert_eq!(code, Some(125));
    assert!(why.contains("which lab? one, two"), "{why}");
    for lab in ["one", "two"] {
        let ping = ["exec", "--lab", lab, "v1", "--", "ping", "-c", "1", "-W", "5", "198.18.0.2"];
        let said = place.good(&ping);
        assert!(said.contains("1 received"), "{said}");
    }
    // A host that dies does not end its lab, and the other host goes on.
    kill_hard(pid_of(&place, "one", 0));
    let state = |place: &Place| status(place, "one")["hosts"][0]["state"].to_string();
    assert!(eventually(10.0, || state(&place).contains("ended: QEMU ended")), "{}", state(&place));
    assert_eq!(status(&place, "one")["state"], "up");
    let (code, _, why) = output(exec(&place, "v1", &["true"]));
    assert_eq!(code, Some(125));
    assert!(why.contains("host v1 has ended"), "{why}");
    assert_eq!(output(exec(&place, "v2", &["true"])).0, Some(0));
    assert!(place.good(&["logs", "one"]).contains("host v1 has ended"));
    // A supervisor that dies takes its hosts with it, and no others.
    let hosts = [pid_of(&place, "one", 1), pid_of(&place, "two", 0)];
    let supervisor = place.processes("one").pop().expect("a supervisor");
    kill_hard(supervisor);
    assert!(eventually(10.0, || !is_alive(hosts[0])));
    assert!(is_alive(hosts[1]));
    place.good(&["down", "--all"]);
    place.assert_empty();
}

#[test]
fn nothing_is_left_of_hosts_whenever_up_is_killed() {
    if !has_image() {
        return;
    }
    let place = Place::new();
    let file = in_repository(TWO).display().to_string();
    for step in [0.02, 0.15, 0.3, 0.6, 1.0] {
        let mut command = place.command(&["up", &file, "--name", "one"]);
        let mut up =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        pause(step);
        up.kill().expect("the test may signal the process");
        up.wait().expect("the process is a child of the test");
        place.good(&["down", "one"]);
        place.assert_empty();
    }
}

#[test]
fn a_run_with_hosts_is_judged_by_their_output_and_leaves_nothing() {
    if !has_image() {
        return;
    }
    let place = Place::new();
    let file = in_repository(TWO).display().to_string();
    let out = place.root().join("out");
    let words = ["run", &file, "--no-report", "--out", &out.display().to_string()];
    let ended = place.run(&words);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let text = fs::read(out.join("run.json")).expect("it was written");
    let run: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(run["measures"]["pings"], 19.0);
    assert_eq!((&run["hosts"][1]["host"], &run["hosts"][1]["exit"]), (&"v2".into(), &0.into()));
    let printed = fs::read_to_string(out.join("hosts/v2.out")).expect("it was written");
    assert!(printed.contains("100 iters in"), "{printed}");
    // A command with the wrong exit code fails the run; one that does not end has none.
    let sets = [
        "run.duration=2 s",
        "host.v1.run=sh -c 'printf \"a\\033[2J\"; exit 3'",
        "host.v2.run=sleep 100",
        "host.v2.start=100 ms",
    ];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let ended = place.run(&words.into_iter().chain(sets).collect::<Vec<_>>());
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = fs::read(out.join("run.json")).expect("it was written");
    let run: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(run["hosts"][0]["exit"], 3);
    assert_eq!(run["hosts"][1]["why"], "it had not ended when the run did");
    let printed = fs::read_to_string(out.join("hosts/v1.out")).expect("it was written");
    assert_eq!(printed, "a\\u{1b}[2J");
    place.assert_empty();
}
