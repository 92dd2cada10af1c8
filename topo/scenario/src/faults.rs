//! `[[impairment]]`: frames lost, corrupted, duplicated or delayed on purpose.

use crate::keyfile::fields::{Fields, TEXTS, Texts, meaning, words};
use crate::names;
use crate::topology::Topology;
use emulation::wiring::{Action, FrameFilter, FramePart, Impairment};
use proto::frame::FrameKind;
use proto::params::{KeyTable, Params};
use proto::units::Duration;

const FRAMES: [(&str, FrameFilter); 4] = [
    ("all", FrameFilter::All),
    ("link", FrameFilter::Kind(FrameKind::InfinibandLink)),
    ("data", FrameFilter::Kind(FrameKind::Infiniband)),
    ("ethernet", FrameFilter::Kind(FrameKind::Ethernet)),
];

/// What each word does, before it is known by how much a delay delays.
const ACTIONS: [(&str, Action); 4] = [
    ("lose", Action::Lose),
    ("corrupt", Action::Corrupt),
    ("duplicate", Action::Duplicate),
    ("delay", Action::Delay(Duration::ZERO)),
];

/// The resolution of a chance: one billionth.
const CHANCE_UNIT: u64 = 1_000_000_000;

/// The keys of `[[impairment]]`.
pub static KEYS: KeyTable =
    KeyTable::new("what a cable does to some of the frames one end sends", Fault::KEYS);

proto::params! {
    /// One `[[impairment]]` as written.
    pub struct Fault {
        /// Sending ports, as node:port.
        from: Texts = TEXTS, Required;
        /// Which frames: all, InfiniBand flow control, InfiniBand data, or Ethernet of any kind.
        frames: String = Word(|| words(&FRAMES)), Default("all");
        /// What happens to a frame that is hit.
        action: String = Word(|| words(&ACTIONS)), Required;
        /// Share of the frames that are hit.
        chance: f64 = Real(0.0, 1.0), Required;
        /// For corrupt: a bit of this part flips and the FCS is right; without it any bit, and the FCS is wrong.
        part: Option<FramePart> = FramePart::KIND, Optional;
        /// How much later, for delay.
        by: Option<Duration> = Span, Optional;
    }
}

/// Reads every `[[impairment]]`, one for each port named.
pub fn read(root: &Fields<'_>, topology: &Topology) -> Vec<Impairment> {
    let all = root.each("impairment");
    all.iter()
        .flat_map(|(fields, fault)| one(fields, fault, topology).unwrap_or_default())
        .collect()
}

fn one(fields: &Fields<'_>, fault: &Fault, topology: &Topology) -> Option<Vec<Impairment>> {
    let ends = fields.gather("from", &fault.from, |text| names::senders(topology, text));
    let action = match (meaning(&ACTIONS, &fault.action)?, fault.by) {
        (Action::Delay(_), Some(by)) => Action::Delay(by),
        (Action::Delay(_), None) => {
            return fields.refuse("by", "the delay is missing", "by = \"1 us\"");
        }
        (_, Some(_)) => return fields.refuse("by", "only delay takes \"by\"", "leave it out"),
        (action, None) => action,
    };
    let action = match (action, fault.part) {
        (Action::Corrupt, Some(part)) => Action::Alter(part),
        (_, Some(_)) => {
            return fields.refuse("part", "only corrupt takes \"part\"", "leave it out");
        }
        (action, None) => action,
    };
    let hits = (fault.chance * CHANCE_UNIT as f64).round() as u64;
    if hits == 0 {
        fields.error("chance", "it would never happen", "a chance of 1e-9 or more");
    }
    let (frames, chance) = (meaning(&FRAMES, &fault.frames)?, (hits, CHANCE_UNIT));
    Some(ends?.into_iter().map(|from| Impairment { from, frames, action, chance }).collect())
}
