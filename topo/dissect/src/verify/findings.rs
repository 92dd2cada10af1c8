//! What was found, bounded a rule, and what was looked at at all.

use super::{Rule, Seen};
use crate::verify::ports::Ports;
use proto::events::Direction;
use serde::Serialize;
use std::collections::BTreeMap;

/// One violation of one rule by one frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The frame's number in the file, counted from 1 as Wireshark does.
    pub frame: u64,
    /// The port it was seen at; "-" if the file does not say.
    pub interface: String,
    /// Sent or received there, if the file says.
    pub direction: Option<Direction>,
    /// The rule's id.
    pub rule: &'static str,
    /// What is there.
    pub found: String,
    /// What should be.
    pub expected: String,
}

/// All findings: the first of each rule in full, the others as a count.
#[derive(Clone, Debug)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<&'static str, u64>,
    kept_max: u64,
    /// The interface names of the frame at hand.
    pub(super) ports: Ports,
}

impl Findings {
    /// Room for `kept_max` findings a rule.
    pub fn new(kept_max: u64) -> Findings {
        let (kept, counts) = (Vec::new(), BTreeMap::new());
        Findings { kept, counts, kept_max, ports: Ports::default() }
    }

    /// Reports that `seen` breaks `rule`.
    pub fn report(
        &mut self,
        rule: &Rule,
        seen: &Seen<'_>,
        found: impl FnOnce() -> String,
        expected: impl FnOnce() -> String,
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
            found: found(),
            expected: expected(),
        });
    }

    /// The findings kept, in the order of the file, and how many there were a rule.
    pub fn into_parts(self) -> (Vec<Finding>, BTreeMap<&'static str, u64>) {
        (self.kept, self.counts)
    }
}

/// How much was checked, and how much could not be, by what it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Things judged, by name.
    pub checked: BTreeMap<&'static str, u64>,
    /// What is worth knowing and breaks no rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub noted: BTreeMap<&'static str, u64>,
    /// Things passed over, by reason.
    pub not_checked: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts something judged; what there is none of is not told.
    pub fn checked(&mut self, what: &'static str, n: u64) {
        if n > 0 {
            *self.checked.entry(what).or_default() += n;
        }
    }

    /// Counts something that is worth knowing.
    pub fn noted(&mut self, what: &'static str, n: u64) {
        *self.noted.entry(what).or_default() += n;
    }

    /// Counts something passed over.
    pub fn not_checked(&mut self, why: &str, n: u64) {
        match self.not_checked.get_mut(why) {
            Some(count) => *count += n,
            None => drop(self.not_checked.insert(why.to_owned(), n)),
        }
    }
}
