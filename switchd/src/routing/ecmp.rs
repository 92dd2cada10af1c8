//! ECMP: flows are spread over all legal ports, and each keeps its own.

use super::flow_hash::{flow_hash, share};
use super::{Passing, RoutingPolicy};
use proto::ids::PortNumber;

/// Chooses by flow.
#[derive(Clone, Copy, Debug)]
pub struct EqualCost {
    /// Tells this switch's choices from those of others.
    pub seed: u64,
}

impl RoutingPolicy for EqualCost {
    fn choose(&mut self, packet: Passing<'_>, legal: &[PortNumber]) -> PortNumber {
        share(flow_hash(packet.octets, self.seed), legal)
    }
}
