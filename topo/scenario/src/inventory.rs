//! The properties of a fabric that its results need: names, rates, addresses, units.

use crate::host::Host;
use emulation::wiring::{End, Wiring};
use proto::counters::FlowId;
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// A fabric as a scenario made it, as far as measures and files need it.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// Nodes and cables.
    pub wiring: Wiring,
    /// Line rate by link.
    pub rates: Vec<BitRate>,
    /// Line rate by attached interface; those that send what there is at once have none.
    pub attached_rates: Vec<Option<BitRate>>,
    /// By attached interface: its line rate, or without one the nominal rate of its pauses, which captures and
    /// pictures state.
    pub nominal_rates: Vec<BitRate>,
    /// What runs on the links.
    pub technology: Technology,
    /// One MTU time of the default link.
    pub tau: Duration,
    /// One full data frame as it is buffered.
    pub full_frame: Bytes,
    /// The address in [`FlowId`]s by node, 0 for those that neither send nor receive.
    pub addresses: Vec<u64>,
    /// Names of the scenario's traffic items, by number.
    pub traffic: Vec<String>,
    /// The properties of replayed traces that measures need, by number of the traffic item.
    pub replays: BTreeMap<u16, ReplayFacts>,
    /// By node, the numbers of its traffic items in the order of its own list.
    pub items: Vec<Vec<u16>>,
    /// Virtual lane or priority by connection class.
    pub lanes: Vec<u8>,
    /// Lanes that must lose nothing for want of room; bit n is lane n.
    pub lossless: u16,
    /// Those of them that flow control protects: none without any pause.
    pub protected: u16,
    /// Hosts at attached ports, with names and addresses.
    pub hosts: Vec<Host>,
}

/// The properties of a trace that measures need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayFacts {
    /// When it starts.
    pub start: Instant,
    /// The least time that it takes.
    pub ideal: Duration,
    /// How many messages NICs post for it.
    pub messages: u64,
    /// The connection class that is its own.
    pub class: u8,
}

impl Fabric {
    /// The name of a node.
    pub fn node_name(&self, node: usize) -> &str {
        self.wiring.nodes.get(node).map_or("?", |node| &node.name)
    }

    /// The rate of the line at `end`.
    ///
    /// # Errors
    /// If no cable is there, or an interface of the host without a rate.
    pub fn line_rate(&self, end: End) -> Result<BitRate, String> {
        if let Some(place) = self.wiring.attached.iter().position(|attached| attached.at == end) {
            let rate = self.attached_rates.get(place).copied().flatten();
            return rate.ok_or_else(|| format!("no rate at {}", self.wiring.end_name(end)));
        }
        let link = self.wiring.peer(end).map(|(id, _)| id);
        let rate = link.and_then(|id| self.rates.get(id));
        rate.copied().ok_or_else(|| format!("no cable at {}", self.wiring.end_name(end)))
    }

    /// Port, name and nominal rate of each attached interface.
    pub fn attached(&self) -> impl Iterator<Item = (End, &str, BitRate)> {
        let rates = self.wiring.attached.iter().zip(&self.nominal_rates);
        rates.map(|(attached, rate)| (attached.at, attached.interface.as_str(), *rate))
    }

    /// The rate that a capture states for the port at `end`; none if nothing is there.
    pub fn nominal_rate(&self, end: End) -> Option<BitRate> {
        let attached = self.attached().find(|(at, ..)| *at == end);
        attached.map(|(.., rate)| rate).or_else(|| self.line_rate(end).ok())
    }

    /// The node with this address.
    pub fn node_at(&self, address: u64) -> Option<usize> {
        self.addresses.iter().position(|at| *at == address && address != 0)
    }

    /// The lane of a connection class.
    pub fn lane(&self, class: u8) -> u8 {
        self.lanes.get(usize::from(class)).copied().unwrap_or(class)
    }

    /// Whether lane `tc` must lose nothing for want of room.
    pub fn is_lossless(&self, tc: u8) -> bool {
        tc < 16 && self.lossless >> tc & 1 == 1
    }

    /// Whether flow control is to keep every frame of lane `tc`.
    pub fn is_protected(&self, tc: u8) -> bool {
        tc < 16 && self.protected >> tc & 1 == 1
    }

    /// The name of the traffic item with this number.
    pub fn traffic_name(&self, item: u16) -> String {
        let name = self.traffic.get(usize::from(item)).cloned();
        name.unwrap_or_else(|| format!("item {item}"))
    }

    /// The class that a flow sent by `node` belongs to in tables: its traffic items' names.
    pub fn class_name(&self, node: usize, items: &[u16]) -> String {
        let own = self.items.get(node);
        let number = |item: &u16| own.and_then(|own| own.get(usize::from(*item))).copied();
        let names: Vec<String> =
            items.iter().filter_map(number).map(|item| self.traffic_name(item)).collect();
        names.join("+")
    }
}

/// Names flows: `src>dst`, plus `#class` where a pair has several.
#[derive(Debug)]
pub struct FlowNames<'a> {
    ends: BTreeMap<u64, &'a str>,
    several: BTreeSet<(u64, u64)>,
}

impl<'a> FlowNames<'a> {
    /// Names for flows among which are `flows`.
    pub fn new(fabric: &'a Fabric, flows: impl Iterator<Item = FlowId>) -> FlowNames<'a> {
        let addresses = fabric.addresses.iter().enumerate().filter(|(_, address)| **address != 0);
        let ends = addresses.map(|(node, address)| (*address, fabric.node_name(node))).collect();
        let mut first = BTreeMap::new();
        let mut several = BTreeSet::new();
        for flow in flows {
            let pair = (flow.source, flow.destination);
            if *first.entry(pair).or_insert(flow.class) != flow.class {
                several.insert(pair);
            }
        }
        FlowNames { ends, several }
    }

    /// The name of the end with this address.
    pub fn end(&self, address: u64) -> String {
        self.ends.get(&address).map_or_else(|| format!("?{address}"), |name| (*name).to_owned())
    }

    /// The name of `flow`.
    pub fn name(&self, flow: FlowId) -> String {
        let (source, destination) = (self.end(flow.source), self.end(flow.destination));
        if self.several.contains(&(flow.source, flow.destination)) {
            format!("{source}>{destination}#{}", flow.class)
        } else {
            format!("{source}>{destination}")
        }
    }
}
