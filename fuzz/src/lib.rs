//! Fuzz targets: what each does with hostile octets, and what must hold. Each target has one file and one row.
//!
//! A target is a function of octets that panics if a property does not hold. `fuzz.sh` searches with cargo-fuzz
//! for octets that make it panic. `tests/tests/fuzz_corpus.rs` replays the inputs in `corpus/` and
//! thousands of random inputs, on stable Rust.

pub mod bench;
pub mod capture;
pub mod congestion;
pub mod datagram;
pub mod ethernet;
pub mod ethernet_switch;
pub mod frames;
pub mod link_packet;
pub mod nic;
pub mod packet;
pub mod roce_frames;
pub mod roce_nic;
pub mod scenario;
pub mod seeds;
pub mod switch;
pub mod tape;
pub mod text;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the target and of its corpus folder.
    pub name: &'static str,
    /// Processes one input and panics if a property does not hold.
    pub check: fn(&[u8]),
}

/// All fuzz targets.
pub const TARGETS: &[Target] = &[
    Target { name: "packet", check: packet::check },
    Target { name: "link_packet", check: link_packet::check },
    Target { name: "ethernet", check: ethernet::check },
    Target { name: "congestion", check: congestion::check },
    Target { name: "datagram", check: datagram::check },
    Target { name: "capture", check: capture::check },
    Target { name: "text", check: text::check },
    Target { name: "scenario", check: scenario::check },
    Target { name: "switch", check: switch::check },
    Target { name: "ethernet_switch", check: ethernet_switch::check },
    Target { name: "nic", check: nic::check },
    Target { name: "roce_nic", check: roce_nic::check },
];
