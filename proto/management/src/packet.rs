//! The packet around a management datagram: UD SEND Only to QP0 or QP1.
//!
//! Source: IBTA Vol 1, 13.4.2, 14.2 (QP0 on VL15, Q_Key 0), 3.5.3 (QP1, its Q_Key).

use crate::datagram::Datagram;
use bytes::BytesMut;
use proto::counters::DropReason;
use proto::ids::{Lid, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::wire::infiniband::crc::verify_icrc;
use proto::wire::infiniband::mad::Mad;
use proto::wire::infiniband::{Bth, Deth, ExtendedHeaders, Opcode, Packet, PacketBuilder};

/// Addresses of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// LID of the sender.
    pub source: Lid,
    /// LID of the receiver.
    pub destination: Lid,
    /// Service level.
    pub level: ServiceLevel,
    /// Lane of the first link.
    pub lane: VirtualLane,
    /// Queue pair of the sender.
    pub source_pair: QueuePairNumber,
    /// Queue pair of the receiver: 0 or 1.
    pub pair: QueuePairNumber,
    /// P_Key. Those of QP0 do not count.
    pub partition: u16,
}

impl Addresses {
    /// Between the two QP0 of these LIDs, on VL15.
    pub fn subnet(source: Lid, destination: Lid) -> Addresses {
        Addresses {
            source,
            destination,
            level: ServiceLevel::truncate(0),
            lane: VirtualLane::MANAGEMENT,
            source_pair: QueuePairNumber::truncate(0),
            pair: QueuePairNumber::truncate(0),
            partition: Bth::DEFAULT_PARTITION,
        }
    }

    /// From QP1 of `source` to queue pair `pair` of `destination`, on data lane `lane`.
    pub fn general(source: Lid, destination: Lid, pair: u32, lane: VirtualLane) -> Addresses {
        Addresses {
            lane,
            source_pair: QueuePairNumber::truncate(1),
            pair: QueuePairNumber::truncate(pair),
            ..Addresses::subnet(source, destination)
        }
    }

    /// The way back.
    pub fn reversed(self) -> Addresses {
        Addresses {
            source: self.destination,
            destination: self.source,
            source_pair: self.pair,
            pair: self.source_pair,
            ..self
        }
    }
}

/// The datagram in a packet whose link checks hold.
///
/// # Errors
/// The reason to drop the packet: a wrong ICRC, another opcode, size, key or queue pair, or a datagram of QP0 on
/// a data lane or of QP1 on VL15.
pub fn parse(octets: &[u8]) -> Result<(Addresses, Datagram), DropReason> {
    verify_icrc(octets).map_err(|error| error.drop_reason())?;
    let packet = Packet::parse(octets).map_err(|error| error.drop_reason())?;
    let (bth, deth) = match (packet.bth, packet.extended.deth) {
        (Some(bth), Some(deth)) if bth.opcode == Opcode::UD_SEND_ONLY => (bth, deth),
        _ => return Err(DropReason::Opcode),
    };
    let datagram = Datagram::of(packet.payload).ok_or(DropReason::PacketLength)?;
    let lrh = packet.lrh;
    let is_subnet = lrh.virtual_lane == VirtualLane::MANAGEMENT;
    if is_subnet && packet.grh.is_some() {
        return Err(DropReason::GlobalHeader);
    }
    match (bth.destination.get(), is_subnet) {
        (0, true) | (1, false) => {}
        _ => return Err(DropReason::QueuePair),
    }
    if !is_subnet && deth.queue_key != Mad::QUEUE_KEY {
        return Err(DropReason::Key);
    }
    let addresses = Addresses {
        source: lrh.slid,
        destination: lrh.dlid,
        level: lrh.service_level,
        lane: lrh.virtual_lane,
        source_pair: deth.source,
        pair: bth.destination,
        partition: bth.partition_key,
    };
    Ok((addresses, datagram))
}

/// Replaces the contents of `buffer` by the packet, LRH to VCRC.
pub fn emit(addresses: &Addresses, datagram: &Datagram, buffer: &mut BytesMut) {
    let is_subnet = addresses.lane == VirtualLane::MANAGEMENT;
    let deth = Deth {
        queue_key: if is_subnet { 0 } else { Mad::QUEUE_KEY },
        source: addresses.source_pair,
        reserved8: 0,
    };
    let bth = Bth {
        partition_key: addresses.partition,
        ..Bth::new(Opcode::UD_SEND_ONLY, addresses.pair, Psn::default())
    };
    let builder = PacketBuilder {
        virtual_lane: addresses.lane,
        service_level: addresses.level,
        dlid: addresses.destination,
        slid: addresses.source,
        extended: ExtendedHeaders { deth: Some(deth), ..ExtendedHeaders::NONE },
        ..PacketBuilder::new(bth)
    };
    let emitted =
        builder.emit_around(buffer, Datagram::LEN, |buffer| buffer.extend_from_slice(&datagram.0));
    emitted.expect("a datagram fits a packet");
}
