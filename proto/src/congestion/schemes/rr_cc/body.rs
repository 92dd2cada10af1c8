//! The sixteen reserved octets of a CNP as RR CC fills them.
//!
//! Source: this project's own layout; none is published. Big endian, fabric units, saturated rather
//! than wrapped.
//!
//! ```text
//!  0 magic 0x5252 | 2 version 1 | 3 flags | 4 rate, kb/s | 8 period, ns | 12 frames | 14 marked
//! ```

use crate::units::Duration;

const MAGIC: [u8; 2] = *b"RR";
const VERSION: u8 = 1;
const RATE_VALID: u8 = 0x01;
const BY_TIMER: u8 = 0x02;

/// The cause of a period's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// A frame that arrived after its end.
    ByArrival,
    /// The timer: no frame arrived.
    ByTimer,
}

/// A receiver's report about one period of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Received rate, in kb/s.
    pub rate_kbps: u64,
    /// The cause of its end.
    pub closed: Closed,
    /// Its length.
    pub period: Duration,
    /// Data frames received.
    pub frames: u64,
    /// Those among them that were marked.
    pub marked: u64,
}

impl Body {
    /// The octets. A rate below 1 kb/s is written as 1 kb/s, since zero is invalid.
    pub fn emit(&self) -> [u8; 16] {
        let wide = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
        let short = |value: u64| u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes();
        let by_timer = if self.closed == Closed::ByTimer { BY_TIMER } else { 0 };
        let mut octets = [0; 16];
        octets[..2].copy_from_slice(&MAGIC);
        octets[2] = VERSION;
        octets[3] = RATE_VALID | by_timer;
        octets[4..8].copy_from_slice(&wide(self.rate_kbps.max(1)));
        octets[8..12].copy_from_slice(&wide(self.period.as_ps() / 1_000));
        octets[12..14].copy_from_slice(&short(self.frames));
        octets[14..].copy_from_slice(&short(self.marked));
        octets
    }

    /// Parses the octets; `None` for another magic or version, or without a rate.
    pub fn parse(octets: &[u8; 16]) -> Option<Body> {
        let wide =
            |at: usize| octets[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
        let short =
            |at: usize| octets[at..].first_chunk().map_or(0, |word| u16::from_be_bytes(*word));
        if octets[..2] != MAGIC || octets[2] != VERSION || octets[3] & RATE_VALID == 0 {
            return None;
        }
        Some(Body {
            rate_kbps: wide(4).into(),
            closed: if octets[3] & BY_TIMER == 0 { Closed::ByArrival } else { Closed::ByTimer },
            period: Duration::from_ns(wide(8).into()),
            frames: short(12).into(),
            marked: short(14).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: Body = Body {
        rate_kbps: 8_000_000,
        closed: Closed::ByTimer,
        period: Duration::from_ns(33_184),
        frames: 16,
        marked: 15,
    };

    #[test]
    fn octets_are_where_the_profile_says() {
        let octets = BODY.emit();
        assert_eq!(octets, [0x52, 0x52, 1, 3, 0, 0x7a, 0x12, 0, 0, 0, 0x81, 0xa0, 0, 16, 0, 15]);
        assert_eq!(Body::parse(&octets), Some(BODY));
    }

    #[test]
    fn what_does_not_fit_saturates_and_no_rate_is_the_least_rate() {
        let far =
            Body { rate_kbps: 0, period: Duration::from_us(9_000_000), frames: 70_000, ..BODY };
        let seen = Body::parse(&far.emit()).expect("our own octets");
        assert_eq!((seen.rate_kbps, seen.frames), (1, 65_535));
        assert_eq!(seen.period, Duration::from_ns(u32::MAX.into()));
    }

    #[test]
    fn other_magic_or_version_or_no_rate_is_nonsense() {
        for at in 0..4 {
            let mut octets = BODY.emit();
            octets[at] ^= 1;
            assert_eq!(Body::parse(&octets), None, "octet {at}");
        }
    }
}
