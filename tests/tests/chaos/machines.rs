//! kill -9 of QEMU, the process of a host in a virtual machine: while the lab starts, and while its hosts talk.

use super::Campaign;
use super::assert_balanced;
use super::ground::{Ground, signal};
use super::laboratory::{eventually, in_repository, pause};
use super::objects::processes_of;
use emulation::clock::Stopwatch;
use host::image::Image;
use host::vm::Qemu;
use nix::sys::signal::Signal;
use proto::random::Random;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

/// Labs of the campaign: a sample, since each starts two machines.
const LABS: u64 = 20;
const TWO: &str = "topo/scenarios/hosts/two.toml";
const HOSTS: [&str; 2] = ["v1", "v2"];

/// The machines of a place: processes of QEMU that start from a saved state, not those that are asked for their version.
fn machines(ground: &Ground) -> Vec<u32> {
    let is_machine = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.split(|octet| *octet == 0).any(|word| word == b"-incoming")
    };
    processes_of(&ground.mark()).into_iter().filter(is_machine).collect()
}

fn up(ground: &Ground) -> Command {
    let file = in_repository(TWO).display().to_string();
    ground.place.command(&["up", &file, "--name", "one", "--backend", "udp"])
}

/// The state of the lab, and of a host of it.
fn state(ground: &Ground, host: usize) -> (Value, String) {
    let lab = ground.place.json(&["status", "--json"])["one"].clone();
    let shown = lab["hosts"][host]["state"].to_string();
    (lab["state"].clone(), shown)
}

/// The code and the errors of a command on a host.
fn exec(ground: &Ground, host: &str, words: &[&str]) -> (Option<i32>, String) {
    let output = ground.place.run(&[&["exec", "--lab", "one", host, "--"], words].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The lab shows that this host has ended and why. It is still up, and all its frames are accounted for.
fn has_ended(ground: &Ground, host: usize) {
    let shown = || state(ground, host);
    let killed = |(_, host): &(Value, String)| host.contains("ended: QEMU ended: signal: 9");
    assert!(eventually(10.0, || killed(&shown())), "{:?}", shown());
    assert_eq!(shown().0, "up");
    let name = HOSTS[host];
    let (code, why) = exec(ground, name, &["true"]);
    assert_eq!((code, why.contains(&format!("host {name} has ended"))), (Some(125), true), "{why}");
    let log = ground.place.good(&["logs", "one"]);
    assert!(log.contains(&format!("host {name} has ended: QEMU ended")), "{log}");
    assert_balanced(&ground.place);
}

/// Kills one machine while `up` waits for them: `up` says so and leaves nothing, unless the lab was up already.
fn while_starting(ground: &Ground, random: &mut Random) -> String {
    let mut command = up(ground);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let begin = Stopwatch::start();
    assert!(eventually(60.0, || !machines(ground).is_empty()), "no machine is started");
    pause(random.below(2_500_000_000) as f64 / 1e9);
    let found = machines(ground);
    signal(found[random.below(found.len() as u64) as usize], Signal::SIGKILL);
    let after = begin.seconds();
    let output = child.wait_with_output().expect("the process is a child of the test");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        let hosts = || [0, 1].map(|host| state(ground, host).1);
        let one = |host: &String| host.contains("ended: QEMU ended: signal: 9");
        assert!(eventually(10.0, || hosts().iter().any(one)), "{:?}", hosts());
        let host = hosts().iter().position(one).expect("one has ended");
        has_ended(ground, host);
        ground.place.down("one");
        return format!("1 kill {after:.1} s after the begin of up, just after the lab was up");
    }
    assert!(said.contains("cannot be started") && said.contains("QEMU"), "{said}");
    let code = output.status.code();
    format!("1 kill {after:.1} s after the begin of up, which ended with {code:?}")
}

/// Kills one machine while the other talks to it, and sometimes that one too.
fn while_talking(ground: &Ground, random: &mut Random) -> String {
    let started = up(ground).output().expect("the program starts");
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let first = random.below(2) as usize;
    let target = ["198.18.0.1", "198.18.0.2"][first];
    let words = ["exec", "--lab", "one", HOSTS[1 - first], "--", "ping", "-i", "0.01", "-c", "200"];
    let mut ping = ground.place.command(&[&words[..], &["-W", "1", target]].concat());
    let mut ping =
        ping.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    pause(random.below(2_000_000_000) as f64 / 1e9);
    kill_host(ground, first);
    has_ended(ground, first);
    ping.wait().expect("the process is a child of the test");
    assert_eq!(exec(ground, HOSTS[1 - first], &["true"]).0, Some(0), "the other host goes on");
    let both = random.chance(1, 2);
    if both {
        kill_host(ground, 1 - first);
        has_ended(ground, 1 - first);
    }
    match random.below(2) {
        0 => ground.place.down("one"),
        _ => {
            let keeper = ground.supervisor().expect("the lab has a keeper");
            signal(keeper, Signal::SIGKILL);
            ground.tidy();
        }
    }
    format!("{} in a lab that is up", if both { "2 kills" } else { "1 kill" })
}

fn kill_host(ground: &Ground, host: usize) {
    let lab = ground.place.json(&["status", "--json"])["one"].clone();
    let process = lab["hosts"][host]["pid"].as_u64().expect("the host has a process");
    signal(process as u32, Signal::SIGKILL);
}

/// The life of one lab. Returns the account of it.
fn life(seed: u64) -> String {
    let mut random = Random::stream(seed, "chaos", "machines");
    let ground = Ground::new();
    let before = ground.objects();
    let told = match random.below(2) {
        0 => while_starting(&ground, &mut random),
        _ => while_talking(&ground, &mut random),
    };
    ground.assert_is(&before, &format!("seed {seed}: {told}"));
    told
}

/// Kills machines in some labs, where there are an image and QEMU.
pub fn kills(campaign: &mut Campaign) {
    if let Err(error) = Qemu::find().and_then(|_| Image::find(None)) {
        return skip::because!("{error}");
    }
    for seed in 1..=LABS {
        campaign.part(&format!("seed {seed}"), || life(seed));
    }
}
