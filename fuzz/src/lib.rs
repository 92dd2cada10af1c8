//! What is done with hostile octets, and what must hold then: one file and one row a target.
//!
//! A target is a function of octets that panics if something does not hold. `fuzz.sh` lets cargo-fuzz
//! look for octets that make it; `tests/tests/fuzz_corpus.rs` replays those kept in `corpus/` and
//! tries some thousand random ones, on stable Rust.

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

/// One target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also that of its corpus.
    pub name: &'static str,
    /// Does what a hostile peer makes us do, and panics if something does not hold.
    pub check: fn(&[u8]),
}

/// Every target.
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
