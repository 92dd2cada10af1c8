//! `pausebed status`: lists labs and their state.

use super::{Place, running};
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::terminal;
use crate::terminal::lab::{HostLine, LabLine, labs};
use launch::lab::balance::Balance;
use launch::lab::folder::DaemonRecord;
use launch::lab::{LabRecord, Stage, client, rights};
use std::collections::BTreeMap;

/// Silent nodes that the table names.
const SHOWN: usize = 3;

/// Options of `status`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// Only this lab
    #[arg(value_name = "LAB", add = completion::labs())]
    lab: Option<String>,
    /// Show what each thread of the labs may do
    #[arg(long)]
    rights: bool,
    /// Show what became of every frame, as of one instant of fabric time
    #[arg(long, conflicts_with = "rights")]
    balance: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs the command. It ends with 5 if a lab has ended by itself.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let mut all = options.place.labs()?.all();
    if let Some(name) = &options.lab {
        all = all.remove(name).map(|record| (name.clone(), record)).into_iter().collect();
    }
    if options.rights {
        return Ok(show_rights(&all, options.json));
    }
    if options.balance {
        return show_balances(&all, options.json);
    }
    let lines: BTreeMap<String, LabLine> =
        all.iter().map(|(name, record)| (name.clone(), line(record))).collect();
    if options.json {
        println!("{}", serde_json::to_string_pretty(&lines).expect("plain data"));
    } else if lines.is_empty() {
        eprintln!("no lab is up: pausebed up FILE");
    } else {
        say!("{}", labs(&lines));
    }
    let has_died = |line: &LabLine| line.state.starts_with("ended");
    Ok(if lines.values().any(has_died) { Exit::Died } else { Exit::Good })
}

fn show_rights(labs: &BTreeMap<String, LabRecord>, as_json: bool) -> Exit {
    let held: BTreeMap<_, _> =
        labs.iter().map(|(name, record)| (name.clone(), rights::of(record))).collect();
    if as_json {
        println!("{}", serde_json::to_string_pretty(&held).expect("plain data"));
    } else {
        say!("{}", terminal::lab::rights(&held));
    }
    Exit::Good
}

/// Ends with 1 if a frame is unaccounted for.
fn show_balances(labs: &BTreeMap<String, LabRecord>, as_json: bool) -> Outcome {
    let balance = |(name, record): (&String, &LabRecord)| {
        let balance = client::balance(&running(record.clone())?);
        Ok((name.clone(), balance?))
    };
    let balances: BTreeMap<String, Balance> =
        labs.iter().map(balance).collect::<Result<_, Failure>>()?;
    if as_json {
        println!("{}", serde_json::to_string_pretty(&balances).expect("plain data"));
    } else {
        for (name, balance) in &balances {
            print!("lab {name}\n{}", terminal::lab::balance(balance));
        }
    }
    let close = balances.values().all(|balance| balance.closes);
    Ok(if close { Exit::Good } else { Exit::Failed })
}

fn line(record: &LabRecord) -> LabLine {
    let state = match (&record.stage, record.is_alive()) {
        (Stage::Starting, true) => "starting".to_owned(),
        (Stage::Up, true) => "up".to_owned(),
        (Stage::Ended(reason), _) => format!("ended: {reason}"),
        (_, false) => "ended: its supervisor was killed".to_owned(),
    };
    let nodes = |is_so: fn(&DaemonRecord) -> bool| -> Vec<&str> {
        let daemons = record.daemons.iter().filter(|daemon| is_so(daemon));
        daemons.flat_map(|daemon| &daemon.nodes).map(String::as_str).take(SHOWN).collect()
    };
    let silent = nodes(|daemon| daemon.is_silent);
    let given_up = nodes(|daemon| daemon.is_given_up);
    let is_up = state == "up";
    let daemons = if is_up { client::status(record).unwrap_or_default() } else { vec![] };
    let state = match is_up {
        true if !silent.is_empty() => format!("silent: {}", silent.join(", ")),
        true if !given_up.is_empty() => format!("without {}", given_up.join(", ")),
        true if daemons.is_empty() => "does not answer".to_owned(),
        _ => state,
    };
    LabLine {
        state,
        backend: record.backend.clone(),
        dilation: record.dilation,
        nodes: record.daemons.iter().map(|daemon| daemon.nodes.len()).sum(),
        supervisor: record.owner.process,
        at_ps: daemons.iter().map(|daemon| daemon.at_ps).max(),
        late_p99_thousandths: daemons.iter().filter_map(|daemon| daemon.late_p99_thousandths).max(),
        lost: daemons.iter().map(|daemon| daemon.lost).sum(),
        unsent: daemons.iter().map(|daemon| daemon.unsent).sum(),
        refused: daemons.iter().map(|daemon| daemon.refused).sum(),
        injected_lost: daemons.iter().map(|daemon| daemon.injected.lost.total()).sum(),
        attached: daemons.iter().flat_map(|daemon| daemon.attached.clone()).collect(),
        hosts: record.hosts.iter().map(|host| HostLine::of(host, record.is_alive())).collect(),
        captures: daemons.iter().filter_map(|daemon| daemon.capture.clone()).collect(),
        processes: record.daemons.clone(),
    }
}
