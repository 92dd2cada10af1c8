//! Random, by pair of addresses: a port drawn once for all that one adapter sends to another.
//!
//! The draw is a hash of the pair and of the switch's seed, so nothing is remembered, and a pair keeps
//! its port for the whole run. A draw for each frame would break the order of flows.

use super::flow_hash::{pair_hash, share};
use super::{Passing, RoutingPolicy};
use proto::ids::PortNumber;

/// Chooses by a draw.
#[derive(Clone, Copy, Debug)]
pub struct RandomByPair {
    /// Tells this switch's draws from those of others.
    pub seed: u64,
}

impl RoutingPolicy for RandomByPair {
    fn choose(&mut self, packet: Passing<'_>, legal: &[PortNumber]) -> PortNumber {
        let (source, destination) = (packet.headers.source, packet.headers.destination);
        share(pair_hash(source, destination, self.seed), legal)
    }
}
