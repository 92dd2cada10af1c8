//! The results of a run: measures and verdicts, saturation trees, deadlocks, and the run directory.

pub mod deadlock;
pub mod evaluate;
pub mod fairness;
mod latencies;
pub mod lossless;
pub mod remarks;
pub mod run_directory;
pub mod saturation;
pub mod verdict;
pub mod violations;
pub mod wording;
