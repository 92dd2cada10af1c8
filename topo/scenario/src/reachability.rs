//! Reports what the proof of the routes found, in the terms of the scenario file.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use crate::routes::Forwarding;
use crate::routes::proof::{Broken, Failure, Proof, Waits, circle, prove};
use crate::topology::Topology;
use emulation::wiring::End;
use proto::link::{FlowControlConfig, PauseConfig, PauseMode};
use std::collections::{BTreeMap, BTreeSet};

/// Reports pairs without a way, once for each cause, and lanes that can wait for each other in a cycle: an
/// error in a tree, a warning in a listed fabric, where it may be intended. So are switches that can, because all
/// their inputs `pause_together`. Returns which ends can wait for which; empty without a cycle or without flow control.
pub fn check(
    fields: &Fields<'_>,
    (control, pause_together): (&FlowControlConfig, bool),
    topology: &Topology,
    forwarding: &Forwarding,
) -> Waits {
    let proof = prove(topology, forwarding);
    let name = |node: usize| topology.nodes[node].name.as_str();
    let mut reported: Vec<&Broken> = Vec::new();
    for Failure { from, to, why, way } in &proof.broken {
        if reported.contains(&why) {
            continue;
        }
        reported.push(why);
        let others = proof.broken.iter().filter(|other| other.why == *why).count() - 1;
        let more = if others > 0 { format!(" (and {others} more pairs)") } else { String::new() };
        let lid = topology.nodes[*to].lid;
        let (cause, hint) = match why {
            Broken::NoCable => (format!("{} has no cable", name(*from)), "add it to fabric.links"),
            Broken::NoRoute { at } => (
                format!("{} has no route for LID {lid}", name(*at)),
                "a link is missing, or a [[fabric.route]]",
            ),
            Broken::DeadPort { at } => (
                format!("{} has no cable", topology.end_name(*at)),
                "mend the [[fabric.route]] that leads there",
            ),
            Broken::WrongAdapter { at } => (
                format!("the routes for LID {lid} end at {}", name(*at)),
                "mend the [[fabric.route]] that leads there",
            ),
            Broken::Loop { at } => (
                format!("the routes for LID {lid} lead in a circle through {}", name(*at)),
                "mend the [[fabric.route]]s along it",
            ),
        };
        let way: Vec<_> = way.iter().map(|end| topology.end_name(*end)).collect();
        let way = if way.len() > 1 { format!(", by {}", way.join(" → ")) } else { String::new() };
        let message = format!("{} cannot reach {}{more}: {cause}{way}", name(*from), name(*to));
        fields.error("route", message, hint);
    }
    let what = match control {
        FlowControlConfig::Credit(_) => "credits",
        FlowControlConfig::Pause(PauseConfig { mode: PauseMode::None, .. }) => return Waits::new(),
        FlowControlConfig::Pause(_) => "paused buffers",
    };
    report_circle(fields, what, topology, proof, pause_together)
}

/// Reports ports that can wait for each other in a circle. Returns which ends can wait for which; empty without a circle.
fn report_circle(
    fields: &Fields<'_>,
    what: &str,
    topology: &Topology,
    proof: Proof,
    pause_together: bool,
) -> Waits {
    let ends = |circle: &[End]| {
        let ends = circle.iter().map(|end| topology.end_name(*end));
        ends.collect::<Vec<_>>().join(" → ")
    };
    let waits = if pause_together { coupled(&proof.waits) } else { proof.waits };
    if proof.circle.is_empty() {
        let circle = circle(&waits);
        if circle.is_empty() {
            return Waits::new();
        }
        if let Some(switch) = fields.table("switch") {
            let message = format!(
                "switches that pause all inputs together can stop each other for ever: {}",
                ends(&circle)
            );
            let hint = "memory = \"per-input\" or \"shared-pool\" cannot, nor can one switch alone";
            switch.warn("memory", Complaint::new(message, hint));
        }
        return waits;
    }
    let message = format!("{what} can wait in a circle: {}", ends(&proof.circle));
    let hint = "such a fabric can deadlock; routes that go up and then down cannot";
    let complaint = Complaint::new(message, hint);
    match topology.is_tree {
        true => fields.report("route", complaint),
        false => fields.warn("route", complaint),
    }
    waits
}

/// The waits of switches that pause all inputs while frames of any of them fill the memory: an input waits for
/// every output that some input has frames for.
fn coupled(waits: &Waits) -> Waits {
    let mut outputs: BTreeMap<usize, BTreeSet<End>> = BTreeMap::new();
    for end in waits.values().flatten() {
        outputs.entry(end.node).or_default().insert(*end);
    }
    let of = |next: &BTreeSet<End>| {
        next.first().map_or_else(BTreeSet::new, |end| outputs[&end.node].clone())
    };
    waits.iter().map(|(end, next)| (*end, of(next))).collect()
}
