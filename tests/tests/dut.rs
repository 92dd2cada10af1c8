//! `pausebed check --dut`: our own devices and Linux's through the interface for devices under test, and devices that a test
//! plays: a hub, one that floods, one that is silent, one that goes away.

#![expect(clippy::disallowed_methods, reason = "these tests start the program and play the device")]

#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "live/objects.rs"]
#[allow(dead_code, reason = "the tests of netns.rs use more of it")]
mod objects;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod place;
#[path = "dut/played.rs"]
mod played;
#[path = "dut/stability.rs"]
mod stability;

use dut::statement::Statement;
use dut::verdict::{Outcome, Verdict};
use emulation::cable::namespace::Namespace;
use host::image::Image;
use host::vm::Qemu;
use laboratory::{alone, eventually, in_repository};
use place::Place;
use played::{Device, Played};
use std::fs;
use std::io::ErrorKind;
use std::process::Stdio;

fn dut(name: &str) -> String {
    in_repository(&format!("check/dut/devices/{name}.toml")).display().to_string()
}

/// The statement about the device of a file, from these groups and cases.
fn check(place: &Place, file: &str, names: &[&str]) -> Statement {
    let words = [&["check", "--dut", file, "--json"], names].concat();
    let output = place.run(&words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Statement::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}{said}"))
}

/// The ids with this verdict.
fn with(statement: &Statement, verdict: Verdict) -> Vec<&str> {
    let has = statement.outcomes.iter().filter(|outcome| outcome.verdict == verdict);
    has.map(|outcome| outcome.id.as_str()).collect()
}

/// No case fails but those of `except`. On a busy host a case may be inconclusive.
fn assert_conforms(statement: &Statement, except: &[&str]) {
    for outcome in &statement.outcomes {
        let is_fault = outcome.verdict == Verdict::Fail;
        assert!(!is_fault || except.contains(&outcome.id.as_str()), "{outcome:#?}");
    }
    println!("inconclusive: {:?}", with(statement, Verdict::Inconclusive));
}

#[test]
fn our_switch_conforms_through_the_interface_for_any_device() {
    let _alone = alone();
    let place = Place::new();
    // Without the cases of 100 000 frames and more.
    let cases = [&["INT", "L2", "RES", "FC", "QUE-10", "MAL-01", "MAL-02", "MAL-03"], &MARKS[..]];
    let statement = check(&place, &dut("ours-switchd"), &cases.concat());
    assert_conforms(&statement, &[]);
    assert_eq!(with(&statement, Verdict::NotImplemented), [""; 0], "all is claimed");
    place.assert_empty();
}

/// Cases of marks and shares that take less than a second.
const MARKS: [&str; 7] = ["QUE-01", "QUE-02", "QUE-03", "QUE-04", "QUE-05", "QUE-06", "QUE-07"];

#[test]
#[ignore = "slow: half a minute"]
fn our_switch_conforms_in_every_group() {
    let _alone = alone();
    let place = Place::new();
    let statement = check(&place, &dut("ours-switchd"), &[]);
    assert_conforms(&statement, &[]);
    let absent = with(&statement, Verdict::NotImplemented);
    assert_eq!(
        absent,
        ["LAG-01", "LAG-02", "LAG-03", "LAG-04", "QUE-09"],
        "no groups of links, no WRED"
    );
}

/// Known faults of soft-RoCE: the case, a kernel that has the fault, and one in which it is mended. Sources: changelogs of
/// Debian's kernels, but for TIM-09, which was measured here.
const KNOWN: [(&str, &str, &str); 5] = [
    // "Reject unknown opcodes before ICRC processing", 6.1.175, CVE-2026-46133.
    ("RX-05", "6.1.0-49", "6.1.0-50"),
    // "Validate pad and ICRC before payload_size() in rxe_rcv", 6.1.175.
    ("RX-07", "6.1.0-49", "6.1.0-50"),
    ("ROB-03", "6.1.0-49", "6.1.0-50"),
    // "Don't set BTH_ACK_MASK for UC or UD QPs", 6.1.103. 5.10.0-30 is 5.10.218.
    ("UD-03", "5.10.0-30", "6.1.0-50"),
    // The timer runs regardless of progress.
    ("TIM-09", "6.1.0-50", "6.12.117+deb12"),
];

#[test]
#[ignore = "slow: machines with four kernels, whose images must be there"]
fn known_faults_of_soft_roce_are_found_where_they_are_and_nowhere_else() {
    let _alone = alone();
    let place = Place::new();
    for (case, faulty, mended) in KNOWN {
        for kernel in [faulty, mended] {
            if let Err(error) = Qemu::find().and_then(|_| Image::find(Some(kernel))) {
                skip::because!("{case} of {kernel}: {error}");
                continue;
            }
            let words = ["check", "--dut", &dut("soft-roce"), "--kernel", kernel, "--json", case];
            let output = place.run(&words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let outcome = Statement::parse(&text).expect("a statement").outcomes.remove(0);
            println!("{case} {kernel}: {} {}", outcome.verdict.word(), outcome.observed);
            let is_found = matches!(outcome.verdict, Verdict::Fail | Verdict::Deviation);
            assert_eq!(is_found, kernel == faulty, "{outcome:#?}");
            assert!(is_found || outcome.verdict == Verdict::Pass, "{outcome:#?}");
        }
    }
}

#[test]
fn our_nic_conforms_through_the_interface_for_any_device() {
    let _alone = alone();
    let place = Place::new();
    let statement = check(&place, &dut("ours-nicd"), &["SEQ", "RDMA", "MTU", "UD"]);
    assert_conforms(&statement, &[]);
    assert!(with(&statement, Verdict::Pass).len() >= 38, "{}", statement.totals());
    place.assert_empty();
}

#[test]
#[ignore = "slow: half a minute"]
fn our_nic_conforms_in_every_group() {
    let _alone = alone();
    let place = Place::new();
    let statement = check(&place, &dut("ours-nicd"), &[]);
    assert_conforms(&statement, &[]);
    assert!(with(&statement, Verdict::Pass).len() >= 90, "{}", statement.totals());
}

#[test]
#[ignore = "slow: half an hour; goes on where it was stopped"]
fn stability_beside_a_busy_core() {
    let _alone = alone();
    stability::measure("stability-busy", true, 5);
}

#[test]
#[ignore = "slow: half an hour; goes on where it was stopped"]
fn stability_on_a_quiet_host() {
    let _alone = alone();
    stability::measure("stability-quiet", false, 1);
}

#[test]
fn a_bridge_of_linux_fails_at_most_where_it_forwards_spanning_tree() {
    let _alone = alone();
    if let Err(error) = Namespace::make(1) {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        skip::because!("making network namespaces takes CAP_SYS_ADMIN: {error}");
        return;
    }
    let place = Place::new();
    let statement = check(&place, &dut("linux-bridge"), &["INT", "RES", "FC", "L2-04", "L2-07"]);
    // A kernel without bridges cannot be asked.
    if statement.outcomes.is_empty() {
        return;
    }
    assert_conforms(&statement, &["RES-03"]);
    assert_eq!(with(&statement, Verdict::NotImplemented).len(), 11, "{}", statement.totals());
}

#[test]
fn soft_roce_sends_right_packets_and_claims_no_notifications() {
    let _alone = alone();
    if let Err(error) = Qemu::find().and_then(|_| Image::find(None)) {
        skip::because!("{error}");
        return;
    }
    let place = Place::new();
    let statement = check(&place, &dut("soft-roce"), &["TX-01", "TX-05", "SEQ-03", "CNP-01"]);
    let verdicts: Vec<Verdict> = statement.outcomes.iter().map(|outcome| outcome.verdict).collect();
    let expected = [Verdict::Pass, Verdict::Deviation, Verdict::Pass, Verdict::NotImplemented];
    assert_eq!(verdicts, expected, "{statement:#?}");
    place.assert_empty();
}

#[test]
#[ignore = "slow: a machine is started"]
fn queues_of_linux_mark_and_share_as_configured() {
    let _alone = alone();
    if let Err(error) = Qemu::find().and_then(|_| Image::find(None)) {
        skip::because!("{error}");
        return;
    }
    let place = Place::new();
    let statement = check(&place, &dut("linux-tc"), &["QUE"]);
    assert_eq!(with(&statement, Verdict::Pass).len(), 7, "{statement:#?}");
    place.assert_empty();
}

#[test]
fn a_hub_fails_by_the_cases_that_name_its_faults_and_leaves_evidence() {
    let place = Place::new();
    let device = Device::start(place.root(), Played::Hub);
    let evidence = place.root().join("evidence");
    let folder = evidence.display().to_string();
    let names = ["INT-01", "L2-01", "L2-04", "L2-05", "L2-06", "RES-01", "FC-01"];
    let statement = check(&place, &device.file, &[&["--evidence", &folder], &names[..]].concat());
    assert_eq!(with(&statement, Verdict::Pass), ["L2-01", "L2-05"], "{statement:#?}");
    assert_eq!(with(&statement, Verdict::Fail).len(), 5);
    let capture = fs::read(evidence.join("FC-01.pcapng")).expect("evidence");
    let pause = [0x01, 0x80, 0xc2, 0, 0, 1];
    assert!(capture.windows(6).any(|octets| octets == pause), "the pause is in the capture");
}

#[test]
fn a_device_that_alters_frames_fails_by_integrity() {
    let place = Place::new();
    let device = Device::start(place.root(), Played::Editor);
    let statement = check(&place, &device.file, &["INT-01", "INT-03", "INT-08"]);
    assert_eq!(with(&statement, Verdict::Fail).len(), 3, "{statement:#?}");
}

#[test]
fn a_device_that_floods_is_silent_or_goes_away_ends_no_suite() {
    for (played, text) in
        [(Played::Flooder, ""), (Played::Silent, "out by []"), (Played::Gone, "is gone")]
    {
        let place = Place::new();
        let device = Device::start(place.root(), played);
        let statement = check(&place, &device.file, &["L2-01", "L2-02", "L2-04"]);
        assert_eq!(statement.outcomes.len(), 3, "each case has a verdict");
        for outcome in &statement.outcomes {
            // The flood may hold up the tester's own frames.
            let is_flooded = played == Played::Flooder && outcome.verdict == Verdict::Inconclusive;
            assert!(outcome.verdict == Verdict::Fail || is_flooded, "{outcome:#?}");
            assert!(outcome.observed.contains(text), "{outcome:#?}");
        }
        place.assert_empty();
    }
}

#[test]
fn a_silent_agent_says_nothing_of_a_device_that_answers() {
    for (is_alive, verdict) in [(true, Verdict::Inconclusive), (false, Verdict::Fail)] {
        let place = Place::new();
        let device = Device::without_agent(place.root(), is_alive);
        let statement = check(&place, &device.file, &["TX-01", "SEQ-01"]);
        assert_eq!(with(&statement, verdict).len(), 2, "{statement:#?}");
        let says_so = |one: &Outcome| one.observed.contains("the agent does not answer");
        assert!(statement.outcomes.iter().all(says_so), "{statement:#?}");
    }
}

#[test]
fn a_check_that_is_killed_leaves_nothing() {
    let _alone = alone();
    let place = Place::new();
    let file = dut("ours-switchd");
    let mut command = place.command(&["check", "--dut", &file, "MAL", "L2"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    assert!(eventually(20.0, || place.census().0.len() >= 2), "keeper and daemon run");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    place.assert_empty();
    // The next check removes the folder.
    check(&place, &file, &["L2-02"]);
    let left = fs::read_dir(place.root()).expect("a folder").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("pausebed-run")), "{left:?}");
}

#[test]
fn statements_are_compared_and_bad_files_and_names_refused() {
    let place = Place::new();
    let device = Device::start(place.root(), Played::Hub);
    let write = |name: &str, case: &str| {
        let file = place.root().join(name).display().to_string();
        let words = ["check", "--dut", &device.file, "--statement", &file, case, "L2-01"];
        place.run(&words);
        file
    };
    let (before, after) = (write("a.json", "L2-04"), write("b.json", "L2-05"));
    let output = place.run(&["check", "--compare", &before, &after]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("L2-04") && text.contains("L2-05") && !text.contains("L2-01"), "{text}");
    assert_eq!(place.run(&["check", "--compare", &before, &before]).status.code(), Some(0));
    let page = write("c.html", "L2-04");
    assert!(fs::read_to_string(page).expect("a page").contains("FAIL"));
    let refused = place.run(&["check", "--dut", &device.file, "NO-SUCH"]);
    assert_eq!(refused.status.code(), Some(2));
    fs::write(place.root().join("bad.toml"), "[dut]\nname = 3\n").expect("a file");
    let bad = place.run(&["check", "--dut", &place.root().join("bad.toml").display().to_string()]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("bad.toml:2"));
}
