//! `pausebed logs`: what a lab's keeper and daemons have said.

use super::{Place, choose};
use crate::command::Exit;
use emulation::clock::monotonic_ns;
use emulation::timer;
use launch::interrupt;
use launch::lab::folder::LOG;
use std::fs::File;
use std::io;

/// How often it is looked for more.
const LOOK_EVERY_NS: u64 = 200_000_000;

/// Options of `logs`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which lab; needed where there are several
    #[arg(value_name = "LAB")]
    lab: Option<String>,
    /// Go on until interrupted
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let chosen = options.place.labs().and_then(|labs| {
        let (name, _) = choose(&labs, options.lab.as_deref())?;
        Ok(labs.folder(&name).join(LOG))
    });
    let file = match chosen {
        Ok(file) => file,
        Err(exit) => return exit,
    };
    let mut log = match File::open(&file) {
        Ok(log) => log,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            return Exit::Host;
        }
    };
    interrupt::watch();
    loop {
        // Who reads no more has seen enough.
        if io::copy(&mut log, &mut io::stdout()).is_err() || !options.follow {
            return Exit::Good;
        }
        timer::wait(None, monotonic_ns() + LOOK_EVERY_NS);
        if interrupt::requested() || !file.exists() {
            return Exit::Good;
        }
    }
}
