//! A datagram that is being filled. The pattern in the payload of frames is not copied into it: the system call gathers it.

use crate::cable::datagram::{DATAGRAM_LIMIT, PARTS_MAX};
use crate::cable::shim::Shim;
use proto::frame::Frame;

/// Fewer octets of the pattern are copied: another part of a message costs as much.
const APART_LEAST: usize = 512;

const _: () = assert!(
    2 * (DATAGRAM_LIMIT / (Shim::LENGTH + APART_LEAST) + 1) <= PARTS_MAX,
    "any datagram can be sent"
);

/// Frames, each behind its shim.
#[derive(Debug, Default)]
pub(super) struct Datagram {
    octets: Vec<u8>,
    /// Octets of the pattern, and the places in `octets` before which they belong.
    apart: Vec<(usize, &'static [u8])>,
    length: usize,
    /// Its frames.
    pub frames: u64,
    /// Attempts to send it that failed.
    pub tries: u8,
}

impl Datagram {
    /// The number of octets.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Adds a frame.
    pub fn add(&mut self, shim: &Shim, frame: &Frame) {
        self.octets.extend_from_slice(&shim.emit());
        self.apart.extend(frame.append_around(&mut self.octets, APART_LEAST));
        self.length += Shim::LENGTH + frame.octets_len();
        self.frames += 1;
    }

    /// All octets, in order.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        (0..=self.apart.len()).flat_map(|number| {
            let begin = number.checked_sub(1).map_or(0, |before| self.apart[before].0);
            let apart = self.apart.get(number).copied();
            let (end, pattern) = apart.unwrap_or((self.octets.len(), &[]));
            [&self.octets[begin..end], pattern]
        })
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.apart.clear();
        (self.length, self.frames, self.tries) = (0, 0, 0);
    }
}
