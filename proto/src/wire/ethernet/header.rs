//! The Ethernet header: addresses and EtherType.

use crate::ids::MacAddress;
use crate::wire::header::header;

header! {
    /// Addresses and EtherType.
    ///
    /// ```text
    /// | destination, six octets | source, six octets | EtherType, two |
    /// ```
    ///
    /// Source: IEEE 802.3, 3.1.1 and 3.2.6 (below 0x600 the last number is a length).
    pub struct EthernetHeader[14] "Ethernet" {
        /// Destination address.
        pub destination: MacAddress = 0..48,
        /// Source address.
        pub source: MacAddress = 48..96,
        /// EtherType of a tag or of the payload ([`super::ethertype`]).
        pub ethertype: u16 = 96..112,
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
        fn any_fourteen_octets_round_trip(octets: [u8; EthernetHeader::LEN]) {
            let header = EthernetHeader::parse(&octets)?;
            prop_assert_eq!(&header.destination.octets()[..], &octets[..6]);
            prop_assert_eq!(&header.source.octets()[..], &octets[6..12]);
            prop_assert_eq!(header.to_octets(), octets);
        }
    }
}
