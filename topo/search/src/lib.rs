//! Many runs: a sweep over keys of a scenario, and the search for good parameters.

pub mod parallel;
pub mod sweep;
mod table;
pub mod tune;
