//! All headers of a frame before its payload: the envelope, and a tag of congestion control.

use crate::wire::error::ParseError;
use crate::wire::ethernet::congestion_tag::CongestionTag;
use crate::wire::ethernet::envelope::{Envelope, LEAST};
use crate::wire::project::ProjectTypes;
use bytes::BytesMut;

/// Addresses, VLAN tags, and a congestion control tag after them. Parsing and emitting round-trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// Addresses and VLAN tags.
    pub envelope: Envelope,
    /// The congestion control tag after them.
    pub tag: Option<CongestionTag>,
}

impl Preface {
    /// The preface of a frame without a congestion control tag.
    pub const fn untagged(envelope: Envelope) -> Preface {
        Preface { envelope, tag: None }
    }

    /// The same preface with `tag` between the envelope and the payload.
    ///
    /// The EtherTypes are updated: the tag's next EtherType is the present one of the envelope.
    pub fn tagged(self, tag: CongestionTag, types: &ProjectTypes) -> Preface {
        let tag = tag.before(self.ethertype());
        let envelope = self.envelope.announcing(tag.announced_by(types));
        Preface { envelope, tag: Some(tag) }
    }

    /// Reads the preface of a frame.
    ///
    /// # Errors
    /// Those of [`Envelope::parse`]. In layers "CN-TAG" and "RRT": a truncated tag.
    #[inline]
    pub fn parse(octets: &[u8], types: &ProjectTypes) -> Result<Preface, ParseError> {
        let envelope = Envelope::parse(octets)?;
        let at = envelope.octets_len();
        let tag = CongestionTag::parse(envelope.ethertype(), &octets[at..], types)
            .map_err(|error| error.within(at))?;
        Ok(Preface { envelope, tag })
    }

    /// The EtherType of the payload, after all tags.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        match &self.tag {
            Some(tag) => tag.ethertype(),
            None => self.envelope.ethertype(),
        }
    }

    /// Length of the preface in octets, which is the offset of the payload.
    #[inline]
    pub fn octets_len(&self) -> usize {
        self.envelope.octets_len() + self.tag.map_or(0, |tag| tag.octets_len())
    }

    /// The sender's flow identifier in the CN-TAG; 0 without a CN-TAG.
    ///
    /// Source: IEEE 802.1Q, 33.2.
    pub fn flow_id(&self) -> u16 {
        match self.tag {
            Some(CongestionTag::Cn(tag)) => tag.flow_id,
            _ => 0,
        }
    }

    /// Writes the preface to the front of `octets`.
    ///
    /// # Panics
    /// If there are fewer than [`Self::octets_len`].
    pub fn emit(&self, octets: &mut [u8]) {
        self.envelope.emit(octets);
        if let Some(tag) = &self.tag {
            tag.emit(&mut octets[self.envelope.octets_len()..]);
        }
    }
}

/// Inserts `tag` into a frame without FCS, behind its VLAN tags. The EtherType of `tag` itself is ignored.
///
/// # Errors
/// Those of [`Envelope::parse`]; the frame is then unchanged.
pub fn insert_tag(
    octets: &mut BytesMut,
    tag: CongestionTag,
    types: &ProjectTypes,
) -> Result<(), ParseError> {
    let envelope = Envelope::parse(octets)?;
    let (at, end) = (envelope.octets_len(), octets.len());
    octets.extend_from_slice(&[0; CongestionTag::LEN_MAX][..tag.octets_len()]);
    octets.copy_within(at..end, at + tag.octets_len());
    octets[at - 2..at].copy_from_slice(&tag.announced_by(types).to_be_bytes());
    tag.before(envelope.ethertype()).emit(&mut octets[at..]);
    Ok(())
}

/// Removes the tag of a frame without FCS and pads the frame to the minimum size; `None`, and no effect,
/// without a tag.
///
/// # Errors
/// Those of [`Preface::parse`]; the frame is then unchanged.
pub fn remove_tag(
    octets: &mut BytesMut,
    types: &ProjectTypes,
) -> Result<Option<CongestionTag>, ParseError> {
    let Preface { envelope, tag } = Preface::parse(octets, types)?;
    let Some(tag) = tag else { return Ok(None) };
    let (at, length) = (envelope.octets_len(), tag.octets_len());
    octets[at - 2..at].copy_from_slice(&tag.ethertype().to_be_bytes());
    octets.copy_within(at + length.., at);
    octets.truncate(octets.len() - length);
    octets.resize(octets.len().max(LEAST), 0);
    Ok(Some(tag))
}

#[cfg(test)]
mod tests;
