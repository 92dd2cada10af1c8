//! Lanes below the panels: how many sources are held, marks, notifications, losses, and how late the
//! host was. Stronger is more.

use super::{LEFT, RIGHT, WIDTH};
use crate::chart::path::{self, Grain};
use crate::report::columns::Columns;
use crate::report::facts::{self, Facts, Side};
use maud::{Markup, html};

const PITCH: f64 = 18.0;
const HEIGHT: f64 = 13.0;
/// Strengths that a cell may have.
const STRENGTHS: usize = 8;
/// Lateness above which a run says nothing, in frame times.
const LATE_LIMIT: f64 = 0.10;

/// All lanes.
pub struct Lanes {
    strips: Vec<Strip>,
    late: Option<Late>,
}

struct Strip {
    name: String,
    role: &'static str,
    key: String,
    digits: usize,
    unit: &'static str,
    value: f64,
    /// By strength from 1 on, where its cells are.
    cells: Vec<String>,
}

struct Late {
    bars: String,
    top: f64,
    value: f64,
}

/// The lanes of a page.
pub fn all(facts: &Facts<'_>, columns: &mut Columns) -> Lanes {
    let mut strips = Vec::new();
    for side in facts.sides() {
        let share: Vec<f64> = side
            .sources_held
            .iter()
            .map(|n| 100.0 * n / facts.senders.len().max(1) as f64)
            .collect();
        let name = format!("sources held, {}", side.name);
        strips.push(strip(facts, side, columns, (name, side.role, "psh", &share), 100.0));
        columns.add(format!("{}.held", side.number), &side.held, 1.0);
        columns.add(format!("{}.sheld", side.number), &side.sources_held, 1.0);
    }
    for strip in &mut strips {
        (strip.unit, strip.digits) = (" %", 0);
    }
    for side in facts.sides() {
        let (signals, happenings) = (&side.run.signals, &side.run.happenings);
        let words = facts::signals(side.run);
        for (word, key, series) in [
            (words.0, "marks", &signals.marks),
            (words.1, "notes", &signals.notes),
            ("XOFF sent", "xoff", &happenings.xoff),
            ("XON sent", "xon", &happenings.xon),
            ("frames lost", "drops", &signals.drops),
        ] {
            let rate: Vec<f64> = series.iter().map(|n| n / side.run.bin_tau().max(1e-9)).collect();
            let most = rate.iter().copied().fold(0.0, f64::max);
            if most > 0.0 {
                let role = match key {
                    "drops" => "fail",
                    "xoff" | "xon" => "third",
                    _ => "signal",
                };
                let name = format!("{word} per τ, {}", side.name);
                strips.push(strip(facts, side, columns, (name, role, key, &rate), most));
            }
        }
        let pause = paused(side);
        let most = pause.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        if side.run.technology == "ethernet" && most > 0.0 {
            let name = format!("ports paused, {}", side.name);
            let mut own = strip(facts, side, columns, (name, "third", "paused", &pause), most);
            own.digits = 0;
            strips.push(own);
        }
    }
    Lanes { strips, late: late(facts, columns) }
}

/// Ports that are paused for some of a bin, by bin.
fn paused(side: &Side<'_>) -> Vec<f64> {
    let count = |bin: usize| side.run.series.iter().filter(|s| s.pause[bin] > 0.0).count() as f64;
    (0..side.run.bins).map(count).collect()
}

fn strip(
    facts: &Facts<'_>,
    side: &Side<'_>,
    columns: &mut Columns,
    (name, role, key, series): (String, &'static str, &str, &[f64]),
    most: f64,
) -> Strip {
    let width = side.run.bin_tau();
    let mut cells = vec![String::new(); STRENGTHS];
    let strength = |value: f64| {
        if !value.is_finite() || value <= 0.0 {
            return 0;
        }
        ((value / most * STRENGTHS as f64).ceil() as usize).clamp(1, STRENGTHS)
    };
    // Neighbours of one strength are one rectangle.
    let mut begin = 0;
    for bin in 1..=series.len() {
        let own = strength(series[begin]);
        if bin == series.len() || strength(series[bin]) != own {
            if own > 0 {
                let (from, to) = (begin as f64 * width, bin as f64 * width);
                cells[own - 1] += &format!("M{from:.2} 0H{to:.2}V1H{from:.2}z");
            }
            begin = bin;
        }
    }
    let key = format!("{}.{key}", side.number);
    columns.add(key.clone(), series, (most / 1_000.0).max(1e-6));
    let value = side.bin_at(facts.cursor()).map_or(f64::NAN, |bin| series[bin]);
    let digits = if most >= 100.0 {
        0
    } else if most >= 1.0 {
        1
    } else {
        3
    };
    Strip { name, role, key, digits, unit: "", value, cells }
}

fn late(facts: &Facts<'_>, columns: &mut Columns) -> Option<Late> {
    let run = facts.run.run;
    if run.lateness.is_empty() {
        return None;
    }
    columns.add("1.late", &run.lateness, 0.0005);
    let most = run.lateness.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let top = most.max(LATE_LIMIT * 1.3);
    let points: Vec<(f64, f64)> = (0..run.bins)
        .map(|bin| (run.middle(bin), -run.lateness[bin] / top * super::UNIT))
        .collect();
    let bars = path::area(&points, 0.0, Grain::Hundredths);
    let value = facts.run.bin_at(facts.cursor()).map_or(f64::NAN, |bin| run.lateness[bin]);
    Some(Late { bars, top, value })
}

impl Lanes {
    /// What they need below the panels.
    pub fn height(&self) -> f64 {
        self.strips.len() as f64 * PITCH + if self.late.is_some() { 52.0 } else { 0.0 }
    }

    /// Draws them from `top` on.
    pub fn draw(&self, facts: &Facts<'_>, top: f64) -> Markup {
        let late_top = top + self.strips.len() as f64 * PITCH + 14.0;
        html! {
            text class="strong" x=(LEFT) y=(format!("{:.0}", top - 6.0)) { "events" tspan class="plain" dx="7" { "stronger is more" } }
            @for (place, strip) in self.strips.iter().enumerate() {
                @let y = top + place as f64 * PITCH;
                rect class="track" x=(LEFT) y=(format!("{y:.0}")) width=(RIGHT - LEFT) height=(HEIGHT) {}
                svg class="t" x=(LEFT) y=(format!("{y:.0}")) width=(RIGHT - LEFT) height=(HEIGHT)
                    viewBox=(format!("0 0 {} 1", facts.length)) preserveAspectRatio="none" {
                    g class=(format!("cells {}", strip.role)) {
                        @for (strength, cells) in strip.cells.iter().enumerate().filter(|(_, c)| !c.is_empty()) {
                            path opacity=(format!("{:.2}", 0.16 + 0.84 * (strength + 1) as f64 / STRENGTHS as f64)) d=(cells) {}
                        }
                    }
                }
                text x=(RIGHT + 12.0) y=(format!("{:.0}", y + 11.0)) { (strip.name) }
                text class="strong" x=(WIDTH - 4.0) y=(format!("{:.0}", y + 11.0)) text-anchor="end"
                    data-k=(strip.key) data-d=(strip.digits) data-u=(strip.unit) {
                    (super::shown(strip.value, strip.digits)) @if strip.value.is_finite() { (strip.unit) }
                }
            }
            @if let Some(late) = &self.late { (late.draw(facts, late_top)) }
        }
    }
}

impl Late {
    fn draw(&self, facts: &Facts<'_>, y: f64) -> Markup {
        let limit = y + 32.0 - LATE_LIMIT / self.top * 32.0;
        html! {
            svg class="t" x=(LEFT) y=(format!("{y:.0}")) width=(RIGHT - LEFT) height="32"
                viewBox=(super::view(facts.length, 0.0, 1.0)) preserveAspectRatio="none" {
                path class="lateness" d=(self.bars) {}
            }
            path class="limit" d=(format!("M{LEFT} {limit:.1}H{RIGHT}")) {}
            text x=(LEFT - 7.0) y=(format!("{:.1}", limit + 4.0)) text-anchor="end" { "0.1" }
            text x=(RIGHT + 12.0) y=(format!("{:.0}", y + 26.0)) { "host late, p99, frame times" }
            text class="strong" x=(WIDTH - 4.0) y=(format!("{:.0}", y + 26.0)) text-anchor="end" data-k="1.late" data-d="3" {
                (super::shown(self.value, 3))
            }
        }
    }
}
