//! The panel of credits between switches: how many blocks the output that waited most could still send.
//!
//! Drawn from the fill of the input behind it, so blocks that a credit packet has yet to tell of count as
//! available.

use super::panel::{Group, Label, Panel, Series, Stroke};
use crate::data::{Envelope, Run};
use crate::facts::Facts;

/// Octets of a credit. Source: IBTA Vol 1, 7.9.4.
const BLOCK: f64 = 64.0;
/// A fabric of more switches has no single output between them to look at.
const SWITCHES_MAX: usize = 6;

/// The panel, in fabrics of few switches that count credits.
pub fn panel<'a>(facts: &'a Facts<'a>) -> Option<Panel<'a>> {
    let run = facts.run.run;
    let switches = run.nodes.iter().filter(|node| !node.is_adapter()).count();
    if run.technology != "infiniband" || switches > SWITCHES_MAX {
        return None;
    }
    let output = between_switches(facts)?;
    let blocks = run.result.input_buffer_bytes as f64 / BLOCK;
    if blocks < 1.0 {
        return None;
    }
    let (mut series, mut groups, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for side in facts.sides() {
        let Some(input) = side.run.series.get(Run::facing(output)).map(|s| &s.input) else {
            continue;
        };
        let credits = left(input, side.run.result.input_buffer_bytes as f64);
        let place = series.len();
        let own = Series::new(facts.run.drawn.output_name(output), side, credits.mean);
        series.push(own.between(credits.min, credits.max).carried("credits", 1.0));
        let class = format!("queue {}", side.role);
        groups.push(Group { class, stroke: Stroke::Both, series: vec![place] });
        labels.push(Label::new(place, format!("credits, {}", side.name), side.role, 0));
    }
    let output = facts.run.drawn.output_name(output);
    let about = format!("blocks of 64 octets left to {output}, least to most as a band");
    let panel = Panel::new("credits", "credits".to_owned(), about, "blocks", blocks);
    let ticks = vec![0.0, (blocks / 2.0).round(), blocks];
    Some(Panel { ticks, series, groups, labels, ..panel })
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
    let run = facts.run.run;
    let is_switch = |node: usize| !run.nodes[node].is_adapter();
    let held = |output: usize| {
        let totals = facts.sides().filter_map(|side| side.run.series.get(output));
        totals.map(|series| series.totals.hold_ps).max().unwrap_or(0)
    };
    let all = run.outputs.all.iter().enumerate();
    let between = all.filter(|(_, output)| is_switch(output.from) && is_switch(output.to));
    let held = between.map(|(place, _)| (held(place), std::cmp::Reverse(place)));
    held.max().filter(|(held, _)| *held > 0).map(|(_, place)| place.0)
}
