//! `[[impairment]]`: frames lost, corrupted, duplicated or delayed on purpose.

use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use crate::topology::Topology;
use emulation::wiring::{Action, FrameFilter, Impairment};
use proto::frame::FrameKind;
use proto::params::{Key, KeyTable, Kind};
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
pub static KEYS: KeyTable = KeyTable::new(
    "what a cable does to some of the frames one end sends",
    &[
        Key::required(
            "from",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "sending ports, as node:port",
        ),
        Key::new(
            "frames",
            Kind::Word(|| words(&FRAMES)),
            "all",
            "which frames: all, InfiniBand flow control, InfiniBand data, or Ethernet of any kind",
        ),
        Key::required(
            "action",
            Kind::Word(|| words(&ACTIONS)),
            "what happens to a frame that is hit",
        ),
        Key::required("chance", Kind::Real(0.0, 1.0), "share of the frames that are hit"),
        Key::optional("by", Kind::Span, "how much later, for delay"),
    ],
);

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
