//! `pausebed replay FILE --at NODE:PORT`: injects recorded frames into a fabric, and shows where they go.
//!
//! By default the gap between frames is one frame time of the default link, because recorded gaps are long and
//! fabric time may be slow. [`launch::replay`] describes the limits of an injection.

use crate::campaign;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::terminal::replay as table;
use clap::Parser;
use emulation::wiring::End;
use launch::experiment::{Conditions, Experiment};
use launch::replay::{Account, Feed, Pace, account, technology_of};
use launch::{BACKENDS, interrupt, substrate};
use proto::params::quantity;
use proto::technology::Technology;
use results::verdict::Verdict;
use scenario::Scenario;
use scenario::files;
use scenario::names;
use scenario::render::{Lab, render};
use std::path::{Path, PathBuf};

/// The default scenarios, built into the program.
const ONE_SWITCH: (&str, &str) =
    ("one-switch.toml", include_str!("../../../topo/scenarios/replay/one-switch.toml"));
const ETHERNET_SWITCH: (&str, &str) =
    ("ethernet-switch.toml", include_str!("../../../topo/scenarios/replay/ethernet-switch.toml"));

/// Options of `replay`.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// A capture of InfiniBand or Ethernet frames, pcap or pcapng.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The port at which the frames arrive.
    #[arg(long, value_name = "NODE:PORT")]
    at: String,
    /// The fabric (default: one switch; for InfiniBand with the LIDs 1, 4 and 5 at its ports 1 to 3, for
    /// Ethernet one that learns and floods).
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Run on this substrate instead of the scenario's: virtual or udp.
    #[arg(long, value_parser = BACKENDS.iter().map(|row| row.name).collect::<Vec<_>>())]
    backend: Option<String>,
    /// Override a key of the scenario, as for run; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", add = completion::keys())]
    sets: Vec<String>,
    /// Write capture.pcapng and a run directory here.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep the recorded gaps, divided by this factor.
    #[arg(long, value_name = "FACTOR", value_parser = speed, conflicts_with = "gap")]
    speed: Option<f64>,
    /// The gap between frames, as in "10 us" or "2 mtu".
    #[arg(long, value_name = "TIME", default_value = "1 mtu")]
    gap: String,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().map_err(|error| error.to_string())?;
    let positive = factor.is_finite() && factor > 0.0;
    if positive { Ok(factor) } else { Err("a speed must be above zero".to_owned()) }
}

impl Options {
    /// Parses options, without the name of the command.
    ///
    /// # Errors
    /// The message of the parser.
    pub fn parse(arguments: &[&str]) -> Result<Options, String> {
        let words = std::iter::once(&"replay").chain(arguments);
        Options::try_parse_from(words).map_err(|error| error.to_string())
    }
}

/// Runs the command.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    let account = replay(options, line)?;
    if options.json {
        let json = serde_json::to_string_pretty(&account);
        println!("{}", json.expect("an account is plain data"));
    } else {
        say!("{}", table::text(&account).trim_end());
    }
    Ok(exit_of(&account))
}

/// Replays, and returns the fate of every frame.
///
/// # Errors
/// Why the command has no result.
pub fn replay(options: &Options, line: &str) -> Result<Account, Failure> {
    let prepared = prepare(options)?;
    // Without --out the capture is needed only for the account.
    let scratch = tempfile::tempdir();
    let scratch =
        scratch.map_err(|error| Failure::host(format!("no temporary folder: {error}")))?;
    let folder = options.out.as_deref().unwrap_or(scratch.path());
    let experiment = perform(options, line, &prepared, folder)?;
    let account = Account::of(&prepared.1, &options.file, &experiment);
    let mut account =
        account.map_err(|error| Failure::host(format!("cannot read the capture: {error}")))?;
    let file = account::captures(&experiment).next().map(|capture| capture.file.clone());
    account.capture = file.filter(|_| options.out.is_some());
    Ok(account)
}

/// Reads all input before anything is started.
///
/// # Errors
/// If the scenario, the port, the pace or the capture is not valid.
pub fn prepare(options: &Options) -> Result<(Scenario, Feed), Failure> {
    let mut scenario = scenario(options)?;
    let at = port(&scenario, &options.at)?;
    let pace =
        match options.speed {
            Some(speed) => Pace::Speed(speed),
            None => Pace::Gap(quantity::time(&options.gap, &scenario.fabric.scale).map_err(
                |wrong| Failure::usage(format!("--gap: {} ({})", wrong.message, wrong.hint)),
            )?),
        };
    let lab = render(&scenario);
    let feed = Feed::read(&options.file, at, &lab, pace)
        .map_err(|error| Failure::from(error).of(options.file.display()))?;
    if let Some(warning) = feed.warning(&lab) {
        eprintln!("warning: {warning}");
    }
    capture_node(&mut scenario, at, &lab);
    scenario.run.duration = scenario.run.duration.max(feed.duration(&lab));
    Ok((scenario, feed))
}

fn scenario(options: &Options) -> Result<Scenario, Failure> {
    let mut sets = options.sets.clone();
    sets.extend(options.backend.iter().map(|backend| format!("run.backend={backend:?}")));
    let loaded = match &options.scenario {
        Some(file) => files::load(file, &sets).map(|loaded| loaded.scenario),
        None => {
            let (name, text) = match technology_of(&options.file) {
                Some(Technology::Ethernet) => ETHERNET_SWITCH,
                _ => ONE_SWITCH,
            };
            Scenario::parse(text, &sets).map_err(|faults| faults.in_file(name))
        }
    };
    loaded.map_err(Failure::usage)
}

/// The one port that `text` names.
fn port(scenario: &Scenario, text: &str) -> Result<End, Failure> {
    let topology = &scenario.fabric.topology;
    let ends = names::ends(topology, text)
        .map_err(|wrong| Failure::usage(format!("--at: {} ({})", wrong.message, wrong.hint)))?;
    match ends[..] {
        [end] if text.contains(':') => Ok(end),
        _ => {
            let all: Vec<String> = ends.iter().map(|end| topology.end_name(*end)).collect();
            let all = all.join(", ");
            Err(Failure::usage(format!("--at: {text:?} is not one port as NODE:PORT ({all})")))
        }
    }
}

/// Adds all ports of the node to the capture, with whole frames, so that frames can be found again.
fn capture_node(scenario: &mut Scenario, at: End, lab: &Lab) {
    let ends = lab.fabric.wiring.links.iter().flat_map(|link| [link.a, link.b]);
    scenario.capture.extend(ends.filter(|end| end.node == at.node));
    scenario.capture.sort();
    scenario.capture.dedup();
    if scenario.run.snaplen.take().is_some() {
        eprintln!("run.snaplen is ignored: a replay needs whole frames");
    }
}

/// Runs the scenario with the injected frames, and writes its files to `folder`.
///
/// # Errors
/// Why the run has no result.
pub fn perform(
    options: &Options,
    line: &str,
    (scenario, feed): &(Scenario, Feed),
    folder: &Path,
) -> Result<Experiment, Failure> {
    interrupt::install_handlers();
    let conditions = Conditions {
        folder: Some(folder),
        injections: feed.injections(),
        ..Conditions::new(substrate(scenario.run.backend), line)
    };
    let run = campaign::perform(scenario, conditions, options.json);
    run.map_err(|error| Failure::from(error).of(&scenario.name))
}

/// The exit code for an account.
pub fn exit_of(account: &Account) -> Exit {
    match account.verdict {
        _ if account.capture_dropped > 0 => Exit::Incomplete,
        Verdict::Inconclusive => Exit::Inconclusive,
        Verdict::Pass if account.accounted => Exit::Good,
        Verdict::Pass | Verdict::Fail => Exit::Failed,
    }
}
