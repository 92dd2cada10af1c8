//! Colored: each pair of adapters has a port assigned in advance.
//!
//! The launcher computes the assignment from known traffic. Pairs without an entry use the preferred port.

use super::{RoutedPacket, RoutingPolicy};
use crate::config::PairRoute;
use proto::ids::{Lid, PortNumber};
use proto::wire::ethernet::plan;

/// The policy.
#[derive(Clone, Debug)]
pub struct Colored {
    /// By source and destination.
    ports: Vec<((Lid, Lid), PortNumber)>,
}

impl Colored {
    /// A policy with these assignments; the first of several entries for a pair counts.
    pub fn new(pairs: &[PairRoute]) -> Colored {
        let mut ports: Vec<_> =
            pairs.iter().map(|pair| ((pair.source, pair.destination), pair.port)).collect();
        ports.sort_by_key(|(pair, _)| *pair);
        ports.dedup_by_key(|(pair, _)| *pair);
        Colored { ports }
    }
}

impl RoutingPolicy for Colored {
    fn choose(&mut self, packet: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber {
        let [source, destination] =
            [packet.headers.source, packet.headers.destination].map(plan::adapter_of);
        let pair = source.zip(destination);
        let entry = pair.and_then(|pair| self.ports.binary_search_by_key(&pair, |row| row.0).ok());
        let port = entry.map(|index| self.ports[index].1);
        port.filter(|port| legal.contains(port)).unwrap_or(legal[0])
    }
}
