//! How many octets a message takes on an InfiniBand wire and in a buffer.

use nicd::config::{Operation, Transport};
use proto::units::Bytes;

/// LRH 8, BTH 12, ICRC 4, VCRC 2. Source: IBTA Vol 1, 5.2.
const HEADERS: u64 = 26;
/// Datagram extended transport header.
const DETH: u64 = 8;
/// RDMA extended transport header, in the first packet of a write.
const RETH: u64 = 16;
/// The unit of credit.
const BLOCK: u64 = 64;

/// A full data frame, LRH to VCRC: payload of one MTU and no further headers.
pub fn full_frame(mtu: Bytes) -> Bytes {
    Bytes::new(mtu.get() + HEADERS)
}

/// The room a frame takes in a buffer: whole credit blocks.
pub fn as_buffered(frame: Bytes) -> Bytes {
    Bytes::new(frame.get().div_ceil(BLOCK) * BLOCK)
}

/// The octets of all packets of one message, headers and padding included.
pub fn message(size: Bytes, mtu: Bytes, transport: Transport, operation: Operation) -> Bytes {
    let packets = size.get().div_ceil(mtu.get()).max(1);
    let padded = size.get().div_ceil(4) * 4;
    let datagram = if transport == Transport::Ud { DETH * packets } else { 0 };
    let write = if operation == Operation::Write { RETH } else { 0 };
    Bytes::new(padded + packets * HEADERS + datagram + write)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: Bytes = Bytes::new(2048);

    #[test]
    fn a_full_frame_is_2074_octets_and_33_blocks() {
        assert_eq!(full_frame(MTU), Bytes::new(2074));
        assert_eq!(as_buffered(full_frame(MTU)), Bytes::new(33 * 64));
        assert_eq!(as_buffered(full_frame(MTU) + Bytes::new(RETH)), Bytes::new(33 * 64));
    }

    #[test]
    fn a_message_pays_for_the_headers_of_all_its_packets() {
        let send = |size| message(Bytes::new(size), MTU, Transport::Rc, Operation::Send).get();
        assert_eq!(send(2048), 2074);
        assert_eq!(send(5), 8 + 26);
        assert_eq!(send(0), 26);
        assert_eq!(send(4097), 4100 + 3 * 26);
        let write = message(Bytes::new(4096), MTU, Transport::Rc, Operation::Write).get();
        assert_eq!(write, 4096 + 2 * 26 + 16);
        assert_eq!(message(MTU, MTU, Transport::Ud, Operation::Send).get(), 2082);
    }
}
