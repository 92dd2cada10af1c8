//! `pausebed down`: ends a lab, and removes what it consisted of and nothing else.

use super::{Place, choose};
use crate::command::Exit;
use launch;
use launch::lab::start;

/// Options of `down`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which lab; needed where there are several
    #[arg(value_name = "LAB")]
    lab: Option<String>,
    /// Every lab
    #[arg(long, conflicts_with = "lab")]
    all: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs the command. A lab that is not there is down.
pub fn run(options: &Options) -> Exit {
    let labs = match options.place.labs() {
        Ok(labs) => labs,
        Err(exit) => return exit,
    };
    let all = labs.all();
    let is_there = options.lab.as_ref().is_none_or(|name| all.contains_key(name));
    if all.is_empty() || !is_there {
        eprintln!("no such lab is up");
        launch::sweep();
        return Exit::Good;
    }
    let chosen = if options.all {
        all.into_iter().collect()
    } else {
        match choose(&labs, options.lab.as_deref()) {
            Ok(lab) => vec![lab],
            Err(exit) => return exit,
        }
    };
    let mut exit = Exit::Good;
    for (name, record) in &chosen {
        match start::end(&labs, name, record) {
            Ok(()) => println!("lab {name} is down"),
            Err(error) => {
                eprintln!("lab {name}: {error}");
                exit = Exit::Host;
            }
        }
    }
    // What their keepers left, if they were killed.
    launch::sweep();
    exit
}
