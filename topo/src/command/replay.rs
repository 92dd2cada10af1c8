//! `pausebed replay FILE --at NODE:PORT`: recorded frames through a fabric, and what comes out.
//!
//! Frames follow one another by one frame time of the default link unless told otherwise: recorded
//! silence is long, and fabric time may pass slowly. See [`launch::replay`] for what feeding means.

use super::Exit;
use crate::campaign;
use crate::terminal::progress::RunProgress;
use crate::terminal::replay as table;
use clap::Parser;
use emulation::wiring::End;
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment};
use launch::replay::{Account, Feed, Pace, account, technology_of};
use launch::{BACKENDS, interrupt, substrate};
use proto::technology::Technology;
use results::verdict::Verdict;
use scenario::Scenario;
use scenario::files;
use scenario::keyfile::quantity;
use scenario::names;
use scenario::render::{Lab, render};
use std::path::{Path, PathBuf};

/// Where frames go if no scenario is named; part of the program so that it needs no files.
const ONE_SWITCH: (&str, &str) =
    ("one-switch.toml", include_str!("../../scenarios/replay/one-switch.toml"));
const ETHERNET_SWITCH: (&str, &str) =
    ("ethernet-switch.toml", include_str!("../../scenarios/replay/ethernet-switch.toml"));

/// Options of `replay`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A capture of InfiniBand or Ethernet frames, pcap or pcapng.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The port at which the frames arrive.
    #[arg(long, value_name = "NODE:PORT")]
    at: String,
    /// The fabric; if left out one switch: for InfiniBand with the LIDs 1, 4 and 5 at its ports 1 to
    /// 3, for Ethernet one that learns and floods.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Run on this substrate instead of the scenario's: virtual or udp.
    #[arg(long, value_parser = BACKENDS.iter().map(|row| row.name).collect::<Vec<_>>())]
    backend: Option<String>,
    /// Override a key of the scenario, as for run; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Write capture.pcapng and a run directory here.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep the recorded gaps, this many times as fast.
    #[arg(long, value_name = "FACTOR", value_parser = speed, conflicts_with = "gap")]
    speed: Option<f64>,
    /// One frame every so often, as in "10 us" or "2 mtu".
    #[arg(long, value_name = "TIME", default_value = "1 mtu")]
    gap: String,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().map_err(|error| error.to_string())?;
    let positive = factor.is_finite() && factor > 0.0;
    if positive { Ok(factor) } else { Err("a speed is above zero".to_owned()) }
}

/// The options without a command before them.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true)]
struct Alone {
    #[command(flatten)]
    options: Options,
}

impl Options {
    /// Options as the command line gives them, without the command's name.
    ///
    /// # Errors
    /// In the words of the command line.
    pub fn parse(arguments: &[&str]) -> Result<Options, String> {
        let parsed = Alone::try_parse_from(arguments).map_err(|error| error.to_string())?;
        Ok(parsed.options)
    }
}

/// Runs the command.
pub fn run(options: &Options, line: &str) -> Exit {
    match replay(options, line) {
        Ok(account) if options.json => {
            let json = serde_json::to_string_pretty(&account);
            println!("{}", json.expect("an account is plain data"));
            exit_of(&account)
        }
        Ok(account) => {
            print!("{}", table::text(&account));
            exit_of(&account)
        }
        Err((exit, reason)) => {
            eprintln!("{}", reason.trim_end());
            exit
        }
    }
}

/// Replays, and says what became of every frame.
///
/// # Errors
/// How the command ends without an account, and why.
pub fn replay(options: &Options, line: &str) -> Result<Account, (Exit, String)> {
    let prepared = prepare(options).map_err(|reason| (Exit::Usage, reason))?;
    // Without --out the capture is only read, for the account.
    let scratch = tempfile::tempdir()
        .map_err(|error| (Exit::Host, format!("no temporary folder: {error}")))?;
    let folder = options.out.as_deref().unwrap_or(scratch.path());
    let experiment = perform(options, line, &prepared, folder)?;
    let mut account = Account::of(&prepared.1, &options.file, &experiment)
        .map_err(|error| (Exit::Host, format!("cannot read what was captured: {error}")))?;
    let file = account::captures(&experiment).next().map(|capture| capture.file.clone());
    account.capture = file.filter(|_| options.out.is_some());
    Ok(account)
}

/// Reads everything; nothing is started if anything is wrong.
///
/// # Errors
/// What is wrong with the scenario, the port, the pace or the capture.
pub fn prepare(options: &Options) -> Result<(Scenario, Feed), String> {
    let mut scenario = scenario(options)?;
    let at = port(&scenario, &options.at)?;
    let pace = match options.speed {
        Some(speed) => Pace::Speed(speed),
        None => Pace::Gap(
            quantity::time(&options.gap, &scenario.fabric.scale)
                .map_err(|wrong| format!("--gap: {} ({})", wrong.message, wrong.hint))?,
        ),
    };
    let lab = render(&scenario);
    let feed = Feed::read(&options.file, at, &lab, pace)
        .map_err(|error| format!("{}: {error}", options.file.display()))?;
    if let Some(warning) = feed.warning(&lab) {
        eprintln!("warning: {warning}");
    }
    watch(&mut scenario, at, &lab);
    scenario.run.duration = scenario.run.duration.max(feed.duration(&lab));
    Ok((scenario, feed))
}

fn scenario(options: &Options) -> Result<Scenario, String> {
    let mut sets = options.sets.clone();
    sets.extend(options.backend.iter().map(|backend| format!("run.backend={backend:?}")));
    match &options.scenario {
        Some(file) => files::load(file, &sets).map(|loaded| loaded.scenario),
        None => {
            let (name, text) = match technology_of(&options.file) {
                Some(Technology::Ethernet) => ETHERNET_SWITCH,
                _ => ONE_SWITCH,
            };
            Scenario::parse(text, &sets).map_err(|faults| faults.in_file(name))
        }
    }
}

/// The one port that `text` names.
fn port(scenario: &Scenario, text: &str) -> Result<End, String> {
    let topology = &scenario.fabric.topology;
    let ends = names::ends(topology, text)
        .map_err(|wrong| format!("--at: {} ({})", wrong.message, wrong.hint))?;
    match ends[..] {
        [end] if text.contains(':') => Ok(end),
        _ => {
            let all: Vec<String> = ends.iter().map(|end| topology.end_name(*end)).collect();
            Err(format!("--at: {text:?} is not one port as NODE:PORT ({})", all.join(", ")))
        }
    }
}

/// Has all ports of the fed node captured, beside those that the scenario names, and whole: that is
/// how frames are found again.
fn watch(scenario: &mut Scenario, at: End, lab: &Lab) {
    let ends = lab.fabric.wiring.links.iter().flat_map(|link| [link.a, link.b]);
    let run = &mut scenario.run;
    run.capture.extend(ends.filter(|end| end.node == at.node));
    run.capture.sort();
    run.capture.dedup();
    if run.snaplen.take().is_some() {
        eprintln!("run.snaplen is set aside: a replay needs whole frames");
    }
}

/// Runs the scenario with the frames fed to it; its files go to `folder`.
///
/// # Errors
/// How the command ends if nothing came back, and why.
pub fn perform(
    options: &Options,
    line: &str,
    (scenario, feed): &(Scenario, Feed),
    folder: &Path,
) -> Result<Experiment, (Exit, String)> {
    interrupt::watch();
    let substrate = substrate(scenario.run.backend);
    let lab = render(scenario);
    let mut dilation = 0;
    if substrate.is_live {
        let estimate = estimate::live(scenario, &lab, &Calibration::load());
        dilation = estimate.dilation;
        eprintln!(
            "{}: {dilation}× slowed, about {:.0} s of wall time",
            scenario.name, estimate.wall_seconds
        );
    }
    let conditions = Conditions {
        substrate,
        dilation,
        threads: 1,
        folder: Some(folder),
        command: line.to_owned(),
        injections: feed.injections(),
    };
    let phases = lab.phases.iter().map(|phase| (phase.start, phase.name.clone())).collect();
    let quiet = options.json;
    let mut bar = RunProgress::new(&scenario.name, lab.fabric.tau, lab.plan.stop, phases, quiet);
    let run = Experiment::run(scenario, conditions, &mut |progress| bar.tell(progress, quiet));
    bar.finish();
    run.map_err(|error| (campaign::exit_of_error(&error), format!("{}: {error}", scenario.name)))
}

/// The exit code that an account amounts to.
pub fn exit_of(account: &Account) -> Exit {
    match account.verdict {
        Verdict::Inconclusive => Exit::Inconclusive,
        Verdict::Pass if account.accounted => Exit::Good,
        Verdict::Pass | Verdict::Fail => Exit::Failed,
    }
}
