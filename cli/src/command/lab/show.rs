//! `pausebed show`: the counters of the devices of a lab, as tables.

use super::Choice;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::terminal::counters::{Show, Subject};
use daemon::admin::Flows;
use daemon::admin::view::{Counters, NodeCounters};
use launch::interrupt;
use launch::lab::{LabRecord, client};
use serde_json::json;
use std::io::IsTerminal;

/// The interval at which a watched table is redrawn.
const REDRAW_NS: u64 = 1_000_000_000;
/// Clears the terminal and moves the cursor to its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Options of `show`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// The table
    #[arg(value_enum)]
    subject: Subject,
    /// Only this port (leaf1:4), or the ports of this node
    #[arg(value_name = "PORT", add = completion::ports_and_nodes())]
    port: Option<String>,
    /// Redraw the table every second, until interrupted
    #[arg(long)]
    watch: bool,
    /// Print one JSON document with all counters instead of a table
    #[arg(long)]
    json: bool,
    /// Leave out rows with only zeros
    #[arg(long)]
    nonzero: bool,
    #[command(flatten)]
    choice: Choice,
}

impl Options {
    /// The flows that the table needs: their number grows with the square of the adapters.
    const fn flows(&self) -> Flows {
        match self.json || matches!(self.subject, Subject::Cc | Subject::Flows) {
            true => Flows::All,
            false => Flows::None,
        }
    }
}

/// Runs the command.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let record = options.choice.running()?;
    interrupt::install_handlers();
    let clears = options.watch && std::io::stdout().is_terminal();
    loop {
        let counters = client::counters(&record, options.flows())?;
        let counters = selected(counters, options.port.as_deref());
        if counters.iter().all(|daemon| daemon.nodes.is_empty()) {
            let port = options.port.as_deref().unwrap_or_default();
            return Err(Failure::usage(format!("no port or node {port} in lab {}", record.lab)));
        }
        if clears {
            print!("{CLEAR}");
        }
        if options.json {
            println!("{}", json(&record, &counters));
        } else {
            let (subject, nonzero) = (options.subject, options.nonzero);
            say!("{}", Show { subject, nonzero, record: &record }.text(&counters));
        }
        if !options.watch {
            return Ok(Exit::Good);
        }
        interrupt::pause(REDRAW_NS);
        if interrupt::requested() {
            return Ok(Exit::Good);
        }
    }
}

/// Only the given port, or the ports of the given node.
fn selected(mut counters: Vec<Counters>, port: Option<&str>) -> Vec<Counters> {
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
fn json(record: &LabRecord, counters: &[Counters]) -> String {
    let nodes: Vec<&NodeCounters> = counters.iter().flat_map(|daemon| &daemon.nodes).collect();
    let document = json!({
        "lab": record.lab,
        "at_ps": counters.iter().map(|daemon| daemon.at_ps).max(),
        "cleared_ps": counters.iter().filter_map(|daemon| daemon.cleared_ps).max(),
        "nodes": nodes,
    });
    serde_json::to_string_pretty(&document).expect("plain data")
}
