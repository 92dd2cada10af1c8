//! What a dissection tells while it walks over a frame; JSON, trees and verdicts each listen.

use super::layer::Layer;
use std::fmt::Arguments;

/// A CRC that a frame carries.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// Its key in JSON.
    pub key: &'static str,
    /// The octets that carry it.
    pub present: &'a [u8],
    /// What it should be, in the same order; as many of the first octets as there are present.
    pub expected: [u8; 4],
}

impl<'a> Check<'a> {
    /// A check of four octets, which go least significant first.
    pub fn of_32(key: &'static str, present: &'a [u8], expected: u32) -> Check<'a> {
        Check { key, present, expected: expected.to_le_bytes() }
    }

    /// A check of two octets, likewise.
    pub fn of_16(key: &'static str, present: &'a [u8], expected: u16) -> Check<'a> {
        Check { key, present, expected: u32::from(expected).to_le_bytes() }
    }

    /// What the octets should be.
    pub fn expected(&self) -> &[u8] {
        &self.expected[..self.present.len()]
    }

    /// It is right.
    pub fn holds(&self) -> bool {
        self.present == self.expected()
    }
}

/// Listens to a dissection. Calls come in the order of the octets.
pub trait Sink {
    /// A header of `layer` at the front of `octets`.
    fn header(&mut self, layer: &'static Layer, octets: &[u8]);

    /// Octets without fields: payload, pad.
    fn octets(&mut self, key: &'static str, octets: &[u8]);

    /// A CRC.
    fn check(&mut self, check: Check<'_>);

    /// Octets that are not what `layer` needs at `offset`.
    fn error(&mut self, layer: &str, offset: usize, reason: Arguments<'_>, octets: &[u8]);

    /// Something about the frame is wrong.
    fn wrong(&mut self, what: Arguments<'_>);

    /// A list begins.
    fn begin_list(&mut self, key: &'static str);

    /// An entry of the list: a header that wraps a frame of `length` octets, which follows.
    fn begin_wrapped(&mut self, layer: &'static Layer, octets: &[u8], length: usize);

    /// The wrapped frame ends.
    fn end_wrapped(&mut self);

    /// The list ends.
    fn end_list(&mut self);
}
