//! A finding, and counts of what was checked.

use super::rule::Severity;
use proto::events::Direction;
use serde::Serialize;
use std::collections::BTreeMap;

/// One frame that breaks one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Number of the frame in the file, from 1 as in Wireshark.
    pub frame: u64,
    /// The port of the capture; "-" if the file does not state it.
    pub interface: String,
    /// Sent or received there, if the file states it.
    pub direction: Option<Direction>,
    /// The rule's id.
    pub rule: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// What the frame holds.
    pub found: String,
    /// What it should hold.
    pub expected: String,
}

/// A frame that a finding is about.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// Its number in the file, from 1.
    pub frame: u64,
    /// Name of the port.
    pub interface: &'a str,
    /// Sent or received there, if the file states it.
    pub direction: Option<Direction>,
}

/// How much was checked and how much was not, by subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Things judged, by name.
    pub checked: BTreeMap<&'static str, u64>,
    /// Facts worth knowing that break no rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub noted: BTreeMap<&'static str, u64>,
    /// Things passed over, by reason.
    pub not_checked: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts `n` things judged; 0 leaves no entry.
    pub fn checked(&mut self, what: &'static str, n: u64) {
        if n > 0 {
            *self.checked.entry(what).or_default() += n;
        }
    }

    /// Counts `n` facts worth knowing.
    pub fn noted(&mut self, what: &'static str, n: u64) {
        *self.noted.entry(what).or_default() += n;
    }

    /// Counts `n` things passed over.
    pub fn not_checked(&mut self, why: &str, n: u64) {
        match self.not_checked.get_mut(why) {
            Some(count) => *count += n,
            None => drop(self.not_checked.insert(why.to_owned(), n)),
        }
    }
}
