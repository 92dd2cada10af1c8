//! The test frame: traffic without a transport protocol, as in the benchmarks of 802.1Qau.

use crate::units::Instant;
use crate::wire::header::header;

header! {
    /// The header of a test frame, after the subtype. A pattern fills the rest of the frame.
    ///
    /// ```text
    /// | reserved 8 | flow 32 | sequence 32 | departure 64 | pattern …
    /// ```
    ///
    /// The receiver sends no response. Source: this project.
    #[derive(Default)]
    pub struct TestFrame[17] "test frame" {
        /// Sent as zero and ignored.
        pub reserved: u8 = 0..8,
        /// Flow number, chosen by the sender.
        pub flow: u32 = 8..40,
        /// Sequence number within the flow, from 0, modulo 2^32.
        pub sequence: u32 = 40..72,
        /// Scheduled departure of the last bit from the sender, in picoseconds of fabric time.
        pub departure: Instant = 72..136,
    }
}

/// Period of the pattern, in octets.
const PERIOD: usize = 256;

/// Two periods from 0 on, so that a slice of one period can begin at any value.
static COUNTED: [u8; 2 * PERIOD] = {
    let mut octets = [0; 2 * PERIOD];
    let mut at = 0;
    while at < octets.len() {
        octets[at] = at as u8;
        at += 1;
    }
    octets
};

impl TestFrame {
    /// The subtype of test frames.
    pub const SUBTYPE: u8 = 1;

    /// Fills `pattern`: the first octet is the low octet of the sequence, and each further octet is one more.
    pub fn fill(&self, pattern: &mut [u8]) {
        for part in pattern.chunks_mut(PERIOD) {
            part.copy_from_slice(&self.counted()[..part.len()]);
        }
    }

    /// True if `pattern` equals that of [`Self::fill`], at any length.
    pub fn holds(&self, pattern: &[u8]) -> bool {
        pattern.chunks(PERIOD).all(|part| *part == self.counted()[..part.len()])
    }

    fn counted(&self) -> &'static [u8; PERIOD] {
        let from = &COUNTED[usize::from(self.sequence as u8)..];
        from.first_chunk().expect("the table has two periods")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let frame = TestFrame {
            reserved: 0,
            flow: 0x0102_0304,
            sequence: 0x0506_0708,
            departure: Instant::from_ps(0x1112_1314_1516_1718),
        };
        let octets = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
        assert_eq!(frame.to_octets(), octets);
    }

    #[test]
    fn the_pattern_counts_up_from_the_sequence() {
        let frame = TestFrame { sequence: 0x01fe, ..TestFrame::default() };
        let mut pattern = [0; 600];
        frame.fill(&mut pattern);
        assert_eq!(pattern[..4], [0xfe, 0xff, 0x00, 0x01]);
        assert_eq!((pattern[256], pattern[512]), (0xfe, 0xfe));
        assert!(frame.holds(&pattern) && frame.holds(&[]));
        pattern[599] ^= 1;
        assert!(!frame.holds(&pattern) && frame.holds(&pattern[..599]));
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..TestFrame::LEN {
            let refused = Err(ParseError::short("test frame", 0, 17, present));
            assert_eq!(TestFrame::parse(&[0; 17][..present]), refused);
        }
    }

    proptest! {
        #[test]
        fn any_seventeen_octets_round_trip(octets: [u8; TestFrame::LEN]) {
            prop_assert_eq!(TestFrame::parse(&octets)?.to_octets(), octets);
        }
    }
}
