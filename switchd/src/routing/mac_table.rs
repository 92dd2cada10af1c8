//! Forwarding by MAC address: static entries, learned addresses, and flooding of unknown ones.
//!
//! A table by adapter number serves the addresses of the plan; several ports of one adapter are
//! alternatives in the order of their routes. Foreign addresses are learned from source addresses and age
//! out. Every port has the same part of the table, so that a flood of addresses at one port displaces no address
//! of another; and a frame looks at a few old entries at most, however full the table is. A frame for an unknown
//! address or a group is flooded to all other ports. There is no spanning tree, so a rate limit per port bounds
//! flooding in loops.
//!
//! Source: IEEE 802.1Q, 8.6 (forwarding), 8.7 (learning), 8.8 (the filtering database).

use super::{Lookup, RoutedPacket, Table};
use crate::config::{MacTableParams, Route};
use proto::counters::DropReason;
use proto::ids::{Address, Lid, PortNumber};
use proto::units::Instant;
use proto::wire::ethernet::{MacAddress, plan};
use std::collections::{HashMap, VecDeque};

/// 01-80-C2-00-00-00 to -0F are never forwarded. Source: IEEE 802.1Q, table 8-1.
const RESERVED: u64 = 0x0180_c200_0000;

/// A learned address: its port, and when it was last seen.
#[derive(Clone, Copy, Debug)]
struct Learned {
    port: PortNumber,
    seen: Instant,
}

/// Old entries that a frame looks at to make room for its source.
const LOOKS: usize = 4;

/// The part of the table that one port has.
#[derive(Clone, Debug, Default)]
struct Share {
    /// Addresses learned at this port, those looked at longest ago first. An address that has moved to another port
    /// stays here until it is looked at.
    addresses: VecDeque<MacAddress>,
    /// Addresses learned at this port.
    count: usize,
    /// Frames whose source was not learned, because the part was full.
    unlearned: u64,
}

/// The flooding of one port.
#[derive(Clone, Copy, Debug, Default)]
struct Flood {
    frames: u64,
    /// When its next frame would be due at an even rate (generic cell rate algorithm).
    due: Instant,
}

/// The table of a switch.
#[derive(Debug)]
pub struct MacTable {
    numbers: MacTableParams,
    /// By adapter number; empty without a route.
    planned: Vec<Vec<PortNumber>>,
    learned: HashMap<MacAddress, Learned>,
    /// By port.
    shares: Vec<Share>,
    /// Addresses that one port may have learned.
    share_max: usize,
    ports: Vec<PortNumber>,
    /// By port.
    floods: Vec<Flood>,
}

impl MacTable {
    /// The table of a switch with `ports` ports and these routes, without learned addresses.
    pub fn new(routes: &[Route], ports: usize, numbers: &MacTableParams) -> MacTable {
        let mut planned: Vec<Vec<PortNumber>> = Vec::new();
        for route in routes {
            let (first, last) = (usize::from(route.first.get()), usize::from(route.last.get()));
            if planned.len() <= last {
                planned.resize(last + 1, Vec::new());
            }
            for alternatives in planned.iter_mut().take(last + 1).skip(first) {
                if !alternatives.contains(&route.port) {
                    alternatives.push(route.port);
                }
            }
        }
        MacTable {
            numbers: *numbers,
            planned,
            learned: HashMap::new(),
            shares: vec![Share::default(); ports],
            share_max: numbers.learned_max / ports.max(1),
            ports: (0..ports).map(PortNumber::from_index).collect(),
            floods: vec![Flood::default(); ports],
        }
    }

    /// Whether the address belongs to an adapter with a route.
    fn is_planned(&self, address: MacAddress) -> bool {
        let adapter = plan::adapter_of_mac(address);
        adapter.is_some_and(|adapter| !self.ports_to(adapter).is_empty())
    }

    /// Learns the port of a foreign address, unless the part of the port is full of addresses that have not aged.
    fn learn(&mut self, source: MacAddress, port: PortNumber, now: Instant) {
        if source.is_group() || self.is_planned(source) {
            return;
        }
        if let Some(entry) = self.learned.get_mut(&source).filter(|entry| entry.port == port) {
            entry.seen = now;
            return;
        }
        if !self.make_room(port, now) {
            self.shares[port.index()].unlearned += 1;
            return;
        }
        let share = &mut self.shares[port.index()];
        share.addresses.push_back(source);
        share.count += 1;
        if let Some(before) = self.learned.insert(source, Learned { port, seen: now }) {
            self.shares[before.port.index()].count -= 1;
        }
    }

    /// Whether the part of `port` has room for an address. Looks at a few of its entries and drops the aged ones.
    fn make_room(&mut self, port: PortNumber, now: Instant) -> bool {
        let share = &mut self.shares[port.index()];
        for _ in 0..LOOKS.min(share.addresses.len()) {
            // Entries of addresses that have moved away are dropped even if there is room: they take memory.
            if share.count < self.share_max && share.addresses.len() < 2 * self.share_max {
                break;
            }
            let Some(address) = share.addresses.pop_front() else { break };
            match self.learned.get(&address).filter(|entry| entry.port == port) {
                None => {}
                Some(entry) if now.since(entry.seen) <= self.numbers.age => {
                    share.addresses.push_back(address);
                }
                Some(_) => {
                    self.learned.remove(&address);
                    share.count -= 1;
                }
            }
        }
        share.count < self.share_max && share.addresses.len() < 2 * self.share_max
    }

    /// Looks up an address outside the plan.
    fn find_foreign(
        &mut self,
        input: PortNumber,
        destination: MacAddress,
        now: Instant,
    ) -> Lookup<'_> {
        let is_known = |entry: &&Learned| now.since(entry.seen) <= self.numbers.age;
        let known = self.learned.get(&destination).filter(is_known);
        match known.map(|entry| entry.port.index()) {
            Some(port) => Lookup::Unicast(&self.ports[port..=port]),
            None if self.may_flood(input, now) => Lookup::Multicast(&self.ports),
            None => Lookup::NoRoute(DropReason::FloodLimit),
        }
    }

    /// Whether the flood limit of `port` permits another frame now.
    fn may_flood(&mut self, port: PortNumber, now: Instant) -> bool {
        let flood = &mut self.floods[port.index()];
        let due = flood.due.max(now) + self.numbers.flood_gap;
        let may = due.since(now) <= self.numbers.flood_gap * self.numbers.flood_burst;
        if may {
            *flood = Flood { frames: flood.frames + 1, due };
        }
        may
    }
}

impl Table for MacTable {
    fn find(&mut self, packet: RoutedPacket<'_>) -> Lookup<'_> {
        let RoutedPacket { input, headers, now, .. } = packet;
        let (Address::Mac(source), Address::Mac(destination)) =
            (headers.source, headers.destination)
        else {
            return Lookup::NoRoute(DropReason::Malformed);
        };
        self.learn(source, input, now);
        if destination.number() & !0xf == RESERVED {
            return Lookup::NoRoute(DropReason::ReservedAddress);
        }
        let adapter = plan::adapter_of_mac(destination);
        match adapter.filter(|adapter| !self.ports_to(*adapter).is_empty()) {
            Some(adapter) => Lookup::Unicast(self.ports_to(adapter)),
            None => self.find_foreign(input, destination, now),
        }
    }

    fn ports_to(&self, adapter: Lid) -> &[PortNumber] {
        self.planned.get(usize::from(adapter.get())).map_or(&[], Vec::as_slice)
    }

    fn read(&self, port: PortNumber, named: &mut Vec<(String, u64)>) {
        let flooded = self.floods[port.index()].frames;
        if flooded > 0 {
            named.push(("flooded_packets".to_owned(), flooded));
        }
        let Share { count, unlearned, .. } = self.shares[port.index()];
        if count > 0 {
            named.push(("learned_addresses".to_owned(), count as u64));
        }
        if unlearned > 0 {
            named.push(("unlearned_packets".to_owned(), unlearned));
        }
    }
}

#[cfg(test)]
mod tests;
