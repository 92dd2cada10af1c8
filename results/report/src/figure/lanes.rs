//! Lanes below the panels: held sources, marks, notifications, losses, where the clock was stretched, and the lateness of
//! the host. Stronger is more.

use super::panel::Series;
use crate::data;
use crate::facts::{self, Facts, Side};
use crate::sheet::Sheet;
use chart::path::{self, Precision};
use chart::quantiles;
use maud::{Markup, html};
use proto::technology::Technology;

/// Strengths that a cell may have.
const STRENGTHS: usize = 8;
/// Lateness in frame times above which a run is inconclusive.
const LATE_LIMIT: f64 = 0.10;
/// How high the picture of lateness is.
const LATE_HEIGHT: f64 = 32.0;
/// Letters of a lane's name.
const NAME_MAX: usize = 28;

/// All lanes.
#[derive(Debug)]
pub struct Lanes<'a> {
    strips: Vec<Strip<'a>>,
    late: Option<Series<'a>>,
}

/// A lane.
#[derive(Debug)]
struct Strip<'a> {
    /// What it shows, and its key among the page's columns.
    series: Series<'a>,
    /// In what.
    unit: &'static str,
    role: &'static str,
    /// Between the name and that of the run.
    per: &'static str,
    /// Behind the value.
    sign: &'static str,
    digits: usize,
    most: f64,
}

/// Where lanes stand, and their names.
struct Rows {
    /// From one to the next.
    pitch: f64,
    /// How high one is.
    height: f64,
    /// How far below a row's beginning it is.
    at: f64,
    /// Where names begin and where values end.
    ends: (f64, f64),
}

impl Rows {
    /// Names stand beside lanes, or above where there is no room.
    fn of(sheet: &Sheet) -> Rows {
        if sheet.has_margin() {
            let ends = (sheet.right + 12.0, sheet.width - 4.0);
            Rows { pitch: 18.0, height: 13.0, at: 0.0, ends }
        } else {
            let ends = (sheet.left, sheet.right);
            Rows { pitch: 27.0, height: 9.0, at: 15.0, ends }
        }
    }
}

/// The lanes of a page.
pub fn all<'a>(facts: &'a Facts<'a>) -> Lanes<'a> {
    let mut strips = Vec::new();
    for side in facts.sides() {
        let share = |n: &f64| 100.0 * n / facts.senders.len().max(1) as f64;
        let share: Vec<f64> = side.sources_held.iter().map(share).collect();
        let held = strip(side, ("sources held", side.role, "psh"), share, 100.0);
        strips.push(Strip { unit: "per_cent", per: "", sign: " %", digits: 0, ..held });
    }
    for side in facts.sides() {
        let (signals, log) = (&side.run.signals, &side.run.log);
        let words = facts::signals(side.run);
        for (lane, series) in [
            ((words.marks, "signal", "marks"), &signals.marks),
            ((words.notifications, "signal", "notes"), &signals.notes),
            (("XOFF sent", "third", "xoff"), &log.xoff),
            (("XON sent", "third", "xon"), &log.xon),
            (("frames lost", "fail", "drops"), &signals.drops),
        ] {
            let rate: Vec<f64> = series.iter().map(|n| n / side.run.bin_tau().max(1e-9)).collect();
            let most = data::most(&rate);
            if most > 0.0 {
                strips.push(strip(side, lane, rate, most));
            }
        }
        let paused = |bin| side.run.series.iter().filter(|s| s.pause[bin] > 0.0).count() as f64;
        let paused: Vec<f64> = (0..side.run.bins).map(paused).collect();
        let most = data::most(&paused);
        if side.run.graph.technology == Technology::Ethernet && most > 0.0 {
            let paused = strip(side, ("ports paused", "third", "paused"), paused, most);
            strips.push(Strip { unit: "ports", per: "", digits: 0, ..paused });
        }
    }
    strips.extend(stretched(&facts.run));
    let late = &facts.run.run.lateness;
    let late = (!late.is_empty()).then(|| {
        Series::new("host late, p99".to_owned(), &facts.run, late).carried("late", 0.0005)
    });
    Lanes { strips, late }
}

/// Where the host fell behind and the clock of a live run was stretched, by how many times.
fn stretched<'a>(side: &'a Side<'a>) -> Option<Strip<'a>> {
    let (start, greatest) = side.run.result.pieces.stretched()?;
    let by = |bin| {
        let middle_ps = side.run.middle(bin) * side.run.tau_ps();
        Some(side.run.result.pieces.stretch_at(middle_ps as u64)).filter(|by| *by != 1.0)
    };
    let by = (0..side.run.bins).map(|bin| by(bin).unwrap_or(f64::NAN)).collect();
    let most = greatest as f64 / start.max(1) as f64;
    let stretched = strip(side, ("clock stretched", "third", "stretched"), by, most);
    Some(Strip { unit: "times", per: "", sign: "×", digits: 1, ..stretched })
}

fn strip<'a>(
    side: &'a Side<'a>,
    (name, role, key): (&'static str, &'static str, &str),
    values: Vec<f64>,
    most: f64,
) -> Strip<'a> {
    let series = Series::new(name.to_owned(), side, values);
    let series = series.carried(key, (most / 1_000.0).max(1e-6));
    let digits = [(100.0, 0), (1.0, 1)].into_iter().find(|(least, _)| most >= *least);
    let digits = digits.map_or(3, |(_, digits)| digits);
    Strip { series, unit: "per_tau", role, per: " per τ", sign: "", digits, most }
}

impl Strip<'_> {
    /// By strength from 1 on, where its cells are; neighbours of one strength are one rectangle.
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![String::new(); STRENGTHS];
        let width = self.series.side.run.bin_tau();
        let strength = |value: f64| match (value / self.most * STRENGTHS as f64).ceil() {
            level if level > 0.0 && level.is_finite() => (level as usize).min(STRENGTHS),
            _ => 0,
        };
        let mut begin = 0;
        for alike in self.series.mean.chunk_by(|one, next| strength(*one) == strength(*next)) {
            let end = begin + alike.len();
            if let Some(own) = strength(alike[0]).checked_sub(1) {
                let (from, to) = (begin as f64 * width, end as f64 * width);
                cells[own] += &format!("M{from:.2} 0H{to:.2}V1H{from:.2}z");
            }
            begin = end;
        }
        cells
    }

    fn draw(&self, facts: &Facts<'_>, sheet: &Sheet, rows: &Rows, top: f64) -> Markup {
        let y = format!("{:.0}", top + rows.at);
        let name = format!("{:.0}", top + 11.0);
        let value = self.series.at_cursor(facts);
        let words = format!("{}{}, {}", self.series.name, self.per, self.series.side.name);
        html! {
            rect class="track" x=(sheet.left) y=(y) width=(sheet.span()) height=(rows.height) {}
            svg class="t" x=(sheet.left) y=(y) width=(sheet.span()) height=(rows.height)
                viewBox=(format!("0 0 {} 1", facts.length)) preserveAspectRatio="none" {
                g class=(format!("cells {}", self.role)) {
                    @for (strength, cells) in self.cells().iter().enumerate().filter(|(_, c)| !c.is_empty()) {
                        path opacity=(format!("{:.2}", 0.16 + 0.84 * (strength + 1) as f64 / STRENGTHS as f64)) d=(cells) {}
                    }
                }
            }
            text x=(rows.ends.0) y=(name) { (quantiles::shortened(&words, NAME_MAX)) }
            text class="strong" x=(rows.ends.1) y=(name) text-anchor="end" data-k=[self.series.key()] data-d=(self.digits) data-u=(self.sign) {
                (super::shown(value, self.digits)) @if value.is_finite() { (self.sign) }
            }
        }
    }
}

impl<'a> Lanes<'a> {
    /// What lanes show, with units; lateness last, which is there in live runs.
    pub fn series(&self) -> impl Iterator<Item = (&'static str, &Series<'a>)> {
        let strips = self.strips.iter().map(|strip| (strip.unit, &strip.series));
        strips.chain(self.late.iter().map(|late| ("frame_times", late)))
    }

    /// What they need below the panels.
    pub fn height(&self, sheet: &Sheet) -> f64 {
        let late = self.late.as_ref().map_or(0.0, |_| 52.0);
        self.strips.len() as f64 * Rows::of(sheet).pitch + late
    }

    /// Draws them from `top` on.
    pub fn draw(&self, facts: &Facts<'_>, sheet: &Sheet, top: f64) -> Markup {
        let rows = Rows::of(sheet);
        let late_top = top + self.strips.len() as f64 * rows.pitch + 14.0;
        html! {
            text class="strong" x=(sheet.left) y=(format!("{:.0}", top - 6.0)) { "events" tspan class="plain" dx="7" { "stronger is more" } }
            @for (place, strip) in self.strips.iter().enumerate() {
                (strip.draw(facts, sheet, &rows, top + place as f64 * rows.pitch))
            }
            @if let Some(late) = &self.late { (lateness(facts, sheet, late, late_top)) }
        }
    }
}

/// Bars of lateness below their limit, or above it.
fn lateness(facts: &Facts<'_>, sheet: &Sheet, late: &Series<'_>, y: f64) -> Markup {
    let top = data::most(late.mean.iter()).max(LATE_LIMIT * 1.3);
    let bars = late.mean.iter().enumerate();
    let bars = bars.map(|(bin, late)| (facts.run.run.middle(bin), -late / top * super::UNIT));
    let bars = path::area(&bars.collect::<Vec<_>>(), 0.0, Precision::Hundredths);
    let limit = y + LATE_HEIGHT * (1.0 - LATE_LIMIT / top);
    let rows = Rows::of(sheet);
    let name = if sheet.has_margin() { y + 26.0 } else { y - 3.0 };
    html! {
        svg class="t" x=(sheet.left) y=(format!("{y:.0}")) width=(sheet.span()) height=(LATE_HEIGHT)
            viewBox=(super::view(facts.length, 0.0, 1.0)) preserveAspectRatio="none" {
            path class="lateness" d=(bars) {}
        }
        path class="limit" d=(format!("M{} {limit:.1}H{}", sheet.left, sheet.right)) {}
        text x=(sheet.left - 7.0) y=(format!("{:.1}", limit + 4.0)) text-anchor="end" { "0.1" }
        text x=(rows.ends.0) y=(format!("{name:.0}")) { (late.name) ", frame times" }
        text class="strong" x=(rows.ends.1) y=(format!("{name:.0}")) text-anchor="end" data-k=[late.key()] data-d="3" {
            (super::shown(late.at_cursor(facts), 3))
        }
    }
}
