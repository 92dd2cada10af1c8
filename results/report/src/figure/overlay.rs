//! References drawn over the figure: points over their series, a picture over a panel.

use super::{Figure, HIGH, LOW, UNIT};
use crate::reference::{self, Place, Reference, Target};
use maud::{Markup, html};

/// At most this many known names are listed in an error.
const NAMES_MAX: usize = 12;

/// What lies over a panel's lines, in data coordinates.
#[derive(Debug)]
pub struct Overlay {
    /// Over which panel.
    pub panel: usize,
    /// What it is.
    pub body: Markup,
    /// Print leaves it out.
    pub is_page: bool,
}

impl<'a> Figure<'a> {
    /// The same beside what others found.
    pub fn beside(mut self, references: &'a [Reference]) -> Figure<'a> {
        for reference in references {
            match reference {
                Reference::Points(points) => self.lay(points),
                Reference::Picture(picture) => {
                    self.overlays.extend(picture.over.map(|over| self.overlay(over)));
                    self.pictures.push(picture);
                }
            }
        }
        self
    }

    /// Points, hollow, in the colours of their series.
    fn lay(&mut self, points: &reference::Points) {
        for reference::Group { place, points: of } in &points.groups {
            let panel = &mut self.panels[place.panel];
            let word = format!("; hollow: reference: {}", points.name);
            if !panel.about.ends_with(&word) {
                panel.about += &word;
            }
            // A line without a length is a dot, whatever the panel's proportions are.
            let dot = |(t, value): &(f64, f64)| format!("M{t} {}h0", -value / panel.top * UNIT);
            let dots: String = of.iter().map(dot).collect();
            let body = html! {
                g class=(format!("points {}", panel.role(place.series))) {
                    path class="l" d=(dots) {}
                    path class="l hole" d=(dots) {}
                }
            };
            self.overlays.push(Overlay { panel: place.panel, body, is_page: false });
        }
    }

    /// A picture over a panel, which a slider lets appear.
    fn overlay(&self, over: reference::Over) -> Overlay {
        let unit = -UNIT / self.panels[over.place.panel].top;
        let (x, y) = (over.x, (over.y.0 * unit, over.y.1 * unit));
        let place = format!("matrix({} 0 0 {} {} {})", x.1, y.1, x.0, y.0);
        let body = html! { use class="overlay" href="#reference" transform=(place) opacity="0" {} };
        Overlay { panel: over.place.panel, body, is_page: true }
    }

    /// A picture below ours, and the slider that lets it appear over a panel.
    pub(super) fn picture(&self, picture: &reference::Picture) -> Markup {
        let name = format!("reference: {}", picture.name);
        let (wide, high) = picture.size;
        let over = picture.over.map(|over| &self.panels[over.place.panel]);
        html! {
            div class="pane reference" {
                h3 { (name) }
                svg viewBox=(format!("0 0 {wide} {high}")) role="img" aria-label=(name) {
                    image id="reference" href=(picture.uri) width=(wide) height=(high) {}
                }
                @if let Some(panel) = over {
                    p class="how over" hidden {
                        label for="opacity" { "Over the panel “" (panel.title) " " (panel.name) "”: " }
                        input id="opacity" type="range" min="0" max="100" value="50";
                    }
                }
            }
        }
    }
}

impl Target for Figure<'_> {
    fn find(&self, panel: &str, run: &str, series: &str) -> Result<Place, String> {
        let panel = self.find_panel(panel, Some(run))?.panel;
        let all = &self.panels[panel].series;
        let of_run = |place: &usize| all[*place].side.name == run;
        let places = || self.panels[panel].shown_places().filter(of_run);
        let found = places().find(|place| all[*place].name == series);
        let found = found.map(|series| Place { panel, series });
        found.ok_or_else(|| {
            unknown("series", series, places().map(|place| all[place].name.as_str()))
        })
    }

    fn find_panel(&self, panel: &str, run: Option<&str>) -> Result<Place, String> {
        let named: Vec<usize> =
            (0..self.panels.len()).filter(|place| self.panels[*place].name == panel).collect();
        if named.is_empty() {
            return Err(unknown("panel", panel, self.panels.iter().map(|panel| panel.name)));
        }
        let run = run.unwrap_or(&self.facts.run.name);
        let series_of =
            |panel: &usize| self.panels[*panel].series.iter().position(|s| s.side.name == run);
        let found =
            named.iter().find_map(|panel| Some(Place { panel: *panel, series: series_of(panel)? }));
        let runs = || named.iter().flat_map(|panel| &self.panels[*panel].series);
        found.ok_or_else(|| {
            unknown(&format!("run in panel {panel}"), run, runs().map(|s| s.side.name.as_str()))
        })
    }

    fn check(&self, place: Place, t: f64, value: f64) -> Result<(), String> {
        let (length, top) = (self.facts.length, self.panels[place.panel].top);
        if !(0.0..=length).contains(&t) {
            return Err(format!("t_tau {t} is outside of the figure: 0 to {length}"));
        }
        if !(LOW * top..=HIGH * top).contains(&value) {
            return Err(format!("value {value} is beyond the panel's axis: 0 to {top}"));
        }
        Ok(())
    }
}

fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let (first, more) = (names.len().min(NAMES_MAX), names.len().saturating_sub(NAMES_MAX));
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there is no {what} {name:?}; there are: {}{more}", names[..first].join(", "))
}
