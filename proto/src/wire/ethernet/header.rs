//! The header every Ethernet frame begins with.

use crate::wire::big_endian::u16_at;
use crate::wire::ethernet::mac::MacAddress;
use crate::wire::header::header_pair;

/// Addresses and EtherType.
///
/// ```text
/// | destination, six octets | source, six octets | EtherType, two |
/// ```
///
/// Source: IEEE 802.3, 3.1.1 and 3.2.6 (below 0x600 the last number is a length).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// To whom.
    pub destination: MacAddress,
    /// From whom.
    pub source: MacAddress,
    /// What follows: a tag, or what [`super::ethertype`] lists.
    pub ethertype: u16,
}

mod field {
    use std::ops::Range;
    pub const DESTINATION: Range<usize> = 0..6;
    pub const SOURCE: Range<usize> = 6..12;
    pub const ETHERTYPE: Range<usize> = 12..14;
}

header_pair!(EthernetHeaderView views EthernetHeader, "Ethernet", 14);

impl EthernetHeader {
    /// The header's octets.
    pub fn to_octets(&self) -> [u8; EthernetHeader::LEN] {
        let mut octets = [0; EthernetHeader::LEN];
        octets[field::DESTINATION].copy_from_slice(&self.destination.octets());
        octets[field::SOURCE].copy_from_slice(&self.source.octets());
        octets[field::ETHERTYPE].copy_from_slice(&self.ethertype.to_be_bytes());
        octets
    }
}

impl<T: AsRef<[u8]>> EthernetHeaderView<T> {
    fn address(&self, place: std::ops::Range<usize>) -> MacAddress {
        MacAddress::new(self.octets()[place].try_into().expect("an address has six octets"))
    }

    /// To whom.
    pub fn destination(&self) -> MacAddress {
        self.address(field::DESTINATION)
    }

    /// From whom.
    pub fn source(&self) -> MacAddress {
        self.address(field::SOURCE)
    }

    /// What follows.
    pub fn ethertype(&self) -> u16 {
        u16_at(self.octets(), field::ETHERTYPE)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> EthernetHeader {
        EthernetHeader {
            destination: self.destination(),
            source: self.source(),
            ethertype: self.ethertype(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;
    use proptest::prelude::*;

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..EthernetHeader::LEN {
            let refused = Err(ParseError::short("Ethernet", 0, 14, present));
            assert_eq!(EthernetHeader::parse(&[7; 14][..present]), refused);
        }
    }

    proptest! {
        #[test]
        fn any_fourteen_octets_come_back_as_they_were(octets: [u8; EthernetHeader::LEN]) {
            let header = EthernetHeader::parse(&octets)?;
            prop_assert_eq!(&header.destination.octets()[..], &octets[..6]);
            prop_assert_eq!(&header.source.octets()[..], &octets[6..12]);
            prop_assert_eq!(header.to_octets(), octets);
        }
    }
}
