//! Frames taken apart for people and programs, and put together again.
//!
//! One file a layer. In each, `decode` walks over octets and tells a [`Sink`] what it finds, and
//! beside it `encode` takes the same things from a JSON object and appends the same octets. Headers
//! are tables ([`layer`]) of which both follow. What cannot be parsed is kept as octets, so that
//! `encode` after `decode` is the identity on any octets at all, wrong CRCs and reserved bits included.
//!
//! ```text
//! infiniband  LRH [GRH] BTH … ICRC VCRC, and link packets   ┐
//! ethernet    tags, padding, FCS, and where they end        │
//! internet    IPv4 and IPv6, UDP                            ├ transport: BTH to pad
//! control     PAUSE, PFC, CNM                               │
//! project     this project's frames and tag                 │
//! shim        this project's cables: frames within frames   ┘
//! ```

pub mod control;
pub mod digits;
pub mod ethernet;
pub mod infiniband;
pub mod internet;
pub mod json;
pub mod layer;
pub mod object;
pub mod project;
pub mod shim;
pub mod sink;
pub mod source;
pub mod transport;
pub mod tree;
pub mod verify;

use layer::Layer;
use object::{Fault, Object};
use proto::events::Direction;
use serde_json::Value;
use sink::Sink;
use std::ops::Range;

/// What a frame is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Link {
    /// Packets from LRH to VCRC, and link packets of six octets.
    Infiniband,
    /// Frames from the destination address on, with or without FCS.
    Ethernet,
}

/// Whether Ethernet frames end with an FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fcs {
    /// Told by lengths, and by four last octets that fit.
    #[default]
    Auto,
    /// They do.
    Yes,
    /// They do not.
    No,
}

/// What is known of a frame besides its octets.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a> {
    /// Its number in the input, from 1.
    pub number: u64,
    /// When, in nanoseconds.
    pub at_ns: Option<u64>,
    /// Where.
    pub interface: Option<&'a str>,
    /// Which way.
    pub direction: Option<Direction>,
    /// On what.
    pub link: Link,
    /// Octets that are there.
    pub length: usize,
    /// Octets there were on the wire.
    pub wire_length: usize,
}

/// What a dissection goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether Ethernet frames end with an FCS.
    pub fcs: Fcs,
    /// Larger payloads are called wrong.
    ///
    /// Units: octets.
    pub mtu: usize,
    /// Frames within frames are looked into this deep.
    depth: u8,
    /// Octets that were on the wire and are not here; with them went the CRCs.
    missing: usize,
}

impl Rules {
    /// The same, but for what is known of the FCS.
    pub fn with_fcs(self, fcs: Fcs) -> Rules {
        Rules { fcs, ..self }
    }

    /// The same, but for the largest payload that is right, in octets.
    pub fn with_mtu(self, mtu: usize) -> Rules {
        Rules { mtu, ..self }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        // The largest MTU of InfiniBand and of RoCE (IBTA Vol 1, 5.2.14).
        Rules { fcs: Fcs::Auto, mtu: 4096, depth: 2, missing: 0 }
    }
}

/// Takes a frame apart and tells `sink`.
pub fn decode(sink: &mut impl Sink, link: Link, octets: &[u8], wire_length: usize, rules: Rules) {
    let missing = wire_length.saturating_sub(octets.len());
    decode_part(sink, link, octets, Rules { missing, ..rules });
    if missing > 0 {
        sink.wrong(format_args!(
            "cut: {} of {wire_length} octets are there, {missing} were not captured: CRCs and \
             payload cannot be judged",
            octets.len()
        ));
    }
}

/// Takes apart what is there of a frame; `rules` say how much is not.
fn decode_part(sink: &mut impl Sink, link: Link, octets: &[u8], rules: Rules) {
    let broken = match link {
        Link::Infiniband => infiniband::decode(sink, octets, rules),
        Link::Ethernet => ethernet::decode(sink, octets, rules),
    };
    if rules.missing > 0 && !broken {
        let reason = format_args!("{} octets are missing", rules.missing);
        sink.error("frame", octets.len(), reason, &[]);
    }
}

/// Tells of a header, and of its reserved bits that are set.
fn tell(sink: &mut impl Sink, layer: &'static Layer, octets: &[u8]) {
    sink.header(layer, octets);
    for (field, bits) in layer.reserved(octets).filter(|(_, bits)| *bits != 0) {
        sink.wrong(format_args!(
            "{}.{} is {bits}, should be 0: these bits are reserved",
            layer.key, field.name
        ));
    }
}

/// Tells that `part` of the frame `all` is too short for `layer`; true, since that is an error.
fn too_short(
    sink: &mut impl Sink,
    layer: &Layer,
    all: &[u8],
    part: Range<usize>,
    rules: Rules,
) -> bool {
    let (at, present, needed) = (part.start, part.len(), layer.octets);
    let reason = format_args!("needs {needed} octets, {present} are left");
    sink.error(layer.title, at, reason, &all[part]);
    // What was not captured is no fault of the frame.
    if rules.missing == 0 {
        let short = needed - present;
        sink.wrong(format_args!("too short for its {}: {short} octets are missing", layer.title));
    }
    true
}

/// Tells of a number that is not `right`.
fn judge(sink: &mut impl Sink, what: &str, found: usize, right: usize) {
    if found != right {
        sink.wrong(format_args!("{what} is {found}, should be {right}"));
    }
}

/// A frame put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Its octets.
    pub octets: Vec<u8>,
    /// When, in nanoseconds.
    pub at_ns: u64,
    /// Where.
    pub interface: Option<String>,
    /// Which way.
    pub direction: Option<Direction>,
    /// On Ethernet, not InfiniBand.
    pub is_ethernet: bool,
    /// A link packet.
    pub is_link_packet: bool,
    /// Octets there are to be on the wire, if that is more.
    pub wire_length: Option<usize>,
}

/// Puts a frame together from a line of JSON.
///
/// # Errors
/// Naming the first key that cannot be meant.
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
        ..Encoded::default()
    };
    frame.direction = match object.text("direction")?.as_deref() {
        None => None,
        Some("rx") => Some(Direction::Rx),
        Some("tx") => Some(Direction::Tx),
        Some(_) => return Err(object.fault("direction", "is neither", "\"rx\" or \"tx\"")),
    };
    frame.is_ethernet = match object.text("link")?.as_deref() {
        None => object.has("ethernet"),
        Some("ethernet") => true,
        Some("infiniband") => false,
        Some(_) => {
            return Err(object.fault("link", "is neither", "\"infiniband\" or \"ethernet\""));
        }
    };
    frame.wire_length = object.number("wire_length", u64::from(u32::MAX))?.map(|n| n as usize);
    // What decode says for people, and follows from the rest.
    for told in ["number", "wrong"] {
        object.take(told);
    }
    encode_frame(object, &mut frame.octets)?;
    Ok(frame)
}

/// Appends a frame; which format it has follows from its members.
fn encode_frame(mut object: Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    object.take("length");
    if object.has("ethernet") {
        ethernet::encode(&mut object, out)?;
    } else {
        infiniband::encode(&mut object, out)?;
    }
    object.finish()
}

/// What a frame could not be read as.
struct Broken(Vec<u8>);

/// Takes the octets of `error`; where it stands nothing that is left out is computed.
fn encode_error(object: &mut Object) -> Result<Option<Broken>, Fault> {
    let Some(mut error) = object.object("error")? else { return Ok(None) };
    for told in ["layer", "offset", "reason"] {
        error.take(told);
    }
    let octets = error.hex("octets")?.unwrap_or_default();
    error.finish()?;
    Ok(Some(Broken(octets)))
}

/// Appends a CRC of `length` octets: as given, or what `computed` says of the octets before it. In a
/// broken frame one that is left out is left out.
fn encode_check(
    object: &mut Object,
    key: &'static str,
    length: usize,
    broken: bool,
    out: &mut Vec<u8>,
    computed: impl FnOnce(&[u8]) -> u32,
) -> Result<(), Fault> {
    let mut given = Value::from("auto");
    match object.object(key)? {
        None if broken => return Ok(()),
        None => {}
        Some(mut check) => {
            given = check.take("value").unwrap_or(given);
            for told in ["ok", "expected"] {
                check.take(told);
            }
            check.finish()?;
        }
    }
    if given == "auto" {
        let computed = computed(out).to_le_bytes();
        out.extend_from_slice(&computed[..length]);
        return Ok(());
    }
    let digits = given.as_str().and_then(|text| text.strip_prefix("0x"));
    let octets = digits.and_then(object::parse_hex).filter(|octets| octets.len() == length);
    out.extend(octets.ok_or_else(|| {
        let hint = format!("\"0x\" and {} digits, octets as on the wire; or \"auto\"", 2 * length);
        object.fault(key, format!("{given} is no such CRC"), hint)
    })?);
    Ok(())
}

#[cfg(test)]
mod tests;
