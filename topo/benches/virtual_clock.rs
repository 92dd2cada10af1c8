//! How fast the virtual clock runs case 4 on one thread, and what its recorder costs of that.
//!
//! ```text
//! cargo bench -p topo --bench virtual_clock [-- [--repeats N] [--stop MTU_TIMES] [--bare] [NAME…]]
//! ```
//!
//! Two kinds of run take turns, so that a machine with other work on it treats both alike: the
//! launcher's own, with a recorder, and the same devices before a witness that does nothing
//! (`--bare` leaves the launcher's out, for profilers). Figures are CPU time, which other processes
//! cannot take away; medians over the repeats.

use emulation::clock::process_cpu_ns;
use emulation::simulator::{Simulator, Tally};
use emulation::witness::Unwatched;
use proto::units::{Duration, Instant};
use std::ops::ControlFlow;
use std::path::Path;
use topo::launch::{Job, virtual_clock};
use topo::render::{Lab, render};
use topo::scenario::Scenario;

const SCENARIOS: &[&str] = &["case4-ib-cca", "case4-none"];

/// One scenario, ready to be run again and again.
struct Subject {
    scenario: Scenario,
    lab: Lab,
}

impl Subject {
    fn load(name: &str, stop: Option<u64>) -> Subject {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/pfister");
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml")))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let scenario = Scenario::parse(&text, &[]).expect("the project's own scenarios are good");
        let mut lab = render(&scenario);
        if let Some(mtu_times) = stop {
            lab.plan.stop = Instant::ZERO + Duration::from_ps(lab.plan.tau.as_ps() * mtu_times);
        }
        Subject { scenario, lab }
    }

    /// As `pausebed run` does it, but for the files.
    fn recorded(&self) -> u64 {
        let run = &self.scenario.run;
        let scratch = std::env::temp_dir();
        let job = Job {
            lab: &self.lab,
            name: &self.scenario.name,
            seed: run.seed,
            dilation: 1,
            threads: 1,
            placement: run.placement,
            cables: run.cables,
            carrier: run.carrier,
            realtime: false,
            awake: false,
            capture: None,
            injections: Vec::new(),
            scratch: &scratch,
        };
        virtual_clock::run(&job, &mut |_| {}).expect("case 4 runs").frame_hops
    }

    fn bare(&self) -> Tally {
        let devices = virtual_clock::devices(&self.lab).expect("case 4 is well configured");
        let mut simulator =
            Simulator::new(&self.lab.fabric.wiring, devices, self.scenario.run.seed);
        simulator.run(self.lab.plan.stop, &mut Unwatched, |_| ControlFlow::Continue(()))
    }
}

/// Nanoseconds of CPU a frame-hop, and what `work` returned.
fn timed(work: impl FnOnce() -> u64) -> (f64, u64) {
    let before = process_cpu_ns();
    let hops = work();
    ((process_cpu_ns() - before) as f64 / hops as f64, hops)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report(name: &str, way: &str, costs: &mut [f64]) -> f64 {
    let median = median(costs);
    let (best, worst) = (costs[0], costs[costs.len() - 1]);
    println!(
        "{name:<14} {way:<9} {:>6.2} M frame-hops/s and core   {median:>6.1} ns a hop ({best:.1} to {worst:.1})",
        1e3 / median
    );
    median
}

/// What the command line asks for.
struct Options {
    repeats: usize,
    stop: Option<u64>,
    bare: bool,
    names: Vec<String>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Options {
        let mut options = Options { repeats: 5, stop: None, bare: false, names: Vec::new() };
        while let Some(word) = words.next() {
            let mut number =
                || words.next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{word} N"));
            match word.as_str() {
                "--repeats" => options.repeats = (number() as usize).max(1),
                "--stop" => options.stop = Some(number()),
                "--bare" => options.bare = true,
                // What cargo itself says to a bench.
                "--bench" => {}
                name => options.names.push(name.to_owned()),
            }
        }
        if options.names.is_empty() {
            options.names = SCENARIOS.iter().map(|name| (*name).to_owned()).collect();
        }
        options
    }
}

fn main() {
    let options = Options::read(std::env::args().skip(1));
    for name in &options.names {
        let subject = Subject::load(name, options.stop);
        let (mut bare, mut recorded) = (Vec::new(), Vec::new());
        let mut hops = 0;
        for _ in 0..options.repeats {
            let (cost, count) = timed(|| subject.bare().frame_hops);
            bare.push(cost);
            hops = count;
            if !options.bare {
                let (cost, count) = timed(|| subject.recorded());
                recorded.push(cost);
                assert_eq!(count, hops, "watching changes nothing");
            }
        }
        println!("{name:<14} {hops} frame-hops a run, {} runs each", options.repeats);
        let bare = report(name, "unwatched", &mut bare);
        if !options.bare {
            let recorded = report(name, "recorded", &mut recorded);
            println!("{name:<14} the recorder: {:+.1} %", (recorded / bare - 1.0) * 100.0);
        }
    }
}
