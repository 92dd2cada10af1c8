//! Scenarios with real hosts: Linux with soft-RoCE in virtual machines, and programs in network namespaces.
//!
//! Two hosts that use every verb are in the quick suite; the others last a minute or two each. Without QEMU or an image
//! (`pausebed vm build`) the tests say so and do nothing.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "hosts/kinds.rs"]
mod kinds;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "live/objects.rs"]
#[allow(dead_code, reason = "the tests of netns.rs use more of it")]
mod objects;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod place;

use emulation::cable::namespace::Namespace;
use host::image::Image;
use host::vm::Qemu;
use laboratory::{alone, in_repository};
use place::Place;
use scenario::Scenario;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Output, Stdio};

/// Whether this user has an image; without it, or without QEMU, the test says so and does nothing.
fn has_image() -> bool {
    match Qemu::find().and_then(|_| Image::find(None)) {
        Ok(_) => true,
        Err(error) => {
            skip::because!("{error}");
            false
        }
    }
}

fn file(name: &str) -> String {
    in_repository(&format!("topo/scenarios/hosts/{name}.toml")).display().to_string()
}

/// Runs a scenario, whose expectations must hold, and returns `run.json`.
fn run(place: &Place, name: &str) -> Value {
    let out = place.root().join(name);
    let words = ["run", &file(name), "--no-report", "--out", &out.display().to_string()];
    let ended = place.run(&words);
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let printed = fs::read_dir(out.join("hosts")).into_iter().flatten().flatten();
    let printed = printed.map(|file| {
        let said = fs::read_to_string(file.path()).unwrap_or_default();
        format!("{}:\n{said}\n", file.path().display())
    });
    assert_eq!(
        ended.status.code(),
        Some(0),
        "{}{}{}",
        text(&ended.stderr),
        text(&ended.stdout),
        printed.collect::<String>()
    );
    place.assert_empty();
    serde_json::from_slice(&fs::read(out.join("run.json")).expect("it was written")).expect("JSON")
}

fn measure(run: &Value, name: &str) -> f64 {
    run["measures"][name].as_f64().unwrap_or_else(|| panic!("{name} has a value"))
}

/// The deviations and violations of a capture by rule.
fn verified(place: &Place, capture: &Path) -> Value {
    let output = place.run(&["verify", &capture.display().to_string(), "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// In a lab, which ends when the commands do.
#[test]
fn two_hosts_use_every_verb_over_ipv4_and_ipv6() {
    let _alone = alone();
    if !has_image() {
        return;
    }
    let place = Place::new();
    place.good(&["up", &file("verbs"), "--name", "one"]);
    let capture = place.root().join("verbs.pcapng");
    let words = ["capture", "s1:2", "--seconds", "600", "--write", &capture.display().to_string()];
    let mut capturing = place.command(&words).stderr(Stdio::null()).spawn().expect("it starts");
    let text = fs::read_to_string(file("verbs")).expect("the file is there");
    let scenario = Scenario::parse(&text, &[]).expect("it is valid");
    let commands: Vec<Child> = scenario
        .fabric
        .hosts
        .iter()
        .map(|host| {
            let words = host.command.as_ref().expect("both hosts run a command").words.iter();
            let mut all = vec!["exec", host.name.as_str(), "--", "timeout", "100"];
            all.extend(words.map(String::as_str));
            let mut command = place.command(&all);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    let outputs: Vec<Output> =
        commands.into_iter().map(|child| child.wait_with_output().expect("it ends")).collect();
    let said: Vec<String> = outputs
        .iter()
        .map(|output| {
            String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into()
        })
        .collect();
    assert!(outputs.iter().all(|output| output.status.success()), "{}\n{}", said[0], said[1]);
    assert!(said[1].contains("passed 24"), "{}", said[1]);
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(capturing.id() as i32),
        nix::sys::signal::Signal::SIGINT,
    )
    .expect("it captures");
    capturing.wait().expect("it ends");
    let links = place.json(&["show", "links", "--json"]);
    assert_eq!(place.total("one", "drops"), 0, "{links:#}");
    only_early_retries(&verified(&place, &capture));
    place.down("one");
    place.assert_empty();
}

/// The switch has altered nothing and lost nothing. What is left is known of soft-RoCE of Linux 6.1: its timer does not
/// start again when an acknowledgement arrives.
fn only_early_retries(verdict: &Value) {
    assert!(verdict["frames"].as_u64().is_some_and(|frames| frames > 5_000), "{verdict:#}");
    let findings = verdict["findings"].as_array().expect("a list").iter();
    let faults: Vec<&Value> = findings
        .filter(|finding| finding["severity"] != "note" && finding["rule"] != "retry-early")
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
#[ignore = "slow: a minute"]
fn every_verb_in_a_run() {
    let _alone = alone();
    if !has_image() {
        return;
    }
    let run = run(&Place::new(), "verbs");
    assert_eq!(measure(&run, "passed"), 24.0);
}

#[test]
#[ignore = "slow: two minutes"]
fn pfc_between_switches_loses_nothing_and_holds_up_a_victim() {
    let _alone = alone();
    if !has_image() {
        return;
    }
    let place = Place::new();
    let (with, without) = (run(&place, "incast-pfc"), run(&place, "incast-lossy"));
    let victim = [&with, &without].map(|run| measure(run, "victim"));
    eprintln!(
        "the victim's share of the line: {:.4} with PFC, {:.4} without",
        victim[0], victim[1]
    );
    assert!(victim[1] > 2.0 * victim[0], "{victim:?}");
    // The pauses travel: the switch with the queue pauses the other one, which pauses its hosts then. Two hosts can
    // send more than the line between the switches carries, so a pause of s1 may also come before.
    let events = fs::read_to_string(place.root().join("incast-pfc/events.jsonl"));
    let events = events.expect("it was written");
    let mut sent = events.lines().filter(|line| line.contains("xoff") && line.contains("\"tx\""));
    assert!(sent.any(|event| event.contains("\"s2:1\"")), "s2 pauses s1");
    for port in ["\"s1:2\"", "\"s1:3\""] {
        assert!(sent.clone().any(|event| event.contains(port)), "s1 pauses {port} after that");
    }
}

#[test]
#[ignore = "slow: a minute"]
fn marks_do_not_slow_soft_roce_and_slow_tcp() {
    let _alone = alone();
    if !has_image() {
        return;
    }
    let run = run(&Place::new(), "ecn");
    assert_eq!(measure(&run, "marks"), measure(&run, "marks_received"));
}

#[test]
#[ignore = "slow: four minutes, two for an image with Open MPI in a cache of its own"]
fn a_message_passing_job_of_four_hosts_ends() {
    let _alone = alone();
    if !has_image() {
        return;
    }
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache-mpi");
    let mut place = Place::new();
    place.cache = Some(cache);
    place.good(&["vm", "build", "--add", "openmpi-bin", "--add", "python3-mpi4py"]);
    run(&place, "mpi");
}

#[test]
#[ignore = "slow: a minute"]
fn files_on_nvme_over_rdma_survive_a_link_that_flaps() {
    let _alone = alone();
    if has_image() {
        run(&Place::new(), "nvme");
    }
}

#[test]
#[ignore = "slow: a minute"]
fn programs_in_namespaces_share_a_switch_with_soft_roce() {
    let _alone = alone();
    if let Err(error) = Namespace::make(1) {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        skip::because!("making network namespaces takes CAP_SYS_ADMIN: {error}");
    } else if has_image() {
        run(&Place::new(), "mixed");
    }
}
