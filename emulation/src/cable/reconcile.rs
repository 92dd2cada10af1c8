//! Compares both ends of every line after a run, to find what was sent and never received.
//!
//! `sent = received + drained + stale + lost` holds for each line, whatever the cause of a loss: a gap in the
//! sequence, the last frames of a run, a full socket, or a datagram given up.

use super::FrameTally;
use super::exchange::ExchangeReport;
use super::inbox::LineCounts;
use super::shim::SendingEnd;
use std::collections::BTreeMap;

/// Losses of the sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Sum over all lines.
    pub lost: FrameTally,
    /// Losses that a receiver has noticed: in a run that goes on, the rest is under way.
    pub noticed: u64,
    /// Lines with losses, by link and sending end.
    pub lines: Vec<(u32, SendingEnd, FrameTally)>,
}

/// Compares the accounts of all processes of a run.
pub fn reconcile<'a>(accounts: impl Iterator<Item = &'a ExchangeReport>) -> Reconciled {
    let mut lines: BTreeMap<_, (FrameTally, LineCounts)> = BTreeMap::new();
    for account in accounts {
        for line in &account.sent {
            lines.entry((line.link, line.end)).or_default().0 = line.sent;
        }
        for line in &account.received {
            lines.entry((line.link, line.end)).or_default().1 = line.counts;
        }
    }
    let mut reconciled = Reconciled::default();
    for ((link, end), (sent, counts)) in lines {
        let stale = FrameTally { end_to_end: 0, link_local: counts.stale };
        let lost = sent.minus(counts.received).minus(counts.drained).minus(stale);
        reconciled.noticed += counts.lost.min(lost.total());
        if lost.total() > 0 {
            reconciled.lost = reconciled.lost.plus(lost);
            reconciled.lines.push((link, end, lost));
        }
    }
    reconciled
}

#[cfg(test)]
mod tests {
    use super::super::inbox::ReceivedLine;
    use super::super::outbox::SentLine;
    use super::*;

    fn tally(end_to_end: u64, link_local: u64) -> FrameTally {
        FrameTally { end_to_end, link_local }
    }

    #[test]
    fn what_was_sent_and_is_nowhere_is_lost() {
        let end = SendingEnd::A;
        let sent = |link, sent| SentLine { link, end, sent };
        let received = |link, counts| ReceivedLine { link, end, counts };
        let sender = ExchangeReport {
            sent: vec![sent(0, tally(10, 5)), sent(1, tally(3, 0)), sent(2, tally(2, 0))],
            ..ExchangeReport::default()
        };
        let complete = LineCounts {
            received: tally(7, 3),
            drained: tally(3, 1),
            stale: 1,
            duplicates: 4,
            ..LineCounts::default()
        };
        let partial = LineCounts { received: tally(1, 0), lost: 1, ..LineCounts::default() };
        let receiver = ExchangeReport {
            received: vec![received(0, complete), received(1, partial)],
            ..ExchangeReport::default()
        };
        let found = reconcile([&sender, &receiver].into_iter());
        assert_eq!((found.lost, found.noticed), (tally(4, 0), 1));
        assert_eq!(found.lines, [(1, end, tally(2, 0)), (2, end, tally(2, 0))]);
    }
}
