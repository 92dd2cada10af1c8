//! Lines and bands as path data: relative and rounded, so that a page of thousands stays small. A
//! value that is missing leaves a gap.

use std::fmt::Write;

/// How path data are rounded: whole numbers, or hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Whole units.
    Whole,
    /// Hundredths of a unit.
    Hundredths,
}

impl Precision {
    /// Steps per unit.
    const fn scale(self) -> f64 {
        match self {
            Precision::Whole => 1.0,
            Precision::Hundredths => 100.0,
        }
    }
}

/// A pen with its position in steps, if it is down.
struct Pen {
    out: String,
    precision: Precision,
    at: Option<(i64, i64)>,
    in_line: bool,
}

impl Pen {
    fn new(precision: Precision) -> Pen {
        Pen { out: String::new(), precision, at: None, in_line: false }
    }

    fn to(&mut self, x: f64, y: f64) {
        let scale = self.precision.scale();
        let to = ((x * scale).round() as i64, (y * scale).round() as i64);
        let (lead, (x, y)) = match self.at {
            None => ("M", to),
            Some(at) => {
                let by = (to.0 - at.0, to.1 - at.1);
                (
                    if !self.in_line {
                        "l"
                    } else if by.0 >= 0 {
                        " "
                    } else {
                        ""
                    },
                    by,
                )
            }
        };
        self.in_line = self.at.is_some();
        self.at = Some(to);
        let gap = if y >= 0 { " " } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(self.out, "{lead}{}{gap}{}", x as f64 / scale, y as f64 / scale);
    }
}

/// A line through points; a point whose y is not a number is a gap.
pub fn line(points: impl IntoIterator<Item = (f64, f64)>, precision: Precision) -> String {
    let mut pen = Pen::new(precision);
    for (x, y) in points {
        if y.is_finite() { pen.to(x, y) } else { pen.at = None }
    }
    pen.out
}

/// The area between two lines over the same places (x, lower, upper).
pub fn band(points: &[(f64, f64, f64)], precision: Precision) -> String {
    let mut pen = Pen::new(precision);
    for piece in points.split(|(_, low, high)| !(low.is_finite() && high.is_finite())) {
        piece.iter().for_each(|(x, _, high)| pen.to(*x, *high));
        piece.iter().rev().for_each(|(x, low, _)| pen.to(*x, *low));
        if pen.at.take().is_some() {
            pen.out.push('z');
        }
    }
    pen.out
}

/// The area under a line down to `floor`.
pub fn area(points: &[(f64, f64)], floor: f64, precision: Precision) -> String {
    let points: Vec<_> = points.iter().map(|(x, y)| (*x, floor, *y)).collect();
    band(&points, precision)
}
