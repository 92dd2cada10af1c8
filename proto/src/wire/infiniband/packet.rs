//! A whole data packet: parsing it, and building it with computed lengths and CRCs.
//!
//! Source: IBTA Vol 1, 5.2 (which headers a packet has, and in which order).

pub mod builder;

pub use builder::{EmitError, PacketBuilder};

use super::envelope::{self, ICRC_LEN, VCRC_LEN, bth_offset, carried_icrc, carried_vcrc};
use super::{Bth, ExtendedHeaders, Grh, LinkNextHeader, Lrh, Transport};
use crate::wire::error::{ParseError, Reason};
use bytes::BytesMut;

/// A parsed data packet, with borrowed payload.
///
/// A raw packet has neither BTH nor ICRC; its payload is everything between LRH and VCRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Local Route Header.
    pub lrh: Lrh,
    /// Global Route Header; present if and only if LNH is 3 (IBTA Vol 1, 7.7.5).
    pub grh: Option<Grh>,
    /// Base Transport Header, unless the packet is raw.
    pub bth: Option<Bth>,
    /// The extended headers of the opcode.
    pub extended: ExtendedHeaders,
    /// The payload, without pad.
    pub payload: &'a [u8],
    /// The pad after the payload, with any contents.
    pub pad: &'a [u8],
    /// ICRC in the packet; `None` if it is raw.
    pub icrc: Option<u32>,
    /// VCRC in the packet.
    pub vcrc: u16,
}

impl<'a> Packet<'a> {
    /// Parses a packet. Checks lengths and versions, but no CRC.
    ///
    /// # Errors
    /// A truncated layer, a length (PktLen, GRH PayLen, PadCnt) that disagrees with the octets, an unknown
    /// version, or a GRH whose next header is not a BTH.
    pub fn parse(octets: &'a [u8]) -> Result<Packet<'a>, ParseError> {
        let transport = Packet::transport(octets)?;
        let (lrh, vcrc) = (Lrh::parse(octets)?, carried_vcrc(octets));
        let Some(Transport { bth, extended, payload, pad }) = transport else {
            let (extended, payload) =
                (ExtendedHeaders::NONE, &octets[Lrh::LEN..octets.len() - VCRC_LEN]);
            return Ok(Packet {
                lrh,
                grh: None,
                bth: None,
                extended,
                payload,
                pad: &[],
                icrc: None,
                vcrc,
            });
        };
        let is_global = lrh.next_header == LinkNextHeader::Global;
        let grh = is_global.then(|| parse_grh(octets, octets.len())).transpose()?;
        let (bth, icrc) = (Some(bth), Some(carried_icrc(octets)));
        Ok(Packet { lrh, grh, bth, extended, payload, pad, icrc, vcrc })
    }

    /// Parses the parts that receivers need, with the same checks; `None` if the packet is raw.
    ///
    /// # Errors
    /// As [`Packet::parse`].
    pub fn transport(octets: &'a [u8]) -> Result<Option<Transport<'a>>, ParseError> {
        Packet::transport_part(octets, octets.len())
    }

    /// As [`Packet::transport`], of a packet of `length` octets, the first of which are `octets`; of one that is not raw at
    /// least those up to the sixth behind the BTH, and all headers.
    ///
    /// # Errors
    /// As [`Packet::parse`].
    pub fn transport_part(
        octets: &'a [u8],
        length: usize,
    ) -> Result<Option<Transport<'a>>, ParseError> {
        envelope::check_part(octets, length)?;
        let Some(offset) = bth_offset(octets)? else { return Ok(None) };
        if offset > Lrh::LEN {
            parse_grh(octets, length)?;
        }
        let end = length - ICRC_LEN - VCRC_LEN;
        let present = &octets[offset..end.min(octets.len())];
        Transport::parse_part(present, end - offset, offset).map(Some)
    }

    /// Length on the wire in octets, LRH to VCRC.
    pub fn octets_len(&self) -> usize {
        Lrh::LEN
            + self.grh.map_or(0, |_| Grh::LEN)
            + self.bth.map_or(0, |_| Bth::LEN)
            + self.extended.set().octets()
            + self.payload.len()
            + self.pad.len()
            + self.icrc.map_or(0, |_| ICRC_LEN)
            + VCRC_LEN
    }

    /// The packet's octets, with its own lengths and CRCs.
    pub fn to_octets(&self) -> BytesMut {
        let mut octets = BytesMut::with_capacity(self.octets_len());
        octets.extend_from_slice(&self.lrh.to_octets());
        octets.extend(self.grh.iter().flat_map(Grh::to_octets));
        match self.bth {
            Some(bth) => {
                let Packet { extended, payload, pad, .. } = *self;
                Transport { bth, extended, payload, pad }.append_to(&mut octets);
            }
            None => octets.extend_from_slice(self.payload),
        }
        octets.extend(self.icrc.iter().flat_map(|icrc| icrc.to_le_bytes()));
        octets.extend_from_slice(&self.vcrc.to_le_bytes());
        octets
    }
}

/// The GRH of a packet of `length` octets.
fn parse_grh(octets: &[u8], length: usize) -> Result<Grh, ParseError> {
    let refuse = |reason| ParseError::new(Grh::LAYER, Lrh::LEN, reason);
    let after_lrh = &octets[Lrh::LEN..];
    let grh = Grh::parse(after_lrh).map_err(|error| error.within(Lrh::LEN))?;
    if grh.version != Grh::VERSION {
        return Err(refuse(Reason::Version(grh.version)));
    }
    let declared = usize::from(grh.payload_length);
    let present = length - Lrh::LEN - Grh::LEN - VCRC_LEN;
    if declared != present {
        return Err(refuse(Reason::Length { declared, present }));
    }
    Ok(grh)
}

#[cfg(test)]
mod tests;
