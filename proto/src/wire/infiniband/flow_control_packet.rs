//! The flow control packet: grants the peer credit to send on one virtual lane.

use crate::ids::VirtualLane;
use crate::wire::error::ParseError;
use crate::wire::header::{codes, get, put};
use crate::wire::infiniband::crc;

codes! {
    /// The operation of a flow control packet, four bits. A receiver discards packets with a reserved one.
    pub enum FlowControlOp[4] {
        /// The link is armed or active.
        Normal = 0,
        /// The link initialises.
        Init = 1,
    }
}

/// Flow control packet, the only link packet: no LRH, six octets and two delimiters.
///
/// ```text
///  0       4                      16      20                      32
/// |  Op   |         FCTBS         |  VL   |         FCCL          |
/// |             LPCRC             |
/// ```
///
/// Source: IBTA Vol 1, 7.9.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControlPacket {
    /// Op: normal operation or link initialisation.
    pub op: FlowControlOp,
    /// FCTBS: blocks that the sender has sent on the lane since initialisation.
    ///
    /// Units: 64-octet blocks, modulo 4096.
    pub fctbs: u16,
    /// VL: the virtual lane.
    pub virtual_lane: VirtualLane,
    /// FCCL: credit limit, up to which the receiver of this packet may send on the lane.
    ///
    /// Units: 64-octet blocks, modulo 4096.
    pub fccl: u16,
}

impl FlowControlPacket {
    /// Length on the wire in octets, with LPCRC and without delimiters.
    pub const LEN: usize = 6;

    /// Name of the packet in [`ParseError::layer`].
    pub const LAYER: &'static str = "FCP";

    /// Reads a link packet and checks its LPCRC.
    ///
    /// # Errors
    /// Those of [`Self::parse_intact`], and in layer "LPCRC" if the check fails.
    pub fn parse(octets: &[u8]) -> Result<FlowControlPacket, ParseError> {
        let packet = FlowControlPacket::parse_intact(octets)?;
        crc::verify_lpcrc(octets)?;
        Ok(packet)
    }

    /// Reads a link packet without checking its LPCRC, for cables that cannot corrupt it.
    ///
    /// # Errors
    /// If the number of octets is not [`Self::LEN`].
    pub fn parse_intact(octets: &[u8]) -> Result<FlowControlPacket, ParseError> {
        let present = octets.len();
        if present < Self::LEN {
            return Err(ParseError::short(Self::LAYER, 0, Self::LEN, present));
        }
        if present > Self::LEN {
            return Err(ParseError::length(Self::LAYER, 0, Self::LEN, present));
        }
        Ok(FlowControlPacket {
            op: get(octets, 0, 4),
            fctbs: get(octets, 4, 16),
            virtual_lane: get(octets, 16, 20),
            fccl: get(octets, 20, 32),
        })
    }

    /// The packet's octets with LPCRC. Block counts are reduced modulo 4096.
    pub fn to_octets(&self) -> [u8; FlowControlPacket::LEN] {
        let mut covered = [0; 4];
        put(&mut covered, 0, 4, self.op);
        put(&mut covered, 4, 16, self.fctbs);
        put(&mut covered, 16, 20, self.virtual_lane);
        put(&mut covered, 20, 32, self.fccl);
        let ([a, b, c, d], [low, high]) = (covered, crc::lpcrc(&covered).to_le_bytes());
        [a, b, c, d, low, high]
    }

    /// Writes the packet with its LPCRC to the first [`Self::LEN`] of `octets`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn emit(&self, octets: &mut [u8]) {
        octets[..Self::LEN].copy_from_slice(&self.to_octets());
    }
}

#[cfg(test)]
mod tests;
