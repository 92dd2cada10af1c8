//! Colored: who sends to whom was known beforehand, and each pair of adapters was given a port of its own.
//!
//! The laboratory reckons the assignment; here it is looked up. Pairs without an entry go the preferred
//! way.

use super::{Passing, RoutingPolicy};
use crate::config::PairRoute;
use proto::ids::{Lid, PortNumber};
use proto::wire::ethernet::{MacAddress, plan};

/// Chooses by pair of adapters.
#[derive(Clone, Debug)]
pub struct Colored {
    /// By source and destination.
    ports: Vec<((Lid, Lid), PortNumber)>,
}

impl Colored {
    /// The ports of these pairs; of two entries for one pair the first counts.
    pub fn new(pairs: &[PairRoute]) -> Colored {
        let mut ports: Vec<_> =
            pairs.iter().map(|pair| ((pair.source, pair.destination), pair.port)).collect();
        ports.sort_by_key(|(pair, _)| *pair);
        ports.dedup_by_key(|(pair, _)| *pair);
        Colored { ports }
    }
}

impl RoutingPolicy for Colored {
    fn choose(&mut self, packet: Passing<'_>, legal: &[PortNumber]) -> PortNumber {
        let adapter = |number| plan::adapter_of_mac(MacAddress::from_number(number));
        let pair = adapter(packet.headers.source).zip(adapter(packet.headers.destination));
        let entry = pair.and_then(|pair| self.ports.binary_search_by_key(&pair, |row| row.0).ok());
        let port = entry.map(|index| self.ports[index].1);
        port.filter(|port| legal.contains(port)).unwrap_or(legal[0])
    }
}
