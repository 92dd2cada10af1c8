//! What the tests of several modules share: sample packets, and a bottleneck for congestion control schemes.

pub mod bottleneck;
pub mod infiniband;
pub mod roce;
