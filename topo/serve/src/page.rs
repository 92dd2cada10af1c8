//! The live page: the report's style and its picture of the fabric, a figure that grows, a feed.

use super::board::Board;
use launch::lab::Record;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use report::data::Graph;
use report::fabric::{BAR, BY_LEAF, boxes, headers, numbers, pitch, source_names};
use report::layout::{self, Layout, WIDTH};
use report::leaves::Drawn;
use report::page::{policy, styles};
use scenario::Scenario;
use scenario::render::Lab;
use serde_json::{Value, json};

/// The script; the page allows no other.
const SCRIPT: &str =
    concat!(include_str!("../../assets/page.js"), include_str!("../../assets/live.js"));

/// The figure of a lab that stays is so many seconds of the host wide.
const WINDOW_PS: f64 = 60e12;

/// What a page is about.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Rendered.
    pub lab: &'a Lab,
    /// As the report reads it.
    pub graph: &'a Graph,
    /// On what it runs, and how slowed.
    pub back_end: &'a str,
    /// The lab's journal, if it is one that is up.
    pub record: Option<&'a Record>,
}

/// The page of a run that is about to begin, or of a lab that is up.
pub fn html(shown: &Shown<'_>, board: &Board) -> String {
    let Shown { scenario, graph, record, .. } = *shown;
    let drawn = Drawn::of_graph(graph);
    let policy = policy(SCRIPT).replace("img-src data:", "connect-src 'self'; img-src data:");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (scenario.name) " · pausebed, live" }
                (styles())
            }
            body {
                header { (top(shown)) }
                main {
                    (headline(record))
                    div class="two" {
                        div { (fabric(graph, &drawn)) @if let Some(record) = record { (acts(scenario, record)) } }
                        div { (figure()) (feed()) }
                    }
                    p class="foot" {
                        "Times in τ, the time of one full frame on a link. A tree's root is an output with half of a buffer waiting for it "
                        "whose line is busy and free; the report knows thresholds better."
                    }
                }
                (bar())
                script type="application/json" id="pb-meta" { (PreEscaped(meta(shown, &drawn, board))) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

fn headline(record: Option<&Record>) -> Markup {
    let (headline, lede) = match record {
        None => (
            "Waiting for the run to begin".to_owned(),
            "This page follows the run while it lasts; nothing here is judged before its end.",
        ),
        Some(record) => (
            format!("Lab {} is up", record.lab),
            "This page follows the lab until it is taken down; nothing here is judged.",
        ),
    };
    html! {
        div class="verdict live" { div {
            div role="status" { h1 id="headline" { (headline) } }
            p class="lede" id="lede" { (lede) }
        } }
    }
}

fn top(shown: &Shown<'_>) -> Markup {
    let Shown { scenario, back_end, record, .. } = shown;
    html! {
        div class="top" {
            span class="brand" { i {} i {} "pausebed" }
            span class="chip" { b { (record.map_or(&scenario.name, |record| &record.lab)) } }
            span class="chip" { (back_end) }
            span class="chip" { "seed " b { (scenario.run.seed) } }
            span class="chip" id="light" { "host –" }
            span class="chip" id="line" role="status" { "connecting" }
            span class="spread" {}
            button id="theme" type="button" aria-pressed="false" { "Dark" }
        }
    }
}

fn fabric(graph: &Graph, drawn: &Drawn) -> Markup {
    let adapters: Vec<usize> =
        (0..graph.nodes.len()).filter(|node| graph.nodes[*node].is_adapter()).collect();
    let rows = drawn.rows(&adapters);
    let layout = layout::place(&drawn.into(), &rows, &rows, WIDTH);
    let waits = match graph.technology.as_str() {
        "ethernet" => "was paused",
        _ => "had no credit",
    };
    html! {
        section id="fabric" {
            p class="kicker" { "Where the fabric stands still" }
            h2 id="standstill" { "Nothing is known yet" }
            p class="how" {
                "A line stands out by the share of time in which a frame was ready there and " (waits)
                "; bars show what each port receives."
                @if drawn.is_by_leaf {
                    (BY_LEAF)
                }
            }
            div class="pane" {
                div class="scroll still" tabindex="0" role="region" aria-label="Fabric" {
                    svg class="fabric" role="img" aria-labelledby="caption"
                        viewBox=(format!("0 -14 {WIDTH:.0} {:.0}", layout.height + 14.0)) {
                        (headers(&layout))
                        // The script draws all lines of a level as one; these are for pointing at.
                        g class="targets" { @for curve in &layout.curves {
                            path data-e=(curve.output) d=(curve.path) {}
                        } }
                        g class="lines" {}
                        (boxes(&layout))
                        (ends(drawn, &layout))
                        @for curve in layout.curves.iter().filter(|c| drawn.outputs[c.output].level > 0) {
                            g class="root" data-r=(numbers(drawn.outputs(curve.output))) hidden {
                                circle class="ring" cx=(format!("{:.1}", curve.start.0)) cy=(format!("{:.1}", curve.start.1)) r="6.5" {}
                                text class="hot strong" x=(format!("{:.1}", curve.start.0 + 9.0)) y=(format!("{:.1}", curve.start.1 + 16.0)) { "root" }
                            }
                        }
                    }
                }
                p class="caption" id="caption" { "No bin is finished." }
            }
            div class="legend" {
                span { "no wait" i class="ramp" {} "always waiting (wider, too)" }
                span id="named" { "Point at a line for its name." }
            }
        }
    }
}

/// Sources with their dots, ports with their bars: where they are, for the script to draw them.
fn ends(drawn: &Drawn, layout: &Layout) -> Markup {
    // Of a row that stands for several: the least, the mean and the greatest.
    let all = [(44.0, Some("least")), (48.5, None), (53.0, Some("most"))];
    let shown = if drawn.is_by_leaf { &all[..] } else { &[(53.0, None)] };
    let thick = |rows: &[(usize, f64)]| (pitch(layout, rows) * 0.62).clamp(1.4, 12.0);
    let (dot, bar) = (thick(&layout.sources), thick(&layout.ports));
    html! {
        @for (node, y) in &layout.sources {
            @if let Some(output) = drawn.output_of(*node) {
                defs { @for (x, of) in shown { path data-s=(output) data-of=[of] d=(format!("M{x} {y:.1}h0")) {} } }
            }
        }
        (source_names(drawn, layout))
        @for (node, y) in &layout.ports {
            @let top = format!("{:.1}", y - bar / 2.0);
            rect class="track" x=(layout.bars + 6.0) y=(top) width=(BAR) height=(format!("{bar:.1}")) rx="1.5" {}
            defs { path data-x=(numbers(drawn.adapters(*node))) d=(format!("M{:.1} {y:.1}", layout.bars + 6.0)) {} }
        }
        g class="lines dots" stroke-width=(format!("{:.1}", dot.clamp(1.6, 7.2))) {}
        path class="received run" stroke-width=(format!("{bar:.1}")) {}
        path class="range" {}
    }
}

fn figure() -> Markup {
    html! {
        section id="time" {
            p class="kicker" { "Over time" }
            h2 id="over" { "What ports receive" }
            p class="how" {
                "Upper: received over line rate, from the least port to the most as a band, the mean as a line. "
                "Lower: share of outputs that are held. Only what has been is drawn; the empty part is still to come."
            }
            div class="pane" {
                canvas id="growth" class="still" role="img" aria-label="Received by ports and outputs held over time" {}
            }
        }
    }
}

fn feed() -> Markup {
    html! {
        section {
            p class="kicker" { "What happened" }
            h2 id="latest" { "Nothing yet" }
            div class="pane scroll feed" tabindex="0" role="region" aria-label="Events" {
                table {
                    thead { tr { th class="n" { "τ" } th { "what" } th { "where" } } }
                    tbody id="feed" {}
                }
            }
        }
    }
}

/// What may be done to a lab; shown to who came with the token.
fn acts(scenario: &Scenario, record: &Record) -> Markup {
    let button = |act: &str, text: &str| html! { button type="button" data-act=(act) { (text) } };
    html! {
        section id="acts" hidden {
            p class="kicker" { "Break and mend" }
            div role="status" { h2 id="acted" { "Nothing has been done from this page" } }
            div class="pane" {
                div class="deeds" {
                    label { "At port "
                        input id="at-port" list="ports" autocomplete="off" placeholder="click a line, or write";
                        datalist id="ports" {
                            @for link in &record.links { option value=(link.a) {} option value=(link.b) {} }
                        }
                    }
                    (button("cut", "Cut the cable")) (button("lose", "Lose 1 in 10")) (button("mend", "Mend"))
                }
                div class="deeds" {
                    label { "Traffic "
                        select id="of-item" {
                            option value="" { "all" }
                            @for item in &scenario.traffic.items { option { (item.name) } }
                        }
                    }
                    (button("stop", "Stop")) (button("start", "Start"))
                }
            }
        }
    }
}

fn bar() -> Markup {
    html! {
        footer class="bar" aria-label="Time" { div {
            button id="follow" type="button" aria-pressed="true" title="Follow the run" { "▶" }
            div class="track" {
                input class="plain" id="time-slider" type="range" min="0" max="0" value="0" step="1" aria-label="Time";
            }
            div class="now" { b id="now" { "t = –" } span id="then" { "following" } }
        } }
    }
}

/// Names and what belongs together; `<` is written as JSON can, so that no name ends the element.
fn meta(shown: &Shown<'_>, drawn: &Drawn, board: &Board) -> String {
    let Shown { lab, record, .. } = *shown;
    let names: Vec<&str> = board.outputs().all.iter().map(|output| output.name.as_str()).collect();
    let tau = lab.fabric.tau.as_ps().max(1) as f64;
    // What stands for several, in the order of the picture's outputs behind those of the fabric.
    let lines = names.len()..drawn.outputs.len();
    let bundles =
        lines.map(|line| json!({ "name": drawn.output_name(line), "of": drawn.outputs(line) }));
    // A lab has no end: its figure is a window.
    let window = record.map(|record| WINDOW_PS / record.dilation.max(1) as f64 / tau);
    let meta: Value = json!({
        "tau_ps": lab.fabric.tau.as_ps(),
        "length": window.unwrap_or(lab.plan.stop.as_ps() as f64 / tau),
        "endless": record.is_some(),
        "outputs": names,
        "bundles": bundles.collect::<Vec<_>>(),
        "adapters": board.adapters(lab),
    });
    meta.to_string().replace('<', "\\u003c")
}
