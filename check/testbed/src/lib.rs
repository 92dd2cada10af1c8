//! A test bed: one device among played neighbours, and the frames that tests send.
//!
//! [`Bed`] is the vocabulary of scripts: send a frame, pause a priority, offer credit. [`Bench`] is a
//! bed on a virtual clock around any [`proto::device::Device`]. The conformance suite has a second
//! bed around a live daemon. [`Script`] is the list of steps and their instants, for either.

mod bed;
mod bench;
mod credits;
pub mod frames;
mod hampered;
mod line;
mod neighbour;
mod seen;
pub mod subnet_manager;
pub mod toy;

pub use bed::{Bed, Label, Script, Step};
pub use bench::{Bench, Cable};
pub use credits::{Credits, FcMode, Lane, OFFER_MAX, cost};
pub use hampered::{Hampered, Misses, credulous, deaf, hasty, sleepy};
pub use line::OnLine;
pub use neighbour::Neighbour;
pub use seen::{Seen, Sent, Sightings};
pub mod verbs;
