//! How long messages took from being posted to being delivered, those that never were in words.

use super::facts::Facts;
use crate::chart::number;
use crate::chart::quantiles::{self, Row};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Rows at most; scenarios may have many traffic items.
const ROWS_MAX: usize = 12;

/// The card.
pub fn card(facts: &Facts<'_>) -> Markup {
    let tau_ns = facts.run.run.result.tau_ps.max(1) as f64 / 1_000.0;
    let of: Vec<_> = facts.sides().map(|side| (side, side.run.result.completions())).collect();
    let names: BTreeSet<&String> = of.iter().flat_map(|(_, classes)| classes.keys()).collect();
    let mut rows = Vec::new();
    for name in &names {
        for (side, classes) in &of {
            let Some(completion) = classes.get(*name) else { continue };
            let quantile = |key: &str| Some(*completion.quantiles_ns.get(key)? as f64 / tau_ns);
            let all = || {
                Some([
                    quantile("p1")?,
                    quantile("p25")?,
                    quantile("p50")?,
                    quantile("p75")?,
                    quantile("p99")?,
                ])
            };
            let note = match all() {
                None => {
                    format!("none delivered, {} unfinished", number::grouped(completion.unfinished))
                }
                Some(_) => quantiles::unfinished(completion.unfinished),
            };
            let several =
                if of.len() > 1 { format!("{name}, {}", side.name) } else { (*name).clone() };
            rows.push(Row { name: several, role: side.role, quantiles: all(), note });
        }
    }
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let title = title(facts, tau_ns);
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Completion time" {
            p class="kicker" { "Completion time" }
            h3 { (title) }
            @if rows.is_empty() {
                p class="how" { "No messages were counted." }
            } @else {
                (quantiles::svg(&rows, 570.0, &title, number::tau, number::tau))
            }
            @if left_out > 0 { p class="how" { (left_out) " further rows are in " code { "run.json" } "." } }
        }
    }
}

/// The largest class in words.
fn title(facts: &Facts<'_>, tau_ns: f64) -> String {
    let classes = facts.run.run.result.completions();
    let Some((name, largest)) = classes.iter().max_by_key(|(_, c)| c.messages) else {
        return "Nothing was to be completed".to_owned();
    };
    let quantile =
        |key: &str| largest.quantiles_ns.get(key).map(|ns| number::tau(*ns as f64 / tau_ns));
    match (quantile("p50"), quantile("p99")) {
        (Some(half), Some(last)) => {
            format!(
                "Half of the messages “{name}” took {half} or less, one in a hundred more than {last}"
            )
        }
        _ => format!("No message “{name}” was completed"),
    }
}
