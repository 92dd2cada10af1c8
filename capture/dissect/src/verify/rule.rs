//! A rule, and the declaration of the rules of a family.

use serde::Serialize;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The frame is not what the standard allows.
    Violation,
    /// The frame is well formed, and a device sent it at a time or in an order that the standard does not give it.
    Deviation,
    /// What the network did, or what the file does not hold; no fault of a device can be concluded.
    Note,
}

/// One rule, as the table of findings names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A short word that stays the same in all versions.
    pub id: &'static str,
    /// How much a finding weighs.
    pub severity: Severity,
    /// What it requires, in one sentence.
    pub title: &'static str,
    /// The clause that requires it.
    pub source: &'static str,
}

/// Declares the rules of a family: constant, id, severity unless it is a violation, what it requires, the clause; and
/// `RULES` with all of them.
macro_rules! rules {
    ($($rule:ident $id:literal $($severity:ident)? $title:literal, $source:literal;)*) => {
        /// The rules of this file.
        pub(super) const RULES: &[$crate::verify::rule::Rule] = &[$($rule),*];
        $(const $rule: $crate::verify::rule::Rule = $crate::verify::rule::Rule {
            id: $id,
            severity: $crate::verify::rule::severity!($($severity)?),
            title: $title,
            source: $source,
        };)*
    };
}

macro_rules! severity {
    () => {
        $crate::verify::rule::Severity::Violation
    };
    ($severity:ident) => {
        $crate::verify::rule::Severity::$severity
    };
}

pub(super) use {rules, severity};
