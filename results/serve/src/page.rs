//! The HTML of the live page: the style and the fabric picture of the report, a growing figure, a list of events.

use super::live_state::LiveState;
use launch::lab::LabRecord;
use maud::{Markup, PreEscaped, html};
use report::data::Graph;
use report::fabric::{BAR, BY_LEAF, boxes, headers, numbers, pitch, source_names};
use report::layout::{self, Layout, WIDTH};
use report::leaves::Drawn;
use report::page::{document, policy};
use scenario::Scenario;
use scenario::render::Lab;
use serde_json::{Value, json};

/// The only script that the page allows.
const SCRIPT: &str =
    concat!(include_str!("../../assets/page.js"), include_str!("../../assets/live.js"));

/// The width of the figure of a lab: 60 seconds of wall time.
const WINDOW_PS: f64 = 60e12;

/// The subject of a page.
#[derive(Clone)]
pub struct PageSubject<'a> {
    /// Its scenario.
    pub scenario: &'a Scenario,
    /// The rendered scenario.
    pub lab: &'a Lab,
    /// The substrate and the dilation, as text.
    pub back_end: String,
    /// The journal of the lab, if it is one.
    pub record: Option<&'a LabRecord>,
}

/// The page of a run before it begins, or of a lab; `graph` is its fabric.
pub fn html(subject: &PageSubject<'_>, graph: &Graph, state: &LiveState) -> String {
    let PageSubject { scenario, record, .. } = *subject;
    let drawn = Drawn::of(graph);
    let policy = policy(SCRIPT).replace("img-src data:", "connect-src 'self'; img-src data:");
    let title = format!("{} · pausebed, live", scenario.name);
    let body = html! {
        body {
            header { (top(subject)) }
            main {
                (headline(record))
                div class="two" {
                    div { (fabric(graph, &drawn)) @if let Some(record) = record { (actions(scenario, record)) } }
                    div { (figure()) (feed()) }
                }
                p class="foot" {
                    "Times in τ, the time of one full frame on a link. The root of a tree is an output with half of a buffer "
                    "waiting for it whose line is busy and not held. The report uses the exact thresholds."
                }
            }
            (bar())
            script type="application/json" id="pb-meta" { (PreEscaped(meta(subject, &drawn, state))) }
            script { (PreEscaped(SCRIPT)) }
        }
    };
    document(&title, &policy, &body)
}

fn headline(record: Option<&LabRecord>) -> Markup {
    let (headline, lede) = match record {
        None => (
            "Waiting for the run to begin".to_owned(),
            "This page follows the run while it lasts. Results are judged at its end.",
        ),
        Some(record) => (
            format!("Lab {} is up", record.lab),
            "This page follows the lab until it is taken down. Nothing is judged.",
        ),
    };
    html! {
        div class="verdict live" { div {
            div role="status" { h1 id="headline" { (headline) } }
            p class="lede" id="lede" { (lede) }
        } }
    }
}

fn top(subject: &PageSubject<'_>) -> Markup {
    let PageSubject { scenario, back_end, record, .. } = subject;
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
    let layout = layout::place(drawn, &rows, &rows, WIDTH);
    let waits = match graph.technology.name() {
        "ethernet" => "was paused",
        _ => "had no credit",
    };
    html! {
        section id="fabric" {
            p class="kicker" { "Congestion trees" }
            h2 id="standstill" { "No data yet" }
            p class="how" {
                "A line is stronger the longer a frame was ready there and " (waits)
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
                        // The script draws all lines of a level as one path; these are targets of the pointer.
                        g class="targets" { @for curve in &layout.curves {
                            path data-e=(curve.output) d=(curve.path) {}
                        } }
                        g class="lines" {}
                        (boxes(&layout))
                        (ends(drawn, &layout))
                        @for curve in layout.curves.iter().filter(|c| drawn.graph.outputs[c.output].level > 0) {
                            g class="root" data-r=(numbers(drawn.outputs(curve.output))) hidden {
                                circle class="ring" cx=(format!("{:.1}", curve.start.0)) cy=(format!("{:.1}", curve.start.1)) r="6.5" {}
                                text class="hot strong" x=(format!("{:.1}", curve.start.0 + 9.0)) y=(format!("{:.1}", curve.start.1 + 16.0)) { "root" }
                            }
                        }
                    }
                }
                p class="caption" id="caption" { "No bin is finished yet." }
            }
            div class="legend" {
                span { "no wait" i class="ramp" {} "always waiting (wider, too)" }
                span id="named" { "Point at a line for its name." }
            }
        }
    }
}

/// The places of the dots of sources and the bars of ports, for the script.
fn ends(drawn: &Drawn, layout: &Layout) -> Markup {
    // For a row of several adapters: minimum, mean and maximum.
    let all = [(44.0, Some("least")), (48.5, None), (53.0, Some("most"))];
    let subject = if drawn.is_by_leaf { &all[..] } else { &[(53.0, None)] };
    let thick = |rows: &[(usize, f64)]| (pitch(layout, rows) * 0.62).clamp(1.4, 12.0);
    let (dot, bar) = (thick(&layout.sources), thick(&layout.ports));
    html! {
        @for (node, y) in &layout.sources {
            @if let Some(output) = drawn.graph.output_of(*node) {
                defs { @for (x, of) in subject { path data-s=(output) data-of=[of] d=(format!("M{x} {y:.1}h0")) {} } }
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
                "Upper: received over line rate, the range of all ports as a band, the mean as a line. "
                "Lower: share of outputs that are held. The empty part is the future."
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

/// The actions on a lab; the script shows them with the token.
fn actions(scenario: &Scenario, record: &LabRecord) -> Markup {
    let button = |act: &str, text: &str| html! { button type="button" data-act=(act) { (text) } };
    html! {
        section id="acts" hidden {
            p class="kicker" { "Faults and repairs" }
            div role="status" { h2 id="acted" { "No action from this page yet" } }
            div class="pane" {
                div class="deeds" {
                    label { "At port "
                        input id="at-port" list="ports" autocomplete="off" placeholder="click a line, or write";
                        datalist id="ports" {
                            @for link in &record.links { option value=(link.a) {} option value=(link.b) {} }
                            @for attached in &record.attached { option value=(attached.port) {} }
                        }
                    }
                    (button("cut", "Cut the cable")) (button("lose", "Lose 1 in 10")) (button("mend", "Repair"))
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

/// The data for the script. `<` is written as an escape, so that no name ends the element.
fn meta(subject: &PageSubject<'_>, drawn: &Drawn, state: &LiveState) -> String {
    let PageSubject { lab, record, .. } = *subject;
    let names: Vec<&str> = state.outputs.all.iter().map(|output| output.name.as_str()).collect();
    let tau = lab.fabric.tau.as_ps().max(1) as f64;
    // Lines for several outputs follow those of the fabric.
    let lines = names.len()..drawn.graph.outputs.len();
    let bundles =
        lines.map(|line| json!({ "name": drawn.output_name(line), "of": drawn.outputs(line) }));
    // A lab has no end, so its figure is a window.
    let window = record.map(|record| WINDOW_PS / record.dilation.max(1) as f64 / tau);
    let meta: Value = json!({
        "tau_ps": lab.fabric.tau.as_ps(),
        "length": window.unwrap_or(lab.plan.stop.as_ps() as f64 / tau),
        "endless": record.is_some(),
        "outputs": names,
        "bundles": bundles.collect::<Vec<_>>(),
        "adapters": state.adapters(lab),
    });
    meta.to_string().replace('<', "\\u003c")
}
