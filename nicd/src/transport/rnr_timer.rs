//! The RNR NAK timer codes.
//!
//! Source: IBTA Vol 1, 9.7.5.2.8, table of RNR NAK timer values: 32 codes from 0.01 ms (code 1) to 655.36 ms
//! (code 0).

use proto::units::Duration;

/// The wait per code, in units of 10 µs.
const WAITS: [u64; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024,
    1_536, 2_048, 3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

/// The wait of code `timer`; bits above the lowest five are ignored.
pub fn wait(timer: u8) -> Duration {
    Duration::from_us(10) * WAITS[usize::from(timer & 31)]
}

/// The code of the shortest wait not below `wanted`; the longest wait if all are below.
pub fn code(wanted: Duration) -> u8 {
    (1..32).find(|code| wait(*code) >= wanted).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_waits_at_least_as_long_as_wanted_and_the_next_shorter_one_does_not() {
        assert_eq!(code(Duration::ZERO), 1);
        assert_eq!(code(Duration::from_us(10)), 1);
        assert_eq!(code(Duration::from_us(11)), 2);
        assert_eq!(wait(code(Duration::from_us(45))), Duration::from_us(60));
        assert_eq!(code(Duration::from_us(491_520)), 31);
        assert_eq!(code(Duration::from_us(491_521)), 0);
        assert_eq!(wait(0), Duration::from_us(655_360));
        assert_eq!(code(Duration::from_us(10_000_000)), 0);
    }
}
