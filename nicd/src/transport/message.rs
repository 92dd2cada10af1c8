//! A posted message: its descriptor, and what stands in its payload.
//!
//! Payload is made when a frame leaves, never stored. A message of 24 octets or more carries a
//! stamp in its first octets, so that the far end can tell how long it took:
//!
//! ```text
//! | tag 4 | item 2 | flags 2 | number 4 | tag 4 | posted 8, in picoseconds | pattern …
//! ```
//!
//! Tags and flags are chosen so that Wireshark's payload heuristics take it for nothing: the tag is
//! no EtherType, the word behind it is never the version number that RPC over RDMA looks for, and the
//! fourth word none of its message types. With one of those, a message of several packets would be put
//! together and called malformed.

use crate::config::MTU_MAX;
use bytes::BytesMut;
use proto::units::Instant;

/// A message that has been posted and not yet completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it was posted.
    pub posted: Instant,
    /// Its place in the order of posting over the whole NIC.
    pub sequence: u64,
    /// Its number within its traffic item, modulo 2^32.
    pub number: u32,
    /// Octets.
    pub size: u32,
    /// Index of its traffic item in this NIC's list.
    pub item: u16,
}

const _: () = assert!(size_of::<Message>() <= 32, "posting is unbounded, so descriptors are small");

/// What the first octets of a message say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The traffic item's number in the scenario.
    pub item: u16,
    /// The message's number within its item.
    pub number: u32,
    /// When it was posted.
    pub posted: Instant,
}

impl Stamp {
    /// Octets of a stamp.
    pub const LEN: usize = 24;
    const TAG: [u8; 4] = [0xb5, b'p', b'b', 0xe1];
    /// The top bit keeps the second word from being a small number; no flag is in use yet.
    const FLAGS: u16 = 0x8000;

    /// Writes the stamp into the first octets of `payload`, if it has room for one.
    pub fn emit(&self, payload: &mut [u8]) {
        let Some(octets) = payload.first_chunk_mut::<{ Stamp::LEN }>() else { return };
        octets[0..4].copy_from_slice(&Self::TAG);
        octets[4..6].copy_from_slice(&self.item.to_be_bytes());
        octets[6..8].copy_from_slice(&Self::FLAGS.to_be_bytes());
        octets[8..12].copy_from_slice(&self.number.to_be_bytes());
        octets[12..16].copy_from_slice(&Self::TAG);
        octets[16..24].copy_from_slice(&self.posted.as_ps().to_be_bytes());
    }

    /// The stamp at the beginning of `payload`, if there is one.
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

/// What fills payloads: a ramp that begins like no known protocol.
static PATTERN: [u8; MTU_MAX] = {
    let mut pattern = [0; MTU_MAX];
    let mut at = 0;
    while at < MTU_MAX {
        pattern[at] = (at as u8).wrapping_mul(7) ^ 0xa5;
        at += 1;
    }
    pattern
};

/// Appends the payload of one packet, of so many octets; `stamp` belongs to the first packet of a
/// message.
pub fn append(octets: &mut BytesMut, length: usize, stamp: Option<Stamp>) {
    let begin = octets.len();
    let end = begin + length;
    while octets.len() < end {
        let rest = end - octets.len();
        octets.extend_from_slice(&PATTERN[..rest.min(MTU_MAX)]);
    }
    if let Some(stamp) = stamp {
        stamp.emit(&mut octets[begin..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(length: usize, stamp: Option<Stamp>) -> BytesMut {
        let mut octets = BytesMut::new();
        append(&mut octets, length, stamp);
        octets
    }

    #[test]
    fn a_stamp_survives_the_wire_and_short_messages_carry_none() {
        let stamp = Stamp { item: 3, number: 70_000, posted: Instant::from_ps(1 << 50) };
        assert_eq!(Stamp::parse(&payload(64, Some(stamp))), Some(stamp));
        assert_eq!(Stamp::parse(&payload(64, None)), None);
        let short = payload(Stamp::LEN - 1, Some(stamp));
        assert_eq!(short[..], PATTERN[..Stamp::LEN - 1]);
    }

    #[test]
    fn a_payload_stands_behind_what_was_there_and_may_be_longer_than_any_mtu() {
        let mut octets = BytesMut::from(&b"headers"[..]);
        append(&mut octets, MTU_MAX + 5, None);
        assert_eq!(octets[..7], b"headers"[..]);
        assert_eq!(octets[7..7 + MTU_MAX], PATTERN[..]);
        assert_eq!(octets[7 + MTU_MAX..], PATTERN[..5]);
    }

    /// Version 1 in the second word and a type of 0 to 4 in the fourth make RPC over RDMA of it.
    #[test]
    fn no_message_begins_like_rpc_over_rdma() {
        let zero = Stamp { item: 0, number: 0, posted: Instant::ZERO };
        let one = Stamp { item: 0, number: 1, posted: Instant::from_ps(1 << 32) };
        for stamp in [Some(zero), Some(one), None] {
            let payload = payload(64, stamp);
            let word = |at: usize| u32::from_be_bytes(*payload[at..].first_chunk().expect("four"));
            assert!(word(4) != 1 && word(12) > 4, "{stamp:?}");
        }
    }
}
