//! The tables of the page: expectations, parameters, counters, trees, and how to repeat the run.

use super::data::most;
use super::facts::{self, Facts};
use super::verdict;
use chart::number;
use maud::{Markup, html};
use proto::congestion::schemes::Signals;
use proto::technology::Technology;
use results::run_directory::result::{Parameter, Standing};
use results::verdict::{Judgement, Verdict};

/// Rows of the table of counters.
const COUNTER_ROWS: usize = 12;
/// Rows of the table of named counters.
const NAMED_ROWS: usize = 40;
/// Rows of the table of trees.
const TREE_ROWS: usize = 8;

/// All expectations with their accepted ranges.
pub fn expectations(facts: &Facts<'_>) -> Markup {
    let result = &facts.run.run.result;
    let all = &result.expectations;
    let met = all.iter().filter(|judged| judged.verdict == Verdict::Pass).count();
    let title = match (result.verdict, all.len()) {
        (_, 0) => "Nothing was expected".to_owned(),
        (Verdict::Inconclusive, n) => format!("{n} expectations, none judged"),
        (_, n) if n == met => format!("All {n} met"),
        (_, n) => format!("{met} of {n} met"),
    };
    html! {
        section id="expectations" {
            p class="kicker" { "Expectations" }
            h2 { (title) }
            div class="pane scroll" tabindex="0" role="region" aria-label="Expectations" { table {
                thead { tr {
                    th { "measure" } th class="n" { "accepted" } th class="n" { "measured" }
                    @if let Some(base) = &facts.base { th class="n" { (base.name) } }
                    th class="n" { "theory" } th class="wide" { "on its scale" } th { "verdict" } th { "why" }
                } }
                tbody { @for judged in all { (expectation(facts, judged)) } }
            } }
        }
    }
}

fn expectation(facts: &Facts<'_>, judged: &Judgement) -> Markup {
    let result = &facts.run.run.result;
    let definition = result.definitions.get(&judged.measure);
    let run = facts.run.run;
    let label = format!("{} on its scale", number::words(&judged.measure));
    html! {
        tr {
            td {
                (number::words(&judged.measure))
                @if let Some(definition) = definition {
                    div class="sub" {
                        (definition.reduce) " of " (definition.of) ", " (clipped(&definition.at.join(" "), 40)) ", "
                        a class="moment" href=(format!("#t={:.0}", (definition.from_ps + definition.to_ps) as f64 / 2.0 / run.tau_ps())) {
                            (number::tau(run.in_tau(definition.from_ps))) " – " (number::tau(run.in_tau(definition.to_ps)))
                        }
                    }
                }
            }
            td class="n" { (facts::accepted(judged)) }
            td class="n" { b { (facts::written(judged.value.as_ref())) } (facts::unit(definition).replace(" of line rate", "")) }
            @if let Some(base) = &facts.base {
                td class="n" { (facts::written(base.run.measured(&judged.measure))) }
            }
            td class="n" { (judged.theory.map_or("–".to_owned(), number::bound)) }
            td { @if let Some(bullet) = verdict::bullet(facts, judged) { (bullet.svg(280.0, &label)) } }
            td { (verdict::judged(facts, judged.verdict)) }
            td class="sub" { (judged.why) }
        }
    }
}

/// Commands that the run started on hosts; nothing without them.
pub fn hosts(facts: &Facts<'_>) -> Markup {
    let all = &facts.run.run.result.hosts;
    html! {
        @if !all.is_empty() {
            section id="hosts" {
                p class="kicker" { "Hosts" }
                h2 { "What the run started on hosts" }
                div class="pane scroll" tabindex="0" role="region" aria-label="Commands of hosts" { table {
                    thead { tr {
                        th { "host" } th { "kind" } th class="n" { "start" } th class="wide" { "command" }
                        th class="n" { "exit code" } th class="n" { "octets printed" } th { "output" }
                    } }
                    tbody { @for line in all { tr {
                        td { (line.host) }
                        td { (line.kind) }
                        td class="n" { (number::seconds(line.start_ps as f64)) }
                        td class="sub" { (line.command.join(" ")) }
                        td class="n" {
                            @match (line.exit, &line.why) {
                                (Some(code), _) => (code),
                                (None, why) => (why.as_deref().unwrap_or("–")),
                            }
                        }
                        td class="n" { (line.octets) }
                        td class="sub" { (line.output) }
                    } } }
                } }
            }
        }
    }
}

/// Parameters and their sources; defaults are folded.
pub fn parameters(facts: &Facts<'_>) -> Markup {
    let all = &facts.run.run.result.parameters;
    let (defaults, set): (Vec<&Parameter>, Vec<&Parameter>) =
        all.iter().partition(|parameter| parameter.standing == Standing::Default);
    let before = facts.base.as_ref().map(|base| &base.run.result.parameters);
    let changed = |parameter: &Parameter| {
        let other = before?.iter().find(|other| other.name == parameter.name);
        match other {
            Some(other) if other.value == parameter.value => None,
            Some(other) => Some(other.value.clone()),
            None => Some("–".to_owned()),
        }
    };
    let table = |rows: &[&Parameter]| {
        html! { table {
            thead { tr {
                th { "name" } th { "value" }
                @if let Some(base) = &facts.base { th class="other" { (base.name) } }
                th { "where from" }
            } }
            tbody { @for (place, parameter) in rows.iter().enumerate() { tr {
                td { code { (clipped(&parameter.name, 28)) } }
                td { (clipped(&parameter.value, 60)) }
                @if facts.base.is_some() {
                    td { @match changed(parameter) { Some(was) => b { (clipped(&was, 40)) }, None => span class="sub" { "same" } } }
                }
                td { (source(parameter, place.checked_sub(1).map(|above| rows[above]))) }
            } } }
        } }
    };
    let title =
        format!("{} set by the scenario, {} defaults of the program", set.len(), defaults.len());
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Parameters" {
            p class="kicker" { "Parameters" }
            h3 { (title) }
            (table(&set))
            @if !defaults.is_empty() { details { summary { (defaults.len()) " defaults" } (table(&defaults)) } }
        }
    }
}

/// The source of a value, abbreviated if the row above has the same.
fn source(parameter: &Parameter, above: Option<&Parameter>) -> Markup {
    let is_same = |above: &Parameter| {
        (above.standing, &above.source) == (parameter.standing, &parameter.source)
    };
    if parameter.standing == Standing::Stated && above.is_some_and(is_same) {
        return html! { span class="sub" { "as above" } };
    }
    let (sign, class) = match parameter.standing {
        Standing::Stated => ("", "tag"),
        Standing::Derived => ("∴ derived ", "tag"),
        Standing::Reading => ("◐ our reading ", "tag unsure"),
        Standing::Differs => ("≠ differs ", "tag unsure"),
        Standing::Default => ("default", "tag"),
    };
    html! {
        span class=(class) {
            (sign) (clipped(&parameter.source, 64))
            @if let Some(value) = &parameter.source_value { ": file has " (clipped(value, 30)) }
        }
    }
}

/// Counters of the ports that waited most, then counters under the names of the devices.
pub fn counters(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    let is_ethernet = run.graph.technology == Technology::Ethernet;
    let mut order: Vec<usize> = (0..run.series.len()).collect();
    order.sort_by_key(|output| {
        let totals = &run.series[*output].totals;
        (std::cmp::Reverse((totals.drops, totals.hold_ps, totals.marks, totals.frames)), *output)
    });
    let (sent, waited) = if is_ethernet {
        ("tx data", "paused, waiting")
    } else {
        ("XmitPkts, data", "PortXmitWait")
    };
    let Signals { marks, notifications: notes } = facts::signals(run);
    let names = [sent, waited, marks, &format!("{notes} rx"), "drops", "queue max"];
    let title = match order.first().map(|output| (*output, run.series[*output].totals)) {
        Some((output, totals)) if totals.hold_ps > 0 => format!(
            "{} waited longest: {} of {}",
            run.graph.outputs[output].name,
            number::seconds(totals.hold_ps as f64),
            number::seconds(run.result.fabric_seconds * 1e12)
        ),
        _ => "No port waited".to_owned(),
    };
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Counters" {
            p class="kicker" { "Counters, whole run, " (facts.run.name) }
            h3 { (title) }
            table {
                thead { tr { th { "port" } @for name in names { th class="n" { (name) } } } }
                tbody { @for output in order.iter().take(COUNTER_ROWS) {
                    @let totals = &run.series[*output].totals;
                    tr {
                        td { (facts.run.drawn.output_name(*output)) }
                        td class="n" { (number::grouped(totals.frames)) }
                        td class="n" { (number::seconds(totals.hold_ps as f64)) }
                        td class="n" { (number::grouped(totals.marks)) }
                        td class="n" { (number::grouped(totals.notes_rx)) }
                        td class="n" { (number::grouped(totals.drops)) }
                        td class="n" { (number::octets(most(&run.series[*output].queue.max))) }
                    }
                } }
            }
            @if !run.counters.is_empty() { details {
                summary { (number::count(run.counters.len() as u64, "counter", "counters")) " under the devices' own names" }
                table {
                    thead { tr { th { "port" } th { "counter" } th class="n" { "value" } } }
                    tbody { @for (port, counter, value) in run.counters.iter().take(NAMED_ROWS) {
                        tr { td { (port) } td { code { (counter) } } td class="n" { (number::grouped(*value)) } }
                    } }
                }
                @if run.counters.len() > NAMED_ROWS { p class="how" { "All are in " code { "counters.csv" } "." } }
            } }
        }
    }
}

/// Trees and strays.
pub fn trees(facts: &Facts<'_>) -> Markup {
    let tau = |side: &facts::Side<'_>, ps: u64| number::tau(side.run.in_tau(ps));
    let found: Vec<_> = facts.sides().map(|side| (side, &side.run.result.saturation)).collect();
    let rows: Vec<_> = (found.iter())
        .flat_map(|(side, of)| of.trees.iter().take(TREE_ROWS).map(move |tree| (side, tree)))
        .collect();
    let strays: Vec<_> = (found.iter())
        .flat_map(|(side, of)| of.strays.iter().take(TREE_ROWS).map(move |stray| (side, stray)))
        .collect();
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Trees" {
            p class="kicker" { "Trees" }
            h3 { (number::sentence(&number::count(rows.len() as u64, "root of congestion", "roots of congestion"))) }
            @if !rows.is_empty() { table {
                thead { tr {
                    th { "run" } th { "root" } th class="n" { "members" } th class="n" { "depth" } th class="n" { "sources" }
                    th class="n" { "from" } th class="n" { "to" } th class="n" { "bins" }
                } }
                tbody { @for (side, tree) in &rows { tr {
                    td { (side.name) } td { (tree.root) " → " (tree.feeds) }
                    td class="n" { (tree.size) } td class="n" { (tree.depth) } td class="n" { (tree.sources) }
                    td class="n" { (tau(side, tree.first_ps)) } td class="n" { (tau(side, tree.last_ps)) }
                    td class="n" { (tree.bins) }
                } } }
            } }
            @if !strays.is_empty() { details {
                summary { "Held without a root" }
                p class="how" { "A line that fills for a while holds its neighbours before its own queue counts as long; a deadlock, a fault or a storm looks like this too." }
                table {
                    thead { tr { th { "run" } th { "output" } th class="n" { "from" } th class="n" { "to" } th class="n" { "bins" } } }
                    tbody { @for (side, stray) in &strays { tr {
                        td { (side.name) } td { (stray.port) } td class="n" { (tau(side, stray.first_ps)) }
                        td class="n" { (tau(side, stray.last_ps)) } td class="n" { (stray.bins) }
                    } } }
                }
            } }
            @for side in facts.sides() {
                p class="how" { (side.name) ": a queue counts as long from " (number::octets(side.run.result.saturation.long_queue_bytes as f64)) " on." }
            }
        }
    }
}

/// How to repeat the run, and the other files of the run directory.
pub fn repetition(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    let result = &run.result;
    let host = &result.host;
    let mut command =
        format!("pausebed run scenario.toml --backend {} --seed {}", result.backend, result.seed);
    if let Some(dilation) = result.dilation {
        command += &format!(" --dilate {dilation}");
    }
    let overrides =
        result.parameters.iter().filter(|p| p.source_value.is_some() || p.source == "command line");
    let special = ["run.backend", "run.seed", "run.dilate"];
    for parameter in overrides.filter(|p| !special.contains(&p.name.as_str())) {
        command += &format!(" \\\n  --set '{}={}'", parameter.name, parameter.value);
    }
    command += " --out again";
    html! {
        div class="pane scroll" tabindex="0" role="region" aria-label="Repeat the run" {
            p class="kicker" { "Repeat the run" }
            pre tabindex="0" { (command) }
            p class="how" {
                "pausebed " (host.version) " (" (host.commit) "), Linux " (host.kernel)
                @for (name, version) in &host.versions { ", " (name) " " (version) }
                ". It took " (format!("{:.1}", host.wall_seconds)) " s."
            }
            details {
                summary { "Files beside this page" }
                table {
                    thead { tr { th { "file" } th class="n" { "rows" } th class="n" { "octets" } th { "SHA-256" } } }
                    tbody { @for (name, file) in &result.files { tr {
                        td { code { (name) } } td class="n" { (number::grouped(file.rows)) }
                        td class="n" { (number::grouped(file.bytes)) } td { code { (&file.sha256[..file.sha256.len().min(12)]) "…" } }
                    } } }
                }
            }
            details { summary { "scenario.toml" } pre tabindex="0" { (run.scenario) } }
        }
    }
}

/// A text of at most `most` characters; the whole text is its tooltip.
pub fn clipped(text: &str, most: usize) -> Markup {
    if text.chars().count() <= most {
        return html! { (text) };
    }
    let short: String = text.chars().take(most.saturating_sub(1)).chain(['…']).collect();
    html! { span title=(text) { (short) } }
}
