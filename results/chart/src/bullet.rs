//! One measured number on its scale: the accepted range as a band, theory as a dashed tick, this run a
//! diamond, the baseline a hollow circle.

use super::scale::{Linear, round_up};
use maud::{Markup, html};

/// What a bullet shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bullet {
    /// Measured in this run.
    pub value: Option<f64>,
    /// Measured in the baseline.
    pub baseline: Option<f64>,
    /// At least this is accepted.
    pub min: Option<f64>,
    /// At most this is accepted.
    pub max: Option<f64>,
    /// The value of theory.
    pub theory: Option<f64>,
}

impl Bullet {
    /// The scale's end: 1.06 for ratios, else the next round number above all there is. It begins at
    /// zero, or at the least of all where something is below zero.
    fn scale(&self, width: f64) -> Linear {
        let all = [self.value, self.baseline, self.min, self.max, self.theory];
        let known = || all.into_iter().flatten().filter(|value| value.is_finite());
        let most = known().fold(0.0, f64::max);
        let high = if most <= 1.06 && most > 0.1 { 1.06 } else { round_up(most) };
        let low = known().fold(0.0, f64::min);
        Linear { low, high, from: 4.0, to: width - 4.0 }
    }

    /// The picture, `width` by 22.
    pub fn svg(&self, width: f64, label: &str) -> Markup {
        let scale = self.scale(width);
        let x = |value: f64| format!("{:.1}", scale.at(value));
        let (from, to) = (self.min.unwrap_or(scale.low), self.max.unwrap_or(scale.high));
        let (from, to) = (scale.at(from), scale.at(to).max(scale.at(from) + 3.0));
        let has_range = self.min.is_some() || self.max.is_some();
        html! {
            svg viewBox=(format!("0 0 {width} 22")) role="img" aria-label=(label) class="bullet" {
                rect class="track" x="4" y="8" width=(format!("{:.0}", width - 8.0)) height="6" rx="3" {}
                @if has_range {
                    rect class="accept" x=(format!("{from:.1}")) y="5" width=(format!("{:.1}", to - from)) height="12" rx="2" {}
                }
                @if let Some(theory) = self.theory { path class="theory" d=(format!("M{} 1V21", x(theory))) {} }
                @if let Some(base) = self.baseline { circle class="was" cx=(x(base)) cy="11" r="4.4" {} }
                @if let Some(value) = self.value {
                    path class="is" d=(format!("M{} 4l6 7l-6 7l-6 -7z", x(value))) {}
                }
            }
        }
    }
}
