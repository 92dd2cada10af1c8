//! s-mod-k: the source's number chooses the port, so that all frames of a source climb by one path.
//!
//! Of k legal ports, number ⌊s / spread⌋ mod k for source s. Source: Rodriguez et al., "Oblivious
//! routing schemes in extended generalized fat tree networks" (CLUSTER 2009).

use super::{RoutedPacket, RoutingPolicy};
use proto::ids::PortNumber;
use proto::wire::ethernet::plan;

/// The policy.
#[derive(Clone, Copy, Debug)]
pub struct SourceModK {
    /// Divisor of the source's number in this switch.
    pub spread: u64,
}

impl RoutingPolicy for SourceModK {
    /// A source outside the address plan uses the preferred port.
    fn choose(&mut self, packet: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber {
        let source = plan::adapter_of(packet.headers.source);
        let number = source.map_or(0, |lid| u64::from(lid.get()).saturating_sub(1));
        legal[(number / self.spread.max(1) % legal.len() as u64) as usize]
    }
}
