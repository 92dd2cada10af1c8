//! Did this host keep up? Lateness, losses, and the one rule that makes a run inconclusive.
//!
//! Lateness of a departure is actual minus scheduled wall time, in units of that link's frame time
//! in wall time. It is kept in thousandths of a frame time for the verdict and in nanoseconds of
//! wall time for the curious, for departures inside the measured windows; a timeline of bounded
//! length keeps all of them.

mod meter;
mod spread;
pub(crate) mod timeline;
pub mod verdict;

pub use meter::Lateness;
pub(crate) use meter::Meter;
pub use spread::Spread;
pub use timeline::FidelityBin;
pub use verdict::{Evidence, Fidelity, judge};
