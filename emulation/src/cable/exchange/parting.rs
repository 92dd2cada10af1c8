//! Cables to a process that has ended, and to the one that takes its place.
//!
//! Both ends of a line begin to count anew. What the line had carried is kept as a sum, so that the frames of the process
//! that ended can be accounted for.

use super::{Exchange, Sender};
use crate::cable::FrameTally;
use crate::cable::datagram::Peer;
use crate::cable::lines::{Destination, Lines, Outgoing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Frames exchanged with processes that have ended since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Frames sent to them.
    pub taken: FrameTally,
    /// Frames received from them, and handled.
    pub given: FrameTally,
}

impl Exchange {
    /// The process has ended: frames to it end here until [`Exchange::meet`]. `waiting` are frames from it that no device
    /// has handled, by index of the line.
    pub(crate) fn part_from(
        &mut self,
        process: usize,
        lines: &Lines,
        waiting: &BTreeMap<usize, FrameTally>,
    ) {
        let Exchange { sender, inbox, pool, ended, away } = self;
        let from = lines.all_incoming().filter(|line| line.process == process && !line.outside);
        for (line, received) in inbox.forget(process, from.map(|line| line.index())) {
            let handled = received.minus(waiting.get(&line).copied().unwrap_or_default());
            ended.given = ended.given.plus(handled);
        }
        let to = lines.all_outgoing().filter(|line| line.to == Destination::Process(process));
        let taken = match sender {
            Sender::Packets(packets) => packets.forget(process, pool),
            Sender::Datagrams { outbox, .. } => outbox.forget(process, to.map(Outgoing::index)),
        };
        ended.taken = ended.taken.plus(taken);
        away.push(process);
    }

    /// Another process has taken its place. Cables with interfaces of their own need no address.
    pub(crate) fn meet(&mut self, process: usize, peer: Option<Peer>) {
        self.away.retain(|other| *other != process);
        let Some(peer) = peer else { return };
        self.inbox.expect(process, &peer);
        if let Sender::Datagrams { outbox, .. } = &mut self.sender {
            outbox.redirect(process, peer);
        }
    }

    /// Whether a line leads to a process that has ended.
    pub(super) fn leads_nowhere(&self, line: &Outgoing) -> bool {
        matches!(line.to, Destination::Process(process) if self.away.contains(&process))
    }
}
