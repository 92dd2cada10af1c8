//! What can follow the tags of an Ethernet frame, in both directions.

use super::object::{Fault, Object};
use super::part::Part;
use super::sink::Sink;

/// A kind of body.
pub(super) trait Body: Sync {
    /// The length of the body at the front of `octets` by the lengths inside it; the most trustworthy first.
    fn lengths(&self, octets: &[u8]) -> [Option<usize>; 2];

    /// Dissects it; true if an error was reported.
    fn decode(&self, sink: &mut dyn Sink, part: Part<'_>) -> bool;

    /// Appends it.
    fn encode(&self, object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault>;
}
