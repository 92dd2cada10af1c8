//! A case: its id, its subject, its source, and a script for each level.

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
pub struct Run {
    /// Where.
    pub level: Level,
    /// The script; it takes the level, since most scripts run on two.
    pub program: fn(Level) -> Finding,
}

/// The cases of one group: `"id" levels(script), "title", "source"`, and a `"note"` if there is one. Levels are `codec`,
/// `engine`, `live`, and `both` for the virtual clock and live daemons.
macro_rules! cases {
    ($name:literal, $subject:literal;
     $($id:literal $level:ident($($script:expr),+), $title:literal, $source:literal
       $(, $note:literal)?;)*) => {
        /// The group.
        pub const GROUP: $crate::case::Group = $crate::case::Group {
            name: $name,
            subject: $subject,
            cases: &[$($crate::case::Case {
                id: $id,
                title: $title,
                source: $source,
                note: concat!($($note)?),
                runs: $crate::case::runs!($level $($script),+),
            }),*],
        };
    };
}

/// The runs of one case.
macro_rules! runs {
    (@ $level:ident $script:expr) => {
        $crate::case::Run { level: $crate::case::Level::$level, program: $script }
    };
    (codec $script:expr) => { &[$crate::case::runs!(@ Codec $script)] };
    (engine $script:expr) => { &[$crate::case::runs!(@ Engine $script)] };
    (live $script:expr) => { &[$crate::case::runs!(@ Live $script)] };
    (both $script:expr) => { $crate::case::runs!(both $script, $script) };
    (both $engine:expr, $live:expr) => {
        &[$crate::case::runs!(@ Engine $engine), $crate::case::runs!(@ Live $live)]
    };
}
pub(crate) use {cases, runs};

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
    /// A script for each level.
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
