//! Oblivious policies: the port depends on the frame and the configuration, never on the state of the network.

use super::flow_hash::{flow_hash, pair_hash, share};
use super::{RoutedPacket, RoutingPolicy};
use crate::config::PairRoute;
use proto::ids::PortNumber;
use proto::wire::ethernet::plan;

impl<F: FnMut(RoutedPacket<'_>, &[PortNumber]) -> PortNumber + Send> RoutingPolicy for F {
    fn choose(&mut self, packet: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber {
        self(packet, legal)
    }
}

/// ECMP: a hash of the flow chooses the port, so flows spread over all ports and keep their order. The seed of
/// the hash is different in every switch.
pub fn ecmp(seed: u64) -> impl RoutingPolicy {
    move |packet: RoutedPacket<'_>, legal: &[PortNumber]| {
        share(flow_hash(packet.octets, seed), legal)
    }
}

/// d-mod-k: always the preferred port.
///
/// The launcher computes the preferred port from the destination's number d as port ⌊d / spread⌋ mod k, so that
/// k ports share all destinations evenly. Source: Zahavi, "D-Mod-K Routing" (2009).
pub fn preferred() -> impl RoutingPolicy {
    |_: RoutedPacket<'_>, legal: &[PortNumber]| legal[0]
}

/// s-mod-k: the source's number chooses the port, so that all frames of a source climb by one path. A source
/// outside the address plan uses the preferred port.
///
/// Of k legal ports, number ⌊s / `spread`⌋ mod k for source s. Source: Rodriguez et al., "Oblivious
/// routing schemes in extended generalized fat tree networks" (CLUSTER 2009).
pub fn s_mod_k(spread: u64) -> impl RoutingPolicy {
    move |packet: RoutedPacket<'_>, legal: &[PortNumber]| {
        let source = plan::adapter_of(packet.headers.source);
        let number = source.map_or(0, |lid| u64::from(lid.get()).saturating_sub(1));
        legal[(number / spread.max(1) % legal.len() as u64) as usize]
    }
}

/// Random by pair: one random port for all frames from one adapter to another.
///
/// The port is a hash of the pair and the switch's seed, so the policy has no state and a pair keeps its port
/// for the whole run. A random port for each frame would reorder flows.
pub fn random_by_pair(seed: u64) -> impl RoutingPolicy {
    move |packet: RoutedPacket<'_>, legal: &[PortNumber]| {
        let (source, destination) = (packet.headers.source, packet.headers.destination);
        share(pair_hash(source.number(), destination.number(), seed), legal)
    }
}

/// Colored: each pair of adapters has a port assigned in advance; the first of several entries for a pair counts.
///
/// The launcher computes the assignment from known traffic. Pairs without an entry use the preferred port.
pub fn colored(pairs: &[PairRoute]) -> impl RoutingPolicy + use<> {
    let row = |pair: &PairRoute| ((pair.source, pair.destination), pair.port);
    let mut ports: Vec<_> = pairs.iter().map(row).collect();
    ports.sort_by_key(|(pair, _)| *pair);
    ports.dedup_by_key(|(pair, _)| *pair);
    move |packet: RoutedPacket<'_>, legal: &[PortNumber]| {
        let [source, destination] =
            [packet.headers.source, packet.headers.destination].map(plan::adapter_of);
        let pair = source.zip(destination);
        let entry = pair.and_then(|pair| ports.binary_search_by_key(&pair, |row| row.0).ok());
        let port = entry.map(|index| ports[index].1);
        port.filter(|port| legal.contains(port)).unwrap_or(legal[0])
    }
}
