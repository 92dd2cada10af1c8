//! One run of a scenario on the virtual clock, with a check around each device.

use crate::watch::{Line, Physics, Report, Sink, Violation, Watched, physics};
use emulation::cable::impairment::Injected;
use emulation::simulator::{Simulator, Tally};
use emulation::wiring::End;
use proto::counters::{DeviceReading, DropReason, Drops};
use proto::device::Device;
use proto::ids::PortNumber;
use proto::link::{FlowControlConfig, LinkConfig};
use proto::units::{Bytes, Instant};
use results::run_directory::conservation::Conservation;
use results::run_directory::result::OnCables;
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How a scenario is run.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Threads.
    pub threads: usize,
    /// Whether devices are polled where nothing calls for it.
    pub pokes: bool,
    /// Picoseconds of a unit of time, in which departures are compared with those of other runs.
    pub unit: u64,
    /// Steps of devices after which the run ends at the next turn of the simulator.
    pub steps_max: u64,
    /// When the run ends at the latest.
    pub until: Instant,
}

/// As many times as many steps, and a run ends in the middle of a turn: nothing of it holds then.
const CUT: u64 = 4;

/// A finished run.
pub struct Ran {
    /// The rendered scenario.
    pub lab: Lab,
    /// By node.
    pub readings: Vec<DeviceReading>,
    /// By node.
    pub reports: Vec<Report>,
    /// What cables and devices reported of the laws of physics.
    pub physics: Vec<Violation>,
    /// Counts of cables.
    pub tally: Tally,
    /// It ended in the middle of a turn.
    pub is_cut: bool,
    /// The sum of all frames.
    pub account: Conservation,
}

thread_local! {
    /// Whether this thread is inside [`guarded`].
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the message of a panic for [`guarded`] instead of printing it. Call it once before the first run.
pub fn keep_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match IS_GUARDED.get() {
        true => drop(PANIC.replace(Some(info.to_string()))),
        false => default(info),
    }));
}

/// Calls `work`.
///
/// # Errors
/// The message of a panic.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    IS_GUARDED.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    // The message of a panic in a thread of the simulator is printed; this one says that there was one.
    done.map_err(|_| PANIC.take().unwrap_or_else(|| "a panic without a message".to_owned()))
}

/// Runs `scenario`.
///
/// # Errors
/// The message of a panic.
pub fn run(scenario: &Scenario, conditions: Conditions) -> Result<Ran, String> {
    guarded(|| ran(scenario, conditions))
}

fn ran(scenario: &Scenario, conditions: Conditions) -> Ran {
    let lab = render(scenario);
    let sink = Arc::new(Sink::new(conditions.steps_max * CUT));
    let bare =
        launch::virtual_clock::devices(&lab).expect("validation accepts what devices accept");
    let watch = |(node, inner): (usize, Box<dyn Device>)| -> Box<dyn Device> {
        let name = lab.fabric.node_name(node);
        let lines = lines(&lab, node, inner.ports());
        Box::new(Watched::new(inner, (node, name), lines, conditions, &sink))
    };
    let devices = bare.into_iter().enumerate().map(watch).collect();
    let wiring = &lab.fabric.wiring;
    let simulator = Simulator::new(wiring, devices, scenario.run.seed);
    let mut simulator = simulator.on_threads(conditions.threads);
    let mut seen = Physics::default();
    let stop = lab.plan.stop.min(conditions.until);
    let tally = simulator.run(stop, &mut seen, |_| match sink.steps() > conditions.steps_max {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    let mut readings = Vec::new();
    for device in simulator.devices() {
        let mut reading = DeviceReading::default();
        device.read(tally.ended, &mut reading);
        readings.push(reading);
    }
    drop(simulator);
    let name = |node: usize| lab.fabric.node_name(node);
    let violations = seen.0.iter().filter_map(|(node, event)| physics(name(*node), event));
    let physics = violations.collect();
    let account = Conservation::of(&readings, &on_cables(&tally));
    let is_cut = sink.is_over();
    Ran { reports: sink.reports(), is_cut, physics, lab, readings, tally, account }
}

fn on_cables(tally: &Tally) -> OnCables {
    let Injected { lost, duplicated, .. } = &tally.injected;
    let mut dropped = Drops::default();
    dropped.add(DropReason::Injected, lost.end_to_end);
    let duplicated = duplicated.end_to_end + tally.fed;
    OnCables { under_way: tally.on_cables, dropped, duplicated, handed_over: 0 }
}

/// The lines of a node. A port without a cable has the rate of its configuration.
fn lines(lab: &Lab, node: usize, ports: usize) -> Vec<Line> {
    let of = |index: usize| {
        let link = link(lab, node, index);
        let rate = lab.fabric.line_rate(End { node, port: PortNumber::from_index(index) });
        let overhead = match &link.control {
            FlowControlConfig::Pause(pause) => pause.overhead,
            FlowControlConfig::Credit(_) => Bytes::ZERO,
        };
        Line { rate: rate.unwrap_or(link.rate), overhead }
    };
    (0..ports).map(of).collect()
}

/// The configuration of one port.
pub fn link(lab: &Lab, node: usize, port: usize) -> &LinkConfig {
    match lab.nics.get(node) {
        Some(nic) => &nic.link,
        None => &lab.switches[node - lab.nics.len()].ports[port].link,
    }
}
