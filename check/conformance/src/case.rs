//! A case: its id, its subject, its source and its script, and what a script finds.

use proto::units::{Duration, Instant};
use std::fmt::{Debug, Display};
use std::ops::RangeBounds;

/// Where a case runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Level {
    /// `C`: octets in and out.
    #[serde(rename = "C")]
    Codec,
    /// `E`: protocol engines on a virtual clock; what is expected is exact.
    #[serde(rename = "E")]
    Engine,
    /// `L`: real daemons in wall-clock time.
    #[serde(rename = "L")]
    Live,
}

impl Level {
    /// The letter that users type.
    pub const fn letter(self) -> char {
        match self {
            Level::Codec => 'C',
            Level::Engine => 'E',
            Level::Live => 'L',
        }
    }

    /// What `script` finds on the virtual clock; nothing live.
    ///
    /// # Errors
    /// Those of `script`.
    pub fn only_engine<T: Default>(self, script: impl FnOnce() -> Result<T>) -> Result<T> {
        if self == Level::Live { Ok(T::default()) } else { script() }
    }

    /// `variants` on the virtual clock; none live.
    pub const fn swept<T>(self, variants: &[T]) -> &[T] {
        if matches!(self, Level::Live) { &[] } else { variants }
    }
}

/// Why a case did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The device did something else than it must.
    Failed(String),
    /// The run proves nothing: the host did not keep up, or a packet got lost that was not injected.
    Inconclusive(String),
    /// It could not be run here, because the named thing is missing.
    Skipped(String),
}

impl Failure {
    /// The fault of the host, not of the device.
    pub fn of_host(error: impl Display) -> Failure {
        Failure::Inconclusive(error.to_string())
    }

    /// The same; a failed one begins with `what`.
    #[must_use]
    pub fn of(self, what: impl Display) -> Failure {
        match self {
            Failure::Failed(reason) => Failure::Failed(format!("{what}: {reason}")),
            other => other,
        }
    }
}

/// These errors are failures of the device.
macro_rules! failures {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::Failed(error.to_string())
            }
        }
    )*};
}
failures! {
    String, &str, std::io::Error, serde_json::Error, capture::CaptureError,
    emulation::cable::lines::LinesError, proto::wire::error::ParseError, switchd::switch::ConfigError
}

/// A value, or why there is none.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// What a script found: in a few words what was seen, or why that is wrong.
pub type Finding = Result<String>;

/// A script takes the level, since most scripts run on two.
pub type Script = fn(Level) -> Finding;

/// The scripts of a group, by the id of their case.
pub type Scripts = &'static [(&'static str, Script)];

/// One case.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Case {
    /// Group and number, as in `IBRX-01`.
    pub id: String,
    /// Where it runs.
    pub levels: Vec<Level>,
    /// What it is about.
    pub title: String,
    /// The clause, document or measurement it comes from.
    pub source: String,
    /// How its text was read where that was open, or what is wrong with it; else empty.
    #[serde(default)]
    pub note: String,
    /// What it does.
    #[serde(skip, default = "unwritten")]
    pub script: Script,
}

/// The script of a case that has none yet.
fn unwritten() -> Script {
    |_| Err(Failure::Skipped("it has no script".to_owned()))
}

/// The cases of one subject.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Group {
    /// What its ids begin with.
    pub name: String,
    /// What it is about.
    pub subject: String,
    /// Its cases, by number.
    pub cases: Vec<Case>,
}

/// Fails with the text of the arguments of [`format!`].
macro_rules! bail {
    ($($message:tt)+) => { return Err($crate::case::Failure::Failed(format!($($message)+))) };
}

/// Fails with the text of the arguments of [`format!`] unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            $crate::case::bail!($($message)+);
        }
    };
}
pub(crate) use {bail, ensure};

/// A quantity with a distance to others of its kind.
pub trait Quantity: Copy + Debug {
    /// The distance.
    type Distance: PartialOrd + Debug;

    /// How far it is from `other`.
    fn distance(self, other: Self) -> Self::Distance;
}

/// These are quantities.
macro_rules! quantities {
    ($($kind:ty: $distance:ty = |$a:ident, $b:ident| $value:expr;)*) => {$(
        impl Quantity for $kind {
            type Distance = $distance;

            fn distance(self, other: $kind) -> $distance {
                let ($a, $b) = (self, other);
                $value
            }
        }
    )*};
}
quantities! {
    f64: f64 = |a, b| (a - b).abs();
    u64: u64 = |a, b| a.abs_diff(b);
    u128: u128 = |a, b| a.abs_diff(b);
    usize: usize = |a, b| a.abs_diff(b);
    i64: u64 = |a, b| a.abs_diff(b);
    Instant: Duration = |a, b| if a > b { a.since(b) } else { b.since(a) };
}

/// Holds if `found` is `expected` of `what`, or not farther from it than `tolerance`.
///
/// # Errors
/// If it is farther: all three.
pub fn near<T: Quantity>(
    what: impl Display,
    found: T,
    expected: T,
    tolerance: T::Distance,
) -> Result<()> {
    let holds = found.distance(expected) <= tolerance;
    ensure!(holds, "{what}: {found:?}, expected {expected:?} ± {tolerance:?}");
    Ok(())
}

/// Holds if `found` lies in the `range` that is expected of `what`.
///
/// # Errors
/// If it does not: both.
pub fn lies<T: PartialOrd + Debug>(
    what: impl Display,
    found: T,
    range: impl RangeBounds<T> + Debug,
) -> Result<()> {
    ensure!(range.contains(&found), "{what}: {found:?}, expected {range:?}");
    Ok(())
}

/// Holds if `found` is what was `expected` of `what`.
///
/// # Errors
/// If they differ: both.
pub fn same<A: PartialEq<B> + Debug, B: Debug>(
    what: impl Display,
    found: A,
    expected: B,
) -> Result<()> {
    ensure!(found == expected, "{what}: {found:?}, expected {expected:?}");
    Ok(())
}
