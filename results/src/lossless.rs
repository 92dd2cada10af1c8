//! Lossless frames that congestion dropped: how many, why, and where first.

use crate::verdict::Verdict;
use crate::wording::{reasons, time};
use emulation::recorder::Recording;
use scenario::inventory::Fabric;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Frames of lanes that flow control protects, dropped for want of headroom or buffer. Frames lost to an outage, an
/// impairment or a watchdog have reasons of their own and are not among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LosslessDrops {
    /// Number of frames.
    pub frames: u64,
    /// By reason.
    pub reasons: BTreeMap<String, u64>,
    /// When the first was dropped, fabric picoseconds.
    pub at_ps: u64,
    /// The port that dropped it.
    pub port: String,
    /// Its virtual lane or priority.
    pub tc: u8,
    /// The scenario's reason to expect them; left out if it expects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

impl LosslessDrops {
    /// Those of a run; `expected` is the scenario's reason for them.
    pub fn of<'a>(
        fabric: &Fabric,
        recordings: impl IntoIterator<Item = &'a Recording>,
        expected: Option<&str>,
    ) -> Option<LosslessDrops> {
        let drops = recordings.into_iter().flat_map(|recording| &recording.events.drops);
        let drops =
            drops.filter(|drops| drops.reason.breaks_lossless() && fabric.is_protected(drops.tc));
        LosslessDrops::sum(drops.map(|drops| LosslessDrops {
            frames: drops.frames,
            reasons: BTreeMap::from([(drops.reason.name().to_owned(), drops.frames)]),
            at_ps: drops.first.as_ps(),
            port: fabric.wiring.end_name(drops.at),
            tc: drops.tc,
            expected: expected.map(str::to_owned),
        }))
    }

    /// Those of several ports or runs; the first is the earliest.
    pub fn sum(all: impl IntoIterator<Item = LosslessDrops>) -> Option<LosslessDrops> {
        all.into_iter().reduce(|one, other| {
            let is_first = (one.at_ps, &one.port, one.tc) <= (other.at_ps, &other.port, other.tc);
            let (mut sum, later) = if is_first { (one, other) } else { (other, one) };
            sum.frames += later.frames;
            for (reason, frames) in later.reasons {
                *sum.reasons.entry(reason).or_default() += frames;
            }
            sum
        })
    }

    /// What they make of a run that passes otherwise. A host that did not keep up may have lost them by its lateness.
    pub fn verdict(&self, kept_up: bool) -> Verdict {
        match (&self.expected, kept_up) {
            (Some(_), _) => Verdict::Pass,
            (None, true) => Verdict::Fail,
            (None, false) => Verdict::Inconclusive,
        }
    }

    /// The line of a summary, with its sign.
    pub fn line(&self, kept_up: bool) -> String {
        match (&self.expected, kept_up) {
            (Some(why), _) => format!("! {self}; expected: {why}"),
            (None, true) => format!("✕ {self}"),
            (None, false) => format!("◐ {self}; the host did not keep up, which can be the cause"),
        }
    }
}

impl fmt::Display for LosslessDrops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LosslessDrops { frames, at_ps, port, .. } = self;
        let noun = if *frames == 1 { "frame" } else { "frames" };
        let why = match self.reasons.first_key_value() {
            Some((only, _)) if self.reasons.len() == 1 => only.replace('_', " "),
            _ => reasons(&self.reasons),
        };
        let after = time(*at_ps);
        write!(f, "{frames} lossless {noun} lost: {why}, first at {port} after {after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(frames: u64, reason: &str, at_ps: u64, port: &str) -> LosslessDrops {
        LosslessDrops {
            frames,
            reasons: BTreeMap::from([(reason.to_owned(), frames)]),
            at_ps,
            port: port.to_owned(),
            tc: 3,
            expected: None,
        }
    }

    #[test]
    fn the_line_says_how_many_why_and_where_first() {
        let overrun = drops(680, "headroom_overrun", 500_000_000, "s0:1");
        let sum = LosslessDrops::sum([overrun, drops(6, "headroom_overrun", 403_210_000, "s0:2")]);
        let mut sum = sum.expect("there are some");
        let text = "686 lossless frames lost: headroom overrun, first at s0:2 after 403 us";
        assert_eq!(sum.line(true), format!("✕ {text}"));
        assert_eq!(sum.verdict(true), Verdict::Fail);
        assert_eq!(sum.verdict(false), Verdict::Inconclusive);
        assert!(sum.line(false).starts_with(&format!("◐ {text}; the host did not keep up")));
        sum.expected = Some("no headroom, on purpose".to_owned());
        assert_eq!(sum.verdict(true), Verdict::Pass);
        assert_eq!(sum.line(true), format!("! {text}; expected: no headroom, on purpose"));
        assert_eq!(LosslessDrops::sum([]), None);
    }

    #[test]
    fn several_reasons_have_their_numbers() {
        let one = drops(1, "receive_buffer", 12_340, "h1:1");
        assert_eq!(
            one.to_string(),
            "1 lossless frame lost: receive buffer, first at h1:1 after 12.3 ns"
        );
        let sum = LosslessDrops::sum([drops(3, "headroom_overrun", 2_000_000, "s0:1"), one]);
        assert_eq!(
            sum.expect("there are some").to_string(),
            "4 lossless frames lost: 3 headroom_overrun, 1 receive_buffer, first at h1:1 after 12.3 ns"
        );
    }
}
