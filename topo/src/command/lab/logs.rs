//! `pausebed logs`: prints the log of a lab's supervisor and daemons.

use super::{Place, choose};
use crate::exit::{Exit, Failure, Outcome};
use launch::interrupt;
use launch::lab::folder::LOG;
use std::fs::File;
use std::io;

/// The interval at which the log is polled.
const POLL_NS: u64 = 200_000_000;

/// Options of `logs`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// The lab; needed if there are several
    #[arg(value_name = "LAB")]
    lab: Option<String>,
    /// Continue until interrupted
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let labs = options.place.labs()?;
    let file = labs.folder(&choose(&labs, options.lab.as_deref())?.lab).join(LOG);
    let mut log = File::open(&file).map_err(|error| Failure::host(error).of(file.display()))?;
    interrupt::install_handlers();
    // An error means that the reader has closed standard output.
    while io::copy(&mut log, &mut io::stdout()).is_ok() && options.follow {
        interrupt::pause(POLL_NS);
        if interrupt::requested() || !file.exists() {
            break;
        }
    }
    Ok(Exit::Good)
}
