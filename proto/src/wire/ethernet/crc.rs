//! FCS and the ICRC of RoCE. The ICRC counts all bits that routers and switches may change as ones.
//!
//! Both are the CRC-32 of Ethernet, sent least significant octet first. No function here panics,
//! whatever the octets. Source: IEEE 802.3, 3.2.9 (FCS); IBTA Vol 1, annexes A16 and A17 (ICRC).

use crate::wire::error::ParseError;

/// Length of a frame check sequence, in octets.
pub const FCS_LEN: usize = 4;

/// The first header that an ICRC covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// RoCEv1: a GRH, then the BTH.
    Global,
    /// RoCEv2: IPv4 with its options, UDP, then the BTH.
    Ipv4,
    /// RoCEv2: IPv6, UDP, then the BTH.
    Ipv6,
}

/// Ones in place of the LRH, which a packet on Ethernet does not have.
const NO_LRH: [u8; 8] = [0xff; 8];

/// Length of the longest masked headers: IPv4 with all options, UDP, the BTH up to F and B.
const MASKED_MAX: usize = 60 + 8 + 5;

/// The FCS of a frame; `octets` is the frame without FCS.
pub fn fcs(octets: &[u8]) -> u32 {
    crc32fast::hash(octets)
}

/// Checks the FCS at the end of a frame and returns the frame without it.
///
/// # Errors
/// In layer "FCS": a wrong FCS, or too few octets for one.
pub fn without_fcs(octets: &[u8]) -> Result<&[u8], ParseError> {
    let Some((frame, found)) = octets.split_last_chunk::<FCS_LEN>() else {
        return Err(ParseError::short("FCS", 0, FCS_LEN, octets.len()));
    };
    ParseError::check("FCS", frame.len(), fcs(frame), u32::from_le_bytes(*found))?;
    Ok(frame)
}

/// The ICRC of a packet: `octets` is the network header to the last octet of pad, `bth` the offset of the BTH.
/// Truncated octets are covered as far as present.
pub fn icrc(network: Network, bth: usize, octets: &[u8]) -> u32 {
    let masked_len = octets.len().min(MASKED_MAX).min(bth.saturating_add(5));
    let (headers, rest) = octets.split_at(masked_len);
    let mut copy = [0; MASKED_MAX];
    let masked = &mut copy[..masked_len];
    masked.copy_from_slice(headers);
    let mut ones = |at: usize, bits: u8| {
        if let Some(octet) = masked.get_mut(at) {
            *octet |= bits;
        }
    };
    match network {
        Network::Ipv4 => [1, 8, 10, 11].into_iter().for_each(|at| ones(at, 0xff)),
        Network::Global | Network::Ipv6 => {
            ones(0, 0x0f);
            [1, 2, 3, 7].into_iter().for_each(|at| ones(at, 0xff));
        }
    }
    if network != Network::Global {
        [2, 1].into_iter().for_each(|before| ones(bth.saturating_sub(before), 0xff));
    }
    ones(bth.saturating_add(4), 0xff);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&NO_LRH);
    hasher.update(masked);
    hasher.update(rest);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A notification of a ConnectX-4 Lx, IPv4 header to ICRC (scapy, test/contrib/roce.uts).
    const CNP: [u8; 60] = [
        0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11,
        0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00,
        0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0x82, 0xfd, 0x00, 0x2a,
    ];

    #[test]
    fn the_icrc_is_what_an_adapter_sent() {
        assert_eq!(icrc(Network::Ipv4, 28, &CNP[..56]).to_le_bytes(), CNP[56..]);
    }

    #[test]
    fn a_valid_fcs_is_split_off() {
        let frame = [&CNP[..], &fcs(&CNP).to_le_bytes()].concat();
        assert_eq!(without_fcs(&frame), Ok(&CNP[..]));
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let refused = without_fcs(&damaged).expect_err("one bit is wrong");
            assert_eq!((refused.layer, refused.offset), ("FCS", CNP.len()));
        }
        assert_eq!(without_fcs(&[1, 2, 3]), Err(ParseError::short("FCS", 0, 4, 3)));
    }

    #[test]
    fn variant_fields_do_not_change_the_icrc_and_all_others_do() {
        let free = [1, 8, 10, 11, 26, 27, 32];
        for at in 0..56 {
            let mut changed = CNP;
            changed[at] ^= 0x10;
            let same = icrc(Network::Ipv4, 28, &changed[..56]).to_le_bytes() == CNP[56..];
            assert_eq!(same, free.contains(&at), "octet {at}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_and_no_bth_offset_cause_a_panic(
            octets in prop::collection::vec(any::<u8>(), 0..120), bth: usize,
        ) {
            for network in [Network::Global, Network::Ipv4, Network::Ipv6] {
                icrc(network, bth, &octets);
                icrc(network, bth % 128, &octets);
            }
        }
    }
}
