//! A posted message: its descriptor and its payload.
//!
//! The payload is made when a frame leaves, never stored. A message of 24 octets or more begins with a stamp,
//! from which the receiver computes the latency (octets per field; big endian):
//!
//! ```text
//! | tag 4 | item 2 | flags 2 | number 4 | tag 4 | posted 8, in picoseconds | pattern …
//! ```
//!
//! Tag and flags keep Wireshark from decoding the payload as another protocol: the tag is not an EtherType, the
//! second word is never the version number of RPC over RDMA, and the fourth word none of its message types.
//! Otherwise Wireshark would reassemble long messages and report them as malformed.

use bytes::BytesMut;
use proto::units::Instant;
use proto::wire::implied::PAYLOAD_KEPT;
use proto::wire::project::pattern;

/// A message that is posted and not yet complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it was posted.
    pub posted: Instant,
    /// The message's position in the order of posting over the whole NIC.
    pub sequence: u64,
    /// The message's number within its traffic item, modulo 2^32.
    pub number: u32,
    /// Octets of the message.
    pub size: u32,
    /// Local index of the traffic item.
    pub item: u16,
}

const _: () = assert!(
    size_of::<Message>() <= 32,
    "the number of posted messages is unbounded, so descriptors stay small"
);

/// The stamp in the first octets of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The traffic item's index in the scenario.
    pub item: u16,
    /// The message's number within its item, modulo 2^32.
    pub number: u32,
    /// When the message was posted, in fabric time.
    pub posted: Instant,
}

impl Stamp {
    /// Octets of a stamp.
    pub const LEN: usize = 24;
    const TAG: [u8; 4] = [0xb5, b'p', b'b', 0xe1];
    /// The top bit keeps the second word from being a small number; the other bits are unused.
    const FLAGS: u16 = 0x8000;

    /// Writes the stamp into the first octets of `payload`; does nothing if `payload` is shorter than a
    /// stamp.
    pub fn emit(&self, payload: &mut [u8]) {
        let Some(octets) = payload.first_chunk_mut::<{ Stamp::LEN }>() else { return };
        octets[0..4].copy_from_slice(&Self::TAG);
        octets[4..6].copy_from_slice(&self.item.to_be_bytes());
        octets[6..8].copy_from_slice(&Self::FLAGS.to_be_bytes());
        octets[8..12].copy_from_slice(&self.number.to_be_bytes());
        octets[12..16].copy_from_slice(&Self::TAG);
        octets[16..24].copy_from_slice(&self.posted.as_ps().to_be_bytes());
    }

    /// Parses the stamp at the start of `payload`; `None` if it is too short or lacks the tag.
    pub fn parse(payload: &[u8]) -> Option<Stamp> {
        let octets = payload.first_chunk::<{ Stamp::LEN }>()?;
        if octets[0..4] != Self::TAG {
            return None;
        }
        let posted = *octets[16..].first_chunk::<8>()?;
        Some(Stamp {
            item: u16::from_be_bytes([octets[4], octets[5]]),
            number: u32::from_be_bytes([octets[8], octets[9], octets[10], octets[11]]),
            posted: Instant::from_ps(u64::from_be_bytes(posted)),
        })
    }
}

/// Appends `length` octets of payload to `octets`. `stamp` belongs into the first packet of a message.
pub fn append(octets: &mut BytesMut, length: usize, stamp: Option<Stamp>) {
    let begin = octets.len();
    pattern::append(octets, 0, length);
    if let Some(stamp) = stamp {
        stamp.emit(&mut octets[begin..]);
    }
}

const _: () = assert!(Stamp::LEN <= PAYLOAD_KEPT, "only the pattern behind the stamp is implied");

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(length: usize, stamp: Option<Stamp>) -> BytesMut {
        let mut octets = BytesMut::new();
        append(&mut octets, length, stamp);
        octets
    }

    #[test]
    fn a_stamp_round_trips_and_short_messages_carry_none() {
        let stamp = Stamp { item: 3, number: 70_000, posted: Instant::from_ps(1 << 50) };
        assert_eq!(Stamp::parse(&payload(64, Some(stamp))), Some(stamp));
        assert_eq!(Stamp::parse(&payload(64, None)), None);
        let short = payload(Stamp::LEN - 1, Some(stamp));
        assert_eq!(short, payload(Stamp::LEN - 1, None));
    }

    #[test]
    fn a_payload_is_appended_and_may_exceed_the_mtu() {
        let mut octets = BytesMut::from(&b"headers"[..]);
        append(&mut octets, 4096 + 5, None);
        assert_eq!((&octets[..7], octets.len()), (&b"headers"[..], 7 + 4096 + 5));
        assert_eq!(octets[7 + 4096..], octets[7..12]);
    }

    /// Version 1 in the second word and type 0 to 4 in the fourth identify RPC over RDMA.
    #[test]
    fn no_message_begins_like_rpc_over_rdma() {
        let zero = Stamp { item: 0, number: 0, posted: Instant::ZERO };
        let one = Stamp { item: 0, number: 1, posted: Instant::from_ps(1 << 32) };
        for stamp in [Some(zero), Some(one), None] {
            let payload = payload(64, stamp);
            let word =
                |at: usize| u32::from_be_bytes(*payload[at..].first_chunk().expect("four octets"));
            assert!(word(4) != 1 && word(12) > 4, "{stamp:?}");
        }
    }
}
