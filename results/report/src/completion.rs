//! Completion times of messages, from posting to delivery; unfinished messages as text.

use super::facts::{Facts, Side};
use super::figure_head::figure_head;
use super::sheet::Picture;
use chart::number;
use chart::quantiles::{self, Row};
use maud::{Markup, html};
use results::run_directory::result::Completion;
use scenario::figures::FigureName;

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
    let of_side = |side: &'a Side<'a>| {
        let classes = side.run.result.completions().into_iter();
        classes.map(move |(name, completion)| Class { name, side, completion })
    };
    let mut classes: Vec<Class<'a>> = facts.sides().flat_map(of_side).collect();
    classes.sort_by(|a, b| a.name.cmp(&b.name));
    classes
}

/// The five quantiles of a picture, in units of so many nanoseconds.
pub fn five(completion: &Completion, unit_ns: f64) -> Option<[f64; 5]> {
    let quantile = |key: &str| Some(*completion.quantiles_ns.get(key)? as f64 / unit_ns);
    Some([quantile("p1")?, quantile("p25")?, quantile("p50")?, quantile("p75")?, quantile("p99")?])
}

fn row(facts: &Facts<'_>, class: &Class<'_>) -> Row {
    let Class { name, side, completion } = class;
    let quantiles = five(completion, tau_ns(facts));
    let note = match quantiles {
        None => format!("none delivered, {} unfinished", number::grouped(completion.unfinished)),
        Some(_) => quantiles::unfinished(completion.unfinished),
    };
    let beside = facts.base.as_ref().map_or(String::new(), |_| format!(", {}", side.name));
    Row { name: format!("{name}{beside}"), role: side.role, quantiles, note }
}

fn tau_ns(facts: &Facts<'_>) -> f64 {
    facts.run.run.tau_ps() / 1_000.0
}

/// The card.
pub fn card(facts: &Facts<'_>) -> Markup {
    let classes = classes(facts);
    let left_out = classes.len().saturating_sub(ROWS_MAX);
    let rows: Vec<Row> = classes.iter().take(ROWS_MAX).map(|class| row(facts, class)).collect();
    let title = finding(facts);
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Completion time" {
            (figure_head(facts, FigureName::CompletionTimes, "Completion time", !rows.is_empty()))
            h3 { (title) }
            @if rows.is_empty() {
                p class="how" { "No messages were counted." }
            } @else {
                (quantiles::svg(&rows, 570.0, &title, number::tau))
            }
            @if left_out > 0 { p class="how" { (left_out) " further rows are in " code { "run.json" } "." } }
        }
    }
}

/// The picture for print, if messages were counted.
pub fn printed(facts: &Facts<'_>, width: f64) -> Option<Picture> {
    let classes = classes(facts);
    let rows: Vec<Row> = classes.iter().take(ROWS_MAX).map(|class| row(facts, class)).collect();
    let body = quantiles::group(&rows, width, number::tau);
    let height = quantiles::height(rows.len());
    (!rows.is_empty()).then_some(Picture { body, height })
}

/// The largest class as text.
pub fn finding(facts: &Facts<'_>) -> String {
    let classes = facts.run.run.result.completions();
    let Some((name, largest)) = classes.iter().max_by_key(|(_, c)| c.messages) else {
        return "Nothing was to be completed".to_owned();
    };
    match five(largest, tau_ns(facts)).map(|of| of.map(number::tau)) {
        Some([_, _, half, _, last]) => format!(
            "Half of the messages “{name}” took {half} or less, one in a hundred more than {last}"
        ),
        None => format!("No message “{name}” was completed"),
    }
}
