//! Frames that broke a law of physics: which law, where first, and both instants.

use crate::wording::time;
use emulation::recorder::Recording;
use proto::events::{EventKind, Law};
use proto::units::Instant;
use scenario::inventory::Fabric;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The first violation of a run, and how many ports have one. Each is an error of this program, so a run with one has
/// failed, whatever its measures are and however slow the host was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// Ports at which a frame broke a law.
    pub ports: usize,
    /// The law that the first one broke.
    pub law: Law,
    /// The port of the first one.
    pub port: String,
    /// Its virtual lane or priority.
    pub tc: u8,
    /// Octets of its frame.
    pub bytes: u64,
    /// When the frame started, or was received; fabric picoseconds.
    pub at_ps: u64,
    /// The earliest instant that the law permits; null if it names none.
    pub earliest_ps: Option<u64>,
}

impl Violations {
    /// Those of a run, if there are any.
    pub fn of<'a>(
        fabric: &Fabric,
        recordings: impl IntoIterator<Item = &'a Recording>,
    ) -> Option<Violations> {
        let events = recordings.into_iter().flat_map(|recording| &recording.events.events);
        let found = events.filter_map(|logged| {
            let EventKind::Violation { law, earliest, bytes } = logged.event.kind else {
                return None;
            };
            let end =
                emulation::wiring::End { node: logged.node as usize, port: logged.event.port };
            Some(Violations {
                ports: 1,
                law,
                port: fabric.wiring.end_name(end),
                tc: logged.event.tc,
                bytes: bytes.get(),
                at_ps: logged.event.at.as_ps(),
                earliest_ps: (earliest < Instant::NEVER).then_some(earliest.as_ps()),
            })
        });
        let found: Vec<Violations> = found.collect();
        let mut ports: Vec<&str> = found.iter().map(|one| one.port.as_str()).collect();
        ports.sort_unstable();
        ports.dedup();
        let ports = ports.len();
        let first = found.into_iter().min_by(|a, b| (a.at_ps, &a.port).cmp(&(b.at_ps, &b.port)));
        first.map(|first| Violations { ports, ..first })
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violations { ports, law, ref port, tc, bytes, at_ps, earliest_ps } = *self;
        let law = match law {
            Law::LineRate => "closer to its predecessor than the line permits",
            Law::Causality => "before the input that caused it",
            Law::Delay => "received sooner than its cable permits",
            Law::Pause => "in a pause of its priority",
            Law::Credit => "without credit",
            Law::Pacing => "before its reaction point permits",
        };
        write!(f, "{port}: a frame of {bytes} octets on {tc} at {at_ps} ps, {law}")?;
        if let Some(earliest) = earliest_ps {
            write!(f, " (at {earliest} ps, {} later)", time(earliest.saturating_sub(at_ps)))?;
        }
        match ports - 1 {
            0 => Ok(()),
            more => write!(f, ", and at {more} other ports"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_port_frame_and_both_instants() {
        let mut violations = Violations {
            ports: 1,
            law: Law::LineRate,
            port: "h0:1".to_owned(),
            tc: 3,
            bytes: 1082,
            at_ps: 600_000_000,
            earliest_ps: Some(600_216_400),
        };
        let text = "h0:1: a frame of 1082 octets on 3 at 600000000 ps, closer to its predecessor than the line permits \
                    (at 600216400 ps, 216 ns later)";
        assert_eq!(violations.to_string(), text);
        (violations.ports, violations.law, violations.earliest_ps) = (3, Law::Credit, None);
        let text = "h0:1: a frame of 1082 octets on 3 at 600000000 ps, without credit, and at 2 other ports";
        assert_eq!(violations.to_string(), text);
    }
}
