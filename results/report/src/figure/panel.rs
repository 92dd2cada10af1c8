//! A panel of the figure: its series, which of them are drawn how, and their names with their values.

use super::{HIGH, LOW, UNIT, trace};
use crate::facts::{Facts, Side};
use crate::sheet::Sheet;
use chart::path::{self, Precision};
use chart::{number, quantiles, words};
use maud::{Markup, html};
use std::borrow::Cow;

/// Values by bin.
pub type Values<'a> = Cow<'a, [f64]>;

/// From a line of text to the next.
pub const LINE: f64 = 14.0;
/// Letters of a name beside the lines.
const NAME_MAX: usize = 25;

/// What one line or lane shows, bin by bin.
#[derive(Debug)]
pub struct Series<'a> {
    /// What it is of: a port, a flow, the mean of several.
    pub name: String,
    /// In which run.
    pub side: &'a Side<'a>,
    /// Its values, means over a bin.
    pub mean: Values<'a>,
    /// The least and the greatest within a bin, where they are known.
    pub range: Option<(Values<'a>, Values<'a>)>,
    /// Its key among the page's columns, and the step of its values there; few have none.
    pub carried: Option<(String, f64)>,
}

impl<'a> Series<'a> {
    /// One that the page does not carry.
    pub fn new(name: String, side: &'a Side<'a>, mean: impl Into<Values<'a>>) -> Series<'a> {
        Series { name, side, mean: mean.into(), range: None, carried: None }
    }

    /// The same with its least and its greatest values.
    pub fn between(mut self, least: impl Into<Values<'a>>, most: impl Into<Values<'a>>) -> Self {
        self.range = Some((least.into(), most.into()));
        self
    }

    /// The same, carried under this key of its run, known to `step`.
    pub fn carried(mut self, key: &str, step: f64) -> Self {
        self.carried = Some((format!("{}.{key}", self.side.number), step));
        self
    }

    /// Its key among the page's columns.
    pub fn key(&self) -> Option<&str> {
        self.carried.as_ref().map(|(key, _)| key.as_str())
    }

    /// The value at the cursor.
    pub fn at_cursor(&self, facts: &Facts<'_>) -> f64 {
        self.side.bin_at(facts.cursor()).map_or(f64::NAN, |bin| self.mean[bin])
    }
}

/// What of series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Their means.
    Lines,
    /// From their least values to their greatest.
    Bands,
    /// Both.
    Both,
}

/// Series that are drawn alike.
#[derive(Debug)]
pub struct Group {
    /// How: classes of the style.
    pub class: String,
    /// What of them.
    pub stroke: Stroke,
    /// Which, by place.
    pub series: Vec<usize>,
}

/// A name with its value, for one series.
#[derive(Debug)]
pub struct Label {
    /// Whose value stands behind the name.
    pub series: usize,
    /// The name.
    pub text: String,
    /// Role of its colour.
    pub role: &'static str,
    /// How many digits its value has behind the point.
    pub digits: usize,
    /// Something further, in small print.
    pub note: String,
}

/// A panel.
#[derive(Debug)]
pub struct Panel<'a> {
    /// What it is about, in a word.
    pub name: &'static str,
    /// What stands above it: of which run, or of what.
    pub title: String,
    /// And what is shown how.
    pub about: String,
    /// How high it is on the page.
    pub height: f64,
    /// Unit of its series.
    pub unit: &'static str,
    /// How many of those make one of the axis.
    pub scale: f64,
    /// Greatest value of the axis.
    pub top: f64,
    /// Values with a tick.
    pub ticks: Vec<f64>,
    /// What lies under the lines, in data coordinates.
    pub under: Markup,
    /// What there is to show.
    pub series: Vec<Series<'a>>,
    /// What is drawn, the last on top.
    pub groups: Vec<Group>,
    /// What is named.
    pub labels: Vec<Label>,
}

impl<'a> Panel<'a> {
    /// An empty panel whose axis goes from 0 to `top` with ticks at both ends and in the middle.
    pub fn new(
        name: &'static str,
        title: String,
        about: String,
        unit: &'static str,
        top: f64,
    ) -> Self {
        Panel {
            name,
            title,
            about,
            height: 90.0,
            unit,
            scale: 1.0,
            top,
            ticks: vec![0.0, top / 2.0, top],
            under: html! {},
            series: Vec::new(),
            groups: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Adds a series that is drawn in a group of its own, on top of the others; returns its place.
    pub fn draws(&mut self, series: Series<'a>, stroke: Stroke, class: String) -> usize {
        let place = self.series.len();
        self.series.push(series);
        self.group(stroke, class, [place]);
        place
    }

    /// Draws some series, by their places, on top of the others.
    pub fn group(
        &mut self,
        stroke: Stroke,
        class: String,
        series: impl IntoIterator<Item = usize>,
    ) {
        self.groups.push(Group { class, stroke, series: series.into_iter().collect() });
    }

    /// Names a series, by its place; its value has so many digits behind the point.
    pub fn label(&mut self, series: usize, text: String, role: &'static str, digits: usize) {
        self.labels.push(Label { series, text, role, digits, note: String::new() });
    }
}

impl Panel<'_> {
    /// The series that are drawn or named.
    pub fn shown(&self) -> impl Iterator<Item = &Series<'_>> {
        self.shown_places().map(|place| &self.series[place])
    }

    /// Their places.
    pub fn shown_places(&self) -> impl Iterator<Item = usize> {
        let drawn = |place: &usize| self.groups.iter().any(|group| group.series.contains(place));
        let named = |place: &usize| self.labels.iter().any(|label| label.series == *place);
        (0..self.series.len()).filter(move |place| drawn(place) || named(place))
    }

    /// Role of a series' colour: of its name, or of its line.
    pub fn role(&self, series: usize) -> &str {
        let mut groups = self.groups.iter().filter(|group| group.series.contains(&series));
        let of_group = || groups.next()?.class.split(' ').nth(1);
        let label = self.labels.iter().find(|label| label.series == series);
        label.map(|label| label.role).or_else(of_group).unwrap_or("muted")
    }

    /// Draws it from `y` on, with something over its lines; returns y of its lower end, too.
    pub fn draw(&self, facts: &Facts<'_>, sheet: &Sheet, y: f64, over: &Markup) -> (Markup, f64) {
        let title = quantiles::shortened(&self.title, 40);
        let indent = words::width(&self.title.chars().take(40).collect::<String>()) + 7.0;
        let room = sheet.width - sheet.left;
        let about = words::lines(&self.about, room - indent, room);
        let under = y + 11.0 + LINE * (about.len() - 1) as f64;
        let (names, top) = match sheet.has_margin() {
            true => (None, under + 5.0),
            false => {
                let (names, end) = self.names_above(facts, sheet, under + LINE);
                (Some(names), end + 5.0)
            }
        };
        let height = sheet.panel(self.height);
        let place = |value: f64| top + height * (HIGH - value / self.top) / (HIGH - LOW);
        let Sheet { left, right, .. } = sheet;
        let markup = html! {
            text class="strong" x=(left) y=(format!("{:.0}", y + 11.0)) {
                (title) @if let Some(line) = about.first() { tspan class="plain" dx="7" { (line) } }
            }
            @for (row, line) in about.iter().enumerate().skip(1) {
                text x=(left) y=(format!("{:.0}", y + 11.0 + LINE * row as f64)) { (line) }
            }
            @for tick in &self.ticks {
                @let at = format!("{:.1}", place(*tick));
                path class=(if *tick == 0.0 { "zero" } else { "gridline" }) d=(format!("M{left} {at}H{right}")) {}
                text x=(left - 7.0) y=(format!("{:.1}", place(*tick) + 4.0)) text-anchor="end" { (number::bound(*tick)) }
            }
            svg class="t" x=(left) y=(format!("{top:.0}")) width=(sheet.span()) height=(format!("{height:.0}"))
                viewBox=(super::view(facts.length, LOW, HIGH)) preserveAspectRatio="none" {
                (self.under)
                @for group in &self.groups { (self.lines(group, facts, sheet)) }
                (over)
            }
            @match names { Some(names) => (names), None => (self.names_beside(facts, sheet, (top, height), &place)) }
        };
        (markup, top + height)
    }

    fn lines(&self, group: &Group, facts: &Facts<'_>, sheet: &Sheet) -> Markup {
        let precision = super::precision(facts);
        let end = self.top * self.scale;
        let all = || group.series.iter().map(|place| &self.series[*place]);
        html! {
            g class=(group.class) { @for series in all() {
                @if let (Some((least, most)), true) = (&series.range, group.stroke != Stroke::Lines) {
                    path class="band" d=(band(series.side, least, most, end, precision)) {}
                }
                @if group.stroke != Stroke::Bands {
                    // The page's small pictures draw the same line again.
                    path class="l" id=[series.key().filter(|_| sheet.is_page())] d=(trace(series.side, &series.mean, end, precision)) {}
                }
            } }
        }
    }

    /// The value of a label at the cursor, in units of the axis.
    fn value(&self, facts: &Facts<'_>, label: &Label) -> f64 {
        self.series[label.series].at_cursor(facts) / self.scale
    }

    /// Names at the right end of lines, moved apart where they would meet.
    fn names_beside(
        &self,
        facts: &Facts<'_>,
        sheet: &Sheet,
        (top, height): (f64, f64),
        place: &impl Fn(f64) -> f64,
    ) -> Markup {
        let room = |label: &Label| if label.note.is_empty() { 17.0 } else { 31.0 };
        let labels = self.labels.iter().map(|label| (label, self.value(facts, label)));
        let at = |value: f64| place(if value.is_finite() { value } else { 0.0 }) + 4.0;
        let mut order: Vec<(f64, &Label, f64)> =
            labels.map(|(label, value)| (at(value), label, value)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut least = top + 8.0;
        for (at, label, _) in &mut order {
            *at = at.max(least);
            least = *at + room(label);
        }
        let mut most = top + height + 8.0;
        for (at, label, _) in order.iter_mut().rev() {
            *at = at.min(most);
            most = *at - room(label);
        }
        let x = sheet.right + 12.0;
        html! {
            @for (at, label, value) in order {
                g class=(format!("own {}", label.role)) {
                    text x=(x) y=(format!("{at:.1}")) { (quantiles::shortened(&label.text, NAME_MAX)) }
                    text x=(sheet.width - 4.0) y=(format!("{at:.1}")) text-anchor="end"
                        data-k=[self.series[label.series].key()] data-d=(label.digits) { (super::shown(value, label.digits)) }
                }
                @if !label.note.is_empty() {
                    text class="note" x=(x) y=(format!("{:.1}", at + LINE)) { (label.note) }
                }
            }
        }
    }

    /// Names in lines of their own, from the line at `y` on; returns y of the last line, too.
    fn names_above(&self, facts: &Facts<'_>, sheet: &Sheet, y: f64) -> (Markup, f64) {
        let gap = 14.0;
        let (mut x, mut y) = (sheet.left, y);
        let mut names = Vec::new();
        for label in &self.labels {
            let value = super::shown(self.value(facts, label), label.digits);
            let own =
                words::width(&label.text).min(NAME_MAX as f64 * 6.3) + 6.0 + words::width(&value);
            let wide = own + words::width(&label.note) + 8.0;
            if x > sheet.left && x + wide > sheet.right {
                (x, y) = (sheet.left, y + LINE);
            }
            // A line may not have room for both: then the note has the next one.
            let is_below = wide > sheet.span();
            names.push(html! {
                g class=(format!("own {}", label.role)) {
                    text x=(format!("{x:.1}")) y=(format!("{y:.1}")) {
                        (quantiles::shortened(&label.text, NAME_MAX)) tspan dx="5" { (value) }
                        @if is_below { tspan class="plain" x=(format!("{x:.1}")) dy=(LINE) { (label.note) } }
                        @else if !label.note.is_empty() { tspan class="plain" dx="8" { (label.note) } }
                    }
                }
            });
            y += if is_below { LINE } else { 0.0 };
            x += if is_below { sheet.span() } else { wide + gap };
        }
        let end = if names.is_empty() { y - LINE } else { y };
        (html! { @for name in names { (name) } }, end)
    }
}

/// From the least to the greatest, in data coordinates.
fn band(side: &Side<'_>, least: &[f64], most: &[f64], end: f64, precision: Precision) -> String {
    let at = |value: f64| -value / end * UNIT;
    let values = least.iter().zip(most).enumerate();
    let points = values.map(|(bin, (low, high))| (side.run.middle(bin), at(*low), at(*high)));
    path::band(&points.collect::<Vec<_>>(), precision)
}
