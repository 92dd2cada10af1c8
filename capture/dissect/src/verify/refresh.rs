//! The rule of refreshing: each lane's credit is sent often enough, even if nothing changes.
//!
//! A capture does not state the symbol time: without a rate and a number of lanes nothing is judged. The time from the
//! last link packet to the end of the file is not judged either. Source: IBTA Vol 1, 7.9.4 (65 536 symbol times).

use super::ports::Place;
use super::rule::rules;
use super::{Check, Family, Settings};
use proto::frame::FrameKind;
use proto::units::Duration;
use proto::wire::infiniband::FlowControlPacket;
use std::collections::BTreeMap;

rules! {
    REFRESH "refresh" "a link packet for each lane at least every 65 536 symbol times (asks for --rate)",
        "IBTA Vol 1, 7.9.4";
}

const SYMBOLS_MAX: u64 = 65_536;

/// The family.
pub struct Refreshes {
    longest: Option<Duration>,
    /// Time of each lane's last link packet, nanoseconds.
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
    fn check(&mut self, check: &mut Check<'_>) {
        let seen = check.seen;
        if seen.kind != FrameKind::InfinibandLink || !seen.is_sound() {
            return;
        }
        let Ok(packet) = FlowControlPacket::parse_intact(seen.octets) else { return };
        let Some(longest) = self.longest else {
            return check.not_checked("refresh of credit (needs --rate and --lanes)");
        };
        let lane = packet.virtual_lane.get();
        let Some(last) = self.last.insert((seen.place, lane), seen.at_ns) else { return };
        check.checked("refresh");
        let waited = Duration::from_ns(seen.at_ns.saturating_sub(last));
        // The file counts whole nanoseconds.
        if waited > longest + Duration::from_ns(1) {
            let found = format_args!("VL {lane}: silent for {waited}");
            check.breaks(&REFRESH, found, format_args!("at most {longest}"));
        }
    }
}
