//! Fabric time, sizes and rates as newtypes, and the arithmetic between them.
//!
//! Time is a `u64` in picoseconds: one octet lasts a whole number of picoseconds at every common
//! rate from 8 Gb/s to 800 Gb/s, and the range is 213 days. Each type prints and parses itself
//! with its unit (`"8 Gbps"`, `"2074 ns"`, `"2048 B"`), exactly: a bare number does not parse.

use std::fmt;
use std::hint::select_unpredictable;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

/// A number of octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A rate in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

/// A point of fabric time, in picoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of fabric time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

const PS_PER_S: u128 = 1_000_000_000_000;

impl Bytes {
    /// No octets.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` octets.
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }

    /// The number of octets.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Transmission time of these octets at `rate`, rounded to the nearest picosecond.
    pub fn time_at(self, rate: BitRate) -> Duration {
        // Frames are far below 2 MB, so 64 bits suffice.
        let bits = self.0.checked_mul(8 * PS_PER_S as u64);
        if let Some(rounded) = bits.and_then(|bits| bits.checked_add(rate.0 / 2)) {
            return Duration(rounded / rate.0);
        }
        let bits = u128::from(self.0) * 8 * PS_PER_S;
        let rate = u128::from(rate.0);
        Duration(u64::try_from((bits + rate / 2) / rate).unwrap_or(u64::MAX))
    }
}

impl BitRate {
    /// `n` bit/s; `None` for zero, at which no transmission ends.
    pub const fn new(n: u64) -> Option<BitRate> {
        if n == 0 { None } else { Some(BitRate(n)) }
    }

    /// `n` Gb/s (10^9 bit/s).
    ///
    /// # Panics
    /// If `n` is zero.
    pub const fn gbps(n: u64) -> BitRate {
        assert!(n > 0, "the rate must be above zero");
        BitRate(n * 1_000_000_000)
    }

    /// `n` Mb/s (10^6 bit/s).
    ///
    /// # Panics
    /// If `n` is zero.
    pub const fn mbps(n: u64) -> BitRate {
        assert!(n > 0, "the rate must be above zero");
        BitRate(n * 1_000_000)
    }

    /// The rate in bit/s.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Octets that a line of this rate carries in `time`, rounded up.
    pub fn octets_in(self, time: Duration) -> Bytes {
        let octets = (u128::from(self.0) * u128::from(time.0)).div_ceil(8 * PS_PER_S);
        Bytes(u64::try_from(octets).unwrap_or(u64::MAX))
    }
}

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Instant = Instant(0);
    /// The end of the range, later than every event.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// `ps` picoseconds after the beginning of the run.
    pub const fn from_ps(ps: u64) -> Instant {
        Instant(ps)
    }

    /// Picoseconds since the beginning of the run.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The earliest of `all` and its index; the first of equal instants. [`Instant::NEVER`] if `all` is empty.
    pub fn earliest(all: &[Instant]) -> (Instant, usize) {
        let (mut earliest, mut place) = (Instant::NEVER, 0);
        for (index, at) in all.iter().enumerate() {
            // A branch would be mispredicted half the time. Vector loads are slow, too: they read two
            // values that were just written separately, and stall on store forwarding.
            let is_earlier = *at < earliest;
            place = select_unpredictable(is_earlier, index, place);
            earliest = select_unpredictable(is_earlier, *at, earliest);
        }
        (earliest, place)
    }

    /// The time since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Zero length.
    pub const ZERO: Duration = Duration(0);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Duration {
        Duration(ps)
    }

    /// `ns` nanoseconds; saturates at 213 days.
    pub const fn from_ns(ns: u64) -> Duration {
        Duration(ns.saturating_mul(1_000))
    }

    /// `us` microseconds; saturates at 213 days.
    pub const fn from_us(us: u64) -> Duration {
        Duration(us.saturating_mul(1_000_000))
    }

    /// The length in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
}

macro_rules! operators {
    ($($left:ident: $operator:ident<$right:ty>, $method:ident, |$a:ident, $b:ident| $value:expr;)*) => {
        $(impl $operator<$right> for $left {
            type Output = $left;
            #[inline]
            fn $method(self, $b: $right) -> $left {
                let $a = self;
                $left($value)
            }
        })*
    };
}

// Times saturate. Sizes never come near the limits of `u64`, so an overflow is an error of the caller.
operators! {
    Instant: Add<Duration>, add, |at, time| at.0.saturating_add(time.0);
    Duration: Add<Duration>, add, |time, more| time.0.saturating_add(more.0);
    Duration: Sub<Duration>, sub, |time, less| time.0.saturating_sub(less.0);
    Duration: Mul<u64>, mul, |time, n| time.0.saturating_mul(n);
    Bytes: Add<Bytes>, add, |size, more| size.0 + more.0;
    Bytes: Sub<Bytes>, sub, |size, less| size.0 - less.0;
    Bytes: Mul<u64>, mul, |size, n| size.0 * n;
}

impl AddAssign for Duration {
    fn add_assign(&mut self, right: Duration) {
        *self = *self + right;
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, right: Bytes) {
        *self = *self + right;
    }
}

/// Error of parsing a quantity with a unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}: {reason}")]
pub struct UnitError {
    /// The refused text.
    pub text: String,
    /// Expected kind of quantity ("rate", "time", "size").
    pub what: &'static str,
    /// The fault, and the permitted units.
    pub reason: String,
}

/// A unit's name and its value in base units.
type Unit = (&'static str, u64);

const TIMES: &[Unit] =
    &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
const RATES: &[Unit] = &[
    ("Tbps", 1_000_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("kbps", 1_000),
    ("bps", 1),
];
const SIZES: &[Unit] = &[
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// Splits `"12.5 us"` into the exact decimal `(125, 1)` (digits, decimal places) and its unit.
///
/// # Errors
/// If the text does not begin with a decimal number.
pub fn split_quantity(text: &str, what: &'static str) -> Result<((u64, u32), String), UnitError> {
    let fail = |reason: &str| UnitError { text: text.to_owned(), what, reason: reason.to_owned() };
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err(fail("it must begin with a number such as 8 or 2.5"));
    }
    let digits =
        format!("{whole}{fraction}").parse::<u64>().map_err(|_| fail("the number is too large"))?;
    let places = u32::try_from(fraction.len()).map_err(|_| fail("too many decimal places"))?;
    Ok(((digits, places), unit.trim().to_owned()))
}

/// `digits / 10^places × scale`, exactly rounded to the nearest unit; `None` past `u64`.
pub fn scale_decimal((digits, places): (u64, u32), scale: u64) -> Option<u64> {
    let divisor = 10u128.checked_pow(places)?;
    let value = u128::from(digits).checked_mul(u128::from(scale))?;
    u64::try_from((value + divisor / 2) / divisor).ok()
}

/// Reads a quantity of one of `units`; `make` refuses zero if that is not such a quantity.
fn parse_with<T>(
    text: &str,
    what: &'static str,
    units: &[Unit],
    make: impl FnOnce(u64) -> Option<T>,
) -> Result<T, UnitError> {
    let (decimal, unit) = split_quantity(text, what)?;
    let fail = |reason: String| UnitError { text: text.to_owned(), what, reason };
    let Some((_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
        return Err(fail(format!("the unit must be one of {}", names.join(", "))));
    };
    let value = scale_decimal(decimal, *scale);
    let value = value.ok_or_else(|| fail("the value is too large".to_owned()))?;
    make(value).ok_or_else(|| fail(format!("a {what} must be above zero")))
}

fn print_with(value: u64, units: &[Unit], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let exact = units.iter().find(|(_, scale)| value != 0 && value.is_multiple_of(*scale));
    let (name, scale) = exact.unwrap_or(&units[units.len() - 1]);
    write!(f, "{} {name}", value / scale)
}

/// Writes a type in files as [`fmt::Display`] prints it, and reads it with [`FromStr`].
macro_rules! written_as_text {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$type, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use written_as_text;

macro_rules! quantity {
    ($type:ident, $what:literal, $units:ident, $make:expr) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print_with(self.0, $units, f)
            }
        }
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<$type, UnitError> {
                parse_with(text, $what, $units, $make)
            }
        }
        impl From<$type> for toml::Value {
            fn from(value: $type) -> toml::Value {
                toml::Value::String(value.to_string())
            }
        }
        written_as_text!($type);
    };
}

quantity!(Bytes, "size", SIZES, |octets| Some(Bytes(octets)));
quantity!(BitRate, "rate", RATES, BitRate::new);
quantity!(Instant, "time", TIMES, |ps| Some(Instant(ps)));
quantity!(Duration, "time", TIMES, |ps| Some(Duration(ps)));

#[cfg(test)]
mod tests;
