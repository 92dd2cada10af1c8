//! `[[impairment]]`: frames lost, corrupted, duplicated or delayed on purpose.

use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need, words};
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use crate::topology::Topology;
use emulation::wiring::{Action, FrameFilter, Impairment};
use proto::frame::FrameKind;
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

/// Chances are told to a billionth.
const CHANCE_UNIT: u64 = 1_000_000_000;

/// The keys of `[[impairment]]`.
pub static KEYS: KeyTable = KeyTable {
    about: "what a cable does to some of the frames one end sends",
    keys: &[
        Key {
            name: "from",
            kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            need: Need::Required,
            about: "sending ports, as node:port",
        },
        Key {
            name: "frames",
            kind: Kind::Word(|| words(&FRAMES)),
            need: Need::Default("\"all\""),
            about: "which frames: all, InfiniBand flow control, InfiniBand data, or Ethernet of any kind",
        },
        Key {
            name: "action",
            kind: Kind::Word(|| words(&ACTIONS)),
            need: Need::Required,
            about: "what happens to a frame that is hit",
        },
        Key {
            name: "chance",
            kind: Kind::Real(0.0, 1.0),
            need: Need::Required,
            about: "share of the frames that are hit",
        },
        Key {
            name: "by",
            kind: Kind::Span,
            need: Need::Optional,
            about: "how much later, for delay",
        },
    ],
    variants: None,
    open: false,
};

/// Reads every `[[impairment]]`, one for each port named.
pub fn read(
    root: &Fields<'_>,
    topology: Option<&Topology>,
    problems: &mut Problems,
) -> Vec<Impairment> {
    let mut all = Vec::new();
    for fields in root.tables("impairment") {
        let rest = rest_of(&fields, problems);
        for (text, place) in fields.texts("from") {
            let ends = match topology.map(|topology| names::ends(topology, text)) {
                Some(Ok(ends)) => ends,
                Some(Err(complaint)) => {
                    problems.report(place, format!("{}.from", fields.path), complaint);
                    continue;
                }
                None => continue,
            };
            if let Some((frames, action, chance)) = rest {
                all.extend(ends.iter().map(|from| Impairment {
                    from: *from,
                    frames,
                    action,
                    chance,
                }));
            }
        }
    }
    all
}

fn rest_of(
    fields: &Fields<'_>,
    problems: &mut Problems,
) -> Option<(FrameFilter, Action, (u64, u64))> {
    let action = match (fields.word("action", &ACTIONS)?, fields.time("by")) {
        (Action::Delay(_), Some(by)) => Action::Delay(by),
        (Action::Delay(_), None) => {
            let complaint = Complaint::new("a delay of what?", "by = \"1 us\"");
            fields.report(problems, "by", complaint);
            return None;
        }
        (_, Some(_)) => {
            let complaint = Complaint::new("only delay takes \"by\"", "leave it out");
            fields.report(problems, "by", complaint);
            return None;
        }
        (action, None) => action,
    };
    let hits = (fields.real("chance")? * CHANCE_UNIT as f64).round() as u64;
    if hits == 0 {
        let complaint = Complaint::new("it would never happen", "a chance of 1e-9 or more");
        fields.report(problems, "chance", complaint);
    }
    Some((fields.word("frames", &FRAMES)?, action, (hits, CHANCE_UNIT)))
}
