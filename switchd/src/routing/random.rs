//! Random by pair: one random port for all frames from one adapter to another.
//!
//! The port is a hash of the pair and the switch's seed, so the policy has no state and a pair keeps its port
//! for the whole run. A random port for each frame would reorder flows.

use super::flow_hash::{pair_hash, share};
use super::{RoutedPacket, RoutingPolicy};
use proto::ids::PortNumber;

/// The policy.
#[derive(Clone, Copy, Debug)]
pub struct RandomByPair {
    /// Hash seed, different in every switch.
    pub seed: u64,
}

impl RoutingPolicy for RandomByPair {
    fn choose(&mut self, packet: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber {
        let (source, destination) = (packet.headers.source, packet.headers.destination);
        share(pair_hash(source.number(), destination.number(), self.seed), legal)
    }
}
