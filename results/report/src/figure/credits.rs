//! The panel of credits between switches: how many blocks the output that waited most could still send.
//!
//! Computed from the fill of the input behind it: blocks count as available before a credit packet has announced
//! them.

use super::panel::{Panel, Series, Stroke};
use crate::data::{Envelope, Graph, Run};
use crate::facts::Facts;
use proto::technology::Technology;
use results::saturation::Output;

/// Octets of a credit. Source: IBTA Vol 1, 7.9.4.
const BLOCK: f64 = 64.0;
/// A fabric of more switches has no single output between them to look at.
const SWITCHES_MAX: usize = 6;

/// The panel, in fabrics of few switches that count credits.
pub fn panel<'a>(facts: &'a Facts<'a>) -> Option<Panel<'a>> {
    let run = facts.run.run;
    let switches = run.graph.nodes.iter().filter(|node| !node.is_adapter()).count();
    if run.graph.technology != Technology::Infiniband || switches > SWITCHES_MAX {
        return None;
    }
    let output = between_switches(facts)?;
    let name = facts.run.drawn.output_name(output);
    let blocks = run.result.input_buffer_bytes as f64 / BLOCK;
    if blocks < 1.0 {
        return None;
    }
    let about = format!("blocks of 64 octets left to {name}, least to most as a band");
    let mut panel = Panel::new("credits", "credits".to_owned(), about, "blocks", blocks);
    panel.ticks[1] = panel.ticks[1].round();
    for side in facts.sides() {
        let Some(series) = side.run.series.get(Run::facing(output)) else { continue };
        let credits = left(&series.input, side.run.result.input_buffer_bytes as f64);
        let own = Series::new(name.clone(), side, credits.mean);
        let own = own.between(credits.min, credits.max).carried("credits", 1.0);
        let place = panel.draws(own, Stroke::Both, format!("queue {}", side.role));
        panel.label(place, format!("credits, {}", side.name), side.role, 0);
    }
    Some(panel)
}

/// What an input that holds so much has left, in blocks: the fuller, the less.
fn left(input: &Envelope, buffer: f64) -> Envelope {
    let blocks = |octets: &Vec<f64>| {
        octets.iter().map(|octets| ((buffer - octets) / BLOCK).max(0.0)).collect::<Vec<f64>>()
    };
    Envelope { min: blocks(&input.max), mean: blocks(&input.mean), max: blocks(&input.min) }
}

/// Of the outputs that lead from switch to switch the one that was held longest, in either run.
fn between_switches(facts: &Facts<'_>) -> Option<usize> {
    let Graph { nodes, outputs, .. } = &facts.run.run.graph;
    let held = |output: usize| {
        let series = facts.sides().filter_map(|side| side.run.series.get(output));
        series.map(|series| series.totals.hold_ps).max().unwrap_or(0)
    };
    let between = |output: &usize| {
        let Output { from, to, .. } = &outputs[*output];
        !nodes[*from].is_adapter() && !nodes[*to].is_adapter()
    };
    let between = (0..outputs.len()).rev().filter(between);
    between.max_by_key(|output| held(*output)).filter(|output| held(*output) > 0)
}
