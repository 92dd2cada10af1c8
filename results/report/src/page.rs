//! The document: head with its policy, the sections, the time bar, and the data of the script.

use super::columns::Columns;
use super::data::Run;
use super::facts::{Facts, Side};
use super::figure::{self, Figure, Shown};
use super::figures::table;
use super::longest_waits::LongestWaits;
use super::{completion, fabric, pauses, ports, sheet, tables, verdict};
use base64::prelude::{BASE64_STANDARD, Engine};
use chart::path::{Precision, area};
use chart::{number, palette};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use results::verdict::Verdict;
use results::wording::word;
use scenario::figures::FigureName;
use serde_json::json;
use sha2::{Digest, Sha256};

/// The only script that the policy of the page allows.
const SCRIPT: &str =
    concat!(include_str!("../../assets/page.js"), include_str!("../../assets/report.js"));
const STYLE: &str = include_str!("../../assets/report.css");

/// The page.
pub fn html(facts: &Facts<'_>, figure: &Figure<'_>) -> String {
    let result = &facts.run.run.result;
    let mut columns = Columns::default();
    figure.carry(&mut columns);
    fabric::series(facts, &mut columns);
    let longest_waits = LongestWaits::of(facts);
    let title = format!("{} {} · pausebed", word(result.verdict), result.scenario);
    let body_class = if result.verdict == Verdict::Inconclusive { "unsure" } else { "" };
    let body = html! {
        body class=(body_class) {
            header { (verdict::top(facts)) }
            main {
                (verdict::banner(facts))
                (verdict::cards(facts))
                (fabric::section(facts))
                (figure.section())
                (ports::section(facts))
                section class="two" { (completion::card(facts)) (longest_waits.card()) }
                (tables::expectations(facts))
                (tables::hosts(facts))
                section class="two" { (tables::parameters(facts)) div {
                    @if facts.base.is_some() { (tables::trees(facts)) }
                    (pauses::card(facts))
                    (tables::counters(facts))
                } }
                section { (tables::repetition(facts)) }
                p class="foot" {
                    "Times in τ, the time of one full frame on a link: " (number::seconds(result.tau_ps as f64)) " in the fabric"
                    @if let Some(dilation) = result.dilation { ", " (number::seconds(result.tau_ps as f64 * dilation as f64)) " on this host" }
                    ". A bin is " (number::tau(facts.run.run.bin_tau())) " long. The page needs no network; its cursor needs a script."
                }
            }
            (bar(facts))
            script type="application/json" id="pb-meta" { (PreEscaped(meta(facts, figure, &longest_waits, &columns))) }
            script type="text/plain" id="pb-cols" { (PreEscaped(columns.packed())) }
            script { (PreEscaped(SCRIPT)) }
        }
    };
    document(&title, &policy(SCRIPT), &body)
}

/// A document with the styles of pages; `body` is the whole element.
pub fn document(title: &str, policy: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (title) }
                (styles())
            }
            (body)
        }
    };
    page.into_string() + "\n"
}

/// The content security policy: no request, and only this script.
pub fn policy(script: &str) -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(script.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// The style sheets: that of pictures in the light theme, which the script adds to saved pictures, and
/// that of pages.
fn styles() -> Markup {
    let light = palette::variables(false);
    let dark = palette::variables(true);
    let pictures = format!(":root{{{light}}}{}{}", palette::rules(), sheet::STYLE);
    let pages = format!(
        "@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}{STYLE}"
    );
    html! {
        style id="ink" { (PreEscaped(pictures)) }
        style { (PreEscaped(pages)) }
    }
}

/// Names and grids as JSON; `<` is escaped, so that no name ends the element.
fn meta(
    facts: &Facts<'_>,
    figure: &Figure<'_>,
    longest_waits: &LongestWaits<'_>,
    columns: &Columns,
) -> String {
    let run = facts.run.run;
    let side = |side: &Side<'_>| {
        json!({
            "side": side.number,
            "name": side.name,
            "dt": side.run.bin_tau(),
            "bins": side.run.bins,
            "dt_ps": side.run.result.grid.dt_ps,
            "length_ps": side.run.length_ps(),
            "roots": roots(side.run),
        })
    };
    let drawn = &facts.run.drawn;
    let outputs = drawn.graph.outputs.iter().enumerate();
    let outputs = outputs.map(|(place, output)| (&output.name, drawn.feeds(place), output.to));
    let ports = facts.receivers().into_iter().map(|node| (node, &run.graph.nodes[node].name));
    let lines = figure.shown().filter_map(|Shown { panel, unit, scale, series }| {
        Some((series.key()?, panel, &series.name, unit, scale))
    });
    let meta = json!({
        "tau_ps": run.result.tau_ps,
        "length": facts.length,
        "cursor": facts.cursor(),
        "sides": facts.sides().map(side).collect::<Vec<_>>(),
        "phases": run.phases().collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
        "ports": ports.collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "tables": {
            (FigureName::CompletionTimes.word()): table::completion_times(facts),
            (FigureName::WaitedLongest.word()): table::waited_longest(facts, longest_waits),
        },
        "columns": columns.table,
    });
    meta.to_string().replace('<', "\\u003c")
}

/// Runs of bins in which an output was a root: output, first bin, the bin after the last; by their ends.
fn roots(run: &Run) -> Vec<[usize; 3]> {
    let moments = run.moments.iter().enumerate();
    let roots = moments.flat_map(|(bin, moment)| moment.trees.keys().map(move |root| (*root, bin)));
    let mut roots: Vec<(usize, usize)> = roots.collect();
    roots.sort_unstable();
    let runs = roots.chunk_by(|one, next| one.0 == next.0 && one.1 + 1 == next.1);
    let mut runs: Vec<[usize; 3]> =
        runs.map(|run| [run[0].0, run[0].1, run[0].1 + run.len()]).collect();
    runs.sort_by_key(|[output, _, end]| (*end, *output));
    runs
}

/// The time bar at the bottom: play button, time, outlines of both runs.
fn bar(facts: &Facts<'_>) -> Markup {
    let outline = |side: &Side<'_>| {
        let series = if facts.cold.is_empty() { &side.hot } else { &side.cold };
        let points: Vec<(f64, f64)> = series
            .iter()
            .enumerate()
            .map(|(bin, value)| (side.run.middle(bin), -value * figure::UNIT))
            .collect();
        area(&points, 0.0, Precision::Whole)
    };
    let run = facts.run.run;
    let cursor = facts.cursor();
    let phase = run.phases().filter(|(from, ..)| *from <= cursor).last();
    let bins = facts.sides().map(|side| side.run.bins).max().unwrap_or(1);
    let who = if facts.cold.is_empty() { facts.hot_names() } else { facts.cold_words() };
    html! {
        footer class="bar" aria-label="Time" hidden { div {
            button id="play" type="button" aria-label="Play" { "▶" }
            div class="track" {
                svg viewBox=(figure::view(facts.length, 0.0, 1.1)) preserveAspectRatio="none" aria-hidden="true" {
                    @for (from, to, _) in run.phases().skip(1).step_by(2) {
                        rect class="phase" x=(from) y="-1100" width=(to - from) height="1100" {}
                    }
                    @for side in facts.sides() { path class=(format!("outline {}", side.role)) d=(outline(side)) {} }
                    path class="cursor" d=(format!("M{cursor} -1100V0")) {}
                }
                span class="what" { (who) ", received" }
                input id="time-slider" type="range" min="0" max=(bins.saturating_sub(1)) value="0" step="1" aria-label="Time";
            }
            div class="now" {
                b id="now" { "t = " (number::tau(cursor)) }
                span id="then" { (number::seconds(cursor * run.tau_ps())) @if let Some((.., name)) = phase { ", " (name) } }
            }
        } }
    }
}
