//! What the standards say, as values: units and identifiers, wire formats, link engines and
//! congestion-control schemes.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or touches a file. Time is an
//! argument, frames go in and come out, and a device built from these parts cannot tell whether it
//! runs on a wall clock or in a simulator.
//!
//! Reading order: [`units`], [`ids`], [`frame`], [`device`]; then [`wire`], [`link`] and
//! [`congestion`], which do not know each other except through frames.

pub mod congestion;
pub mod counters;
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
