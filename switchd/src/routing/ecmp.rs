//! ECMP: a hash of the flow chooses the port, so flows spread over all ports and keep their order.

use super::flow_hash::{flow_hash, share};
use super::{RoutedPacket, RoutingPolicy};
use proto::ids::PortNumber;

/// The policy.
#[derive(Clone, Copy, Debug)]
pub struct EqualCost {
    /// Hash seed, different in every switch.
    pub seed: u64,
}

impl RoutingPolicy for EqualCost {
    fn choose(&mut self, packet: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber {
        share(flow_hash(packet.octets, self.seed), legal)
    }
}
