//! Notices for the subnet manager: sent, repeated, and ended by a TrapRepress.
//!
//! Source: IBTA Vol 1, 13.4.9 (traps and their repression), 14.2.5.1 (trap numbers), 14.3.13.

use super::NodeKind;
use crate::attribute::subnet::notice;
use crate::datagram::{self, Datagram, TRANSACTION, method};
use proto::ids::Lid;
use proto::units::{Duration, Instant};

/// Notices that wait at most; a newer notice of the same number replaces the older one.
const WAITING_MAX: usize = 8;
/// TrapsS and SMPs that report something use this type. Source: IBTA Vol 1, 13.4.8.2.
const URGENT: u64 = 1;
const SECURITY: u64 = 2;
const INFORMATION: u64 = 4;

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
    put(&mut notice, 10, &lid.get().to_be_bytes());
    put(&mut notice, 18, &[datagram.method()]);
    put(&mut notice, 20, &datagram.attribute().to_be_bytes());
    put(&mut notice, 22, &datagram.modifier().to_be_bytes());
    put(&mut notice, 26, &datagram.get(&datagram::M_KEY).to_be_bytes());
    notice
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
}

/// The notices of one node.
#[derive(Debug, Default)]
pub(super) struct Traps {
    waiting: Vec<Waiting>,
    transactions: u64,
}

impl Traps {
    /// Has `notice` sent from `now` on.
    pub(super) fn raise(&mut self, notice: Notice, now: Instant) {
        let number = notice::TRAP.get(&notice);
        self.waiting.retain(|other| notice::TRAP.get(&other.notice) != number);
        if self.waiting.len() < WAITING_MAX {
            self.transactions += 1;
            let transaction = self.transactions;
            self.waiting.push(Waiting { notice, transaction, due: now });
        }
    }

    /// The notice that is due at `now`; it comes again after `repeat`.
    pub(super) fn poll(&mut self, repeat: Duration, now: Instant) -> Option<Datagram> {
        let next = self.waiting.iter_mut().find(|waiting| waiting.due <= now)?;
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
            self.waiting.retain(|waiting| waiting.transaction as u32 != transaction as u32);
        }
    }

    /// When a notice is due.
    pub(super) fn poll_timeout(&self) -> Instant {
        self.waiting.iter().map(|waiting| waiting.due).min().unwrap_or(Instant::NEVER)
    }
}
