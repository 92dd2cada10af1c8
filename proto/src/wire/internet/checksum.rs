//! The checksum of IPv4 headers and UDP datagrams: computation, check, and update after a change.
//!
//! A sum of sixteen-bit words in ones' complement. No function here panics, whatever the octets.
//! Source: RFC 1071; RFC 1624 (change of one word).

use crate::wire::error::ParseError;
use crate::wire::ethernet::ethertype::UDP;
use crate::wire::internet::ipv4::{self, Ipv4};
use crate::wire::internet::udp;

/// The unfolded sum of `octets` as 16-bit words. A last odd octet is the high half of a word.
fn sum(octets: &[u8]) -> u64 {
    let (words, rest) = octets.as_chunks::<2>();
    let last = rest.first().map_or(0, |octet| u64::from(*octet) << 8);
    words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum::<u64>() + last
}

/// Folds the carries into 16 bits and returns the complement.
fn finish(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of `octets` without the two at `except`.
fn sum_except(octets: &[u8], except: usize) -> u64 {
    let (before, rest) = octets.split_at(octets.len().min(except));
    sum(before) + sum(rest.get(2..).unwrap_or_default())
}

/// The correct checksum of an IPv4 header with options. Source: RFC 791, 3.1.
pub fn ipv4_header(header: &[u8]) -> u16 {
    finish(sum_except(header, ipv4::CHECKSUM.start))
}

/// The correct checksum of a UDP datagram; `addresses` are source and destination. Never 0, which means no
/// checksum.
///
/// Source: RFC 768; RFC 8200, 8.1 (the IPv6 pseudo-header has the same sum).
pub fn udp(addresses: &[u8], datagram: &[u8]) -> u16 {
    let pseudo_header = sum(addresses) + u64::from(UDP) + datagram.len() as u64;
    match finish(pseudo_header + sum_except(datagram, udp::CHECKSUM.start)) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// The sum of a pseudo-header, which a sender with checksum offload writes to the checksum field: `addresses`
/// (source and destination), protocol, and length of transport header and payload in octets.
pub fn begun(addresses: &[u8], protocol: u8, length: usize) -> u16 {
    !finish(sum(addresses) + u64::from(protocol) + length as u64)
}

/// Completes the checksum of `octets` whose checksum field contains the sum of [`begun`].
pub fn completed(octets: &[u8]) -> u16 {
    finish(sum(octets))
}

/// Updates `checksum` after one covered word changed from `before` to `after`. A wrong checksum stays
/// wrong.
///
/// Source: RFC 1624, equation 3.
pub fn amended(checksum: u16, before: u16, after: u16) -> u16 {
    finish(u64::from(!checksum) + u64::from(!before) + u64::from(after))
}

/// Checks the checksum of an IPv4 header with options.
///
/// # Errors
/// In layer "IPv4": a wrong checksum.
pub fn verify_ipv4_header(header: &[u8]) -> Result<(), ParseError> {
    // With a valid checksum the sum of all words is all ones. Both 0 and 0xffff pass as zero (RFC 1071).
    if finish(sum(header)) == 0 {
        return Ok(());
    }
    let carried = header.get(ipv4::CHECKSUM).unwrap_or_default();
    let present = carried.iter().fold(0, |number: u32, octet| number << 8 | u32::from(*octet));
    ParseError::check(Ipv4::LAYER, 0, ipv4_header(header), present)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::Reason;
    use proptest::prelude::*;

    /// The header of a notification that a ConnectX-4 Lx sent.
    const HEADER: [u8; 20] = [
        0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11,
        0x01, 0x0a, 0x00, 0x12, 0x01,
    ];

    #[test]
    fn a_captured_header_passes_and_a_damaged_one_fails() {
        assert_eq!(ipv4_header(&HEADER), 0x9161);
        assert_eq!(verify_ipv4_header(&HEADER), Ok(()));
        for bit in 0..160 {
            let mut damaged = HEADER;
            damaged[bit / 8] ^= 1 << (bit % 8);
            let refused = verify_ipv4_header(&damaged).expect_err("one bit is wrong");
            assert_eq!(refused.layer, "IPv4");
            assert!(matches!(refused.reason, Reason::Check { .. }));
        }
    }

    #[test]
    fn both_zeros_of_ones_complement_pass() {
        let mut header = HEADER;
        // The identification for which the correct checksum is 0.
        let identification = 0x718c_u32 + 0x9161;
        let identification = (identification % 0x1_0000 + identification / 0x1_0000) as u16;
        header[4..6].copy_from_slice(&identification.to_be_bytes());
        for carried in [0, 0xffff_u16] {
            header[10..12].copy_from_slice(&carried.to_be_bytes());
            assert_eq!((ipv4_header(&header), verify_ipv4_header(&header)), (0, Ok(())));
        }
        header[11] = 0xfe;
        assert!(verify_ipv4_header(&header).is_err());
    }

    #[test]
    fn a_zero_udp_checksum_is_sent_as_ones() {
        // The word for which the sum of all words is 0xffff.
        let mut datagram = [0, 1, 0, 2, 0, 10, 0, 0, 0, 0];
        let all = 1 + 2 + 10 + 10 + u16::from(UDP);
        datagram[8..].copy_from_slice(&(0xffff - all).to_be_bytes());
        assert_eq!(udp(&[0; 8], &datagram), 0xffff);
    }

    #[test]
    fn completing_a_begun_sum_equals_the_full_checksum() {
        let mut datagram = [0x12, 0xb7, 0, 53, 0, 11, 0, 0, 1, 2, 3];
        let addresses = [10, 0, 17, 1, 10, 0, 18, 1];
        let whole = udp(&addresses, &datagram);
        let sum = begun(&addresses, UDP, datagram.len());
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(completed(&datagram), whole);
    }

    proptest! {
        #[test]
        fn no_octets_make_it_panic(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (ipv4_header(&octets), udp(&octets, &octets), verify_ipv4_header(&octets));
        }

        #[test]
        fn updating_equals_recomputing_after_a_change(
            header: [u8; 20], word in 0usize..9, after: u16,
        ) {
            // Exclude all zeros, which is not an IPv4 header.
            let mut header = header;
            header[0] = 0x45;
            let at = [0, 2, 4, 6, 8, 12, 14, 16, 18][word];
            let after = if at == 0 { after | 0x4000 } else { after };
            let carried = ipv4_header(&header);
            let before = u16::from_be_bytes([header[at], header[at + 1]]);
            header[at..at + 2].copy_from_slice(&after.to_be_bytes());
            prop_assert_eq!(amended(carried, before, after), ipv4_header(&header));
        }
    }
}
