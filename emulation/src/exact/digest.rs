//! The digest that distinguishes a frame on a cable of its own from those before and behind it.
//!
//! The FCS would not do. A packet of RoCE ends with its ICRC, which is a CRC of the same polynomial, so octets that differ
//! only in what the ICRC covers have the same FCS: a PSN, an opcode, all of the payload. The packets of a flow are such
//! octets, and a repeat of one would pass for the next.

use crc_fast::CrcAlgorithm;

/// Octets of a digest.
pub(super) const DIGEST: usize = 8;

/// The digest of a frame: a CRC of another polynomial.
pub(super) fn digest(octets: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::wire::ethernet::crc::{Network, fcs, icrc};

    /// Addresses and type, an IPv6 header, a UDP header, a BTH with `psn`, some payload and the ICRC.
    fn packet(psn: u8, payload: u8) -> Vec<u8> {
        const ETHERNET: usize = 14;
        const BTH: usize = 40 + 8;
        let mut octets = vec![0x5a; ETHERNET + BTH + 12];
        octets[ETHERNET + BTH + 11] = psn;
        octets.extend([payload; 100]);
        let icrc = icrc(Network::Ipv6, BTH, &octets[ETHERNET..]);
        octets.extend(icrc.to_le_bytes());
        octets
    }

    #[test]
    fn packets_of_one_flow_have_one_fcs_and_different_digests() {
        let (one, next) = (packet(1, 7), packet(2, 8));
        assert_eq!(fcs(&one), fcs(&next));
        assert_ne!(digest(&one), digest(&next));
        assert_eq!(digest(&one), digest(&packet(1, 7)));
    }
}
