//! ICMP for IPv4 and IPv6: echo, and neighbour discovery.
//!
//! The checksum of ICMPv6 covers a pseudo header with the addresses, that of ICMPv4 does not. Source: RFC 792,
//! RFC 4443 (echo), RFC 4861 (neighbour discovery).

use crate::ids::MacAddress;
use crate::wire::error::ParseError;
use crate::wire::header::header;
use crate::wire::internet::checksum;
use core::net::Ipv6Addr;

/// The protocol number of ICMPv4.
pub const ICMP_V4: u8 = 1;
/// The next header of ICMPv6.
pub const ICMP_V6: u8 = 58;
/// Echo request of ICMPv4. Source: RFC 792.
pub const ECHO_REQUEST_V4: u8 = 8;
/// Echo reply of ICMPv4. Source: RFC 792.
pub const ECHO_REPLY_V4: u8 = 0;
/// Echo request of ICMPv6. Source: RFC 4443, 4.1.
pub const ECHO_REQUEST_V6: u8 = 128;
/// Echo reply of ICMPv6. Source: RFC 4443, 4.2.
pub const ECHO_REPLY_V6: u8 = 129;
/// Neighbour solicitation. Source: RFC 4861, 4.3.
pub const NEIGHBOUR_SOLICITATION: u8 = 135;
/// Neighbour advertisement. Source: RFC 4861, 4.4.
pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

header! {
    /// An echo request or reply; its data follow.
    ///
    /// Source: RFC 792; RFC 4443, 4.
    pub struct Echo[8] "ICMP echo" {
        /// Type of the message.
        pub kind: u8 = 0..8,
        /// Code; 0.
        pub code: u8 = 8..16,
        /// Checksum of the whole message.
        pub checksum: u16 = 16..32,
        /// Identifies the sender's process; comes back in the reply.
        pub identifier: u16 = 32..48,
        /// Sequence number; comes back in the reply.
        pub sequence: u16 = 48..64,
    }

    /// A neighbour solicitation or advertisement; options follow.
    ///
    /// Source: RFC 4861, 4.3 and 4.4.
    pub struct Neighbour[24] "neighbour discovery" {
        /// Type of the message.
        pub kind: u8 = 0..8,
        /// Code; 0.
        pub code: u8 = 8..16,
        /// Checksum of the whole message.
        pub checksum: u16 = 16..32,
        /// The sender is a router.
        pub router: bool = 32..33,
        /// The advertisement answers a solicitation.
        pub solicited: bool = 33..34,
        /// The advertisement replaces an existing entry.
        pub override_entry: bool = 34..35,
        /// Reserved.
        pub reserved29: u32 = 35..64,
        /// The address that is asked for, or advertised.
        pub target: Ipv6Addr = 64..192,
    }

    /// The option with a link-layer address of Ethernet.
    ///
    /// Source: RFC 4861, 4.6.1; RFC 2464, 6.
    pub struct LinkAddressOption[8] "link-layer address option" {
        /// 1 is the sender's address, 2 the target's.
        pub kind: u8 = 0..8,
        /// Length in units of eight octets: 1.
        pub words: u8 = 8..16,
        /// The address.
        pub address: MacAddress = 16..64,
    }
}

impl LinkAddressOption {
    /// The kind of an option with the sender's address.
    pub const SOURCE: u8 = 1;
    /// The kind of an option with the target's address.
    pub const TARGET: u8 = 2;

    /// The address in the first option of `kind` among `options`, which follow a [`Neighbour`].
    ///
    /// # Errors
    /// If an option before it is truncated or has length zero.
    pub fn find(mut options: &[u8], kind: u8) -> Result<Option<MacAddress>, ParseError> {
        while let [carried, words, ..] = *options {
            let length = usize::from(words) * 8;
            if words == 0 || length > options.len() {
                return Err(ParseError::length(Self::LAYER, 0, length, options.len()));
            }
            if carried == kind && length == Self::LEN {
                return Ok(Some(LinkAddressOption::parse(options)?.address));
            }
            options = &options[length..];
        }
        Ok(None)
    }
}

/// Writes the checksum of the ICMPv4 message `octets`, or checks nothing: the field itself is overwritten.
///
/// # Panics
/// If `octets` are fewer than four.
pub fn seal_v4(octets: &mut [u8]) {
    octets[2..4].fill(0);
    let sum = checksum::completed(octets);
    octets[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Writes the checksum of the ICMPv6 message `octets` between these addresses.
///
/// # Panics
/// If `octets` are fewer than four.
pub fn seal_v6(octets: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr) {
    let begun = pseudo_header(octets, source, destination);
    octets[2..4].copy_from_slice(&begun.to_be_bytes());
    let sum = checksum::completed(octets);
    octets[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Whether the checksum of an ICMPv4 message holds.
pub fn is_intact_v4(octets: &[u8]) -> bool {
    checksum::completed(octets) == 0
}

/// Whether the checksum of an ICMPv6 message between these addresses holds.
pub fn is_intact_v6(octets: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> bool {
    // The checksum of all words with the pseudo header's sum is zero.
    let begun = pseudo_header(octets, source, destination);
    checksum::amended(checksum::completed(octets), 0, begun) == 0
}

fn pseudo_header(octets: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> u16 {
    let mut addresses = [0; 32];
    addresses[..16].copy_from_slice(&source.octets());
    addresses[16..].copy_from_slice(&destination.octets());
    checksum::begun(&addresses, ICMP_V6, octets.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_checksum_of_an_echo_request_is_that_of_linux() {
        // `ping -c 1 -s 8 -p 00`: identifier 0x1234, sequence 1, eight zeros.
        let mut octets = [8, 0, 0, 0, 0x12, 0x34, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        seal_v4(&mut octets);
        assert_eq!(octets[2..4], [0xe5, 0xca]);
        assert!(is_intact_v4(&octets));
        octets[9] ^= 1;
        assert!(!is_intact_v4(&octets));
    }

    #[test]
    fn options_are_searched_and_damaged_ones_refused() {
        let address = MacAddress::from_number(0x0200_0000_0002);
        let option = LinkAddressOption { kind: 2, words: 1, address }.to_octets();
        let other = [14, 1, 0, 0, 0, 0, 0, 0];
        let both = [other, option].concat();
        assert_eq!(LinkAddressOption::find(&both, 2), Ok(Some(address)));
        assert_eq!(LinkAddressOption::find(&both, 1), Ok(None));
        assert!(LinkAddressOption::find(&[2, 0, 0, 0, 0, 0, 0, 0], 2).is_err());
        assert!(LinkAddressOption::find(&option[..7], 2).is_err());
    }

    proptest! {
        #[test]
        fn any_octets_round_trip(octets: [u8; Neighbour::LEN]) {
            prop_assert_eq!(Neighbour::parse(&octets)?.to_octets(), octets);
            prop_assert_eq!(&Echo::parse(&octets)?.to_octets()[..], &octets[..8]);
            prop_assert_eq!(&LinkAddressOption::parse(&octets)?.to_octets()[..], &octets[..8]);
        }

        #[test]
        fn a_sealed_message_is_intact_and_a_changed_one_is_not(
            octets in prop::collection::vec(any::<u8>(), 8..80),
            source: u128, destination: u128, bit in 0usize..64,
        ) {
            let (source, destination) = (Ipv6Addr::from_bits(source), Ipv6Addr::from_bits(destination));
            let mut octets = octets;
            seal_v6(&mut octets, source, destination);
            prop_assert!(is_intact_v6(&octets, source, destination));
            octets[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!is_intact_v6(&octets, source, destination));
        }

        #[test]
        fn no_options_make_it_panic(octets in prop::collection::vec(any::<u8>(), 0..40), kind: u8) {
            let _ = LinkAddressOption::find(&octets, kind);
        }
    }
}
