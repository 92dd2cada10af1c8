//! `pausebed show`: what the devices of a lab count, as tables that operators know.

use super::{Choice, failed};
use crate::command::Exit;
use crate::terminal::lab::{Show, Subject};
use daemon::admin::Flows;
use daemon::admin::view::{Counters, NodeCounters};
use emulation::clock::monotonic_ns;
use emulation::timer;
use launch::interrupt;
use launch::lab::{Record, client};
use serde_json::json;
use std::io::IsTerminal;

/// How often a watched table is drawn anew.
const DRAW_EVERY_NS: u64 = 1_000_000_000;
/// Clears a terminal and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Options of `show`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// What of the lab
    #[arg(value_enum)]
    subject: Subject,
    /// Only this port (leaf1:4), or this node's
    #[arg(value_name = "PORT")]
    port: Option<String>,
    /// Draw the table anew every second, until interrupted
    #[arg(long)]
    watch: bool,
    /// Print one JSON document with all counters instead of a table
    #[arg(long)]
    json: bool,
    /// Leave out rows that are all zeros
    #[arg(long)]
    nonzero: bool,
    #[command(flatten)]
    choice: Choice,
}

impl Options {
    /// Which flows it takes: their number goes with the square of adapters.
    const fn flows(&self) -> Flows {
        match self.subject {
            _ if self.json => Flows::All,
            Subject::Cc | Subject::Flows => Flows::All,
            Subject::Pfc | Subject::Ecn | Subject::Credits | Subject::Queues | Subject::Links => {
                Flows::None
            }
        }
    }
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let record = match options.choice.running() {
        Ok(record) => record,
        Err(exit) => return exit,
    };
    interrupt::watch();
    let clears = options.watch && std::io::stdout().is_terminal();
    loop {
        let counters = match client::counters(&record, options.flows()) {
            Ok(counters) => narrowed(counters, options.port.as_deref()),
            Err(error) => return failed(&error),
        };
        if counters.iter().all(|daemon| daemon.nodes.is_empty()) {
            let port = options.port.as_deref().unwrap_or_default();
            eprintln!("no port or node {port} in lab {}", record.lab);
            return Exit::Usage;
        }
        let text = draw(options, &record, &counters);
        println!("{}{text}", if clears { CLEAR } else { "" });
        if !options.watch {
            return Exit::Good;
        }
        timer::wait(None, monotonic_ns() + DRAW_EVERY_NS);
        if interrupt::requested() {
            return Exit::Good;
        }
    }
}

fn draw(options: &Options, record: &Record, counters: &[Counters]) -> String {
    if options.json {
        return json(record, counters);
    }
    let show = Show { subject: options.subject, nonzero: options.nonzero, record };
    show.text(counters)
}

/// Only what is asked for: a port, or all of a node's.
fn narrowed(mut counters: Vec<Counters>, port: Option<&str>) -> Vec<Counters> {
    let Some(wanted) = port else { return counters };
    for daemon in &mut counters {
        for node in daemon.nodes.iter_mut().filter(|node| node.node != wanted) {
            node.ports.retain(|port| port.port == wanted);
        }
        daemon.nodes.retain(|node| !node.ports.is_empty());
    }
    counters
}

/// All daemons of the lab in one document.
fn json(record: &Record, counters: &[Counters]) -> String {
    let nodes: Vec<&NodeCounters> = counters.iter().flat_map(|daemon| &daemon.nodes).collect();
    let document = json!({
        "lab": record.lab,
        "at_ps": counters.iter().map(|daemon| daemon.at_ps).max(),
        "cleared_ps": counters.iter().filter_map(|daemon| daemon.cleared_ps).max(),
        "nodes": nodes,
    });
    serde_json::to_string_pretty(&document).expect("plain data")
}
