//! How many octets a message takes on a wire and in a buffer, on either technology.

use nicd::config::{Encapsulation, Operation, RoceVersion, Transport};
use proto::params::Kind;
use proto::technology::Technology;
use proto::units::Bytes;

/// The words for [`Technology`].
pub const TECHNOLOGY: Kind = Kind::Word(|| Technology::ALL.map(Technology::name).to_vec());

/// The technology called `word`.
pub fn technology(word: &str) -> Option<Technology> {
    Technology::ALL.into_iter().find(|technology| technology.name() == word)
}

/// LRH 8, BTH 12, ICRC 4, VCRC 2. Source: IBTA Vol 1, 5.2.
const INFINIBAND: u64 = 26;
/// MAC header 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4. Source: IBTA Vol 1, annex A17.
const ROCE: u64 = 62;
/// What the header of IPv6 has beyond that of IPv4.
const IPV6: u64 = 20;
/// The least that a frame of Ethernet has, FCS included. Source: IEEE 802.3, 4A.4.2.
pub const ETHERNET_MIN: u64 = 64;
/// Datagram extended transport header.
const DETH: u64 = 8;
/// RDMA extended transport header, in the first packet of a write.
const RETH: u64 = 16;
/// The unit of credit.
const BLOCK: u64 = 64;

/// What a test frame has beside the payload that a link's MTU limits: MAC header and FCS.
pub const TEST: u64 = 18;

/// A full data frame, LRH to VCRC, or over IPv4 from DA to FCS: payload of one MTU and no further
/// headers.
pub fn full_frame(technology: Technology, mtu: Bytes) -> Bytes {
    let headers = match technology {
        Technology::Infiniband => INFINIBAND,
        Technology::Ethernet => ROCE,
    };
    Bytes::new(mtu.get() + headers)
}

/// The room a frame takes in a buffer: whole credit blocks, or its octets.
pub fn as_buffered(technology: Technology, frame: Bytes) -> Bytes {
    match technology {
        Technology::Infiniband => Bytes::new(frame.get().div_ceil(BLOCK) * BLOCK),
        Technology::Ethernet => frame,
    }
}

/// The octets of all packets of one message, headers and padding included.
pub fn message(
    size: Bytes,
    mtu: Bytes,
    transport: Transport,
    operation: Operation,
    wire: &Encapsulation,
) -> Bytes {
    // A message by test frames is one frame, and its size that of the frame.
    if transport == Transport::Test {
        return size;
    }
    let packets = size.get().div_ceil(mtu.get()).max(1);
    let padded = size.get().div_ceil(4) * 4;
    let datagram = if transport == Transport::Ud { DETH * packets } else { 0 };
    let write = if operation == Operation::Write { RETH } else { 0 };
    let (headers, least) = match wire {
        Encapsulation::Infiniband => (INFINIBAND, 0),
        Encapsulation::Roce(roce) if roce.version == RoceVersion::V2Ipv4 => (ROCE, ETHERNET_MIN),
        Encapsulation::Roce(_) => (ROCE + IPV6, ETHERNET_MIN),
    };
    // Only a message of nothing is shorter than the least frame: any payload has four octets.
    Bytes::new((padded + packets * headers + datagram + write).max(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicd::config::RoceConfig;

    const MTU: Bytes = Bytes::new(2048);

    #[test]
    fn a_full_frame_is_2074_octets_and_33_blocks() {
        let frame = full_frame(Technology::Infiniband, MTU);
        assert_eq!(frame, Bytes::new(2074));
        let buffered = |frame| as_buffered(Technology::Infiniband, frame);
        assert_eq!(buffered(frame), Bytes::new(33 * 64));
        assert_eq!(buffered(frame + Bytes::new(RETH)), Bytes::new(33 * 64));
    }

    #[test]
    fn a_full_frame_of_ethernet_is_buffered_as_it_is() {
        let frame = full_frame(Technology::Ethernet, Bytes::new(1024));
        assert_eq!(frame, Bytes::new(1086));
        assert_eq!(as_buffered(Technology::Ethernet, frame), frame);
    }

    #[test]
    fn a_message_pays_for_the_headers_of_all_its_packets() {
        let on = |wire: &Encapsulation, size, transport, operation| {
            message(Bytes::new(size), MTU, transport, operation, wire).get()
        };
        let send = |size| on(&Encapsulation::Infiniband, size, Transport::Rc, Operation::Send);
        assert_eq!(send(2048), 2074);
        assert_eq!(send(5), 8 + 26);
        assert_eq!(send(0), 26);
        assert_eq!(send(4097), 4100 + 3 * 26);
        let write = on(&Encapsulation::Infiniband, 4096, Transport::Rc, Operation::Write);
        assert_eq!(write, 4096 + 2 * 26 + 16);
        assert_eq!(on(&Encapsulation::Infiniband, 2048, Transport::Ud, Operation::Send), 2082);
        let mut roce = RoceConfig::default();
        let sent = |roce: &RoceConfig, size| {
            on(&Encapsulation::Roce(roce.clone()), size, Transport::Rc, Operation::Send)
        };
        assert_eq!([sent(&roce, 4096), sent(&roce, 0), sent(&roce, 3)], [4096 + 2 * 62, 64, 66]);
        roce.version = RoceVersion::V2Ipv6;
        assert_eq!([sent(&roce, 4096), sent(&roce, 0)], [4096 + 2 * 82, 82]);
    }
}
