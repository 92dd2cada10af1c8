//! Many runs: a sweep over keys of a scenario, the search for good parameters, and shares of both on several machines.

pub mod parallel;
pub mod shard;
pub mod sweep;
mod table;
pub mod tune;
