//! SM: subnet management: one switch and one NIC, each in a long dialogue with a manager, and sweeps over all values.

mod desk;
mod dialogue;
mod identity;
mod keys;
mod partitions;
mod ports;
mod routes;
mod services;
mod tables;
mod traps;

use crate::prelude::*;
use dialogue::{Dialogue, Node};
use traps::Watch;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("SM-01", |on| both(on, "SM-01")),
    ("SM-02", |on| both(on, "SM-02")),
    ("SM-03", |on| both(on, "SM-03")),
    ("SM-04", |on| both(on, "SM-04")),
    ("SM-05", |on| both(on, "SM-05")),
    ("SM-06", |on| both(on, "SM-06")),
    ("SM-07", |on| both(on, "SM-07")),
    ("SM-08", |on| both(on, "SM-08")),
    ("SM-09", |on| both(on, "SM-09")),
    ("SM-10", |on| both(on, "SM-10")),
    ("SM-11", |on| both(on, "SM-11")),
    ("SM-12", |on| both(on, "SM-12")),
    ("SM-13", |on| both(on, "SM-13")),
    ("SM-14", |on| both(on, "SM-14")),
    ("SM-15", |on| both(on, "SM-15")),
    ("SM-16", |on| both(on, "SM-16")),
    ("SM-17", |on| both(on, "SM-17")),
    ("SM-18", |on| both(on, "SM-18")),
    ("SM-19", |on| both(on, "SM-19")),
    ("SM-20", |_| keys::violations_stick()),
    ("SM-21", |on| both(on, "SM-21")),
    ("SM-22", |on| both(on, "SM-22")),
    ("SM-23", |on| both(on, "SM-23")),
    ("SM-24", |on| with(on, "SM-24", routes::every_pointer)),
    ("SM-25", |on| with(on, "SM-25", routes::loop_ends)),
    ("SM-26", |on| both(on, "SM-26")),
    ("SM-27", |on| both(on, "SM-27")),
    ("SM-28", |on| both(on, "SM-28")),
    ("SM-29", |on| both(on, "SM-29")),
    ("SM-30", |on| both(on, "SM-30")),
    ("SM-31", |on| both(on, "SM-31")),
    ("SM-32", |on| both(on, "SM-32")),
    ("SM-33", |on| both(on, "SM-33")),
    ("SM-34", |on| both(on, "SM-34")),
    ("SM-35", |on| both(on, "SM-35")),
    ("SM-36", |on| both(on, "SM-36")),
    ("SM-37", |on| both(on, "SM-37")),
    ("SM-38", |on| watched(on, &[Node::Switch], Watch::content)),
    ("SM-39", |on| watched(on, &[Node::Switch, Node::Nic], Watch::repetition)),
    ("SM-40", |on| watched(on, &[Node::Nic], Watch::content)),
    ("SM-41", |on| both(on, "SM-41")),
    ("SM-42", |on| both(on, "SM-42")),
    ("SM-43", |_| services::counters_stick()),
    ("SM-44", |on| both(on, "SM-44")),
    ("SM-45", |on| both(on, "SM-45")),
    ("SM-46", |on| both(on, "SM-46")),
    ("SM-47", |on| both(on, "SM-47")),
    ("SM-48", |on| both(on, "SM-48")),
    ("SM-49", partition_notices),
];

/// The star without LIDs and routes.
fn text(star: &Star<'_>) -> String {
    Star { rest: "[lab]\nmanaged = true\n", ..*star }.text()
}

/// A dialogue, and the watch for notices at its end.
fn dialogue(node: Node, on: Level) -> (Dialogue, Watch) {
    let mut all = Dialogue::new(node);
    identity::unaddressed(&mut all);
    routes::directed(&mut all);
    match node {
        Node::Switch => {
            tables::before_active(&mut all);
            ports::states_of_a_spare_port(&mut all);
            ports::bring_up(&mut all);
            tables::preset(&mut all);
        }
        Node::Nic => {
            ports::bring_up(&mut all);
            ports::states_of_an_adapter(&mut all);
        }
    }
    identity::addressed(&mut all);
    if node == Node::Switch {
        routes::combined(&mut all);
        tables::of_switch(&mut all);
    }
    ports::limits(&mut all);
    tables::of_ports(&mut all);
    services::counted(&mut all);
    services::congestion_control(&mut all);
    partitions::partitions(&mut all);
    keys::keys(&mut all, on);
    let watch = traps::watch(&mut all);
    if node == Node::Switch {
        routes::exit_that_is_down(&mut all);
    }
    (all, watch)
}

fn run(node: Node, on: Level) -> Result<Record> {
    let (dialogue, _) = dialogue(node, on);
    let duration = format!("{} us", dialogue.now().as_ps() / 1_000_000 + 50_000);
    let star = Star { nics: 4, duration: &duration, link: "vls = 4", ..Star::PROFILE };
    play(on, &text(&star), node.name(), |script| dialogue.schedule(script))
}

static SWITCH: Shared<Record> = Shared::new(|on| run(Node::Switch, on));
static NIC: Shared<Record> = Shared::new(|on| run(Node::Nic, on));

fn record(node: Node, on: Level) -> Result<Arc<Record>> {
    if node == Node::Switch { SWITCH.on(on) } else { NIC.on(on) }
}

/// Judges the turns of `case` at each device that has some.
fn both(on: Level, case: &str) -> Finding {
    let mut seen = Vec::new();
    for node in [Node::Switch, Node::Nic] {
        let count = dialogue(node, on).0.judge(case, &*record(node, on)?)?;
        if count > 0 {
            seen.push(format!("{}: {count} of {count} as expected", node.daemon()));
        }
    }
    ensure!(!seen.is_empty(), "nothing belongs to {case}");
    Ok(seen.join("; "))
}

/// The same, and on the virtual clock a sweep.
fn with(on: Level, case: &str, sweep: fn() -> Result<String>) -> Finding {
    let seen = both(on, case)?;
    let swept = on.only_engine(sweep)?;
    Ok(if swept.is_empty() { seen } else { format!("{seen}; {swept}") })
}

/// SM-49.
fn partition_notices(on: Level) -> Finding {
    let said = [Node::Switch, Node::Nic].map(|node| {
        let found = partitions::notices(node, &*record(node, on)?);
        found.map_err(|failure| failure.of(node.daemon()))
    });
    Ok(said.into_iter().collect::<Result<Vec<_>>>()?.join("; "))
}

/// What the watch for notices has seen at these devices.
fn watched(
    on: Level,
    nodes: &[Node],
    look: fn(&Watch, Node, &Record) -> Result<String>,
) -> Finding {
    let seen = nodes.iter().map(|node| {
        let found = look(&dialogue(*node, on).1, *node, &*record(*node, on)?);
        found.map_err(|failure| failure.of(node.daemon()))
    });
    Ok(seen.collect::<Result<Vec<_>>>()?.join("; "))
}
