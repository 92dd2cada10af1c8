//! `pausebed demo`: case 4 of the paper, live over UDP, without and with congestion control.

use super::Exit;
use super::run::Common;
use crate::campaign::{Campaign, Plan};
use scenario::Scenario;
use scenario::files::Loaded;
use std::path::PathBuf;

/// The two scenarios, part of the program so that it needs no files.
const SCENARIOS: [(&str, &str); 2] = [
    ("demo-none", include_str!("../../scenarios/pfister/demo-none.toml")),
    ("demo-ib-cca", include_str!("../../scenarios/pfister/demo-ib-cca.toml")),
];

/// Options of `demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub fn run(options: &Options, line: &str) -> Exit {
    let mut common = options.common.clone();
    common.backend.get_or_insert_with(|| "udp".to_owned());
    let sets = common.overrides();
    let mut loaded = Vec::new();
    for (stem, text) in SCENARIOS {
        match Scenario::parse(text, &sets) {
            Ok(scenario) => loaded.push(Loaded {
                file: PathBuf::from(format!("{stem}.toml")),
                stem: stem.to_owned(),
                scenario,
            }),
            Err(faults) => {
                eprintln!("{}", faults.in_file(&format!("{stem}.toml")).trim_end());
                return Exit::Usage;
            }
        }
    }
    eprintln!(
        "32 nodes send at 0.9 of line rate; for a while all but one also aim at node 31, three\n\
         times what its port can take. Nothing is dropped: watch what happens to everybody else."
    );
    let plan = Plan { common, line: line.to_owned(), single: false, suite: false };
    Campaign::new(plan).run(loaded)
}
