//! Fidelity: whether the host kept up. Lateness, losses, and the one rule that makes a run inconclusive.
//!
//! The lateness of a departure is its actual minus its scheduled wall time. For departures inside the measured
//! windows it is kept in thousandths of the link's frame time, for the verdict, and in nanoseconds of wall
//! time. A frame time on the wall is that of the clock's piece in force. A timeline of bounded length covers all departures.

mod meter;
mod recent;
mod spread;
pub(crate) mod timeline;
pub mod verdict;

pub use meter::Lateness;
pub(crate) use meter::Meter;
pub use recent::Recent;
pub use spread::Spread;
pub use timeline::FidelityBin;
pub use verdict::{Evidence, Fidelity, judge};
