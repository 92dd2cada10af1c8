//! s-mod-k: the source's number chooses the port, so that all a source sends climbs one way.
//!
//! Of k legal ports, number ⌊s / spread⌋ mod k for source s. Source: Rodriguez et al., "Oblivious
//! routing schemes in extended generalized fat tree networks" (CLUSTER 2009).

use super::{Passing, RoutingPolicy};
use proto::ids::PortNumber;
use proto::wire::ethernet::{MacAddress, plan};

/// Chooses by source.
#[derive(Clone, Copy, Debug)]
pub struct SourceModK {
    /// What the source's number is divided by in this switch.
    pub spread: u64,
}

impl RoutingPolicy for SourceModK {
    /// A source that is no adapter of the plan goes the preferred way.
    fn choose(&mut self, packet: Passing<'_>, legal: &[PortNumber]) -> PortNumber {
        let source = plan::adapter_of_mac(MacAddress::from_number(packet.headers.source));
        let number = source.map_or(0, |lid| u64::from(lid.get()).saturating_sub(1));
        legal[(number / self.spread.max(1) % legal.len() as u64) as usize]
    }
}
