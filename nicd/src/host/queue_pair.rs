//! A queue pair of the host stack: responder and requester of one connection, with negotiated numbers.

use crate::host::frames::{Packet, Peer, TrafficClass};
use crate::host::memory::Memory;
use crate::host::receives::{Behaviour, Receives};
use crate::host::requester::{Depth, Patience, Requester};
use crate::host::responder::{Delivery, Responder};
use crate::host::work::Work;
use proto::counters::DropReason;
use proto::ids::{Psn, QueuePairNumber};
use proto::units::Instant;
use proto::wire::infiniband::opcode::{Operation, Transport as Service};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Transport};

/// What both ends of a connection have agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    /// The number of the queue pair here.
    pub number: QueuePairNumber,
    /// The number of the peer's queue pair.
    pub remote: QueuePairNumber,
    /// The peer.
    pub peer: Peer,
    /// The traffic class of packets to it.
    pub traffic_class: TrafficClass,
    /// Path MTU in octets.
    pub mtu: u32,
    /// The first PSN sent here.
    pub starting_psn: Psn,
    /// The first PSN that the peer sends.
    pub expected: Psn,
    /// How long and how often the requester tries.
    pub patience: Patience,
    /// How much it does at once.
    pub depth: Depth,
}

/// A queue pair.
#[derive(Debug)]
pub struct QueuePair {
    /// The numbers of the connection.
    pub agreement: Agreement,
    /// Requests in, responses out.
    pub responder: Responder,
    /// Requests out, responses in.
    pub requester: Requester,
}

impl QueuePair {
    /// A queue pair that is ready to receive and to send.
    pub fn new(agreement: Agreement, behaviour: Behaviour) -> QueuePair {
        let Agreement { mtu, starting_psn, expected, patience, depth, .. } = agreement;
        QueuePair {
            agreement,
            responder: Responder::new(mtu, expected, behaviour),
            requester: Requester::new(mtu, starting_psn, patience, depth),
        }
    }

    /// Whether a frame can be made now.
    pub fn has_work(&self) -> bool {
        self.responder.has_work() || self.requester.has_work()
    }

    /// Whether either half is in the error state.
    pub fn has_failed(&self) -> bool {
        self.responder.has_failed() || self.requester.failure().is_some()
    }

    /// Handles a packet for this queue pair. Appends completed work to `done` and returns a completed message.
    ///
    /// # Errors
    /// The drop reason.
    pub fn on_packet(
        &mut self,
        packet: &Transport<'_>,
        memory: &mut Memory,
        now: Instant,
        done: &mut Vec<Work>,
    ) -> Result<Option<Delivery>, DropReason> {
        let bth = packet.bth;
        let row = bth.opcode.row().filter(|row| row.transport == Service::Rc);
        let row = row.ok_or(DropReason::Opcode)?;
        if bth.partition_key & 0x7fff != Bth::DEFAULT_PARTITION & 0x7fff {
            return Err(DropReason::PartitionKey);
        }
        // The opcode tells which headers a packet has.
        let ExtendedHeaders { aeth, atomic_ack_eth, .. } = packet.extended;
        match (row.operation, aeth, atomic_ack_eth) {
            (Operation::Acknowledge, Some(aeth), _) => {
                self.requester.on_acknowledge(bth.psn, aeth, now, done);
                Ok(None)
            }
            (Operation::ReadResponse, ..) => {
                self.requester.on_read_response(bth.psn, packet.payload, now, done);
                Ok(None)
            }
            (Operation::AtomicAcknowledge, _, Some(answer)) => {
                self.requester.on_atomic_response(bth.psn, answer.original, now, done);
                Ok(None)
            }
            _ if packet.extended.ieth.is_some() => Err(DropReason::Opcode),
            _ => {
                // A program is ready as long as its answer has room.
                if let Receives::Program { is_ready } = &mut self.responder.receives {
                    *is_ready = self.requester.room() > 0;
                }
                self.responder.on_request(row, packet, memory)
            }
        }
    }

    /// The next packet with its payload: responses before requests.
    pub fn next_packet<'a>(
        &'a mut self,
        memory: &'a Memory,
        now: Instant,
    ) -> Option<(Packet, &'a [u8])> {
        let Agreement { number, remote, traffic_class, .. } = self.agreement;
        let packet = |bth, extended| {
            // No alternate path is ever loaded, so the path state is Migrated. Source: IBTA Vol 1, 17.2.8.
            let bth = Bth { destination: remote, migration_request: true, ..bth };
            Packet { from: number, bth, extended, traffic_class }
        };
        if let Some((bth, extended, place)) = self.responder.next_response() {
            return Some((packet(bth, extended), memory.read(&place)));
        }
        let (bth, extended, place) = self.requester.next_request(remote, now)?;
        Some((packet(bth, extended), self.requester.payload(place)))
    }
}
