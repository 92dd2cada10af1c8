//! `pausebed down`: ends a lab and removes its files.

use super::{Place, choose};
use crate::completion;
use crate::exit::{Exit, Outcome};
use crate::terminal;
use launch::lab::{LabRecord, lifecycle};

/// Options of `down`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// The lab; needed if there are several
    #[arg(value_name = "LAB", add = completion::labs())]
    lab: Option<String>,
    /// Every lab
    #[arg(long, conflicts_with = "lab")]
    all: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs the command. A lab that does not exist is down.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let labs = options.place.labs()?;
    let all = labs.all();
    let exists = options.lab.as_ref().is_none_or(|name| all.contains_key(name));
    let chosen: Vec<LabRecord> = match exists && !all.is_empty() {
        false => {
            eprintln!("no such lab is up");
            Vec::new()
        }
        true if options.all => all.into_values().collect(),
        true => vec![choose(&labs, options.lab.as_deref())?],
    };
    let mut exit = Exit::Good;
    for record in &chosen {
        match lifecycle::end(&labs, record) {
            Ok(balance) => {
                println!("lab {} is down", record.lab);
                match balance {
                    Some(balance) => {
                        say!("{}", terminal::lab::balance(&balance).trim_end());
                        exit = exit.max(balance.verdict().into());
                    }
                    None => eprintln!(
                        "  no balance: a process of the lab was killed, or had no room for its account"
                    ),
                }
            }
            Err(error) => {
                eprintln!("lab {}: {error}", record.lab);
                exit = exit.max(Exit::Host);
            }
        }
    }
    // Files of killed supervisors and launchers.
    launch::remove_leftovers();
    Ok(exit)
}
