//! Notices for the subnet manager: sent, repeated, and ended by a TrapRepress.
//!
//! Source: IBTA Vol 1, 13.4.9 (traps and their repression), 14.2.5.1 (trap numbers), 14.3.13.

use super::NodeKind;
use crate::attribute::subnet::notice;
use crate::datagram::{self, Datagram, TRANSACTION, method};
use crate::partitions::BadPartition;
use proto::ids::Lid;
use proto::units::{Duration, Instant};

/// Notices that wait at most; a newer notice of the same number replaces the older one.
const WAITING_MAX: usize = 8;
/// TrapsS and SMPs that report something use this type. Source: IBTA Vol 1, 13.4.8.2.
const URGENT: u64 = 1;
const SECURITY: u64 = 2;
const INFORMATION: u64 = 4;

/// Traps of a packet with a bad P_Key: at an end port, and at a switch.
const BAD_PARTITION: u64 = 257;
const BAD_PARTITION_AT_SWITCH: u64 = 259;

/// A notice before it has a transaction.
pub(super) type Notice = [u8; 64];

fn generic(kind: NodeKind, lid: Lid, kind_of_event: u64, number: u64) -> Notice {
    let mut octets = [0; 64];
    let values = [
        (notice::GENERIC, 1),
        (notice::TYPE, kind_of_event),
        (notice::PRODUCER, kind as u64),
        (notice::TRAP, number),
        (notice::ISSUER_LID, lid.get().into()),
    ];
    values.iter().for_each(|(field, value)| field.set(&mut octets, *value));
    octets
}

fn put(notice: &mut Notice, octet: usize, value: &[u8]) {
    notice[octet..octet + value.len()].copy_from_slice(value);
}

/// Trap 128: a link of a switch changed its state.
pub(super) fn link_state_change(lid: Lid) -> Notice {
    let mut notice = generic(NodeKind::Switch, lid, URGENT, 128);
    put(&mut notice, 10, &lid.get().to_be_bytes());
    notice
}

/// Trap 144: the capability mask of a port changed.
pub(super) fn capability_mask_change(lid: Lid, kind: NodeKind, mask: u32) -> Notice {
    let mut notice = generic(kind, lid, INFORMATION, 144);
    put(&mut notice, 12, &lid.get().to_be_bytes());
    put(&mut notice, 16, &mask.to_be_bytes());
    notice
}

/// Trap 256: a datagram came with a wrong M_Key.
pub(super) fn bad_key(lid: Lid, kind: NodeKind, datagram: &Datagram) -> Notice {
    let mut notice = generic(kind, lid, SECURITY, 256);
    put(&mut notice, 12, &lid.get().to_be_bytes());
    put(&mut notice, 16, &[datagram.method()]);
    put(&mut notice, 18, &datagram.attribute().to_be_bytes());
    put(&mut notice, 20, &datagram.modifier().to_be_bytes());
    put(&mut notice, 24, &datagram.get(&datagram::M_KEY).to_be_bytes());
    notice
}

/// Trap 257: an end port received a packet with a bad P_Key.
pub(super) fn bad_partition(lid: Lid, kind: NodeKind, packet: &BadPartition) -> Notice {
    let mut notice = generic(kind, lid, SECURITY, BAD_PARTITION);
    put(&mut notice, 12, &packet.source.get().to_be_bytes());
    put(&mut notice, 14, &packet.destination.get().to_be_bytes());
    put(&mut notice, 16, &u32::from(packet.key).to_be_bytes());
    put_pairs(&mut notice, 20, packet);
    notice
}

/// Trap 259: a switch dropped a packet with a bad P_Key at `port`.
pub(super) fn bad_partition_at_switch(lid: Lid, port: u8, packet: &BadPartition) -> Notice {
    // Both LIDs, P_Key, service level and receiver are valid, the sender's queue pair if there is one. No GID is.
    let valid: u16 = if packet.source_pair.is_some() { 0xfc00 } else { 0xf400 };
    let mut notice = generic(NodeKind::Switch, lid, SECURITY, BAD_PARTITION_AT_SWITCH);
    put(&mut notice, 10, &valid.to_be_bytes());
    put(&mut notice, 12, &packet.source.get().to_be_bytes());
    put(&mut notice, 14, &packet.destination.get().to_be_bytes());
    put(&mut notice, 16, &packet.key.to_be_bytes());
    put_pairs(&mut notice, 18, packet);
    put(&mut notice, 58, &lid.get().to_be_bytes());
    put(&mut notice, 60, &[port]);
    notice
}

/// Service level and queue pairs, four octets each for sender and receiver.
fn put_pairs(notice: &mut Notice, octet: usize, packet: &BadPartition) {
    let sender = packet.source_pair.map_or(0, |pair| pair.get());
    put(notice, octet, &(u32::from(packet.level.get()) << 28 | sender).to_be_bytes());
    put(notice, octet + 4, &packet.pair.get().to_be_bytes());
}

/// The least time between two sendings of a notice. Source: IBTA Vol 1, 14.2.5.6 (SubnetTimeOut).
pub(super) fn interval(subnet_timeout: u64) -> Duration {
    Duration::from_ns(4_096) * (1 << subnet_timeout)
}

#[derive(Debug)]
struct Waiting {
    notice: Notice,
    transaction: u64,
    due: Instant,
    /// The manager has received it. A notice of a partition then still keeps the next one from being sent before `due`.
    is_repressed: bool,
}

impl Waiting {
    /// Violations of partitions come as often as packets do, so their notices keep their distance.
    fn is_of_partition(&self) -> bool {
        [BAD_PARTITION, BAD_PARTITION_AT_SWITCH].contains(&notice::TRAP.get(&self.notice))
    }
}

/// The notices of one node.
#[derive(Debug, Default)]
pub(super) struct Traps {
    waiting: Vec<Waiting>,
    transactions: u64,
}

impl Traps {
    /// Has `notice` sent from `now` on, or when the distance to the one before it permits.
    pub(super) fn raise(&mut self, notice: Notice, now: Instant) {
        let number = notice::TRAP.get(&notice);
        let is_same = |other: &Waiting| notice::TRAP.get(&other.notice) == number;
        let before = self.waiting.iter().position(is_same).map(|at| self.waiting.remove(at));
        if before.is_none() && self.waiting.len() >= WAITING_MAX {
            return;
        }
        let due = before.filter(Waiting::is_of_partition).map_or(now, |before| before.due.max(now));
        self.transactions += 1;
        let transaction = self.transactions;
        self.waiting.push(Waiting { notice, transaction, due, is_repressed: false });
    }

    /// The notice that is due at `now`; it comes again after `repeat`.
    pub(super) fn poll(&mut self, repeat: Duration, now: Instant) -> Option<Datagram> {
        let is_due = |waiting: &&mut Waiting| !waiting.is_repressed && waiting.due <= now;
        let next = self.waiting.iter_mut().find(is_due)?;
        next.due = now + repeat;
        let (class, number) = (datagram::SUBNET_LID_ROUTED, notice::ATTRIBUTE.id);
        let mut datagram = Datagram::request(class, method::TRAP, number, 0, next.transaction);
        datagram.data_mut().copy_from_slice(&next.notice);
        Some(datagram)
    }

    /// The manager has received the notice of this transaction.
    pub(super) fn repress(&mut self, datagram: &Datagram) {
        let transaction = datagram.get(&TRANSACTION);
        if datagram.attribute() == notice::ATTRIBUTE.id {
            // The upper half of the transaction belongs to the software of the manager's node.
            let is_its = |waiting: &Waiting| waiting.transaction as u32 == transaction as u32;
            self.waiting.retain(|waiting| !is_its(waiting) || waiting.is_of_partition());
            let it = self.waiting.iter_mut().find(|waiting| is_its(waiting));
            it.into_iter().for_each(|waiting| waiting.is_repressed = true);
        }
    }

    /// When a notice is due.
    pub(super) fn poll_timeout(&self) -> Instant {
        let sent = self.waiting.iter().filter(|waiting| !waiting.is_repressed);
        sent.map(|waiting| waiting.due).min().unwrap_or(Instant::NEVER)
    }
}
