//! What a requester sent: the first transmission and the acknowledgement of each number, as far as they are remembered.

use proto::ids::Psn;
use std::collections::VecDeque;

/// A request packet at the port of the capture.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its number.
    pub psn: Psn,
    /// Its ICRC as it stands in the file; `None` if the file holds none.
    pub icrc: Option<u32>,
    /// Time of capture, nanoseconds.
    pub at_ns: u64,
    /// True if it asks for an answer: AckReq is set, or it is a READ or atomic request.
    pub asks: bool,
    /// True for READ and atomic requests, whose responses can be lost.
    pub fetches: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    psn: Psn,
    icrc: Option<u32>,
    first_ns: u64,
    last_ns: u64,
    acknowledged_ns: Option<u64>,
}

/// Numbers in ascending order; the oldest are forgotten.
#[derive(Clone, Debug, Default)]
pub struct History {
    sent: VecDeque<Sent>,
}

impl History {
    /// Remembers a packet; of more than `room` numbers the oldest is forgotten. Of a number that is there already,
    /// the first transmission stays.
    pub fn add(&mut self, packet: &Packet, room: usize) {
        let Packet { psn, icrc, at_ns, .. } = *packet;
        let at = self.end_of(psn);
        if let Some(known) = self.sent.get_mut(at.wrapping_sub(1)).filter(|sent| sent.psn == psn) {
            (known.icrc, known.last_ns) = (icrc, at_ns);
            return;
        }
        let acknowledged_ns = self.sent.get(at).and_then(|next| next.acknowledged_ns);
        let sent = Sent { psn, icrc, first_ns: at_ns, last_ns: at_ns, acknowledged_ns };
        self.sent.insert(at, sent);
        while self.sent.len() > room.max(1) {
            self.sent.pop_front();
        }
    }

    /// The numbers up to `psn`, which included, arrived. Returns whether one of them was not acknowledged before.
    pub fn acknowledge(&mut self, psn: Psn, at_ns: u64) -> bool {
        let from = self.sent.partition_point(|sent| sent.acknowledged_ns.is_some());
        let to = self.end_of(psn);
        let fresh = from < to;
        for sent in self.sent.range_mut(from.min(to)..to) {
            sent.acknowledged_ns = Some(at_ns);
        }
        fresh
    }

    /// True if the packet was seen.
    pub fn holds(&self, psn: Psn) -> bool {
        self.find(psn).is_some()
    }

    /// Time since the last transmission of a packet with the same number and the same ICRC, nanoseconds.
    pub fn same(&self, packet: &Packet) -> Option<u64> {
        let sent = self.find(packet.psn)?;
        let is_same = sent.icrc.is_some() && sent.icrc == packet.icrc;
        is_same.then(|| packet.at_ns.saturating_sub(sent.last_ns))
    }

    /// The earliest instant at which a timer that may have caused a repetition from `psn` on began, nanoseconds: the
    /// later of a first transmission and of the acknowledgement of the number before. The packet is that with `psn`
    /// or, since the first packets of a repetition can be lost before the port, the lowest that was acknowledged no
    /// sooner.
    pub fn watched_since(&self, psn: Psn) -> Option<u64> {
        let last = self.end_of(psn).checked_sub(1)?;
        let limit = self.find(psn).and_then(|sent| sent.acknowledged_ns);
        let is_sooner = |at_ns: u64| limit.is_none_or(|limit| at_ns < limit);
        let known = self.sent.partition_point(|sent| sent.acknowledged_ns.is_some_and(is_sooner));
        let at = known.min(last);
        let before = at.checked_sub(1).and_then(|before| self.sent[before].acknowledged_ns);
        Some(self.sent[at].first_ns.max(before.unwrap_or(0)))
    }

    fn find(&self, psn: Psn) -> Option<&Sent> {
        self.sent.get(self.end_of(psn).checked_sub(1)?).filter(|sent| sent.psn == psn)
    }

    /// The place behind `psn` and all lower numbers.
    fn end_of(&self, psn: Psn) -> usize {
        self.sent.partition_point(|sent| sent.psn.distance_from(psn) <= 0)
    }
}
