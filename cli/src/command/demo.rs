//! `pausebed demo`: case 4 of the paper, live over UDP, without and with congestion control.

use crate::campaign::Campaign;
use crate::exit::{Exit, Failure, Outcome};
use crate::library;
use crate::options::RunOptions;
use crate::terminal::keys;
use launch::output;
use scenario::files::{self, Loaded};
use std::io::{self, IsTerminal};

/// The two scenarios, of those that the program contains.
const SCENARIOS: [&str; 2] = ["pfister/demo-none", "pfister/demo-ib-cca"];

/// Options of `demo`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    common: RunOptions,
}

/// Runs the command. On a terminal an inconclusive demo is offered again with exact pace.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    let mut common = options.common.clone();
    if common.quiet {
        output::be_quiet();
    }
    common.backend.get_or_insert_with(|| "udp".to_owned());
    eprintln!(
        "32 nodes send at 0.9 of line rate. For a while all but one also send to node 31, three times what its\n\
         port can receive. No frame is dropped: watch what happens to the other flows."
    );
    let exit = make(&common, line)?;
    if exit != Exit::Inconclusive {
        return Ok(exit);
    }
    let is_offered = !common.quiet && io::stdin().is_terminal() && io::stderr().is_terminal();
    let key = if is_offered { "press e, or later: " } else { "" };
    eprintln!(
        "This host is too busy for the wall clock. Exact pace needs no quiet host: {key}pausebed demo --pace exact"
    );
    match is_offered.then(keys::key).flatten() {
        Some(b'e' | b'E') => make(&common.at_exact_pace(), line),
        _ => Ok(exit),
    }
}

/// Makes both runs.
fn make(common: &RunOptions, line: &str) -> Outcome {
    let sets = common.overrides();
    let parse = |name: &str| {
        let resolved = library::resolve(name).expect("it is a file of the program");
        let scenario = files::parse(&resolved, &sets).map_err(|faults| {
            Failure::usage(files::with_pages(&faults, &format!("{name}.toml")))
        })?;
        let stem = name.rsplit('/').next().unwrap_or(name);
        Ok(Loaded { file: format!("{stem}.toml").into(), stem: stem.to_owned(), scenario })
    };
    let loaded = SCENARIOS.into_iter().map(parse).collect::<Result<Vec<_>, Failure>>()?;
    Ok(Campaign { common: common.clone(), line: line.to_owned(), single: false }.run(&loaded))
}
