//! Builds packets: headers, payload, pad, lengths and both CRCs in a buffer of the caller.
//!
//! Source: IBTA Vol 1, 7.7.8 (PktLen), 9.2 (PadCnt), 7.8 (CRCs).

use crate::ids::{Lid, ServiceLevel, VirtualLane};
use crate::wire::infiniband::envelope::{VCRC_LEN, WORD};
use crate::wire::infiniband::transport::{TransportPlan, zeroed};
use crate::wire::infiniband::{
    Bth, ExtendedHeaders, Grh, LinkNextHeader, Lrh, Opcode, Packet, crc,
};
use bytes::BytesMut;

/// Error of building a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The packet is longer than PktLen, with its eleven bits, can express.
    #[error("the packet would have {words} words, PktLen holds {max}", max = Lrh::PACKET_LENGTH_MAX)]
    TooLong {
        /// Length in words, LRH to ICRC.
        words: usize,
    },
    /// The extended headers do not match the opcode, so a receiver could not find the payload.
    #[error("the extended headers given are not those of {opcode}")]
    ExtendedHeaders {
        /// The opcode in the BTH.
        opcode: Opcode,
    },
}

/// The header fields of a packet. Lengths and checks are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBuilder {
    /// Virtual lane of the first link.
    pub virtual_lane: VirtualLane,
    /// Service level.
    pub service_level: ServiceLevel,
    /// Destination LID.
    pub dlid: Lid,
    /// Source LID.
    pub slid: Lid,
    /// Global Route Header, if the packet is to have one; its PayLen is computed.
    pub grh: Option<Grh>,
    /// Base Transport Header; its PadCnt is computed.
    pub bth: Bth,
    /// Exactly the extended headers of the opcode.
    pub extended: ExtendedHeaders,
}

impl PacketBuilder {
    /// A packet on lane 0 and service level 0 without GRH or extended headers, from and to LID 0.
    pub const fn new(bth: Bth) -> PacketBuilder {
        PacketBuilder {
            virtual_lane: VirtualLane::ZERO,
            service_level: ServiceLevel::truncate(0),
            dlid: Lid::new(0),
            slid: Lid::new(0),
            grh: None,
            bth,
            extended: ExtendedHeaders::NONE,
        }
    }

    /// The builder that reproduces `packet` except its payload and the reserved bits of its LRH; `None` if the
    /// packet is raw.
    pub fn of(packet: &Packet<'_>) -> Option<PacketBuilder> {
        Some(PacketBuilder {
            virtual_lane: packet.lrh.virtual_lane,
            service_level: packet.lrh.service_level,
            dlid: packet.lrh.dlid,
            slid: packet.lrh.slid,
            grh: packet.grh,
            bth: packet.bth?,
            extended: packet.extended,
        })
    }

    /// Replaces the contents of `buffer` by the packet, LRH to VCRC. `fill` receives `payload_length` zeroed
    /// octets and writes the payload to them.
    ///
    /// Nothing is allocated if the buffer's capacity suffices.
    ///
    /// # Errors
    /// If the packet is longer than PktLen can express, or the extended headers do not match the opcode. The
    /// buffer is then unchanged.
    pub fn emit(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), EmitError> {
        self.emit_around(buffer, payload_length, zeroed(payload_length, fill))
    }

    /// As [`PacketBuilder::emit`], but `append` appends the payload to the buffer, so that no octet of it is
    /// written twice.
    ///
    /// # Errors
    /// As [`PacketBuilder::emit`].
    ///
    /// # Panics
    /// If `append` does not write exactly `payload_length` octets.
    pub fn emit_around(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        append: impl FnOnce(&mut BytesMut),
    ) -> Result<(), EmitError> {
        let plan = self.plan(payload_length)?;
        plan.emit(buffer, plan.end + VCRC_LEN, |octets| self.lower(octets, &plan), append);
        crc::refresh_both(buffer);
        Ok(())
    }

    /// Replaces the contents of `buffer` by the headers alone, LRH to extended headers, of a packet with `payload_length`
    /// octets of payload. There is room for `more` octets behind them.
    ///
    /// # Errors
    /// As [`PacketBuilder::emit`].
    pub fn emit_headers(
        &self,
        buffer: &mut BytesMut,
        payload_length: usize,
        more: usize,
    ) -> Result<(), EmitError> {
        let plan = self.plan(payload_length)?;
        plan.emit_headers(buffer, plan.payload_at + more, |octets| self.lower(octets, &plan));
        Ok(())
    }

    fn plan(&self, payload_length: usize) -> Result<TransportPlan<'_>, EmitError> {
        let bth_at = Lrh::LEN + self.grh.map_or(0, |_| Grh::LEN);
        let plan = TransportPlan::new(&self.bth, &self.extended, bth_at, payload_length)
            .ok_or(EmitError::ExtendedHeaders { opcode: self.bth.opcode })?;
        let words = plan.end / WORD;
        if words > usize::from(Lrh::PACKET_LENGTH_MAX) {
            return Err(EmitError::TooLong { words });
        }
        Ok(plan)
    }

    /// Writes the headers before the BTH of `plan`.
    fn lower(&self, octets: &mut [u8], plan: &TransportPlan<'_>) {
        self.lrh((plan.end / WORD) as u16).emit(octets);
        if let Some(grh) = self.grh {
            let payload_length = (plan.end - plan.bth_at) as u16;
            Grh { payload_length, ..grh }.emit(&mut octets[Lrh::LEN..]);
        }
    }

    fn lrh(&self, packet_length: u16) -> Lrh {
        Lrh {
            virtual_lane: self.virtual_lane,
            service_level: self.service_level,
            next_header: match self.grh {
                Some(_) => LinkNextHeader::Global,
                None => LinkNextHeader::Local,
            },
            dlid: self.dlid,
            packet_length,
            slid: self.slid,
            ..Lrh::default()
        }
    }
}
