//! `pausebed lab-env NODE`: the environment of programs that manage a lab from beside a node.

use super::Choice;
use crate::completion;
use crate::exit::{Exit, Outcome};
use launch::lab::beside;

/// Options of `lab-env`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// The node: a NIC, or a switch for its port 0
    #[arg(value_name = "NODE", add = completion::nodes())]
    node: String,
    #[command(flatten)]
    choice: Choice,
}

/// Prints a line NAME=VALUE for each variable, as env(1) takes them.
pub(in super::super) fn run(options: &Options) -> Outcome {
    for (name, value) in beside::environment(&options.choice.running()?, &options.node)? {
        println!("{name}={value}");
    }
    Ok(Exit::Good)
}
