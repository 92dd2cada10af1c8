//! Forwarding by MAC address: entries that were planned, addresses that were learned, and flooding of
//! what nobody knows.
//!
//! The adapters of the plan are found by their number in a plain table; several ports for one are
//! alternatives, the first route first. Foreign addresses are learned from the frames
//! they send and forgotten when they fall silent; a frame for an unknown one or for a group goes out
//! by every port but its own. Nobody cuts loops here as a spanning tree does, so what a port may
//! flood is limited.
//!
//! Source: IEEE 802.1Q, 8.6 (forwarding), 8.7 (learning), 8.8 (the filtering database).

use super::{Found, Passing, Table};
use crate::config::{MacTableParams, Route};
use proto::counters::DropReason;
use proto::ids::{Lid, PortNumber};
use proto::units::Instant;
use proto::wire::ethernet::{MacAddress, plan};
use std::collections::HashMap;

/// 01-80-C2-00-00-00 to -0F stay on their link. Source: IEEE 802.1Q, table 8-1.
const RESERVED: u64 = 0x0180_c200_0000;

/// Where an address was last seen.
#[derive(Clone, Copy, Debug)]
struct Learned {
    port: PortNumber,
    seen: Instant,
}

/// What one port floods.
#[derive(Clone, Copy, Debug, Default)]
struct Flood {
    frames: u64,
    /// When its next frame would be due if it had flooded evenly.
    due: Instant,
}

/// The table of a switch.
#[derive(Debug)]
pub struct MacTable {
    numbers: MacTableParams,
    /// By adapter number; nothing for those without a route.
    planned: Vec<Vec<PortNumber>>,
    learned: HashMap<u64, Learned>,
    ports: Vec<PortNumber>,
    /// By port.
    floods: Vec<Flood>,
}

impl MacTable {
    /// The table of a switch of `ports` ports with these routes and nothing learned.
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
            ports: (0..ports).map(PortNumber::from_index).collect(),
            floods: vec![Flood::default(); ports],
        }
    }

    /// Whether the address is an adapter's to which a route leads.
    fn is_planned(&self, address: u64) -> bool {
        let adapter = plan::adapter_of_mac(MacAddress::from_number(address));
        adapter.is_some_and(|adapter| !self.ports_to(adapter).is_empty())
    }

    fn is_old(&self, entry: &Learned, now: Instant) -> bool {
        now.since(entry.seen) > self.numbers.age
    }

    /// Notes by which port a foreign address is reached. A full table forgets what is old, and learns
    /// nothing if nothing is.
    fn learn(&mut self, source: u64, port: PortNumber, now: Instant) {
        let address = MacAddress::from_number(source);
        if address.is_group() || self.is_planned(source) {
            return;
        }
        if self.learned.len() >= self.numbers.learned_max && !self.learned.contains_key(&source) {
            let age = self.numbers.age;
            self.learned.retain(|_, entry| now.since(entry.seen) <= age);
            if self.learned.len() >= self.numbers.learned_max {
                return;
            }
        }
        self.learned.insert(source, Learned { port, seen: now });
    }

    /// Where a frame to an address goes that is in no plan.
    fn find_foreign(&mut self, input: PortNumber, destination: u64, now: Instant) -> Found<'_> {
        let known = self.learned.get(&destination).filter(|entry| !self.is_old(entry, now));
        match known.map(|entry| entry.port.index()) {
            Some(port) => Found::Legal(&self.ports[port..=port]),
            None if self.may_flood(input, now) => Found::Multicast(&self.ports),
            None => Found::Nowhere(DropReason::FloodLimit),
        }
    }

    /// Whether `port` may flood another frame now.
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
    fn find(&mut self, packet: Passing<'_>) -> Found<'_> {
        let Passing { input, headers, now, .. } = packet;
        self.learn(headers.source, input, now);
        if headers.destination & !0xf == RESERVED {
            return Found::Nowhere(DropReason::ReservedAddress);
        }
        let adapter = plan::adapter_of_mac(MacAddress::from_number(headers.destination));
        match adapter.filter(|adapter| !self.ports_to(*adapter).is_empty()) {
            Some(adapter) => Found::Legal(self.ports_to(adapter)),
            None => self.find_foreign(input, headers.destination, now),
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
        let here = self.learned.values().filter(|entry| entry.port == port).count();
        if here > 0 {
            named.push(("learned_addresses".to_owned(), here as u64));
        }
    }
}

#[cfg(test)]
mod tests;
