//! The envelope of a frame: addresses, VLAN tags, and the offset of the payload.

use crate::ids::MacAddress;
use crate::wire::error::ParseError;
use crate::wire::ethernet::ethertype;
use crate::wire::ethernet::header::EthernetHeader;
use crate::wire::ethernet::vlan_tag::VlanTag;

/// Minimum frame length without FCS, in octets. Source: IEEE 802.3, 4A.4.2 (minFrameSize).
pub const LEAST: usize = 60;

/// The headers before a frame's payload: addresses and VLAN tags. Parsing and emitting round-trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Addresses, and the first EtherType.
    pub header: EthernetHeader,
    /// The first VLAN tag.
    pub tag: Option<VlanTag>,
    /// The second VLAN tag.
    pub inner_tag: Option<VlanTag>,
}

impl Envelope {
    /// The envelope of an untagged frame.
    pub const fn untagged(destination: MacAddress, source: MacAddress, ethertype: u16) -> Envelope {
        let header = EthernetHeader { destination, source, ethertype };
        Envelope { header, tag: None, inner_tag: None }
    }

    /// The same envelope with a tag of IEEE 802.1Q before the payload.
    ///
    /// The tag's next EtherType is the present EtherType of the envelope.
    pub const fn tagged(self, tag: VlanTag) -> Envelope {
        let tag = VlanTag { ethertype: self.header.ethertype, ..tag };
        let header = EthernetHeader { ethertype: ethertype::VLAN, ..self.header };
        Envelope { header, tag: Some(tag), inner_tag: self.tag }
    }

    /// The same envelope with another payload EtherType.
    pub const fn announcing(self, ethertype: u16) -> Envelope {
        let Envelope { header, tag, inner_tag } = self;
        match (tag, inner_tag) {
            (_, Some(inner)) => {
                Envelope { inner_tag: Some(VlanTag { ethertype, ..inner }), ..self }
            }
            (Some(tag), None) => Envelope { tag: Some(VlanTag { ethertype, ..tag }), ..self },
            (None, None) => Envelope { header: EthernetHeader { ethertype, ..header }, ..self },
        }
    }

    /// Reads the envelope of a frame with up to two tags. A third tag counts as payload.
    ///
    /// # Errors
    /// In layers "Ethernet" and "VLAN tag": a truncated header.
    #[inline]
    pub fn parse(octets: &[u8]) -> Result<Envelope, ParseError> {
        let header = EthernetHeader::parse(octets)?;
        let mut envelope = Envelope { header, tag: None, inner_tag: None };
        envelope.tag = next_tag(octets, header.ethertype, EthernetHeader::LEN)?;
        if let Some(tag) = envelope.tag {
            envelope.inner_tag =
                next_tag(octets, tag.ethertype, EthernetHeader::LEN + VlanTag::LEN)?;
        }
        Ok(envelope)
    }

    /// The EtherType of the payload, after all tags.
    pub fn ethertype(&self) -> u16 {
        let tag = self.inner_tag.or(self.tag);
        tag.map_or(self.header.ethertype, |tag| tag.ethertype)
    }

    /// Length of the envelope in octets, which is the offset of the payload.
    pub fn octets_len(&self) -> usize {
        let tags = usize::from(self.tag.is_some()) + usize::from(self.inner_tag.is_some());
        EthernetHeader::LEN + tags * VlanTag::LEN
    }

    /// Writes the envelope to the front of `octets`.
    ///
    /// # Panics
    /// If there are fewer than [`Self::octets_len`].
    pub fn emit(&self, octets: &mut [u8]) {
        self.header.emit(octets);
        let tags = [self.tag, self.inner_tag];
        for (tag, place) in tags.iter().flatten().zip(0..) {
            tag.emit(&mut octets[EthernetHeader::LEN + place * VlanTag::LEN..]);
        }
    }
}

fn next_tag(octets: &[u8], kind: u16, at: usize) -> Result<Option<VlanTag>, ParseError> {
    if !matches!(kind, ethertype::VLAN | ethertype::SERVICE_VLAN) {
        return Ok(None);
    }
    VlanTag::parse(&octets[at..]).map(Some).map_err(|error| error.within(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Priority, VlanId};
    use proptest::prelude::*;

    fn tag(priority: u8, id: u16) -> VlanTag {
        VlanTag {
            priority: Priority::truncate(priority),
            drop_eligible: false,
            id: VlanId::truncate(id),
            ethertype: 0,
        }
    }

    #[test]
    fn tags_precede_the_payload_ethertype() {
        let [to, from] = [1, 2].map(MacAddress::from_number);
        let plain = Envelope::untagged(to, from, ethertype::IPV4);
        let once = plain.tagged(tag(3, 100));
        let twice = once.tagged(tag(5, 7));
        let mut octets = [0; 22];
        for (envelope, length) in [(plain, 14), (once, 18), (twice, 22)] {
            assert_eq!(envelope.octets_len(), length);
            assert_eq!(envelope.ethertype(), ethertype::IPV4);
            envelope.emit(&mut octets);
            assert_eq!(Envelope::parse(&octets), Ok(envelope));
            for present in 0..length {
                let refused = Envelope::parse(&octets[..present]).expect_err("too short");
                let layer = if present < 14 { "Ethernet" } else { "VLAN tag" };
                assert_eq!(refused.layer, layer, "{present} octets");
            }
        }
        assert_eq!(octets[12..], [0x81, 0, 0xa0, 7, 0x81, 0, 0x60, 100, 8, 0]);
    }

    proptest! {
        #[test]
        fn any_envelope_round_trips(
            octets in prop::collection::vec(any::<u8>(), 0..40), tags in 0..4usize,
        ) {
            let mut octets = octets;
            for at in (0..tags).map(|tag| 12 + tag * 4) {
                if let Some(place) = octets.get_mut(at..at + 2) {
                    place.copy_from_slice(&[0x81, 0x00]);
                }
            }
            if let Ok(envelope) = Envelope::parse(&octets) {
                let mut written = vec![0; envelope.octets_len()];
                envelope.emit(&mut written);
                prop_assert_eq!(&written[..], &octets[..written.len()]);
            }
        }
    }
}
