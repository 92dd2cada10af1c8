//! d-mod-k: always the preferred port.
//!
//! The launcher computes the preferred port from the destination's number d as port ⌊d / spread⌋ mod k, so that
//! k ports share all destinations evenly. Source: Zahavi, "D-Mod-K Routing" (2009).

use super::{RoutedPacket, RoutingPolicy};
use proto::ids::PortNumber;

/// The policy.
#[derive(Clone, Copy, Debug)]
pub struct Preferred;

impl RoutingPolicy for Preferred {
    fn choose(&mut self, _: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber {
        legal[0]
    }
}
