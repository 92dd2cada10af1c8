//! `pausebed calibrate`: how many frame-hops a second this host carries before departures are late.
//!
//! A few short live runs of one fabric, by the same path as `run`, each slowed more or less than the
//! one before. What the last one that kept up carried, less a margin, is remembered for
//! `dilate = "auto"`.

use super::Exit;
use crate::campaign::exit_of_error;
use comfy_table::{CellAlignment, Table, presets};
use emulation::timer::{Priority, permitted_priority};
use launch::calibration::Calibration;
use launch::estimate;
use launch::experiment::{Conditions, Experiment, ExperimentError};
use launch::{Outcome, interrupt, substrate};
use scenario::Scenario;
use scenario::render::render;
use scenario::run::Backend;
use search::Search;
use serde::Serialize;

mod search;

/// The fabric that is run: 32 nodes, an even load.
const FABRIC: &str = include_str!("../../scenarios/host/calibrate.toml");

/// Runs in all: enough to tell the limit to a fifth.
const RUNS: u64 = 5;
/// Wall time of a run outside its fabric: starting daemons, draining cables, reporting.
const OVERHEAD_S: f64 = 0.6;
/// Shorter runs see too few departures for a p99.
const RUN_MIN_S: f64 = 0.5;
/// What is stored, of what was sustained: the rest is for fabrics less even than this one.
const MARGIN: f64 = 0.8;

/// Options of `calibrate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Wall time for all runs together, in seconds.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=3600))]
    seconds: u64,
    /// Print one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

/// What one run showed.
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
    /// CPU time of all workers by frame-hop.
    cpu_ns_per_frame_hop: f64,
    /// By design.md 4.
    kept_up: bool,
}

impl Try {
    fn of(dilation: u64, outcome: &Outcome) -> Try {
        let hops = outcome.frame_hops as f64;
        Try {
            dilation,
            frame_hops_per_s: hops / outcome.wall_seconds.max(1e-9),
            lateness_p99_frames: outcome.fidelity.lateness_p99_frames,
            transport_lost: outcome.fidelity.transport_lost,
            cpu_ns_per_frame_hop: outcome.cpu_seconds * 1e9 / hops.max(1.0),
            kept_up: outcome.fidelity.ok,
        }
    }
}

/// Runs the command.
pub fn run(options: &Options, line: &str) -> Exit {
    interrupt::watch();
    let realtime = permitted_priority(true) == Priority::Fifo;
    eprintln!(
        "real-time priority: {}; about {} s of short live runs",
        if realtime { "granted" } else { "not granted (pausebed doctor says how to get it)" },
        options.seconds,
    );
    let tries = match measure(options.seconds as f64, line) {
        Ok(tries) => tries,
        Err(error) => {
            eprintln!("calibrate: {error}");
            return exit_of_error(&error);
        }
    };
    let best = tries.iter().filter(|run| run.kept_up).map(|run| run.frame_hops_per_s);
    let calibration = best.reduce(f64::max).map(|best| Calibration {
        frame_hops_per_s: (best * MARGIN).round(),
        realtime,
        measured: true,
    });
    conclude(options, &tries, calibration)
}

/// Short runs, each slowed as the ones before suggest.
fn measure(seconds: f64, line: &str) -> Result<Vec<Try>, ExperimentError> {
    let guess = parse(&[]);
    // Not what was measured before: the same search on every day.
    let host =
        Calibration { realtime: permitted_priority(true) == Priority::Fifo, ..Calibration::GUESS };
    let begin = estimate::live(&guess, &render(&guess), &host).dilation;
    let tau_s = render(&guess).fabric.tau.as_ps() as f64 / 1e12;
    let length_s = (seconds / RUNS as f64 - OVERHEAD_S).max(RUN_MIN_S);
    let mut search = Search::new(begin);
    let mut tries = Vec::new();
    while let Some(dilation) = search.next().filter(|_| tries.len() < RUNS as usize) {
        let taus = (length_s / (tau_s * dilation as f64)).ceil().max(10.0);
        let scenario =
            parse(&[format!("run.duration=\"{taus} mtu\""), format!("run.dilate={dilation}")]);
        let conditions = Conditions {
            substrate: substrate(Backend::Udp),
            dilation,
            threads: 1,
            folder: None,
            command: line.to_owned(),
            injections: Vec::new(),
        };
        let experiment = Experiment::run(&scenario, conditions, &mut |_| {})?;
        let run = Try::of(dilation, &experiment.outcome);
        eprintln!(
            "{dilation}× slowed: {:.0} frame-hops/s, late p99 {:.3} of a frame time, {}",
            run.frame_hops_per_s,
            run.lateness_p99_frames,
            if run.kept_up { "kept up" } else { "did not keep up" },
        );
        search.learn(dilation, run.kept_up);
        tries.push(run);
    }
    Ok(tries)
}

fn parse(sets: &[String]) -> Scenario {
    let mut all = vec!["run.backend=\"udp\"".to_owned()];
    all.extend_from_slice(sets);
    Scenario::parse(FABRIC, &all).expect("the scenario is part of the program and tested")
}

/// Says what was found, and stores it.
fn conclude(options: &Options, tries: &[Try], calibration: Option<Calibration>) -> Exit {
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
        println!("{}", table(tries));
    }
    match (calibration, stored) {
        (Some(calibration), Some(Ok(file))) => {
            eprintln!(
                "{:.0} frame-hops/s stored in {}: four fifths of the best run that kept up",
                calibration.frame_hops_per_s,
                file.display()
            );
            Exit::Good
        }
        (_, Some(Err(error))) => {
            eprintln!("the result cannot be stored: {error}");
            Exit::Host
        }
        _ => {
            eprintln!(
                "no run kept up, so nothing is stored: is the host busy? \
                 pausebed doctor shows what stands in the way"
            );
            Exit::Host
        }
    }
}

fn table(tries: &[Try]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["dilation", "frame-hops/s", "late p99", "lost", "CPU/frame-hop", "kept up"]);
    for run in tries {
        table.add_row([
            run.dilation.to_string(),
            format!("{:.0}", run.frame_hops_per_s),
            format!("{:.3}", run.lateness_p99_frames),
            run.transport_lost.to_string(),
            format!("{:.2} µs", run.cpu_ns_per_frame_hop / 1e3),
            if run.kept_up { "yes" } else { "no" }.to_owned(),
        ]);
    }
    for column in 0..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
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
        let text = table(&[run(1000, true), run(600, false)]);
        assert!(
            text.contains("120000") && text.contains("0.031") && text.contains("6.54 µs"),
            "{text}"
        );
        assert_eq!(text.lines().filter(|line| line.ends_with("yes")).count(), 1);
        assert_eq!(text.lines().filter(|line| line.ends_with("no")).count(), 1);
    }
}
