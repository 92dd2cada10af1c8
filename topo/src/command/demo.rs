//! `pausebed demo`: case 4 of the paper, live over UDP, without and with congestion control.

use crate::campaign::Campaign;
use crate::exit::{Failure, Outcome};
use crate::options::RunOptions;
use scenario::Scenario;
use scenario::files::Loaded;

/// The two scenarios, built into the program.
const SCENARIOS: [(&str, &str); 2] = [
    ("demo-none", include_str!("../../scenarios/pfister/demo-none.toml")),
    ("demo-ib-cca", include_str!("../../scenarios/pfister/demo-ib-cca.toml")),
];

/// Options of `demo`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    common: RunOptions,
}

/// Runs the command.
pub(super) fn run(options: &Options, line: &str) -> Outcome {
    let mut common = options.common.clone();
    common.backend.get_or_insert_with(|| "udp".to_owned());
    let sets = common.overrides();
    let parse = |(stem, text): (&str, &str)| {
        let file = format!("{stem}.toml");
        let scenario = Scenario::parse(text, &sets);
        let scenario = scenario.map_err(|faults| Failure::usage(faults.in_file(&file)))?;
        Ok(Loaded { file: file.into(), stem: stem.to_owned(), scenario })
    };
    let loaded = SCENARIOS.into_iter().map(parse).collect::<Result<Vec<_>, Failure>>()?;
    eprintln!(
        "32 nodes send at 0.9 of line rate. For a while all but one also send to node 31, three times what its\n\
         port can receive. No frame is dropped: watch what happens to the other flows."
    );
    Ok(Campaign { common, line: line.to_owned(), single: false }.run(&loaded))
}
