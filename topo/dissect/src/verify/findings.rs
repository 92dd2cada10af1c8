//! Findings, bounded for each rule, and counts of what was checked.

use super::ports::Ports;
use super::{Rule, Seen};
use proto::events::Direction;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;

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
    /// What the frame holds.
    pub found: String,
    /// What it should hold.
    pub expected: String,
}

/// All findings: the first of each rule in full, the others as a count.
#[derive(Clone, Debug)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<&'static str, u64>,
    kept_max: u64,
    /// What was checked.
    pub(super) tally: Tally,
    /// The ports of the file.
    pub(super) ports: Ports,
}

impl Findings {
    /// No findings yet; at most `kept_max` are kept for each rule.
    pub fn new(kept_max: u64) -> Findings {
        let (kept, counts) = (Vec::new(), BTreeMap::new());
        Findings { kept, counts, kept_max, tally: Tally::default(), ports: Ports::default() }
    }

    /// Reports that `seen` breaks `rule`.
    pub fn report(
        &mut self,
        rule: &Rule,
        seen: &Seen<'_>,
        found: impl Display,
        expected: impl Display,
    ) {
        let count = self.counts.entry(rule.id).or_default();
        *count += 1;
        if *count > self.kept_max {
            return;
        }
        self.kept.push(Finding {
            frame: seen.number,
            interface: self.ports.name(seen.place).to_owned(),
            direction: seen.place.direction,
            rule: rule.id,
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }

    /// The findings kept, in the order of the file; how many each rule has; and what was checked.
    pub fn into_parts(self) -> (Vec<Finding>, BTreeMap<&'static str, u64>, Tally) {
        (self.kept, self.counts, self.tally)
    }
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
