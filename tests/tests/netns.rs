//! Runs in network namespaces, as users start them; they leave nothing behind.
//!
//! Every test requires the right to create namespaces. Without it the tests are skipped.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests start the program and the tools that look at it"
)]

#[path = "netns/attach.rs"]
mod attach;
#[path = "netns/attach_shown.rs"]
mod attach_shown;
#[path = "netns/census.rs"]
mod census;
#[path = "netns/ecn.rs"]
mod ecn;
#[path = "netns/follow.rs"]
mod follow;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "live/objects.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod objects;
#[path = "live/ratios.rs"]
mod ratios;

use emulation::cable::namespace::Namespace;
use laboratory::{Running, alone, in_repository, repeated};
use ratios::expected_ratios;
use std::path::Path;

/// True if the test may create namespaces; says why otherwise.
fn permitted() -> bool {
    match Namespace::make(1) {
        Ok(_) => true,
        Err(error) => {
            skip::because!("network namespaces require CAP_SYS_ADMIN: {error}");
            false
        }
    }
}

/// Asserts that the run lost no frame and that its ratios to line rate agree with those of its twin on the virtual
/// clock within `within`. The run must pass unless the host was too busy in all attempts.
fn assert_agrees(file: &Path, within: f64, words: &[&str], seconds: f64) {
    let twin = Running::start(file, &["--backend", "virtual", "--no-report"]).end(seconds);
    assert_eq!(twin.verdict(), "pass", "{}", twin.data);
    let words: Vec<&str> =
        ["--backend", "netns", "--no-report"].iter().chain(words).copied().collect();
    let ended = repeated(|| Running::start(file, &words).end(seconds));
    assert_eq!(ended.number("/fidelity/transport_lost"), 0.0, "{}", ended.data);
    assert_eq!(ended.leftovers, [""; 0].map(std::path::PathBuf::from), "a scratch folder is left");
    let cables = ended.json()["cables"]["veth"].as_u64().expect("run.json counts the cables");
    assert!(cables > 0, "{:#}", ended.json()["cables"]);
    if ended.verdict() == "inconclusive" {
        eprintln!(
            "INCONCLUSIVE three times: this host is too busy for a conclusive run\n{}",
            ended.data
        );
        return;
    }
    assert_eq!(ended.verdict(), "pass", "{}{}", ended.data, ended.talk);
    for name in expected_ratios(file).0 {
        let [live, model] = [&ended, &twin].map(|run| run.number(&format!("/measures/{name}")));
        assert!((live - model).abs() <= within, "{name}: {live} on netns, {model} on virtual");
    }
}

#[test]
#[ignore = "slow: a minute; a quick run between namespaces is in live/exact.rs"]
fn the_eight_node_network_agrees_with_its_twin() {
    if !permitted() {
        return;
    }
    let _alone = alone();
    let file = in_repository("topo/scenarios/pfister/eight-ib-cca.toml");
    assert_agrees(&file, 0.05, &["--dilate", "600"], 120.0);
}

#[test]
#[ignore = "slow: ten minutes of bare Ethernet"]
fn three_senders_with_dcqcn_agree_with_their_twin() {
    if !permitted() {
        return;
    }
    let _alone = alone();
    let file = in_repository("topo/scenarios/dcqcn/incast3-dcqcn.toml");
    assert_agrees(&file, 0.05, &[], 1_800.0);
}

#[test]
#[ignore = "slow: a quarter of an hour of bare Ethernet and more"]
fn two_bottlenecks_with_qcn_agree_with_their_twin() {
    if !permitted() {
        return;
    }
    let _alone = alone();
    let file = in_repository("topo/scenarios/zhb/case5-qcn.toml");
    assert_agrees(&file, 0.05, &[], 3_600.0);
}

/// Prints the time that the creation takes; asserts that all interfaces exist.
#[test]
#[ignore = "slow: it measures"]
fn thirty_two_namespaces_and_sixty_four_cables_come_up_quickly() {
    use emulation::cable::interface::{PairEnd, address_of};
    use emulation::cable::shim::SendingEnd;
    use emulation::clock::Stopwatch;
    use std::os::fd::AsFd;
    if !permitted() {
        return;
    }
    let _alone = alone();
    for _ in 0..5 {
        let stopwatch = Stopwatch::start();
        let namespaces = Namespace::make(32).expect("32 namespaces");
        let made = stopwatch.seconds();
        for link in 0..64u32 {
            let (near, far) = (link as usize % 32, (link as usize * 7 + 1) % 32);
            let (a, b) = (format!("a{link}"), format!("b{link}"));
            let end = |name, of: usize, end| PairEnd {
                name,
                address: address_of(link, end),
                namespace: namespaces[of].as_fd(),
            };
            let ends = (end(&a, near, SendingEnd::A), end(&b, far, SendingEnd::B));
            namespaces[near].interfaces.make_pair(ends.0, ends.1, 2_400).expect("a pair");
            namespaces[near].interfaces.switch_on(&a, "a test").expect("one end");
            namespaces[far].interfaces.switch_on(&b, "a test").expect("the other");
        }
        let up = stopwatch.seconds();
        drop(namespaces);
        eprintln!("32 namespaces in {made:.3} s, with 64 cables up in {up:.3} s");
    }
}
