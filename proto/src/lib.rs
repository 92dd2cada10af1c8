//! Protocol types and engines of the standards: units and identifiers, wire formats, link engines and
//! congestion control schemes.
//!
//! This crate opens no socket, reads no clock, starts no thread and touches no file. Time is an
//! argument; frames go in and come out. The same device runs on a wall clock and in a simulator.
//!
//! ```
//! use proto::units::{BitRate, Bytes, Duration};
//! use proto::wire::infiniband::flow_control_packet::FlowControlPacket;
//!
//! assert_eq!(BitRate::gbps(10).octets_in(Duration::from_us(1)), Bytes::new(1250));
//! let packet = FlowControlPacket::parse(&[0x00, 0x2a, 0x10, 0x80, 0x00, 0x00]);
//! assert!(packet.is_err(), "its LPCRC is wrong");
//! ```
//!
//! Reading order: [`units`], [`ids`], [`frame`], [`device`]; then [`wire`], [`link`] and
//! [`congestion`].

pub mod congestion;
pub mod counters;
pub mod departure;
pub mod device;
pub mod events;
pub mod frame;
pub mod ids;
pub mod link;
pub mod params;
pub mod random;
pub mod technology;
pub mod units;
pub mod wire;

pub use technology::Technology;

#[cfg(test)]
mod tests;
