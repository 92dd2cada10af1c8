//! The spread of pauses: devices in the order of their first XOFF.

use super::facts::{Facts, Side};
use crate::data::FirstPause;
use chart::number;
use maud::{Markup, html};

/// Rows of a run.
const ROWS_MAX: usize = 12;
/// Greatest number of devices in the title.
const NAMED: usize = 6;

/// The card; empty without pauses.
pub fn card(facts: &Facts<'_>) -> Markup {
    let sides: Vec<&Side<'_>> =
        facts.sides().filter(|side| !side.run.log.first_pauses.is_empty()).collect();
    let Some(last) = sides.last() else { return html! {} };
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Pauses" {
            p class="kicker" { "Pauses, in the order of the first XOFF" }
            h3 { (title(facts, last)) }
            table {
                thead { tr {
                    th { "run" } th { "device" } th class="n" { "first XOFF" } th class="n" { "first XON" } th class="n" { "XOFFs" }
                } }
                tbody { @for side in &sides { @for pause in side.run.log.first_pauses.iter().take(ROWS_MAX) {
                    tr {
                        td { (side.name) } td { (name(side, pause)) }
                        td class="n" { (moment(side, pause.xoff_ps)) }
                        td class="n" { @match pause.xon_ps { Some(at) => (moment(side, at)), None => "–" } }
                        td class="n" { (number::grouped(pause.xoffs)) }
                    }
                } } }
            }
            @for side in sides.iter().filter(|side| side.run.log.first_pauses.len() > ROWS_MAX) {
                p class="how" { (side.name) ": " (side.run.log.first_pauses.len()) " devices in all; the rest is in " code { "events.jsonl" } "." }
            }
        }
    }
}

fn name<'a>(side: &Side<'a>, pause: &FirstPause) -> &'a str {
    &side.run.graph.nodes[pause.node].name
}

fn moment(side: &Side<'_>, ps: u64) -> Markup {
    let tau = side.run.in_tau(ps);
    html! { a class="moment" href=(format!("#t={tau:.0}")) { (number::tau(tau)) } }
}

fn title(facts: &Facts<'_>, side: &Side<'_>) -> String {
    let pauses = &side.run.log.first_pauses;
    let mut names: Vec<&str> = pauses.iter().take(NAMED).map(|pause| name(side, pause)).collect();
    if pauses.len() > NAMED {
        names.push("…");
    }
    let whose = match facts.base {
        Some(_) => format!("With {} ", side.name),
        None => String::new(),
    };
    match names.as_slice() {
        [one] => format!("{whose}{one} alone sent XOFF"),
        several => format!("{whose}{} sent XOFF, in this order", several.join(", ")),
    }
}
