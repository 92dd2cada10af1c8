//! The rule of refreshing: each lane's credit is told often enough, also when nothing changes.
//!
//! A capture does not say how long a symbol takes: without a rate and a number of lanes nothing is
//! judged. Silence at the end of a file is not judged either.
//! Source: IBTA Vol 1, 7.9.4 (65 536 symbol times).

use super::ports::Place;
use super::{Family, Findings, Rule, Seen, Settings, Tally};
use proto::frame::FrameKind;
use proto::units::Duration;
use proto::wire::infiniband::FlowControlPacket;
use std::collections::BTreeMap;

/// The rules of this file.
pub const RULES: &[Rule] = &[REFRESH];

const REFRESH: Rule = Rule {
    id: "refresh",
    title: "a link packet for each lane at least every 65 536 symbol times (asks for --rate)",
    source: "IBTA Vol 1, 7.9.4",
};

const SYMBOLS_MAX: u64 = 65_536;

/// The family.
pub struct Refreshes {
    longest: Option<Duration>,
    /// When each lane was last heard of, in nanoseconds.
    last: BTreeMap<(Place, u8), u64>,
}

impl Refreshes {
    /// Judges by the symbol time, if it is known.
    pub fn new(settings: &Settings) -> Refreshes {
        let longest = settings.symbol.map(|symbol| symbol * SYMBOLS_MAX);
        Refreshes { longest, last: BTreeMap::new() }
    }
}

impl Family for Refreshes {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        if seen.kind != FrameKind::InfinibandLink || !seen.is_sound() {
            return;
        }
        let Ok(packet) = FlowControlPacket::parse_intact(seen.octets) else { return };
        let Some(longest) = self.longest else {
            return tally.not_checked("refresh of credit (needs --rate and --lanes)", 1);
        };
        let lane = packet.virtual_lane.get();
        let Some(last) = self.last.insert((seen.place, lane), seen.at_ns) else { return };
        tally.checked("refresh", 1);
        let waited = Duration::from_ns(seen.at_ns.saturating_sub(last));
        // The file's clock ticks in nanoseconds.
        if waited > longest + Duration::from_ns(1) {
            let found = || format!("VL {lane}: silent for {waited}");
            findings.report(&REFRESH, seen, found, || format!("at most {longest}"));
        }
    }
}
