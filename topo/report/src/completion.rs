//! Completion times of messages, from posting to delivery; unfinished messages as text.

use super::facts::{Facts, Side};
use super::figure_head::figure_head;
use super::sheet::Picture;
use chart::number;
use chart::quantiles::{self, Row};
use maud::{Markup, html};
use results::run_directory::result::Completion;
use scenario::figures::FigureName;
use std::collections::{BTreeMap, BTreeSet};

/// Greatest number of rows; scenarios may have many traffic items.
const ROWS_MAX: usize = 12;

/// A class of messages in one run.
#[derive(Debug)]
pub struct Class<'a> {
    /// Its name.
    pub name: String,
    /// Its run.
    pub side: &'a Side<'a>,
    /// Its completion times.
    pub completion: Completion,
}

/// All classes of all runs, ordered by name.
pub fn classes<'a>(facts: &'a Facts<'a>) -> Vec<Class<'a>> {
    let of: Vec<_> = facts.sides().map(|side| (side, side.run.result.completions())).collect();
    let names: BTreeSet<&String> = of.iter().flat_map(|(_, classes)| classes.keys()).collect();
    let class = |name: &String, (side, classes): &(&'a Side<'a>, _)| {
        let classes: &BTreeMap<String, Completion> = classes;
        Some(Class { name: name.clone(), side, completion: classes.get(name)?.clone() })
    };
    names.iter().flat_map(|name| of.iter().filter_map(|own| class(name, own))).collect()
}

fn row(facts: &Facts<'_>, class: &Class<'_>) -> Row {
    let Class { name, side, completion } = class;
    let tau_ns = tau_ns(facts);
    let quantile = |key: &str| Some(*completion.quantiles_ns.get(key)? as f64 / tau_ns);
    let [p1, p25, p50, p75, p99] = ["p1", "p25", "p50", "p75", "p99"].map(quantile);
    let all = (|| Some([p1?, p25?, p50?, p75?, p99?]))();
    let note = match all {
        None => format!("none delivered, {} unfinished", number::grouped(completion.unfinished)),
        Some(_) => quantiles::unfinished(completion.unfinished),
    };
    let name = match facts.base {
        Some(_) => format!("{name}, {}", side.name),
        None => name.clone(),
    };
    Row { name, role: side.role, quantiles: all, note }
}

fn tau_ns(facts: &Facts<'_>) -> f64 {
    facts.run.run.tau_ps() / 1_000.0
}

fn rows(facts: &Facts<'_>, classes: &[Class<'_>]) -> Vec<Row> {
    classes.iter().take(ROWS_MAX).map(|class| row(facts, class)).collect()
}

/// The card.
pub fn card(facts: &Facts<'_>) -> Markup {
    let classes = classes(facts);
    let left_out = classes.len().saturating_sub(ROWS_MAX);
    let rows = rows(facts, &classes);
    let title = finding(facts);
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Completion time" {
            (figure_head(facts, FigureName::CompletionTimes, "Completion time", !rows.is_empty()))
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

/// The picture for print, if messages were counted.
pub fn printed(facts: &Facts<'_>, width: f64) -> Option<Picture> {
    let rows = rows(facts, &classes(facts));
    let body = quantiles::group(&rows, width, number::tau, number::tau);
    let height = quantiles::height(rows.len());
    (!rows.is_empty()).then_some(Picture { body, height })
}

/// The largest class as text.
pub fn finding(facts: &Facts<'_>) -> String {
    let tau_ns = tau_ns(facts);
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
