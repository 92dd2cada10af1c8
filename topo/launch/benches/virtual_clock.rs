//! How fast the virtual clock runs case 4 on one thread, and what its recorder costs of that.
//!
//! ```text
//! cargo bench -p launch --bench virtual_clock [-- [--repeats N] [--stop MTU_TIMES] [--bare] [NAME…]]
//! ```
//!
//! Two fabrics of the same scenario take turns of a few bins, so that a machine with other work on it
//! treats both alike: one with the launcher's recorder, one before a observer that does nothing (`--bare`
//! leaves the first out, for profilers). Figures are CPU time, which other processes cannot take away.
//! The recorder's cost is the median over the turns, each compared with its neighbour; what is done
//! once, before the run and after it, is not in it.

use emulation::clock::process_cpu_ns;
use emulation::observer::{NoObserver, Observer};
use emulation::recorder::Recorder;
use emulation::simulator::Simulator;
use launch::virtual_clock;
use proto::units::{Duration, Instant};
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::ops::ControlFlow;
use std::path::Path;

const SCENARIOS: &[&str] = &["case4-ib-cca", "case4-none"];
/// Bins of a turn. Fewer, and what a turn finds in the cache is the other fabric's.
const TURN: u64 = 5;

/// One scenario, ready to be run again and again.
struct Subject {
    scenario: Scenario,
    lab: Lab,
}

impl Subject {
    fn load(name: &str, stop: Option<u64>) -> Subject {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/pfister");
        let loaded = scenario::files::load(&folder.join(format!("{name}.toml")), &[]);
        let scenario = loaded.unwrap_or_else(|faults| panic!("{faults}")).scenario;
        let mut lab = render(&scenario);
        if let Some(mtu_times) = stop {
            lab.plan.stop = Instant::ZERO + Duration::from_ps(lab.plan.tau.as_ps() * mtu_times);
        }
        Subject { scenario, lab }
    }

    /// All devices, before a observer.
    fn fabric<W: Observer>(&self, observer: W) -> Fabric<W> {
        let devices = virtual_clock::devices(&self.lab).expect("case 4 is well configured");
        let wiring = &self.lab.fabric.wiring;
        Fabric { simulator: Simulator::new(wiring, devices, self.scenario.run.seed), observer }
    }

    /// The launcher's observer.
    fn recorder(&self) -> Recorder {
        let wiring = &self.lab.fabric.wiring;
        Recorder::new(self.lab.plan.clone(), wiring, (0..wiring.nodes.len()).collect())
    }

    /// When turns end.
    fn turns(&self) -> impl Iterator<Item = Instant> + use<> {
        let (turn, stop) = (self.lab.plan.bin * TURN, self.lab.plan.stop);
        let ends = (1..).map(move |n| Instant::ZERO + turn * n);
        ends.take_while(move |end| *end < stop).chain([stop])
    }
}

/// A fabric in the middle of a run.
struct Fabric<W> {
    simulator: Simulator,
    observer: W,
}

impl<W: Observer> Fabric<W> {
    /// Runs until `end`: nanoseconds of CPU, and the frame-hops since the start.
    fn turn(&mut self, end: Instant) -> (f64, u64) {
        let before = process_cpu_ns();
        let run = self.simulator.run(end, &mut self.observer, |_| ControlFlow::Continue(()));
        ((process_cpu_ns() - before) as f64, run.frame_hops)
    }
}

/// Nanoseconds of CPU a frame-hop, whole runs and turn by turn.
#[derive(Default)]
struct Costs {
    bare: Vec<f64>,
    recorded: Vec<f64>,
    /// What a turn with the recorder cost, of one without.
    shares: Vec<f64>,
    hops: u64,
}

impl Costs {
    /// One run with the recorder and one without, in turns.
    fn both(&mut self, subject: &Subject) {
        let (mut bare, mut recorded) =
            (subject.fabric(NoObserver), subject.fabric(subject.recorder()));
        let mut sums = [0.0; 2];
        for (number, end) in subject.turns().enumerate() {
            let (without, with) = if number % 2 == 0 {
                let without = bare.turn(end);
                (without, recorded.turn(end))
            } else {
                let with = recorded.turn(end);
                (bare.turn(end), with)
            };
            assert_eq!(without.1, with.1, "watching changes nothing");
            self.shares.push(with.0 / without.0);
            sums = [sums[0] + without.0, sums[1] + with.0];
            self.hops = with.1;
        }
        let [bare, recorded] = sums.map(|sum| sum / self.hops as f64);
        self.bare.push(bare);
        self.recorded.push(recorded);
    }

    fn bare(&mut self, subject: &Subject) {
        let (cost, hops) = subject.fabric(NoObserver).turn(subject.lab.plan.stop);
        self.hops = hops;
        self.bare.push(cost / hops as f64);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report(name: &str, way: &str, costs: &mut [f64]) {
    let median = median(costs);
    let (best, worst) = (costs[0], costs[costs.len() - 1]);
    println!(
        "{name:<14} {way:<9} {:>6.2} M frame-hops/s and core   {median:>6.1} ns a hop ({best:.1} to {worst:.1})",
        1e3 / median
    );
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
                // The argument that cargo itself passes to a bench.
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
        let mut costs = Costs::default();
        for _ in 0..options.repeats {
            if options.bare { costs.bare(&subject) } else { costs.both(&subject) }
        }
        println!("{name:<14} {} frame-hops a run, {} runs each", costs.hops, options.repeats);
        report(name, "unwatched", &mut costs.bare);
        if !options.bare {
            report(name, "recorded", &mut costs.recorded);
            let median = median(&mut costs.shares);
            let percent = |share: f64| (share - 1.0) * 100.0;
            let quarter = costs.shares.len() / 4;
            let middle = [costs.shares[quarter], costs.shares[costs.shares.len() - 1 - quarter]];
            println!(
                "{name:<14} the recorder: {:+.1} % (middle half of {} turns {:+.1} to {:+.1} %)",
                percent(median),
                costs.shares.len(),
                percent(middle[0]),
                percent(middle[1]),
            );
        }
    }
}
