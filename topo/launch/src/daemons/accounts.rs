//! Sums over the accounts of all processes: frames on cables, and what sockets refused.

use emulation::cable::exchange::{Ended, ExchangeReport};
use emulation::cable::impairment::Injected;
use emulation::cable::reconcile::reconcile;
use emulation::driver::InFlight;
use proto::counters::DropReason;
use results::run_directory::result::OnCables;
use std::collections::BTreeMap;

/// What cables counted. Frames that one end of a line sent and the other did not get are lost at the end of a run. Of a run
/// that `goes_on` only those are whose absence the receiver has noticed; the others are under way.
pub(crate) fn on_cables<'a>(
    parts: impl Iterator<Item = (&'a InFlight, &'a Injected, &'a ExchangeReport)> + Clone,
    goes_on: bool,
) -> OnCables {
    let mut cables = OnCables::default();
    let missing = reconcile(parts.clone().map(|(.., exchange)| exchange));
    let absent = missing.lost.end_to_end;
    let lost = if goes_on { missing.noticed.min(absent) } else { absent };
    cables.dropped.add(DropReason::Transport, lost);
    cables.under_way += absent - lost;
    let (taken, given) = parts.clone().fold((0, 0), |(taken, given), (.., exchange)| {
        let Ended { taken: more_taken, given: more_given } = exchange.ended;
        (taken + more_taken.end_to_end, given + more_given.end_to_end)
    });
    // What a process that has ended had taken and not passed on is lost; what it had made itself, it has injected.
    cables.dropped.add(DropReason::Restart, taken.saturating_sub(given));
    cables.duplicated += given.saturating_sub(taken);
    for (in_flight, injected, exchange) in parts {
        cables.under_way += in_flight.on_the_line.plus(in_flight.on_cables).end_to_end;
        cables.duplicated += injected.duplicated.end_to_end;
        cables.dropped.add(DropReason::Injected, injected.lost.end_to_end);
        let Some(outside) = exchange.outside else { continue };
        cables.duplicated += outside.received.end_to_end;
        cables.handed_over += outside.sent.end_to_end;
        cables.dropped.add(DropReason::Transport, outside.unsent.end_to_end);
        cables.dropped.add(DropReason::InterfaceDown, outside.away.end_to_end);
        cables.dropped.add(DropReason::InterfaceMtu, outside.too_long.end_to_end);
    }
    cables
}

/// Refused datagrams and records by reason, zeros included.
pub(crate) fn refused<'a>(
    exchanges: impl Iterator<Item = &'a ExchangeReport>,
) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for exchange in exchanges {
        let rejected = &exchange.rejected;
        let counts = [
            ("foreign", rejected.foreign),
            ("magic", rejected.magic),
            ("version", rejected.version),
            ("kind", rejected.kind),
            ("epoch", rejected.epoch),
            ("secret", rejected.secret),
            ("link", rejected.link),
            ("truncated", rejected.truncated),
            ("oversize", rejected.oversize),
            ("trailing", rejected.trailing),
            ("unfinished", rejected.unfinished),
            ("future", rejected.future),
            ("socket_overflow", exchange.overflows),
        ];
        for (reason, count) in counts {
            *sums.entry(reason.to_owned()).or_insert(0) += count;
        }
    }
    sums
}
