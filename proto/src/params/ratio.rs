//! A gain as an exact fraction, from a decimal or from two whole numbers.
//!
//! Gains per octet are small and often no finite decimals: 1/400 a frame of 1500 octets is 1/600000.

use std::fmt;
use toml::Value;

/// A number above zero and up to one: two whole numbers, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// Largest numerator. Products of a rate, a queue length and a gain then fit 128 bits.
const NUMERATOR_MAX: u64 = 1 << 40;
/// Largest denominator, for the same reason.
const DENOMINATOR_MAX: u64 = 1 << 60;

impl Ratio {
    /// `numerator / denominator` in lowest terms.
    ///
    /// `None` outside (0, 1], or if a term is too large for exact products in 128 bits.
    pub const fn new(numerator: u64, denominator: u64) -> Option<Ratio> {
        if numerator == 0 || numerator > denominator {
            return None;
        }
        let common = greatest_common_divisor(numerator, denominator);
        let (numerator, denominator) = (numerator / common, denominator / common);
        if numerator > NUMERATOR_MAX || denominator > DENOMINATOR_MAX {
            return None;
        }
        Some(Ratio { numerator, denominator })
    }

    /// Reads a decimal exactly as written, or text such as `"1/600000"`. `None` outside (0, 1].
    pub fn parse(value: &Value) -> Option<Ratio> {
        match value {
            Value::Integer(1) => Ratio::new(1, 1),
            // A float prints as the shortest decimal that parses to it: the text that was written.
            Value::Float(number) if *number > 0.0 && *number <= 1.0 => decimal(&number.to_string()),
            Value::String(text) => {
                let (numerator, denominator) = text.split_once('/')?;
                Ratio::new(numerator.trim().parse().ok()?, denominator.trim().parse().ok()?)
            }
            _ => None,
        }
    }

    /// `value` times this ratio, rounded to the nearest; halves round away from zero.
    pub const fn of(self, value: i128) -> i128 {
        let (numerator, denominator) = (self.numerator as i128, self.denominator as i128);
        let half = if value < 0 { -(denominator / 2) } else { denominator / 2 };
        (value * numerator + half) / denominator
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// `0.0025` is 25 over 10000.
fn decimal(text: &str) -> Option<Ratio> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let denominator = 10u64.checked_pow(places.len().try_into().ok()?)?;
    Ratio::new(format!("{whole}{places}").parse().ok()?, denominator)
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: impl Into<Value>) -> Option<String> {
        Ratio::parse(&value.into()).map(|ratio| ratio.to_string())
    }

    #[test]
    fn a_gain_is_what_is_written() {
        assert_eq!(read(0.0025).as_deref(), Some("1/400"));
        assert_eq!(read(6.6667e-7).as_deref(), Some("66667/100000000000"));
        assert_eq!(read("1/600000").as_deref(), Some("1/600000"));
        assert_eq!(read(" 4 / 2400000").as_deref(), Some("1/600000"));
        assert_eq!(read(1.0), read(1));
    }

    #[test]
    fn what_is_no_gain_is_refused() {
        for text in ["", "1", "1/", "/2", "0/7", "2/1", "-1/2", "1/0", "1/2/3", "0.5/1", "x/y"] {
            assert_eq!(read(text), None, "{text}");
        }
        for number in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE] {
            assert_eq!(read(number), None, "{number}");
        }
        assert_eq!(read(format!("{}/{}", u64::MAX - 1, u64::MAX)), None, "too many digits");
    }

    #[test]
    fn shares_are_rounded_to_the_nearest_and_are_the_same_on_both_sides_of_zero() {
        let third = Ratio::new(1, 3).expect("a third");
        assert_eq!([0, 1, 2, 3, 4, 5].map(|n| third.of(n)), [0, 0, 1, 1, 1, 2]);
        let half = Ratio::new(1, 2).expect("a half");
        for n in 0..1_000 {
            assert_eq!(half.of(-n), -half.of(n));
        }
    }

    #[test]
    fn the_largest_product_of_rate_queue_and_gain_fits() {
        let gain = Ratio::new(NUMERATOR_MAX, DENOMINATOR_MAX - 1).expect("the largest terms");
        let largest = (1i128 << 40) * (1 << 26);
        assert!(gain.of(largest) > 0 && gain.of(-largest) < 0);
    }
}
