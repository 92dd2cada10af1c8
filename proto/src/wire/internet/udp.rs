//! UDP: ports, length, and an optional checksum.

use crate::wire::ethernet::ethertype::ROCE_V2_PORT;
use crate::wire::header::header;
use core::ops::Range;

header! {
    /// User Datagram Protocol. The ICRC covers the ports and the length, but not the checksum.
    ///
    /// Source: RFC 768.
    pub struct Udp[8] "UDP", view UdpView {
        /// Source port; RoCEv2 uses it as entropy for ECMP.
        pub source_port: u16 = 0..16,
        /// Destination port.
        pub destination_port: u16 = 16..32,
        /// Length of header and payload.
        ///
        /// Units: octets.
        pub length: u16 = 32..48,
        /// Checksum; 0 means none.
        pub checksum: u16 = 48..64,
    }
}

/// The octets of the checksum.
pub(super) const CHECKSUM: Range<usize> = 6..8;

impl Udp {
    /// A header for the RoCEv2 port. The caller sets length and checksum when the payload is known.
    pub const fn roce(source_port: u16) -> Udp {
        Udp { source_port, destination_port: ROCE_V2_PORT, length: 0, checksum: 0 }
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
        fn any_eight_octets_round_trip(octets: [u8; Udp::LEN]) {
            prop_assert_eq!(Udp::parse(&octets)?.to_octets(), octets);
        }
    }
}
