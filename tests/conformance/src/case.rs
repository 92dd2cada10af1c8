//! A case: its id, what it says, where that comes from, and a program for each level.

use std::fmt::Display;

/// Where a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
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
    /// The letter people type.
    pub const fn letter(self) -> char {
        match self {
            Level::Codec => 'C',
            Level::Engine => 'E',
            Level::Live => 'L',
        }
    }
}

/// Why a case did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The device did something else than it must.
    Failed(String),
    /// The run says nothing: the host did not keep up, or a packet got lost that nobody injected.
    Inconclusive(String),
    /// It could not be run here, for want of what it names.
    Skipped(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::Failed(reason)
    }
}

/// What a program found: in a few words what was seen, or why that is wrong.
pub type Finding = Result<String, Failure>;

/// What a case does on one level.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// Needs nothing but itself.
    Here(fn() -> Finding),
    /// Stands until its part of the product is built; says which.
    Missing(&'static str),
}

/// A case on one level.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Where.
    pub level: Level,
    /// What.
    pub program: Program,
}

impl Run {
    /// On octets.
    pub const fn codec(program: fn() -> Finding) -> Run {
        Run { level: Level::Codec, program: Program::Here(program) }
    }

    /// On the virtual clock.
    pub const fn engine(program: fn() -> Finding) -> Run {
        Run { level: Level::Engine, program: Program::Here(program) }
    }

    /// With real daemons.
    pub const fn live(program: fn() -> Finding) -> Run {
        Run { level: Level::Live, program: Program::Here(program) }
    }

    /// Not yet, for the reason given.
    pub const fn missing(level: Level, reason: &'static str) -> Run {
        Run { level, program: Program::Missing(reason) }
    }
}

/// One case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Group and number, as in `IBRX-01`.
    pub id: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// The clause, document or measurement it comes from.
    pub source: &'static str,
    /// How its text was read where that was open, or what is wrong with it; else empty.
    pub note: &'static str,
    /// A program for each level.
    pub runs: &'static [Run],
}

/// The cases of one subject.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// What its ids begin with.
    pub name: &'static str,
    /// What it is about.
    pub subject: &'static str,
    /// Its cases, by number.
    pub cases: &'static [Case],
}

/// Holds if `holds`; else fails with what `reason` says.
///
/// # Errors
/// If it does not hold.
pub fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Failed(reason())) }
}

/// Holds if `found` is what was `expected` of `what`.
///
/// # Errors
/// If they differ: both, in words.
pub fn same<T: PartialEq + Display>(
    what: impl Display,
    found: T,
    expected: T,
) -> Result<(), Failure> {
    ensure(found == expected, || format!("{what} is {found}, expected {expected}"))
}
