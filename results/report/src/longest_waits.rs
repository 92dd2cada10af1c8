//! The outputs that were held longest in the measured window, in both runs.

use super::facts::{Facts, Side};
use super::figure_head::figure_head;
use super::ports;
use super::sheet::Picture;
use chart::{number, quantiles};
use maud::{Markup, html};
use scenario::figures::FigureName;

/// Greatest number of rows.
const ROWS: usize = 8;
/// Width on the page.
const WIDTH: f64 = 570.0;
/// Space for names, and for the numbers after bars.
const LEFT: f64 = 170.0;
const RIGHT: f64 = 50.0;

/// The outputs that waited, the longest first.
#[derive(Debug)]
pub struct LongestWaits<'a> {
    facts: &'a Facts<'a>,
    /// Each with its share in the run in which it waited longer.
    outputs: Vec<(f64, usize)>,
}

impl<'a> LongestWaits<'a> {
    /// The longest waits of a run, or of two.
    pub fn of(facts: &'a Facts<'a>) -> LongestWaits<'a> {
        let worst = |output: usize| {
            let shares = facts.sides().map(|side| share(facts, side, output));
            (shares.fold(0.0, f64::max), output)
        };
        let outputs = 0..facts.run.run.graph.outputs.len();
        let mut order: Vec<(f64, usize)> =
            outputs.map(worst).filter(|(worst, _)| *worst > 0.0005).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.truncate(ROWS);
        LongestWaits { facts, outputs: order }
    }

    /// Each output with its run and its share, in the order of the picture.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &Side<'a>, f64)> {
        self.outputs.iter().flat_map(move |(_, output)| {
            let own = |side: &'a Side<'a>| (*output, side, share(self.facts, side, *output));
            self.facts.sides().map(own)
        })
    }

    /// The title.
    pub fn title(&self) -> String {
        let Some((worst, first)) = self.outputs.first() else {
            return "No output waited in the measured window".to_owned();
        };
        let name = self.facts.run.drawn.output_name(*first);
        format!("{name} waited {} of the measured window", number::per_cent(*worst))
    }

    /// The card.
    pub fn card(&self) -> Markup {
        let title = self.title();
        html! {
            div class="pane scroll" tabindex="0" role="region" aria-label="Longest waits" {
                (figure_head(self.facts, FigureName::WaitedLongest, "Longest waits", !self.outputs.is_empty()))
                h3 { (title) }
                @if let Some(Picture { body, height }) = self.draw(WIDTH) {
                    svg viewBox=(format!("0 0 {WIDTH:.0} {height:.0}")) role="img" aria-label=(title) { (body) }
                }
            }
        }
    }

    /// The picture, if any output waited.
    pub fn draw(&self, width: f64) -> Option<Picture> {
        let sides = self.facts.sides().count() as f64;
        let pitch = 12.0 + 10.0 * sides;
        // A legend names the colours of two runs.
        let key = (sides > 1.0).then(|| ports::swatches(self.facts).0);
        let first = if key.is_some() { 28.0 } else { 10.0 };
        let bottom = first + self.outputs.len() as f64 * pitch;
        let full = width - LEFT - RIGHT;
        let body = html! {
            @if let Some(key) = key { (key) }
            @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
                @let x = format!("{:.1}", LEFT + share * full);
                path class="gridline" d=(format!("M{x} {:.0}V{bottom:.0}", first - 4.0)) {}
                text x=(x) y=(format!("{:.0}", bottom + 16.0)) text-anchor="middle" { (number::per_cent(share)) }
            }
            @for (place, (_, output)) in self.outputs.iter().enumerate() {
                @let top = first + place as f64 * pitch;
                text x="0" y=(format!("{:.1}", top + 4.0 + 5.0 * sides)) { (quantiles::shortened(&self.facts.run.drawn.output_name(*output), 26)) }
                @for (row, side) in self.facts.sides().enumerate() {
                    @let value = share(self.facts, side, *output);
                    @let y = top + row as f64 * 10.0;
                    rect class=(side.role) x=(LEFT) y=(format!("{y:.1}")) width=(format!("{:.1}", (value * full).max(1.0))) height="8" rx="2" {}
                    text class="tiny" x=(format!("{:.1}", LEFT + value * full + 6.0)) y=(format!("{:.1}", y + 7.6)) { (number::per_cent(value)) }
                }
            }
        };
        (!self.outputs.is_empty()).then_some(Picture { body, height: bottom + 22.0 })
    }
}

/// The share of the window for which an output was held; zero in a run without it.
fn share(facts: &Facts<'_>, side: &Side<'_>, output: usize) -> f64 {
    let series = side.run.series.get(output);
    series.and_then(|series| facts.window_mean(side, &series.hold)).unwrap_or(0.0)
}
