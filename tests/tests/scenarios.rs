//! The paper's experiments on the virtual clock: every file meets its expectations, and
//! comparisons between files hold (docs/spec/algorithms.md 10.1).
//!
//! All files run once, in parallel, for all tests of this file. Debug builds are slow and run only the short
//! files.

use emulation::recorder::Recording;
use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use proto::units::Bytes;
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use scenario::inventory::Fabric;
use scenario::run::Backend;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The result of a run and the figures derived from its recordings.
struct Run {
    result: RunResult,
    /// Bins in which a port exceeded its line rate.
    too_fast: Vec<String>,
    /// Number of bins checked.
    bins: usize,
}

impl Run {
    fn of(path: &Path) -> Run {
        let sets = ["run.sample=50 mtu".to_owned()];
        let loaded = scenario::files::load(path, &sets).unwrap_or_else(|faults| panic!("{faults}"));
        let scenario = loaded.scenario;
        let conditions = Conditions::new(substrate(Backend::Virtual), "");
        let Experiment { result, lab, outcome, .. } =
            Experiment::run(&scenario, conditions, &mut |_| {})
                .expect("the run is not interrupted");
        let mut run = Run { result, too_fast: Vec::new(), bins: 0 };
        for recording in &outcome.recordings {
            run.look_through(&lab.fabric, recording);
        }
        run
    }

    /// Compares the octets of each port, direction and bin with the line rate. One frame may begin in the bin before.
    fn look_through(&mut self, fabric: &Fabric, recording: &Recording) {
        const TX_BYTES: usize = 1;
        const RX_BYTES: usize = 3;
        let mut carried: BTreeMap<_, [u64; 2]> = BTreeMap::new();
        for lane in &recording.ports {
            for (place, bin) in lane.bins.iter() {
                let sum = carried.entry((lane.at, place)).or_default();
                sum[0] += bin.counts[TX_BYTES];
                sum[1] += bin.counts[RX_BYTES];
            }
        }
        for ((at, place), [sent, received]) in carried {
            let slot = &recording.grid.slots[place as usize];
            let rate = fabric.line_rate(at).expect("a port with traffic has a cable");
            let busy = Bytes::new(sent.max(received).saturating_sub(fabric.full_frame.get()));
            self.bins += 1;
            if busy.time_at(rate) > slot.length() {
                let name = fabric.wiring.end_name(at);
                self.too_fast.push(format!("{name}: {sent} sent, {received} received in {slot:?}"));
            }
        }
    }

    fn measure(&self, name: &str) -> f64 {
        let value = self.result.measures.get(name).and_then(|value| value.as_ref()?.number());
        value.unwrap_or_else(|| panic!("{}: {name} has no value", self.result.scenario))
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topo/scenarios/pfister");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of scenarios is readable")
        .map(|entry| entry.expect("a readable folder entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter(|path| !cfg!(debug_assertions) || is_short(path))
        .collect();
    // The longest runs start first, so that all cores end at about the same time.
    files.sort_by_key(|path| (is_short(path), !path.to_string_lossy().contains("steady")));
    files
}

fn is_short(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.starts_with("eight-") || stem.starts_with("demo-")
}

/// Every run, by the name of its file.
fn runs() -> &'static BTreeMap<String, Run> {
    static RUNS: OnceLock<BTreeMap<String, Run>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let files = files();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                done.push((stem, Run::of(path)));
            }
            done
        };
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        thread::scope(|scope| {
            let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().expect("the thread does not panic"))
                .collect()
        })
    })
}

fn run(name: &str) -> &'static Run {
    runs().get(name).unwrap_or_else(|| panic!("{name} was not run"))
}

/// Pairs of runs: without and with congestion control.
fn pairs() -> Vec<(&'static str, &'static Run, &'static Run)> {
    let pair = |(name, with): (&'static String, &'static Run)| {
        let stem = name.strip_suffix("-ib-cca")?;
        Some((stem, run(&format!("{stem}-none")), with))
    };
    let pairs: Vec<_> = runs().iter().filter_map(pair).collect();
    assert_eq!(pairs.len(), if cfg!(debug_assertions) { 2 } else { 6 });
    pairs
}

#[test]
fn every_file_meets_its_own_expectations() {
    assert_eq!(runs().len(), if cfg!(debug_assertions) { 4 } else { 17 });
    let mut missed = Vec::new();
    for (name, run) in runs() {
        assert!(run.result.expectations.len() >= 3, "{name} has too few expectations");
        for judged in run.result.expectations.iter().filter(|j| j.verdict != Verdict::Pass) {
            missed.push(format!(
                "{name}: {} is {:?}, accepted is {:?} to {:?} (line {})",
                judged.measure, judged.value, judged.min, judged.max, judged.line
            ));
        }
        if run.result.verdict != Verdict::Pass {
            missed.push(format!("{name}: {:?}", run.result.verdict));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn every_frame_is_delivered_or_in_flight() {
    for (name, run) in runs() {
        let balance = &run.result.conservation;
        assert!(balance.closes(), "{name}: {balance:?}");
        assert!(balance.delivered > 50_000, "{name}: {balance:?}");
        assert_eq!(balance.dropped.values().sum::<u64>(), 0, "{name}: {balance:?}");
        assert!(!balance.dropped.is_empty(), "{name} lists no drop reasons");
    }
}

#[test]
fn no_port_exceeds_its_line_rate() {
    for (name, run) in runs() {
        assert!(run.bins > 1_000, "{name}: only {} bins were checked", run.bins);
        assert!(run.too_fast.is_empty(), "{name}: {:#?}", run.too_fast);
    }
}

#[test]
fn congestion_control_doubles_the_throughput_of_cold_ports() {
    for (name, without, with) in pairs() {
        // In case 1 congestion reaches only the ports of the hot leaf, so the paper's effect is smallest.
        let times = if name == "case1" { 1.5 } else { 2.0 };
        let (without, with) = (without.measure("cold_ports_mean"), with.measure("cold_ports_mean"));
        assert!(with > times * without, "{name}: {with} with, {without} without");
    }
}

#[test]
fn recovery_takes_longer_without_congestion_control() {
    for (name, without, with) in pairs() {
        let recovery = |run: &Run| run.measure("recovery_mtu_times");
        assert!(recovery(without) > recovery(with), "{name}");
    }
}

#[test]
fn no_flow_is_delayed_without_congestion_control() {
    let mut seen = BTreeSet::new();
    for (name, without, with) in pairs() {
        assert_eq!(without.measure("hot_ipd_mean"), 0.0, "{name}");
        let (hot, cold) = (with.measure("hot_ipd_mean"), with.measure("cold_ipd_mean"));
        assert!(hot > 5.0 * cold, "{name}: hot flows wait {hot} τ, cold ones {cold} τ");
        seen.insert(name);
    }
    assert!(seen.contains("eight") && seen.contains("demo"));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "the files it compares run in release builds")]
fn too_high_a_step_or_timer_leaves_the_hot_port_idle() {
    let fair = run("case1-ib-cca");
    let hot = |name: &str| run(name).measure("hot_port");
    assert!(hot("case1-step-high") < fair.measure("hot_port"));
    assert!(hot("case1-timer-high") < fair.measure("hot_port"));
    let spread = run("case1-step-high").measure("hot_ipd_sd");
    assert!(spread > fair.measure("hot_ipd_sd"), "the delays vary more: {spread}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "the files it compares run in release builds")]
fn too_low_a_step_or_timer_has_almost_no_effect() {
    let cold = |name: &str| run(name).measure("cold_ports_mean");
    for low in ["case4-step-low", "case4-timer-low"] {
        assert!(cold(low) < 0.5 * cold("case4-ib-cca"), "{low}");
        assert!(cold(low) < 1.2 * cold("case4-none"), "{low}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "the files it compares run in release builds")]
fn each_flow_waits_longer_when_more_flows_share_the_hot_port() {
    let gap = |name: &str| run(name).measure("hot_ipd_mean");
    assert!(gap("case1-ib-cca") < gap("case3-ib-cca"), "three flows at load 0.5, three at 0.9");
    assert!(gap("case3-ib-cca") < gap("case4-ib-cca"), "three flows, and all 31 flows");
    assert!(gap("case4-ib-cca") <= 31.0, "the table has no larger gap");
}
