//! All that a frame says before what it carries: its envelope, and a tag of congestion control.

use crate::wire::error::ParseError;
use crate::wire::ethernet::congestion_tag::CongestionTag;
use crate::wire::ethernet::envelope::Envelope;
use crate::wire::project::ProjectTypes;

/// Addresses, VLAN tags, and behind them a tag of congestion control. All of it can be written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// Addresses and VLAN tags.
    pub envelope: Envelope,
    /// What follows them.
    pub tag: Option<CongestionTag>,
}

impl Preface {
    /// The preface of a frame without a tag of congestion control.
    pub const fn untagged(envelope: Envelope) -> Preface {
        Preface { envelope, tag: None }
    }

    /// The same with `tag` between the envelope and what that announces.
    ///
    /// The EtherTypes follow: the tag's own is that of the envelope so far.
    pub fn tagged(self, tag: CongestionTag, types: &ProjectTypes) -> Preface {
        let tag = tag.before(self.ethertype());
        let envelope = self.envelope.announcing(tag.announced_by(types));
        Preface { envelope, tag: Some(tag) }
    }

    /// Reads the preface of a frame.
    ///
    /// # Errors
    /// Those of [`Envelope::parse`]. In layers "CN-TAG" and "RRT": octets that end within it.
    #[inline]
    pub fn parse(octets: &[u8], types: &ProjectTypes) -> Result<Preface, ParseError> {
        let envelope = Envelope::parse(octets)?;
        let at = envelope.octets_len();
        let tag = CongestionTag::parse(envelope.ethertype(), &octets[at..], types)
            .map_err(|error| error.within(at))?;
        Ok(Preface { envelope, tag })
    }

    /// What the frame carries: the EtherType behind all tags.
    #[inline]
    pub fn ethertype(&self) -> u16 {
        match &self.tag {
            Some(tag) => tag.ethertype(),
            None => self.envelope.ethertype(),
        }
    }

    /// Octets on the wire, and so where what the frame carries begins.
    #[inline]
    pub fn octets_len(&self) -> usize {
        self.envelope.octets_len() + self.tag.map_or(0, |tag| tag.octets_len())
    }

    /// The flow that the frame's sender counts it to; 0 without a CN-TAG.
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
