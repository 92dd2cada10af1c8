//! Frames dissected for people and programs, and encoded again.
//!
//! One file covers one layer. In each, `decode` walks over octets and reports to a [`Sink`] what it finds,
//! and `encode` takes the same things from a JSON object and appends the same octets. Both follow the tables in
//! [`headers`]. Octets that cannot be parsed are kept as octets, so `encode` after `decode` is the identity on any
//! octets at all, wrong CRCs and reserved bits included.
//!
//! ```text
//! infiniband  LRH [GRH] BTH … ICRC VCRC, and link packets   ┐
//! ethernet    tags, padding, FCS, and where they end        │
//! internet    IPv4 and IPv6, UDP                            ├ transport: BTH to pad
//! control     PAUSE, PFC, CNM                               │
//! project     this project's frames and tag                 │
//! shim        this project's cables: frames within frames   ┘
//! ```

mod body;
mod control;
pub mod digits;
mod ethernet;
mod headers;
mod infiniband;
mod internet;
pub mod json;
mod layer;
mod object;
mod part;
mod project;
mod shim;
mod sink;
pub mod source;
mod transport;
pub mod tree;
pub mod verify;

pub use object::Fault;
use object::Object;
use part::Part;
pub use part::{Fcs, Rules};
use proto::events::Direction;
use proto::technology::Technology;
use serde_json::Value;
pub use sink::Sink;
use sink::wrong;

/// What is known of a frame besides its octets.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a> {
    /// Number of the frame in the input, from 1.
    pub number: u64,
    /// Time of capture, nanoseconds.
    pub at_ns: Option<u64>,
    /// Name of the interface.
    pub interface: Option<&'a str>,
    /// Received or sent.
    pub direction: Option<Direction>,
    /// Technology of the link: an Ethernet frame begins with the destination address, with or without FCS at its end;
    /// an InfiniBand packet goes from LRH to VCRC, and a link packet has six octets.
    pub technology: Technology,
    /// Octets that the input holds.
    pub length: usize,
    /// Octets that the frame had on the wire.
    pub wire_length: usize,
}

impl<'a> Meta<'a> {
    /// A frame that the input holds whole, and of which nothing else is known.
    pub fn new(number: u64, technology: Technology, length: usize) -> Meta<'a> {
        let (at_ns, interface, direction) = (None, None, None);
        Meta { number, at_ns, interface, direction, technology, length, wire_length: length }
    }
}

/// How many levels of wrapped frames are dissected.
const DEPTH: u8 = 2;

/// Dissects a frame and reports to `sink`. The frame had `wire_length` octets on the wire.
pub fn decode(
    sink: &mut dyn Sink,
    technology: Technology,
    octets: &[u8],
    wire_length: usize,
    rules: Rules,
) {
    let (there, missing) = (octets.len(), wire_length.saturating_sub(octets.len()));
    let whole = Part { frame: octets, start: 0, end: there, rules, depth: DEPTH, missing };
    decode_part(sink, technology, whole);
    if missing > 0 {
        wrong!(
            sink,
            "cut: {there} of {wire_length} octets are there, {missing} were not captured: CRCs and payload cannot be judged"
        );
    }
}

/// Dissects a frame as far as it is there.
fn decode_part(sink: &mut dyn Sink, technology: Technology, part: Part<'_>) {
    let broken = match technology {
        Technology::Infiniband => infiniband::decode(sink, part),
        Technology::Ethernet => ethernet::decode(sink, part),
    };
    if !part.is_whole() && !broken {
        sink.error("frame", part.len(), format_args!("{} octets are missing", part.missing), &[]);
    }
}

/// An encoded frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Its octets.
    pub octets: Vec<u8>,
    /// Time of capture, nanoseconds.
    pub at_ns: u64,
    /// Name of the interface.
    pub interface: Option<String>,
    /// Received or sent.
    pub direction: Option<Direction>,
    /// True on Ethernet, false on InfiniBand.
    pub is_ethernet: bool,
    /// True for a link packet.
    pub is_link_packet: bool,
    /// Octets on the wire, if JSON states them.
    pub wire_length: Option<usize>,
}

/// Encodes a frame from a line of JSON.
///
/// # Errors
/// The first key with a value that cannot be encoded.
pub fn encode(line: &str) -> Result<Encoded, Fault> {
    let value: Value = serde_json::from_str(line).map_err(|error| Fault {
        path: format!("column {}", error.column()),
        reason: error.to_string(),
        hint: "one JSON object a line".to_owned(),
    })?;
    let mut object = Object::new("", value)?;
    let mut frame = Encoded {
        at_ns: object.number("time_ns", u64::MAX)?.unwrap_or(0),
        interface: object.text("interface")?,
        is_link_packet: object.has("flow_control"),
        direction: object.word("direction", "\"rx\" or \"tx\"")?,
        is_ethernet: object
            .word("link", "\"infiniband\" or \"ethernet\"")?
            .map_or(object.has("ethernet"), |link: Technology| link == Technology::Ethernet),
        wire_length: object.number("wire_length", u64::from(u32::MAX))?.map(|n| n as usize),
        octets: Vec::new(),
    };
    object.ignore(&["number", "wrong"]);
    encode_frame(object, &mut frame.octets)?;
    Ok(frame)
}

/// Appends a frame; its members determine the format.
fn encode_frame(mut object: Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    object.ignore(&["length"]);
    object.take_error()?;
    if object.has("ethernet") {
        ethernet::encode(&mut object, out)?;
    } else {
        infiniband::encode(&mut object, out)?;
    }
    object.finish()
}

#[cfg(test)]
mod tests;
