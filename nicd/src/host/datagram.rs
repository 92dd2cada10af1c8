//! Datagram queue pairs of the agent. Source: IBTA Vol 1, 9.8.3.

use crate::host::frames::{Packet, Peer, TrafficClass};
use crate::host::memory::Memory;
use crate::host::neighbour::Neighbours;
use crate::host::receives::Receive;
use proto::counters::DropReason;
use proto::ids::{MacAddress, Psn, QueuePairNumber};
use proto::wire::infiniband::opcode::Operation;
use proto::wire::infiniband::opcode::Transport as Service;
use proto::wire::infiniband::{Bth, Deth, ExtendedHeaders, ImmDt, Opcode, Transport};
use std::collections::VecDeque;
use std::net::IpAddr;
use verbs::attributes::Handle;
use verbs::work::DATAGRAM_HEADER;

/// A datagram to send.
#[derive(Debug)]
pub struct Datagram {
    /// Chosen by the client.
    pub id: u64,
    /// The receiver.
    pub to: IpAddr,
    /// Its MAC address, once it is known.
    pub mac: Option<MacAddress>,
    /// Traffic class.
    pub traffic_class: TrafficClass,
    /// Its queue pair.
    pub number: QueuePairNumber,
    /// Its Q_Key.
    pub queue_key: u32,
    /// Immediate data.
    pub immediate: Option<[u8; 4]>,
    /// The payload.
    pub octets: Vec<u8>,
    /// Sets the solicited-event bit.
    pub solicited: bool,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Identifier of the receive request.
    pub receive: u64,
    /// Octets in the buffer, address headers included.
    pub length: u32,
    /// Immediate data.
    pub immediate: Option<[u8; 4]>,
    /// The sender's queue pair.
    pub source: QueuePairNumber,
}

/// A datagram queue pair.
#[derive(Debug)]
pub struct DatagramPair {
    /// The agent's name for it.
    pub handle: Handle,
    /// Its number.
    pub number: QueuePairNumber,
    /// Its Q_Key.
    pub queue_key: u32,
    /// Index of its memory.
    pub domain: usize,
    /// Receive requests.
    pub receives: VecDeque<Receive>,
    /// Datagrams to send, in their order.
    pub sends: VecDeque<Datagram>,
    /// The PSN of the next one.
    pub psn: Psn,
}

impl DatagramPair {
    /// Whether a packet can be made now.
    pub fn has_work(&self) -> bool {
        self.sends.front().is_some_and(|first| first.mac.is_some())
    }

    /// Gives waiting datagrams the MAC addresses of their receivers.
    pub fn settle(&mut self, neighbours: &Neighbours) {
        for datagram in self.sends.iter_mut().filter(|datagram| datagram.mac.is_none()) {
            datagram.mac = neighbours.known(datagram.to);
        }
    }

    /// The next packet, with the datagram that is its payload.
    pub fn next_packet(&mut self) -> Option<(Peer, Packet, Datagram)> {
        let peer =
            self.sends.front().and_then(|first| Some(Peer { mac: first.mac?, ip: first.to }))?;
        let datagram = self.sends.pop_front()?;
        let opcode = match datagram.immediate {
            None => Opcode::UD_SEND_ONLY,
            Some(_) => Opcode::UD_SEND_ONLY_IMMEDIATE,
        };
        let deth = Deth { queue_key: datagram.queue_key, reserved8: 0, source: self.number };
        let bth =
            Bth { solicited: datagram.solicited, ..Bth::new(opcode, datagram.number, self.psn) };
        self.psn = self.psn.next();
        let extended = ExtendedHeaders {
            deth: Some(deth),
            immdt: datagram.immediate.map(|data| ImmDt { data }),
            ..ExtendedHeaders::NONE
        };
        let traffic_class = datagram.traffic_class;
        let packet = Packet { from: self.number, bth, extended, traffic_class };
        Some((peer, packet, datagram))
    }

    /// Handles a packet that came with `headers`, the octets of its IP header.
    ///
    /// # Errors
    /// The drop reason: no SEND, another partition or Q_Key, no receive request, or one that is too short.
    pub fn on_packet(
        &mut self,
        packet: &Transport<'_>,
        headers: &[u8],
        memory: &mut Memory,
    ) -> Result<Arrived, DropReason> {
        let row = packet.bth.opcode.row();
        let row =
            row.filter(|row| row.transport == Service::Ud && row.operation == Operation::Send);
        let deth = packet.extended.deth.filter(|_| row.is_some()).ok_or(DropReason::Opcode)?;
        let is_member = packet.bth.partition_key & 0x7fff == Bth::DEFAULT_PARTITION & 0x7fff;
        if !is_member {
            return Err(DropReason::PartitionKey);
        }
        if deth.queue_key != self.queue_key {
            return Err(DropReason::Key);
        }
        let first = self.receives.front().ok_or(DropReason::ReceiverNotReady)?;
        let header = DATAGRAM_HEADER as usize;
        let length = header + packet.payload.len();
        if length > first.place.range.len() {
            return Err(DropReason::PacketLength);
        }
        // An IPv4 header fills the end of the room.
        let begin = header.saturating_sub(headers.len());
        memory.write(&first.place.part(begin..header), &headers[..headers.len().min(header)]);
        memory.write(&first.place.part(header..length), packet.payload);
        let receive = first.id;
        self.receives.pop_front();
        Ok(Arrived {
            receive,
            length: length as u32,
            immediate: packet.extended.immdt.map(|immediate| immediate.data),
            source: deth.source,
        })
    }
}
