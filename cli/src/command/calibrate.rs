//! `pausebed calibrate`: measures how many frame-hops in a second this host carries without late departures.
//!
//! It makes a few short live runs of one fabric with different dilations. The best rate of a run that kept up, less
//! a margin, is stored for `dilate = "auto"`.

use crate::exit::{Exit, Failure, Outcome};
use crate::terminal::table::table;
use emulation::timer::{Priority, permitted_priority};
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment};
use launch::{LaunchError, Outcome as RunOutcome, interrupt, substrate};
use scenario::Scenario;
use scenario::render::render;
use scenario::run::Backend;
use search::Search;
use serde::Serialize;

mod search;

/// The scenario: 32 nodes with an even load.
const FABRIC: &str = include_str!("../../../topo/scenarios/host/calibrate.toml");

/// The number of runs: enough to find the limit within a fifth.
const RUNS: u64 = 5;
/// Wall time of a run in addition to its fabric time, in seconds: start of daemons, end of cables, reports.
const OVERHEAD_S: f64 = 0.6;
/// The shortest run, in seconds: shorter ones have too few departures for a p99.
const RUN_MIN_S: f64 = 0.5;
/// The stored share of the best rate; the rest is a margin for less even fabrics.
const MARGIN: f64 = 0.8;

/// Options of `calibrate`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Wall time for all runs together, in seconds.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

/// The result of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Try {
    /// Wall time over fabric time.
    dilation: u64,
    /// Frames of any kind a wall second, each crossing one link.
    frame_hops_per_s: f64,
    /// 99th percentile of lateness, in frame times.
    lateness_p99_frames: f64,
    /// Frames the sockets lost.
    transport_lost: u64,
    /// CPU time of all workers for a frame-hop.
    cpu_ns_per_frame_hop: f64,
    /// Whether the host kept up (`emulation/src/fidelity/verdict.rs`).
    kept_up: bool,
}

impl Try {
    fn of(dilation: u64, outcome: &RunOutcome) -> Try {
        let hops = outcome.frame_hops as f64;
        Try {
            dilation,
            frame_hops_per_s: hops / outcome.wall_seconds.max(1e-9),
            // Its fabric has no attached ports, so lateness is defined.
            lateness_p99_frames: outcome.fidelity.lateness_p99_frames.unwrap_or_default(),
            transport_lost: outcome.fidelity.transport_lost,
            cpu_ns_per_frame_hop: outcome.cpu_seconds * 1e9 / hops.max(1.0),
            kept_up: outcome.fidelity.ok,
        }
    }
}

/// Runs the command.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    interrupt::install_handlers();
    let realtime = permitted_priority(true) == Priority::Fifo;
    eprintln!(
        "real-time priority: {}; about {} s of short live runs",
        if realtime { "granted" } else { "not granted (pausebed doctor says how to get it)" },
        options.seconds,
    );
    let tries = measure(options.seconds as f64, realtime, line)
        .map_err(|error| Failure::from(error).of("calibrate"))?;
    let best = tries.iter().filter(|run| run.kept_up).map(|run| run.frame_hops_per_s);
    let calibration = best.reduce(f64::max).map(|best| Calibration {
        frame_hops_per_s: (best * MARGIN).round(),
        realtime,
        measured: true,
    });
    conclude(options, &tries, calibration)
}

/// Makes short runs, each with the dilation that the search suggests.
fn measure(seconds: f64, realtime: bool, line: &str) -> Result<Vec<Try>, LaunchError> {
    let guess = parse(&[]);
    // The stored calibration is not used, so that the search is the same every time.
    let host = Calibration { realtime, ..Calibration::GUESS };
    let lab = render(&guess);
    let begin = estimate::live(&guess, &lab, &host).dilation;
    let tau_s = lab.fabric.tau.as_ps() as f64 / 1e12;
    let length_s = (seconds / RUNS as f64 - OVERHEAD_S).max(RUN_MIN_S);
    let mut search = Search::new(begin);
    let mut tries = Vec::new();
    while let Some(dilation) = search.next().filter(|_| tries.len() < RUNS as usize) {
        let taus = (length_s / (tau_s * dilation as f64)).ceil().max(10.0);
        let scenario =
            parse(&[format!("run.duration=\"{taus} mtu\""), format!("run.dilate={dilation}")]);
        let conditions = Conditions::new(substrate(Backend::Udp), line);
        let conditions = Conditions { dilation, ..conditions };
        let experiment = Experiment::run(&scenario, conditions, &mut |_| {})?;
        let run = Try::of(dilation, &experiment.outcome);
        eprintln!(
            "{dilation}× slowed: {:.0} frame-hops/s, late p99 {:.3} of a frame time, {}",
            run.frame_hops_per_s,
            run.lateness_p99_frames,
            if run.kept_up { "kept up" } else { "did not keep up" },
        );
        search.add(dilation, run.kept_up);
        tries.push(run);
    }
    Ok(tries)
}

fn parse(sets: &[String]) -> Scenario {
    let mut all = vec!["run.backend=\"udp\"".to_owned()];
    all.extend_from_slice(sets);
    Scenario::parse(FABRIC, &all).expect("the scenario is part of the program and tested")
}

/// Stores the calibration, and prints the runs.
fn conclude(options: &Options, tries: &[Try], calibration: Option<Calibration>) -> Outcome {
    let stored = calibration.map(|calibration| calibration.store());
    if options.json {
        let file = stored.as_ref().and_then(|stored| stored.as_ref().ok());
        let document = serde_json::json!({
            "runs": tries,
            "calibration": calibration,
            "stored": file.map(|file| file.display().to_string()),
        });
        println!("{document:#}");
    } else {
        say!("{}", text(tries));
    }
    let (Some(calibration), Some(stored)) = (calibration, stored) else {
        return Err(Failure::host(
            "no run kept up, so nothing is stored: is the host busy? pausebed doctor shows problems",
        ));
    };
    let cannot = |error| Failure::host(format!("the result cannot be stored: {error}"));
    let (rate, file) = (calibration.frame_hops_per_s, stored.map_err(cannot)?);
    eprintln!(
        "{rate:.0} frame-hops/s stored in {}: four fifths of the best run that kept up",
        file.display()
    );
    Ok(Exit::Good)
}

fn text(tries: &[Try]) -> String {
    let header = ["dilation", "frame-hops/s", "late p99", "lost", "CPU/frame-hop", "kept up"];
    let rows = tries.iter().map(|run| {
        [
            run.dilation.to_string(),
            format!("{:.0}", run.frame_hops_per_s),
            format!("{:.3}", run.lateness_p99_frames),
            run.transport_lost.to_string(),
            format!("{:.2} µs", run.cpu_ns_per_frame_hop / 1e3),
            if run.kept_up { "yes" } else { "no" }.to_owned(),
        ]
    });
    table(&header, 0..5, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fabric_inside_the_program_is_a_scenario_of_32_nodes() {
        let scenario = parse(&["run.dilate=500".to_owned(), "run.duration=\"50 mtu\"".to_owned()]);
        assert_eq!(render(&scenario).nics.len(), 32);
        assert_eq!(scenario.run.backend, Backend::Udp);
    }

    #[test]
    fn a_table_shows_every_run_and_whether_it_kept_up() {
        let run = |dilation, kept_up| Try {
            dilation,
            frame_hops_per_s: 120_000.0,
            lateness_p99_frames: 0.031,
            transport_lost: 0,
            cpu_ns_per_frame_hop: 6_540.0,
            kept_up,
        };
        let text = super::text(&[run(1000, true), run(600, false)]);
        assert!(
            text.contains("120000") && text.contains("0.031") && text.contains("6.54 µs"),
            "{text}"
        );
        assert_eq!(text.lines().filter(|line| line.ends_with("yes")).count(), 1);
        assert_eq!(text.lines().filter(|line| line.ends_with("no")).count(), 1);
    }
}
