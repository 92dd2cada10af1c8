//! The figure over time: stacked panels on one axis with one cursor, names and values at the ends of
//! lines, phases shaded.

use super::columns::Columns;
use super::facts::{Facts, Side};
use super::figure_head::figure_head;
use super::reference;
use super::sheet::{self, Picture, Sheet};
use chart::path::Precision;
use chart::{number, scale, words};
use maud::{Markup, html};
use results::run_directory::result::Phase;
use results::verdict::Verdict;
use scenario::figures::FigureName;

mod aggregate;
mod credits;
mod lanes;
mod overlay;
mod panel;
mod panels;
mod queues;

use lanes::Lanes;
use overlay::Overlay;
use panel::Panel;
pub use panel::Series;
pub use panels::LINES_MAX;

/// Height of a unit in data coordinates: a value of one is a thousand.
pub const UNIT: f64 = 1_000.0;
/// The lower and the upper end of panels, their axis being from zero to one.
const LOW: f64 = -0.03;
const HIGH: f64 = 1.04;
/// Least distance of two ticks of time,
const TICK: f64 = 90.0;
/// and their least number, approximately.
const TICKS: usize = 4;

/// The content of the figure for the page, for print and as a table.
#[derive(Debug)]
pub struct Figure<'a> {
    facts: &'a Facts<'a>,
    panels: Vec<Panel<'a>>,
    lanes: Lanes<'a>,
    overlays: Vec<Overlay>,
    pictures: Vec<&'a reference::Picture>,
}

/// A series with its panel.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'f> {
    /// Name of the panel.
    pub panel: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Units per unit of the value on the page.
    pub scale: f64,
    /// The series.
    pub series: &'f Series<'f>,
}

impl<'a> Figure<'a> {
    /// Of a run, or of two.
    pub fn of(facts: &'a Facts<'a>) -> Figure<'a> {
        let (panels, lanes) = (panels::all(facts), lanes::all(facts));
        Figure { facts, panels, lanes, overlays: Vec::new(), pictures: Vec::new() }
    }

    /// All series that are shown, in the order of the figure.
    pub fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        let panels = self.panels.iter().flat_map(|panel| {
            let Panel { name, unit, scale, .. } = *panel;
            panel.shown().map(move |series| Shown { panel: name, unit, scale, series })
        });
        let shown = |(unit, series)| Shown { panel: "events", unit, scale: 1.0, series };
        panels.chain(self.lanes.series().map(shown))
    }

    /// Adds the series that the cursor reads to the data of the page.
    pub fn carry(&self, columns: &mut Columns) {
        let lanes = self.lanes.series().map(|(_, series)| (1.0, series));
        let panels = self.panels.iter().flat_map(|p| p.series.iter().map(|s| (p.scale, s)));
        for (scale, series) in panels.chain(lanes) {
            if let Some((key, step)) = &series.carried {
                let values: Vec<f64> = series.mean.iter().map(|value| value / scale).collect();
                columns.add(key.clone(), &values, *step);
            }
        }
    }

    /// The section of the page.
    pub fn section(&self) -> Markup {
        let facts = self.facts;
        let title = super::facts::over_time(facts);
        let picture = self.draw(&sheet::PAGE);
        html! {
            section id="time" {
                (figure_head(facts, FigureName::OverTime, "Over time", true))
                h2 { (title) }
                p class="how" { (HOW) " Drag to zoom, Esc to see all." }
                div class="pane scroll" tabindex="0" role="region" aria-label="Figure over time" {
                    svg id="figure" viewBox=(format!("0 0 {:.0} {:.0}", sheet::PAGE.width, picture.height)) role="img" aria-label=(title) {
                        (picture.body)
                    }
                    div id="pinned" {}
                }
                @for picture in &self.pictures { (self.picture(picture)) }
                (numbers(facts))
            }
        }
    }

    /// The figure for a sheet: panels, lanes and their axis, from top to bottom.
    pub fn draw(&self, sheet: &Sheet) -> Picture {
        let facts = self.facts;
        let mut y = 40.0;
        let mut set = Vec::new();
        for (place, panel) in self.panels.iter().enumerate() {
            let overlays = self.overlays.iter().filter(|overlay| overlay.panel == place);
            let overlays = overlays.filter(|overlay| sheet.is_page() || !overlay.is_page);
            let over = html! { @for overlay in overlays { (overlay.body) } };
            let (markup, bottom) = panel.draw(facts, sheet, y, &over);
            set.push(markup);
            y = bottom + 20.0;
        }
        let lanes_top = y + 14.0;
        let bottom = lanes_top + self.lanes.height(sheet) + 8.0;
        let body = html! {
            (phases(facts, sheet, bottom))
            @for panel in set { (panel) }
            (self.lanes.draw(facts, sheet, lanes_top))
            (axis(facts, sheet, bottom))
            (cursor(facts, sheet, bottom))
        };
        Picture { body, height: bottom + if sheet.is_page() { 34.0 } else { 40.0 } }
    }
}

/// How to read the figure.
pub const HOW: &str = "Thin lines are single ports or flows, thick ones their mean. A band is what was accepted, \
    drawn over the window it was measured in; dashed: theory.";

/// Precision of x in paths.
pub fn precision(facts: &Facts<'_>) -> Precision {
    let finest = facts.sides().map(|side| side.run.bin_tau()).fold(f64::MAX, f64::min);
    if finest >= 20.0 { Precision::Whole } else { Precision::Hundredths }
}

/// The line of a series in data coordinates; `top` is the value at the end of the axis.
pub fn trace(side: &Side<'_>, series: &[f64], top: f64, precision: Precision) -> String {
    let points = series.iter().enumerate();
    let points = points.map(|(bin, value)| (side.run.middle(bin), -value / top * UNIT));
    chart::path::line(points, precision)
}

/// `x y width height` of data coordinates for an axis up to `top` units.
pub fn view(length: f64, low: f64, high: f64) -> String {
    let length = (length * 100.0).round() / 100.0;
    format!("0 {:.0} {length} {:.0}", -high * UNIT, (high - low) * UNIT)
}

fn phases(facts: &Facts<'_>, sheet: &Sheet, bottom: f64) -> Markup {
    let result = &facts.run.run.result;
    let Sheet { left, .. } = sheet;
    let x = |t: f64| left + t / facts.length * sheet.span();
    let phases = || facts.run.run.phases();
    html! {
        svg class="t" x=(left) y="24" width=(sheet.span()) height=(format!("{:.0}", bottom - 24.0))
            viewBox=(format!("0 0 {} 1", facts.length)) preserveAspectRatio="none" {
            @for (from, to, _) in phases().skip(1).step_by(2) {
                rect class="phase" x=(from) y="0" width=(to - from) height="1" {}
            }
            @if result.verdict == Verdict::Inconclusive { (late(facts)) }
        }
        @for (from, to, name) in phases() {
            @let room = ((to - from) / facts.length * sheet.span() / 6.4) as usize;
            @if room >= 3 {
                text class="when" data-a=(from) data-b=(to) x=(format!("{:.1}", x((from + to) / 2.0))) y="16" text-anchor="middle" {
                    (chart::quantiles::shortened(name, room))
                }
            }
        }
    }
}

/// Bins in which the host was late, hatched.
fn late(facts: &Facts<'_>) -> Markup {
    let run = facts.run.run;
    let is_late = |bin: &usize| run.lateness.get(*bin).is_some_and(|late| *late > 0.10);
    html! {
        @for bin in (0..run.bins).filter(is_late) {
            rect class="late" x=(bin as f64 * run.bin_tau()) y="0" width=(run.bin_tau()) height="1" {}
        }
    }
}

/// A value with so many digits behind the point, or a dash for NaN.
pub fn shown(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "–".to_owned() }
}

/// The time axis in τ.
fn axis(facts: &Facts<'_>, sheet: &Sheet, bottom: f64) -> Markup {
    let x = |t: f64| sheet.left + t / facts.length * sheet.span();
    let about = ((sheet.span() / TICK) as usize).max(TICKS);
    let row = format!("{:.0}", bottom + 19.0);
    let below = format!("{:.0}", bottom + 34.0);
    html! {
        g id=[sheet.is_page().then_some("axis")] data-y=(format!("{bottom:.0}")) {
            @for t in scale::ticks(0.0, facts.length, about) {
                path class="zero" d=(format!("M{:.1} {bottom:.0}v5", x(t))) {}
                @let name = number::grouped(t as u64);
                @let x = x(t).min(sheet.width - 2.0 - words::width(&name) / 2.0);
                text x=(format!("{x:.1}")) y=(row) text-anchor="middle" { (name) }
            }
        }
        @if sheet.has_margin() {
            text x=(sheet.right + 36.0) y=(row) { "τ (MTU times)" }
        } @else {
            text x=(sheet.right) y=(below) text-anchor="end" { "τ (MTU times)" }
        }
        @if !sheet.is_page() {
            text x=(sheet.left) y=(below) { "Numbers are those at the line, " (number::tau(facts.cursor())) "." }
        }
    }
}

/// The cursor, and on the page the area that reacts to the pointer.
fn cursor(facts: &Facts<'_>, sheet: &Sheet, bottom: f64) -> Markup {
    let t = facts.cursor();
    html! {
        svg class=(if sheet.is_page() { "t pointer" } else { "t" }) x=(sheet.left) y="24" width=(sheet.span())
            height=(format!("{:.0}", bottom - 24.0)) viewBox=(format!("0 0 {} 1", facts.length)) preserveAspectRatio="none" {
            @if sheet.is_page() {
                rect class="catch" x="0" y="0" width=(facts.length) height="1" {}
                rect id="chosen" x="0" y="0" width="0" height="1" {}
            }
            path class="cursor" d=(format!("M{t} 0V1")) {}
        }
    }
}

/// The figure as a table: means by phase.
fn numbers(facts: &Facts<'_>) -> Markup {
    let phases = &facts.run.run.result.phases;
    let of_side = |side: &Side<'_>| {
        let cold = (facts.cold_words(), &side.cold, &facts.cold);
        let hot = (facts.hot_names(), &side.hot, &facts.hot);
        let known = [cold, hot].into_iter().filter(|(.., nodes)| !nodes.is_empty());
        let row = |(words, series, _): (String, &Vec<f64>, _)| {
            let mean = |phase: &Phase| side.run.mean_over(series, phase.from_ps, phase.to_ps);
            (format!("{}: {words}", side.name), phases.iter().map(mean).collect::<Vec<_>>())
        };
        known.map(row).collect::<Vec<_>>()
    };
    let rows: Vec<(String, Vec<Option<f64>>)> = facts.sides().flat_map(of_side).collect();
    html! {
        @if !phases.is_empty() && !rows.is_empty() {
            details {
                summary { "The same in numbers: received over line rate, mean by phase" }
                div class="scroll" tabindex="0" role="region" aria-label="Means by phase" { table {
                    thead { tr { th { "run" } @for phase in phases { th class="n" { (phase.name) } } } }
                    tbody { @for (name, means) in rows { tr {
                        td { (name) } @for mean in means { td class="n" { (number::measured_or_dash(mean)) } }
                    } } }
                } }
            }
        }
    }
}
