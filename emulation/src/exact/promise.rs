//! The promise: the record of 80 octets that begins every datagram of a channel.
//!
//! It has the layout of the shim ([`crate::cable::shim`]) with [`Promise::KIND`] as its kind, and a body behind it. All numbers are
//! big endian.
//!
//! ```text
//!  octet  0        4       5    6     7    8      12     16       20     24     32
//!        +--------+-------+----+-----+---+------+------+--------+------+------+--------+
//!        | "pbed" |version|kind|flags| 0 |sender| epoch|  low   |length| until|        |
//!        +--------+-------+----+-----+---+------+------+--------+------+------+        |
//!     32 | secret (16) | number (8) | complete (8) | frames (8) | idle (8)            |
//!        +---------------------------------------------------------------------------+
//! ```
//!
//! * `sender`: the number of the sending process. `low`: the low bits of `number`. `length`: that of the body, 48.
//! * `until`: frames in later datagrams of the channel leave at or after this instant, in picoseconds of fabric time.
//! * `secret`: the run's, known to its processes alone.
//! * `number`: counts the channel's datagrams from 0. With flag [`Promise::ASIDE`] the datagram has no number of its own:
//!   `number` is that of the next one, and neither frames nor a new `until` are in it.
//! * `complete`: the number up to which the other direction's datagrams have arrived, with all their frames.
//! * `frames`: the frames of the channel so far, those of this datagram included.
//! * `idle`: so do they leave at or after this instant, if the other direction has no frames in datagrams from `complete`
//!   on.
//!
//! `idle` lets quiet processes leap: the next input of a device is often far away, and nothing but a frame of the neighbour
//! can bring it forward. A neighbour knows what it has sent. What a process computes `idle` from is its own input and the
//! bounds of its other neighbours, so no process waits for itself: each step from pledge to pledge adds the delay of a cable.

use crate::cable::shim::{MAGIC, VERSION};
use proto::units::Instant;
use serde::{Deserialize, Serialize};

/// Octets of the shim's layout.
const HEAD: usize = 32;
/// Octets behind it.
const BODY: usize = 48;

/// A secret that the launcher draws for each run. Datagrams without it are refused.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret([u8; 16]);

impl Secret {
    /// The secret made of these octets.
    pub const fn new(octets: [u8; 16]) -> Secret {
        Secret(octets)
    }
}

/// Hides the secret in debug output.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What a process promises one neighbour about later frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pledge {
    /// They leave at or after this instant.
    pub until: Instant,
    /// And at or after this one, if the neighbour sends nothing but what is counted.
    pub idle: Instant,
}

impl Pledge {
    /// Before the first promise.
    pub(super) const NOTHING: Pledge = Pledge { until: Instant::ZERO, idle: Instant::ZERO };

    /// When later frames leave at the earliest, if the first frame that is not counted arrives at `uncounted`.
    pub(super) fn given(self, uncounted: Instant) -> Instant {
        self.until.max(self.idle.min(uncounted))
    }
}

/// The content of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Some of [`Promise::ASIDE`], [`Promise::ASKS`], [`Promise::LEAF`].
    pub flags: u8,
    /// The sending process.
    pub sender: u32,
    /// The run.
    pub epoch: u32,
    /// The run's secret.
    pub secret: Secret,
    /// When later frames leave.
    pub pledge: Pledge,
    /// The datagram's number.
    pub number: u64,
    /// What has arrived of the other direction.
    pub complete: u64,
    /// Frames so far.
    pub frames: u64,
}

/// Why octets do not begin with a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromiseError {
    /// Fewer octets than a promise has, or a body of another length.
    Truncated,
    /// Other octets in the place of the magic.
    Magic,
    /// Of another build.
    Version(u8),
    /// A record of another kind.
    Kind,
}

impl Promise {
    /// The record kind, beside those of frames.
    pub const KIND: u8 = 4;
    /// Octets of the record.
    pub const LENGTH: usize = HEAD + BODY;
    /// Flag: this datagram has no number, no frames and no new promise.
    pub const ASIDE: u8 = 1;
    /// Flag: the sender waits for the receiver, which repeats what is not `complete`.
    pub const ASKS: u8 = 2;
    /// Flag: the sender has no neighbour but the receiver.
    pub const LEAF: u8 = 4;

    /// The record's octets.
    pub fn emit(&self) -> [u8; Promise::LENGTH] {
        let mut octets = [0; Promise::LENGTH];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            octets[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&MAGIC);
        put(&[VERSION, Promise::KIND, self.flags, 0]);
        put(&self.sender.to_be_bytes());
        put(&self.epoch.to_be_bytes());
        put(&(self.number as u32).to_be_bytes());
        put(&(BODY as u32).to_be_bytes());
        put(&self.pledge.until.as_ps().to_be_bytes());
        put(&self.secret.0);
        put(&self.number.to_be_bytes());
        put(&self.complete.to_be_bytes());
        put(&self.frames.to_be_bytes());
        put(&self.pledge.idle.as_ps().to_be_bytes());
        octets
    }

    /// Parses the record at the front of `octets`.
    ///
    /// # Errors
    /// If there is none of this version.
    pub fn parse(octets: &[u8]) -> Result<Promise, PromiseError> {
        let head = octets.first_chunk::<{ Promise::LENGTH }>().ok_or(PromiseError::Truncated)?;
        let short =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(short(at)) << 32 | u64::from(short(at + 4));
        if head[..4] != MAGIC {
            return Err(PromiseError::Magic);
        }
        if head[4] != VERSION {
            return Err(PromiseError::Version(head[4]));
        }
        if head[5] != Promise::KIND {
            return Err(PromiseError::Kind);
        }
        if short(20) as usize != BODY {
            return Err(PromiseError::Truncated);
        }
        let mut secret = [0; 16];
        secret.copy_from_slice(&head[HEAD..HEAD + 16]);
        Ok(Promise {
            flags: head[6],
            sender: short(8),
            epoch: short(12),
            secret: Secret(secret),
            pledge: Pledge { until: Instant::from_ps(long(24)), idle: Instant::from_ps(long(72)) },
            number: long(48),
            complete: long(56),
            frames: long(64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn promises()(
            flags: u8, sender: u32, epoch: u32, secret: [u8; 16], until: u64, idle: u64, number: u64, complete: u64,
            frames: u64,
        ) -> Promise {
            let [until, idle] = [until, idle].map(Instant::from_ps);
            let (secret, pledge) = (Secret(secret), Pledge { until, idle });
            Promise { flags, sender, epoch, secret, pledge, number, complete, frames }
        }
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_parsed(promise in promises()) {
            prop_assert_eq!(Promise::parse(&promise.emit()), Ok(promise));
        }

        #[test]
        fn every_short_length_is_refused(promise in promises(), present in 0..Promise::LENGTH) {
            let refused = Err(PromiseError::Truncated);
            prop_assert_eq!(Promise::parse(&promise.emit()[..present]), refused);
        }

        #[test]
        fn arbitrary_octets_never_panic(octets in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Promise::parse(&octets);
        }
    }

    #[test]
    fn other_records_and_builds_are_told_apart() {
        let octets = [0xff; Promise::LENGTH];
        assert_eq!(Promise::parse(&octets), Err(PromiseError::Magic));
        let mut octets = [0; Promise::LENGTH];
        octets[..4].copy_from_slice(&MAGIC);
        octets[4] = 9;
        assert_eq!(Promise::parse(&octets), Err(PromiseError::Version(9)));
        octets[4..6].copy_from_slice(&[VERSION, 1]);
        assert_eq!(Promise::parse(&octets), Err(PromiseError::Kind));
    }
}
