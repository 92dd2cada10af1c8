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
    fn steps(self, value: f64) -> i64 {
        let steps = match self {
            Precision::Whole => value,
            Precision::Hundredths => value * 100.0,
        };
        steps.round() as i64
    }

    fn write(self, out: &mut String, steps: i64) {
        // Writing to a String cannot fail.
        let _ = match self {
            Precision::Whole => write!(out, "{steps}"),
            Precision::Hundredths => {
                let sign = if steps < 0 { "-" } else { "" };
                let (whole, rest) = (steps.unsigned_abs() / 100, steps.unsigned_abs() % 100);
                match rest {
                    0 => write!(out, "{sign}{whole}"),
                    rest if rest % 10 == 0 => write!(out, "{sign}{whole}.{}", rest / 10),
                    rest => write!(out, "{sign}{whole}.{rest:02}"),
                }
            }
        };
    }
}

/// A pen with its position.
struct Pen {
    out: String,
    precision: Precision,
    at: (i64, i64),
    is_down: bool,
    in_line: bool,
}

impl Pen {
    fn new(precision: Precision) -> Pen {
        Pen { out: String::new(), precision, at: (0, 0), is_down: false, in_line: false }
    }

    fn pair(&mut self, x: i64, y: i64) {
        self.precision.write(&mut self.out, x);
        if y >= 0 {
            self.out.push(' ');
        }
        self.precision.write(&mut self.out, y);
    }

    fn to(&mut self, x: f64, y: f64) {
        let to = (self.precision.steps(x), self.precision.steps(y));
        if self.is_down {
            let by = (to.0 - self.at.0, to.1 - self.at.1);
            if !self.in_line {
                self.out.push('l');
            } else if by.0 >= 0 {
                self.out.push(' ');
            }
            self.in_line = true;
            self.pair(by.0, by.1);
        } else {
            self.out.push('M');
            self.pair(to.0, to.1);
            self.is_down = true;
            self.in_line = false;
        }
        self.at = to;
    }

    fn lift(&mut self) {
        self.is_down = false;
    }

    fn close(&mut self) {
        self.out.push('z');
        self.is_down = false;
        self.in_line = false;
    }
}

/// A line through points; a point whose y is no number is a gap.
pub fn line(points: impl IntoIterator<Item = (f64, f64)>, precision: Precision) -> String {
    let mut pen = Pen::new(precision);
    for (x, y) in points {
        if y.is_finite() { pen.to(x, y) } else { pen.lift() }
    }
    pen.out
}

/// The area between two lines over the same places (x, lower, upper).
pub fn band(points: &[(f64, f64, f64)], precision: Precision) -> String {
    let mut pen = Pen::new(precision);
    for piece in points.split(|(_, low, high)| !(low.is_finite() && high.is_finite())) {
        if piece.is_empty() {
            continue;
        }
        piece.iter().for_each(|(x, _, high)| pen.to(*x, *high));
        piece.iter().rev().for_each(|(x, low, _)| pen.to(*x, *low));
        pen.close();
    }
    pen.out
}

/// The area under a line down to `floor`.
pub fn area(points: &[(f64, f64)], floor: f64, precision: Precision) -> String {
    let points: Vec<_> = points.iter().map(|(x, y)| (*x, floor, *y)).collect();
    band(&points, precision)
}
