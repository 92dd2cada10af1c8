//! From values to places: linear and logarithmic axes, and where their ticks are.

/// A linear axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// The value at the beginning.
    pub low: f64,
    /// The value at the end.
    pub high: f64,
    /// Where it begins.
    pub from: f64,
    /// Where it ends; may be the lesser, as for heights.
    pub to: f64,
}

impl Linear {
    /// Where `value` is; outside the axis it is at its nearer end.
    pub fn at(&self, value: f64) -> f64 {
        let span = self.high - self.low;
        let share = if span > 0.0 { ((value - self.low) / span).clamp(0.0, 1.0) } else { 0.0 };
        self.from + share * (self.to - self.from)
    }
}

/// Round values from `low` to `high`, some `about` of them: steps of 1, 2 or 5 times a power of ten.
pub fn ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let span = high - low;
    if span <= 0.0 || !span.is_finite() || about == 0 {
        return Vec::new();
    }
    let rough = span / about as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    (0..=(last - first).max(0.0) as usize).map(|n| (first + n as f64) * step).collect()
}

/// The least round value (1, 2, 2.5 or 5 times a power of ten) that is no less than `value`.
pub fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.iter().map(|m| m * power).find(|step| *step >= value * 0.999_999);
    step.unwrap_or(10.0 * power)
}

/// A logarithmic axis over whole decades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Log {
    /// The power of ten at the beginning.
    pub low: i32,
    /// The power of ten at the end.
    pub high: i32,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

impl Log {
    /// The axis that holds all `values` that are above zero; `None` without any.
    pub fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Log> {
        let exponents = values.filter(|value| *value > 0.0).map(f64::log10);
        let (low, high) =
            exponents.fold((f64::MAX, f64::MIN), |(low, high), e| (low.min(e), high.max(e)));
        if low > high {
            return None;
        }
        let low = low.floor() as i32;
        Some(Log { low, high: (high.ceil() as i32).max(low + 1), from, to })
    }

    /// Where `value` is; what is not above zero is at the beginning.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let exponent = if value > 0.0 { value.log10() } else { low };
        Linear { low, high, from: self.from, to: self.to }.at(exponent)
    }

    /// The powers of ten on it.
    pub fn decades(&self) -> impl Iterator<Item = f64> {
        (self.low..=self.high).map(|exponent| 10f64.powi(exponent))
    }
}
