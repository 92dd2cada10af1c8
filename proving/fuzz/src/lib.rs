//! Fuzz targets: what each does with hostile octets, and what must hold. Each target has one file and one row.
//!
//! A target is a function of octets that panics if a property does not hold. `fuzz.sh` searches with cargo-fuzz
//! for octets that make it panic. `tests/tests/fuzz_corpus.rs` replays the inputs in `corpus/` and
//! thousands of random inputs, on stable Rust.

pub mod api;
pub mod bench;
pub mod capture;
pub mod congestion;
pub mod datagram;
pub mod ethernet;
pub mod ethernet_switch;
pub mod frames;
pub mod http;
pub mod join;
pub mod link_packet;
pub mod mutate;
pub mod nic;
pub mod offload;
pub mod packet;
pub mod roce_frames;
pub mod roce_nic;
pub mod scenario;
pub mod seeds;
pub mod seeds_text;
pub mod switch;
pub mod tape;
pub mod text;
pub mod trace;

/// What the octets of a target are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One input of a decoder.
    Decoder,
    /// A sequence of operations on a device.
    Engine,
}

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the target and of its corpus folder.
    pub name: &'static str,
    /// What its octets are.
    pub kind: Kind,
    /// Processes one input and panics if a property does not hold.
    pub check: fn(&[u8]),
}

const fn decoder(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, kind: Kind::Decoder, check }
}

const fn engine(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, kind: Kind::Engine, check }
}

/// All fuzz targets.
pub const TARGETS: &[Target] = &[
    decoder("packet", packet::check),
    decoder("link_packet", link_packet::check),
    decoder("ethernet", ethernet::check),
    decoder("congestion", congestion::check),
    decoder("datagram", datagram::check),
    decoder("offload", offload::check),
    decoder("capture", capture::check),
    decoder("text", text::check),
    decoder("scenario", scenario::check),
    decoder("trace", trace::check),
    decoder("api", api::check),
    decoder("http", http::check),
    decoder("join", join::check),
    engine("switch", switch::check),
    engine("ethernet_switch", ethernet_switch::check),
    engine("nic", nic::check),
    engine("roce_nic", roce_nic::check),
];
