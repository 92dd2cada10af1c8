//! Fidelity: whether the host kept up. Lateness, losses, and the one rule that makes a run inconclusive.
//!
//! The lateness of a departure is its actual minus its scheduled wall time. For departures inside the measured
//! windows it is kept in thousandths of the link's frame time, for the verdict, and in nanoseconds of wall
//! time. A timeline of bounded length covers all departures.

mod meter;
mod spread;
pub(crate) mod timeline;
pub mod verdict;

pub use meter::Lateness;
pub(crate) use meter::Meter;
pub use spread::Spread;
pub use timeline::FidelityBin;
pub use verdict::{Evidence, Fidelity, judge};
