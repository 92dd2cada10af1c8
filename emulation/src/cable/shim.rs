//! The shim: a header of 32 octets before every frame in a datagram.
//!
//! All numbers are big endian. A datagram is one or more records back to back, each a shim and its frame;
//! nothing follows the last frame.
//!
//! ```text
//!  octet  0        4       5    6     7    8      12     16       20     24           32
//!        +--------+-------+----+-----+---+------+------+--------+------+------------+-------
//!        | "pbed" |version|kind|flags|end| link | epoch|sequence|length|   stamp    | frame …
//!        +--------+-------+----+-----+---+------+------+--------+------+------------+-------
//! ```
//!
//! * `version`: [`VERSION`]; any other is refused, both named.
//! * `kind`: the [`FrameKind`] code. `flags`: bit 0 marks a packet that its sender gave up; others zero.
//! * `end`: which end of the link sent it, 0 for `a` and 1 for `b` of the wiring.
//! * `link`: the index in the wiring. `epoch`: chosen anew by the launcher for every run.
//! * `sequence`: counts the frames of this link and direction from 0, modulo 2^32.
//! * `length`: octets of the frame. `stamp`: when its last bit left, in picoseconds of fabric time.

use proto::frame::{FrameKind, Integrity};
use proto::units::Instant;
use serde::{Deserialize, Serialize};

/// The version of this build.
pub const VERSION: u8 = 1;

/// The first four octets of every record.
pub const MAGIC: [u8; 4] = *b"pbed";

/// Which end of a link sent a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum SendingEnd {
    /// End `a` of the wiring.
    A = 0,
    /// End `b` of the wiring.
    B = 1,
}

impl SendingEnd {
    /// The opposite end, which receives.
    pub const fn other(self) -> SendingEnd {
        match self {
            SendingEnd::A => SendingEnd::B,
            SendingEnd::B => SendingEnd::A,
        }
    }
}

/// The header of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shim {
    /// Format of the frame.
    pub kind: FrameKind,
    /// [`Shim::ABORTED`], or nothing.
    pub flags: u8,
    /// The end that sent the frame.
    pub end: SendingEnd,
    /// Index of the link.
    pub link: u32,
    /// The run.
    pub epoch: u32,
    /// Its number on this link and direction, modulo 2^32.
    pub sequence: u32,
    /// Octets of the frame that follows.
    pub length: u32,
    /// When its last bit left.
    pub stamp: Instant,
}

/// Why octets are not a valid shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShimError {
    /// Fewer octets than a shim has.
    #[error("{present} octets are fewer than a shim's {}", Shim::LENGTH)]
    Truncated {
        /// Number of octets.
        present: usize,
    },
    /// The first octets are not [`MAGIC`].
    #[error("the first octets are {0:02x?}, not {MAGIC:02x?}")]
    Magic([u8; 4]),
    /// The peer is of another build.
    #[error("the peer uses shim version {0}, this daemon version {VERSION}")]
    Version(u8),
    /// This build does not know the frame kind.
    #[error("frame kind {0} is unknown")]
    Kind(u8),
    /// The end is neither 0 nor 1.
    #[error("a link has no end {0}")]
    End(u8),
}

pub(super) mod field {
    use std::ops::Range;
    pub const MAGIC: Range<usize> = 0..4;
    pub const VERSION: usize = 4;
    pub(crate) const KIND: usize = 5;
    pub const FLAGS: usize = 6;
    pub const END: usize = 7;
    pub const LINK: Range<usize> = 8..12;
    pub const EPOCH: Range<usize> = 12..16;
    pub const SEQUENCE: Range<usize> = 16..20;
    pub const LENGTH: Range<usize> = 20..24;
    pub(crate) const STAMP: Range<usize> = 24..32;
}

impl Shim {
    /// Octets of a shim.
    pub const LENGTH: usize = 32;

    /// Flag: the sender aborted the packet, and the receiver discards it ([`Integrity::Aborted`]).
    pub const ABORTED: u8 = 1;

    /// What is known of the frame's CRCs.
    pub const fn integrity(&self) -> Integrity {
        if self.flags & Shim::ABORTED != 0 { Integrity::Aborted } else { Integrity::Unchecked }
    }

    /// The shim's octets.
    pub fn emit(&self) -> [u8; Shim::LENGTH] {
        let mut octets = [0; Shim::LENGTH];
        octets[field::MAGIC].copy_from_slice(&MAGIC);
        octets[field::VERSION] = VERSION;
        octets[field::KIND] = self.kind as u8;
        octets[field::FLAGS] = self.flags;
        octets[field::END] = self.end as u8;
        octets[field::LINK].copy_from_slice(&self.link.to_be_bytes());
        octets[field::EPOCH].copy_from_slice(&self.epoch.to_be_bytes());
        octets[field::SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        octets[field::LENGTH].copy_from_slice(&self.length.to_be_bytes());
        octets[field::STAMP].copy_from_slice(&self.stamp.as_ps().to_be_bytes());
        octets
    }

    /// Parses the shim at the front of `octets`. The caller checks that the whole frame follows.
    ///
    /// # Errors
    /// If the octets are not a shim of this version.
    pub fn parse(octets: &[u8]) -> Result<Shim, ShimError> {
        let Some(shim) = octets.first_chunk::<{ Shim::LENGTH }>() else {
            return Err(ShimError::Truncated { present: octets.len() });
        };
        if shim[field::MAGIC] != MAGIC {
            return Err(ShimError::Magic([shim[0], shim[1], shim[2], shim[3]]));
        }
        if shim[field::VERSION] != VERSION {
            return Err(ShimError::Version(shim[field::VERSION]));
        }
        let kind = FrameKind::from_code(shim[field::KIND]);
        let end = match shim[field::END] {
            0 => SendingEnd::A,
            1 => SendingEnd::B,
            other => return Err(ShimError::End(other)),
        };
        Ok(Shim {
            kind: kind.ok_or(ShimError::Kind(shim[field::KIND]))?,
            flags: shim[field::FLAGS],
            end,
            link: u32_at(shim, field::LINK),
            epoch: u32_at(shim, field::EPOCH),
            sequence: u32_at(shim, field::SEQUENCE),
            length: u32_at(shim, field::LENGTH),
            stamp: Instant::from_ps(number_at(shim, field::STAMP)),
        })
    }
}

fn number_at(shim: &[u8; Shim::LENGTH], range: std::ops::Range<usize>) -> u64 {
    shim[range].iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
}

fn u32_at(shim: &[u8; Shim::LENGTH], range: std::ops::Range<usize>) -> u32 {
    number_at(shim, range) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn shims()(
            code in 1u8..=3, flags: u8, b: bool, link: u32, epoch: u32, sequence: u32, length: u32,
            stamp: u64,
        ) -> Shim {
            Shim {
                kind: FrameKind::from_code(code).expect("a code in range"),
                flags,
                end: if b { SendingEnd::B } else { SendingEnd::A },
                link, epoch, sequence, length,
                stamp: Instant::from_ps(stamp),
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_parsed(shim in shims()) {
            prop_assert_eq!(Shim::parse(&shim.emit()), Ok(shim));
        }

        #[test]
        fn every_short_length_is_refused(shim in shims(), present in 0..Shim::LENGTH) {
            let octets = shim.emit();
            let refused = Err(ShimError::Truncated { present });
            prop_assert_eq!(Shim::parse(&octets[..present]), refused);
        }

        #[test]
        fn arbitrary_octets_never_panic(octets in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Shim::parse(&octets);
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let shim = Shim {
            kind: FrameKind::InfinibandLink,
            flags: 0,
            end: SendingEnd::B,
            link: 0x0102_0304,
            epoch: 0x0506_0708,
            sequence: 0x090a_0b0c,
            length: 6,
            stamp: Instant::from_ps(0x1112_1314_1516_1718),
        };
        let expected = [
            b'p', b'b', b'e', b'd', 1, 2, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 6,
            0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        ];
        assert_eq!(shim.emit(), expected);
    }

    #[test]
    fn another_version_is_refused_with_both_named() {
        let mut octets = [0; Shim::LENGTH];
        octets[..4].copy_from_slice(&MAGIC);
        octets[4] = 9;
        let error = Shim::parse(&octets).expect_err("version 9");
        assert_eq!(error, ShimError::Version(9));
        assert_eq!(error.to_string(), "the peer uses shim version 9, this daemon version 1");
    }
}
