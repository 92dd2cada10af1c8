//! RoCE on the wire: InfiniBand's transport behind a GRH, or behind IP and UDP.
//!
//! ```text
//! v1: | Ethernet | GRH        | BTH | extended headers | payload | pad | ICRC | zeros up to 60 octets |
//! v2: | Ethernet | IP  | UDP  | BTH | …
//!                |--- ICRC, behind eight octets of ones, variant fields as ones ---|
//!                |---- total length of IPv4; UDP's from UDP on ----------------------|
//! ```
//!
//! [`layout`] finds the parts, [`packet`] parses and builds packets, [`checks`] verifies ICRC and checksums, and
//! [`notification`] is the CNP. Source: IBTA Vol 1, annexes A16 (v1), A17 (v2).

pub mod checks;
pub mod layout;
pub mod notification;
pub mod packet;

pub use layout::Layout;
pub use packet::{EmitError, NetworkHeaders, Packet, PacketBuilder};
