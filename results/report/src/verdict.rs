//! The first screen: the run, the verdict with its sentence, four numbers.

use super::data::most;
use super::facts::{self, Facts};
use chart::bullet::Bullet;
use chart::number;
use maud::{Markup, html};
use results::run_directory::result::RunResult;
use results::verdict::{Judgement, Verdict};
use results::wording::word;
use scenario::measure::value::Value;

/// Lateness in frame times above which a run is inconclusive.
const LATE_LIMIT: f64 = 0.10;

/// The line at the top.
pub fn top(facts: &Facts<'_>) -> Markup {
    let result = &facts.run.run.result;
    let back_end = match (result.exact_clock(), result.dilation) {
        (Some(clock), _) => html! { b { (clock) } },
        (None, dilation) => {
            html! {
                (result.backend) ", dilated " b { (number::grouped(dilation.unwrap_or(1))) "×" }
                @if let Some((_, greatest)) = result.pieces.stretched() { ", at most " b { (number::grouped(greatest)) "×" } }
            }
        }
    };
    html! {
        div class="top" {
            span class="brand" { i {} i {} "pausebed" }
            span class="chip" { b { (result.scenario) } }
            @if let Some(base) = &facts.base {
                @let differences = facts.differences();
                @if differences.is_empty() {
                    span class="chip" { "against " b { (base.name) } ", same fabric, same seed" }
                } @else {
                    span class="chip unsure" { "against " b { (base.name) } ": " (differences.join(", ")) }
                }
            }
            span class="chip" { (back_end) }
            span class="chip" { "seed " b { (result.seed) } }
            span class="spread" {}
            button id="theme" type="button" aria-pressed="false" hidden { "Dark" }
        }
    }
}

/// Badge, sentence, and the facts behind it.
pub fn banner(facts: &Facts<'_>) -> Markup {
    let result = &facts.run.run.result;
    html! {
        div class="verdict" {
            div class=(format!("badge {}", look(result.verdict).0)) { (sign(result.verdict)) (word(result.verdict)) }
            div {
                h1 { (facts::headline(facts)) }
                p class="lede" { (lede(facts)) }
            }
        }
    }
}

/// The class of a verdict in the style, and its words in a table.
fn look(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("pass", "✓ pass"),
        Verdict::Fail => ("fail", "✕ fail"),
        Verdict::Inconclusive => ("unsure", "◐ not judged"),
    }
}

fn sign(verdict: Verdict) -> Markup {
    html! {
        svg viewBox="0 0 38 38" aria-hidden="true" {
            circle cx="19" cy="19" r="17" {}
            @match verdict {
                Verdict::Pass => path d="M11 19.5l6 6L28 13.5" {},
                Verdict::Fail => path d="M12.5 12.5l13 13m0 -13l-13 13" {},
                Verdict::Inconclusive => path class="half" d="M19 2a17 17 0 0 1 0 34z" {},
            }
        }
    }
}

fn lede(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    let result = &run.result;
    let met = result.expectations.iter().filter(|judged| judged.verdict == Verdict::Pass).count();
    let all = result.expectations.len();
    if result.verdict == Verdict::Inconclusive {
        return inconclusive(result);
    }
    html! {
        @if let (Some(base), Some(judged)) = (&facts.base, contrast(facts)) {
            @let was = base.run.measured(&judged.measure);
            "With " b { (base.name) } " " (number::words(&judged.measure)) " is " b { (facts::written(was)) }
            ", here " b { (facts::written(judged.value.as_ref())) } ". "
        }
        @if all > 0 { (met) " of " (number::count(all as u64, "expectation", "expectations")) " met. " }
        @for deadlock in result.deadlocks.iter().take(1) {
            b { "Deadlock on lane " (deadlock.tc) ": " (deadlock.circle.join(" → ")) ". " }
        }
        @if let Some((drops, why)) = result.lossless_drops.as_ref().and_then(|drops| Some((drops, drops.expected.as_ref()?))) {
            b { (drops) } ", as the scenario expects: " (why) ". "
        }
        @if result.deadlocks.is_empty() && !result.saturation.circle.is_empty() {
            b { "Outputs waited in a circle: " (result.saturation.circle.join(" → ")) ". " }
        }
        @match result.dilation {
            None if result.pace.is_some() => "Exact pace: nothing can be late, and the run equals that of the virtual clock.",
            None => "Virtual clock: nothing can be late.",
            Some(_) if result.fidelity.lateness_p99_frames.is_none() => {
                b { "No frame was lost by the host" } ", so the result counts. Ports without a rate have no lateness."
            }
            Some(_) if !result.fidelity.judges_lateness() => {
                b { "No frame was lost by the host" } ", so the result counts. Lateness is not judged: nothing slows the clock of hosts."
            }
            Some(_) => {
                b { "This host kept up" }
                @if result.pieces.stretched().is_some() { " once the clock was stretched" }
                ", so the result counts."
            }
        }
        @for remark in &result.remarks { " Remark: " (remark) "." }
    }
}

/// The measure to contrast with the baseline: that of the scenario's sentence, or else the one that
/// differs most.
fn contrast<'a>(facts: &Facts<'a>) -> Option<&'a Judgement> {
    let base = facts.base.as_ref()?;
    let difference = |judged: &Judgement| {
        let was = base.run.measured(&judged.measure)?;
        let (was, is) = (was.number()?, judged.value.as_ref()?.number()?);
        Some((was - is).abs() / was.abs().max(is.abs()).max(1e-9))
    };
    let leading = facts::leading(facts.run.run).into_iter();
    let mut known = leading.filter_map(|judged| Some((difference(judged)?, judged)));
    let contrast = match facts.run.run.result.say {
        Some(_) => known.next(),
        None => known.reduce(|a, b| if b.0 > a.0 { b } else { a }),
    };
    contrast.map(|(_, judged)| judged)
}

fn inconclusive(result: &RunResult) -> Markup {
    let fidelity = &result.fidelity;
    html! {
        @if let Some(late) = fidelity.lateness_p99_frames {
            "Frames left up to " (format!("{late:.2}")) " frame times late (p99); the limit is "
            (format!("{LATE_LIMIT:.2}")) ". "
        }
        (number::count(fidelity.transport_lost, "frame", "frames")) " lost by sockets. "
        @if result.cables.contains_key("attached") {
            b { "Again on a quieter host" } ": the clock of hosts cannot be slowed."
        } @else if let Some(dilation) = fidelity.suggested_dilation {
            b { "At " (number::grouped(dilation)) "× it should hold: " }
            code { "pausebed run … --dilate " (dilation) }
            ". Or " code { "--pace exact" } ", which needs no quiet host."
        }
    }
}

/// The four cards.
pub fn cards(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    html! {
        div class="cards" {
            @for judged in facts::leading(run).into_iter().take(2) { (measure(facts, judged)) }
            @for _ in run.result.expectations.len()..2 { (stretch(facts)) }
            (conservation(&run.result))
            (fidelity(facts))
        }
    }
}

/// The sign of a verdict; in an inconclusive run nothing is judged.
pub fn judged(facts: &Facts<'_>, verdict: Verdict) -> Markup {
    let verdict = match facts.run.run.result.verdict {
        Verdict::Inconclusive => Verdict::Inconclusive,
        _ => verdict,
    };
    let (class, text) = look(verdict);
    html! { span class=(format!("sign {class}")) { (text) } }
}

/// The bullet chart of an expectation.
pub fn bullet(facts: &Facts<'_>, judged: &Judgement) -> Option<Bullet> {
    let value = judged.value.as_ref().and_then(Value::number);
    let baseline =
        facts.base.as_ref().and_then(|base| base.run.measured(&judged.measure)?.number());
    let Judgement { min, max, theory, .. } = *judged;
    judged.order.is_none().then_some(Bullet { value, baseline, min, max, theory })
}

fn measure(facts: &Facts<'_>, expectation: &Judgement) -> Markup {
    let run = facts.run.run;
    let unit = facts::unit(run.result.definitions.get(&expectation.measure)).trim();
    let (name, value) = (facts::title(expectation), facts::written(expectation.value.as_ref()));
    let accepted = facts::accepted(expectation);
    let label = format!("{name} {value}, accepted {accepted}");
    html! {
        div class="card" {
            div class="k" { (name) (judged(facts, expectation.verdict)) }
            div class="v" {
                (value)
                small {
                    (unit)
                    @if let Some(base) = &facts.base {
                        @if !unit.is_empty() { " · " }
                        (base.name) ": " (facts::written(base.run.measured(&expectation.measure)))
                    }
                }
            }
            @if let Some(bullet) = bullet(facts, expectation) { (bullet.svg(260.0, &label)) }
            p { "accepted " (accepted) @if let Some(theory) = expectation.theory { "; theory " (number::bound(theory)) } }
        }
    }
}

/// The card with the duration of the run, in place of a measure.
fn stretch(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    html! {
        div class="card" {
            div class="k" { "Length" }
            div class="v" { (number::tau(run.length_tau())) }
            p { (number::seconds(run.result.fabric_seconds * 1e12)) " of fabric time" }
        }
    }
}

fn conservation(result: &RunResult) -> Markup {
    let balance = &result.conservation;
    let dropped: u64 = balance.dropped.values().sum();
    let reasons = balance.dropped.iter().filter(|(_, n)| **n > 0);
    let reasons =
        reasons.map(|(reason, n)| format!("{} {}", number::grouped(*n), number::words(reason)));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let whole = balance.injected.max(1) as f64;
    let width = |n: u64| 252.0 * n as f64 / whole;
    let (delivered, buffered, lost) =
        (width(balance.delivered), width(balance.buffered), width(dropped));
    let closes = balance.closes();
    html! {
        div class="card" {
            div class="k" { "Frames lost"
                @if closes { span class="sign plain" { "= sum closes" } } @else { span class="sign fail" { "✕ does not close" } }
            }
            div class="v" { (number::grouped(dropped)) small { "of " (number::grouped(balance.injected)) } }
            svg class="bullet" viewBox="0 0 260 22" role="img" aria-label="Delivered, buffered, dropped" {
                rect class="run" x="4" y="7" width=(format!("{delivered:.1}")) height="8" rx="2" {}
                rect class="base" x=(format!("{:.1}", 4.0 + delivered)) y="7" width=(format!("{:.1}", buffered.max(if balance.buffered > 0 { 1.5 } else { 0.0 }))) height="8" {}
                rect class="lost" x=(format!("{:.1}", 4.0 + delivered + buffered)) y="7" width=(format!("{lost:.1}")) height="8" {}
            }
            p {
                (number::grouped(balance.delivered)) " delivered + " (number::grouped(balance.buffered)) " under way"
                @if !reasons.is_empty() { "; dropped: " (reasons) }
            }
        }
    }
}

fn fidelity(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    let fidelity = &run.result.fidelity;
    if run.result.dilation.is_none() {
        return html! {
            div class="card" {
                div class="k" { "Fidelity" span class="sign plain" { "exact" } }
                div class="v" { (run.result.pace.as_deref().unwrap_or("virtual")) small { "independent of the host" } }
                svg class="bullet" viewBox="0 0 260 22" aria-hidden="true" { path class="zero" d="M4 18H256" {} }
                p { "scenario and seed alone decide the result" }
            }
        };
    }
    let (sign, class) =
        if fidelity.ok { ("✓ valid", "pass") } else { ("◐ inconclusive", "unsure") };
    let Some(late) = fidelity.lateness_p99_frames else {
        return html! {
            div class="card" {
                div class="k" { "Frames lost by the host" span class=(format!("sign {class}")) { (sign) } }
                div class="v" { (number::grouped(fidelity.transport_lost)) small { "frames" } }
                p { "attached ports without a rate have no lateness" }
            }
        };
    };
    let most = most(&run.lateness).max(LATE_LIMIT * 1.2);
    let known = run.lateness.iter().enumerate().filter(|(_, late)| late.is_finite());
    let bar = |(bin, late): (usize, &f64)| {
        let x = 4.0 + 252.0 * bin as f64 / run.bins as f64;
        format!("M{x:.1} 21V{:.1}", 21.0 - late / most * 19.0)
    };
    let bars: String = known.map(bar).collect();
    let limit = 21.0 - LATE_LIMIT / most * 19.0;
    let title = if fidelity.judges_lateness() { "Host kept up" } else { "Lateness, not judged" };
    html! {
        div class="card" {
            div class="k" { (title) span class=(format!("sign {class}")) { (sign) } }
            div class="v" { (format!("{late:.3}")) small { "frame times late, p99" } }
            svg class="bullet" viewBox="0 0 260 22" role="img" aria-label="Lateness over time" {
                path class="bars" d=(bars) {}
                path class="limit" d=(format!("M4 {limit:.1}H256")) {}
            }
            p {
                "limit " (format!("{LATE_LIMIT:.2}")) "; " (number::count(fidelity.transport_lost, "frame", "frames")) " lost by sockets"
                @if let Some((start, greatest)) = run.result.pieces.stretched() {
                    "; clock stretched up to " (format!("{:.1}", greatest as f64 / start.max(1) as f64)) "×"
                }
            }
        }
    }
}
