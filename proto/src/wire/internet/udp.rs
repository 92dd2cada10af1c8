//! UDP: ports, a length, and a checksum that may be missing.

use crate::wire::big_endian::u16_at;
use crate::wire::ethernet::ethertype::ROCE_V2_PORT;
use crate::wire::header::header_pair;

/// User Datagram Protocol. The checksum is outside the ICRC, which routers that rewrite ports need not
/// know: the ports are inside.
///
/// Source: RFC 768.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// From which port; RoCEv2 puts there what spreads flows over paths.
    pub source_port: u16,
    /// To which port.
    pub destination_port: u16,
    /// First octet of this header to the last of what it carries.
    ///
    /// Units: octets.
    pub length: u16,
    /// Checksum, as carried; 0 says that there is none.
    pub checksum: u16,
}

pub(super) mod field {
    use std::ops::Range;
    pub const SOURCE_PORT: Range<usize> = 0..2;
    pub const DESTINATION_PORT: Range<usize> = 2..4;
    pub const LENGTH: Range<usize> = 4..6;
    pub const CHECKSUM: Range<usize> = 6..8;
}

header_pair!(UdpView views Udp, "UDP", 8);

impl Udp {
    /// To the port of RoCEv2; length and checksum are for whoever knows what follows.
    pub const fn roce(source_port: u16) -> Udp {
        Udp { source_port, destination_port: ROCE_V2_PORT, length: 0, checksum: 0 }
    }

    /// The header's octets.
    pub fn to_octets(&self) -> [u8; Udp::LEN] {
        let mut octets = [0; Udp::LEN];
        octets[field::SOURCE_PORT].copy_from_slice(&self.source_port.to_be_bytes());
        octets[field::DESTINATION_PORT].copy_from_slice(&self.destination_port.to_be_bytes());
        octets[field::LENGTH].copy_from_slice(&self.length.to_be_bytes());
        octets[field::CHECKSUM].copy_from_slice(&self.checksum.to_be_bytes());
        octets
    }
}

impl<T: AsRef<[u8]>> UdpView<T> {
    /// From which port.
    pub fn source_port(&self) -> u16 {
        u16_at(self.octets(), field::SOURCE_PORT)
    }

    /// To which port.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.octets(), field::DESTINATION_PORT)
    }

    /// Header and what it carries, in octets.
    pub fn length(&self) -> u16 {
        u16_at(self.octets(), field::LENGTH)
    }

    /// Checksum, as carried.
    pub fn checksum(&self) -> u16 {
        u16_at(self.octets(), field::CHECKSUM)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Udp {
        Udp {
            source_port: self.source_port(),
            destination_port: self.destination_port(),
            length: self.length(),
            checksum: self.checksum(),
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
        for present in 0..Udp::LEN {
            let refused = Err(ParseError::short("UDP", 0, 8, present));
            assert_eq!(Udp::parse(&[0; 8][..present]), refused);
        }
    }

    proptest! {
        #[test]
        fn any_eight_octets_come_back_as_they_were(octets: [u8; Udp::LEN]) {
            prop_assert_eq!(UdpView::new(octets)?.to_owned_header().to_octets(), octets);
        }
    }
}
