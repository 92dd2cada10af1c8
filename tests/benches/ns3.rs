//! The virtual clock compared with ns-3: frame-hops per second on a fat tree of 128 nodes, in turns.
//!
//! ```text
//! cargo bench -p pausebed-tests --bench ns3 [-- [--repeats N]]
//! ```
//!
//! Both carry datagrams of one MTU between pairs of nodes in different pods, over six links, at half
//! of 8 Gb/s for 1 ms, on one thread. ns-3 is the distribution's package (libns3-dev). Its program is
//! `ns3-ft.cc` in `../shared/bench` or in the folder of `PAUSEBED_BENCH`. Set-up time is not counted. ns-3
//! forwards by IP with drop-tail queues; pausebed's frames are octets with both CRCs, and every link
//! has credits.

#![expect(
    clippy::disallowed_methods,
    reason = "a bench beside another program starts that program"
)]

use emulation::clock::Stopwatch;
use emulation::observer::NoObserver;
use emulation::simulator::Simulator;
use launch::virtual_clock;
use scenario::Scenario;
use scenario::render::render;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of links on a path between pods.
const LINKS: f64 = 6.0;

/// The same fabric and load as a scenario.
const SCENARIO: &str = r#"
schema = 1
name = "beside-ns3"
[run]
duration = "1 ms"
[fabric]
shape = "xgft"
m = [4, 4, 8]
w = [1, 4, 4]
technology = "infiniband"
mtu = "2048 B"
link = { rate = "8 Gbps", delay = "100 ns", lanes = 1 }
switch = { memory = "per-input", buffer = "36 mtu" }
nic = {}
[scheme]
kind = "none"
"#;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let repeats = words.windows(2).find(|pair| pair[0] == "--repeats");
    let repeats = repeats.and_then(|pair| pair[1].parse().ok()).unwrap_or(3_usize).max(1);
    let folder = std::env::var_os("PAUSEBED_BENCH").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/bench"),
        PathBuf::from,
    );
    let source = folder.join("ns3-ft.cc");
    if !source.exists() {
        return println!("{} is missing: nothing to compare with", source.display());
    }
    let scratch = tempfile::tempdir().expect("a folder for a program");
    let program = scratch.path().join("ns3-ft");
    if let Err(why) = compile(&source, &program) {
        return println!("ns-3 is not usable (apt-get install libns3-dev g++): {why}");
    }
    let scenario = scenario();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        theirs.push(ns3(&program));
        ours.push(here(&scenario));
        let (theirs, ours) = (theirs[theirs.len() - 1], ours[ours.len() - 1]);
        println!("ns-3 {theirs:>9.0}   here {ours:>9.0} frame-hops/s   ratio {:.1}", ours / theirs);
    }
    theirs.sort_by(f64::total_cmp);
    ours.sort_by(f64::total_cmp);
    println!("ratio of medians {:.1}", ours[repeats / 2] / theirs[repeats / 2]);
}

/// Every node sends to the node half the tree plus one leaf away, as in the ns-3 program.
fn scenario() -> Scenario {
    let mut text = SCENARIO.to_owned();
    for node in 0..128 {
        let to = (node + 68) % 128;
        text += &format!(
            "[[traffic]]\nname = \"t{node}\"\nfrom = \"h{node}\"\nto = \"h{to}\"\nload = 0.5\n\
             arrivals = \"paced\"\ntransport = \"uc\"\n"
        );
    }
    Scenario::parse(&text, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Frame-hops per second of wall time on the virtual clock, on one thread.
fn here(scenario: &Scenario) -> f64 {
    let lab = render(scenario);
    let devices = virtual_clock::devices(&lab).expect("the scenario's devices are valid");
    let mut simulator = Simulator::new(&lab.fabric.wiring, devices, scenario.run.seed);
    let stopwatch = Stopwatch::start();
    let go_on = |_| ControlFlow::Continue(());
    let tally = simulator.run(lab.plan.stop, &mut NoObserver, go_on);
    // Only packets count, because ns-3 has no flow control packets.
    tally.packet_hops as f64 / stopwatch.seconds()
}

fn compile(source: &Path, program: &Path) -> Result<(), String> {
    let libraries = ["core", "network", "internet", "point-to-point", "applications"];
    let linked = libraries.iter().map(|library| format!("-lns3-{library}"));
    let output = Command::new("g++")
        .args(["-O3", "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-o"])
        .arg(program)
        .arg(source)
        .args(linked)
        .output()
        .map_err(|error| format!("g++: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    output.status.success().then_some(()).ok_or_else(|| first.to_owned())
}

/// Frame-hops per second of ns-3's run, from its output.
fn ns3(program: &Path) -> f64 {
    let output = Command::new(program).args(["128", "8", "1", "0.5"]).output();
    let said = String::from_utf8(output.expect("the program was built").stdout)
        .expect("the output is UTF-8");
    let number = |key: &str| -> f64 {
        let found = said.split(',').find_map(|field| field.trim().strip_prefix(key));
        found.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{key} in {said:?}"))
    };
    number("pkts_rx=") * LINKS / number("run_s=")
}
