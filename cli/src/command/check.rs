//! `pausebed check`: runs conformance cases and prints the verdict of each.

mod device;

use crate::completion;
use crate::exit::{Exit, Failure, Outcome as Ended};
use crate::terminal::progress::spinner;
use conformance::case::{Case, Level};
use conformance::report::{Totals, json, junit, line};
use conformance::statement::markdown;
use conformance::suite::{Outcome, Selection, Verdict, perform};
use indicatif::ProgressBar;
use std::path::PathBuf;

/// The largest share of inconclusive cases among the live cases that ran, in percent.
/// Source: preface of the conformance cases.
const INCONCLUSIVE_MAX_PERCENT: usize = 2;

/// Options of `check`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Groups and cases, as in IBFC or IBRX-01; all if left out.
    #[arg(value_name = "GROUP|CASE", add = completion::cases())]
    names: Vec<String>,
    /// Only these levels: C on octets, E on the virtual clock, L with live daemons
    #[arg(long, value_name = "C|E|L", value_delimiter = ',', value_parser = level)]
    level: Vec<Level>,
    /// Also write the outcome for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write the statement of conformance, a table in Markdown
    #[arg(long, value_name = "FILE")]
    statement: Option<PathBuf>,
    /// List cases instead of running them
    #[arg(long)]
    list: bool,
    /// Print one JSON document instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: device::Options,
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "C" | "c" => Ok(Level::Codec),
        "E" | "e" => Ok(Level::Engine),
        "L" | "l" => Ok(Level::Live),
        _ => Err("a level is C, E or L".to_owned()),
    }
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Ended {
    if let Some(ended) = device::run(options) {
        return ended;
    }
    let selection = Selection { names: options.names.clone(), levels: options.level.clone() };
    let chosen = selection.runs().map_err(|unknown| {
        let hint = "pausebed check --list shows all";
        Failure::usage(format!("there is no group or case {unknown}\n  hint: {hint}"))
    })?;
    if options.list {
        for (case, level) in &chosen {
            say!("{:<8} {}  {}  [{}]", case.id, level.letter(), case.title, case.source);
        }
        return Ok(Exit::Good);
    }
    let outcomes: Vec<Outcome> = chosen
        .into_iter()
        .map(|(case, level)| {
            let outcome = perform_with_spinner(case, level);
            if !options.json {
                say!("{}", line(&outcome));
            }
            outcome
        })
        .collect();
    conclude(options, &outcomes)
}

/// Runs a case. For a live one, which takes seconds, a terminal shows its name, its duration and repetitions.
fn perform_with_spinner(case: &'static Case, level: Level) -> Outcome {
    let spinner = match level {
        Level::Live => spinner(&format!("{} L  {}", case.id, case.title)),
        Level::Codec | Level::Engine => ProgressBar::hidden(),
    };
    let outcome = perform(case, level, &mut |repeats, why| {
        spinner.set_message(format!("again ({repeats}): {why}"));
    });
    spinner.finish_and_clear();
    outcome
}

fn conclude(options: &Options, outcomes: &[Outcome]) -> Ended {
    let totals = Totals::of(outcomes);
    if options.json {
        println!("{}", json(outcomes));
    } else {
        let Totals { pass, fail, inconclusive, skip } = totals;
        println!("\n{pass} passed, {fail} failed, {inconclusive} inconclusive, {skip} skipped");
    }
    let files = [
        (&options.junit, junit as fn(&[Outcome]) -> String),
        (&options.statement, markdown as fn(&[Outcome]) -> String),
    ];
    for (file, text) in files {
        let Some(file) = file else { continue };
        std::fs::write(file, text(outcomes))
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", file.display())))?;
    }
    let live =
        |outcome: &&Outcome| outcome.level == Level::Live && outcome.verdict != Verdict::Skip;
    let allowed = outcomes.iter().filter(live).count() * INCONCLUSIVE_MAX_PERCENT / 100;
    Ok(match totals {
        Totals { inconclusive, .. } if inconclusive > allowed => Exit::Inconclusive,
        Totals { fail, .. } if fail > 0 => Exit::Failed,
        _ => Exit::Good,
    })
}
