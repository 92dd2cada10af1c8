//! What a dissection reports while it walks over a frame; JSON, trees and tests implement it.

use super::layer::Layer;
use std::fmt::{Arguments, Display};

/// A CRC that a frame carries.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// Its key in JSON.
    pub key: &'static str,
    /// The octets that carry it: two or four.
    pub present: &'a [u8],
    /// The right value in wire order; of two octets the first two count.
    expected: [u8; 4],
}

impl<'a> Check<'a> {
    /// The check `present` against `expected`, whose least significant octet is sent first.
    pub fn new(key: &'static str, present: &'a [u8], expected: impl Into<u32>) -> Check<'a> {
        Check { key, present, expected: expected.into().to_le_bytes() }
    }

    /// The right octets, as many as are present.
    pub fn expected(&self) -> &[u8] {
        &self.expected[..self.present.len()]
    }

    /// True if the check is right.
    pub fn holds(&self) -> bool {
        self.present == self.expected()
    }
}

/// Receives a dissection. Calls come in the order of the octets.
pub trait Sink {
    /// A header of `layer` at the front of `octets`.
    fn header(&mut self, layer: &'static Layer, octets: &[u8]);

    /// Octets without fields: payload, pad, padding.
    fn octets(&mut self, key: &'static str, octets: &[u8]);

    /// A CRC.
    fn check(&mut self, check: Check<'_>);

    /// The `octets` at `offset` cannot be read as `layer`.
    fn error(&mut self, layer: &str, offset: usize, reason: Arguments<'_>, octets: &[u8]);

    /// A defect of the frame, in one sentence.
    fn wrong(&mut self, what: Arguments<'_>);

    /// An entry of the list `shim` begins: a header at the front of `octets` that wraps a frame of `length` octets,
    /// which follows.
    fn begin_wrapped(&mut self, octets: &[u8], length: usize, is_first: bool);

    /// The wrapped frame ends.
    fn end_wrapped(&mut self, is_last: bool);

    /// Reports a number that is not `right`.
    fn judge(&mut self, what: &dyn Display, found: usize, right: usize) {
        if found != right {
            self.wrong(format_args!("{what} is {found}, should be {right}"));
        }
    }
}

/// Reports a defect: `wrong!(sink, "format", …)`.
macro_rules! wrong {
    ($sink:expr, $($what:tt)*) => { $sink.wrong(format_args!($($what)*)) };
}

pub(super) use wrong;
