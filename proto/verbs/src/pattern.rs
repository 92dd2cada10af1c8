//! The content of memory as a function of the position in a stream, so that both ends know it without sending it.

use serde::{Deserialize, Serialize};

/// An endless stream of octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Word n, 8 octets with the low one first, is SplitMix64 of `seed` + n: the finaliser of Steele, Lea and Flood,
    /// "Fast splittable pseudorandom number generators", 2014.
    Mixed(u64),
    /// Word n, 8 octets with the low one first, is this number + n.
    Counting(u64),
    /// Each octet is this one.
    Constant(u8),
}

/// A stream from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The stream.
    pub stream: Stream,
    /// Octets before the first that is used.
    #[serde(default)]
    pub at: u64,
}

/// The first octet that is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Number of the place.
    pub place: u32,
    /// Position in the place.
    pub octet: u32,
    /// Its value by the pattern.
    pub expected: u8,
    /// Its value in memory.
    pub found: u8,
}

/// 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(GOLDEN);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Stream {
    fn word(self, n: u64) -> [u8; 8] {
        match self {
            Stream::Mixed(seed) => mixed(seed.wrapping_add(n)).to_le_bytes(),
            Stream::Counting(first) => first.wrapping_add(n).to_le_bytes(),
            Stream::Constant(octet) => [octet; 8],
        }
    }
}

impl Pattern {
    /// The stream from its start.
    pub fn of(stream: Stream) -> Pattern {
        Pattern { stream, at: 0 }
    }

    /// The pattern `octets` further on.
    pub fn plus(self, octets: u64) -> Pattern {
        Pattern { at: self.at.wrapping_add(octets), ..self }
    }

    /// Calls `each` with pieces of `octets`, at most one word long, and with what they should be.
    fn pieces(self, mut length: usize, mut each: impl FnMut(usize, &[u8]) -> bool) {
        let (mut at, mut done) = (self.at, 0);
        while length > 0 {
            let word = self.stream.word(at / 8);
            let begin = (at % 8) as usize;
            let piece = &word[begin..(begin + length).min(8)];
            if !each(done, piece) {
                return;
            }
            (at, done, length) =
                (at.wrapping_add(piece.len() as u64), done + piece.len(), length - piece.len());
        }
    }

    /// Writes the stream into `octets`.
    pub fn fill(self, octets: &mut [u8]) {
        self.pieces(octets.len(), |done, piece| {
            octets[done..done + piece.len()].copy_from_slice(piece);
            true
        });
    }

    /// The first octet that differs from the stream: its position and its value by the stream.
    pub fn check(self, octets: &[u8]) -> Option<(usize, u8)> {
        let mut first = None;
        self.pieces(octets.len(), |done, piece| {
            let found = &octets[done..done + piece.len()];
            if found != piece {
                let at = found.iter().zip(piece).position(|(a, b)| a != b).unwrap_or(0);
                first = Some((done + at, piece[at]));
            }
            first.is_none()
        });
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_streams_are_those_of_the_reference() {
        let mut octets = [0; 20];
        Pattern { stream: Stream::Counting(5), at: 4 }.fill(&mut octets);
        assert_eq!(octets, [0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        // The first outputs of SplitMix64 with seed 0 are those of the words 1, 2, … of the stream with seed 0.
        let mut octets = [0; 16];
        Pattern { stream: Stream::Mixed(0), at: 8 }.fill(&mut octets);
        let words = octets.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        assert_eq!(words.collect::<Vec<_>>(), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        Pattern::of(Stream::Constant(7)).fill(&mut octets);
        assert_eq!(octets, [7; 16]);
    }

    proptest! {
        #[test]
        fn a_part_of_a_stream_is_found_at_its_place_and_a_change_is_named(
            seed in any::<u64>(), at in 0u64..100, length in 0usize..100, cut in 0usize..100, bit in 0u8..8,
        ) {
            let whole = Pattern { stream: Stream::Mixed(seed), at };
            let mut octets = vec![0; length];
            whole.fill(&mut octets);
            prop_assert_eq!(whole.check(&octets), None);
            let cut = cut.min(length);
            prop_assert_eq!(whole.plus(cut as u64).check(&octets[cut..]), None);
            if cut < length {
                let right = octets[cut];
                octets[cut] ^= 1 << bit;
                prop_assert_eq!(whole.check(&octets), Some((cut, right)));
            }
        }
    }
}
