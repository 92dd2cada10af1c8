//! The agents of one node: subnet management (SMA), performance management (PMA) and congestion control.
//!
//! [`Agents::receive`] answers a datagram in place. What a Set changed comes out of [`Agents::poll_change`], and the
//! device applies it between two frames. Notices of the node come out of [`Agents::poll_trap`].
//!
//! | agent | files |
//! |---|---|
//! | SMA | [`subnet`], [`port_rules`], [`tables`], [`key`], [`partitions`], [`trap`] |
//! | PMA | [`performance`], [`totals`] |
//! | congestion control | [`congestion`] |
//!
//! Source: IBTA Vol 1, 13.4, 14.2, 16.1, A10.4.

pub mod congestion;
mod key;
pub mod partitions;
pub mod performance;
pub mod port;
mod port_rules;
mod subnet;
mod tables;
mod totals;
mod trap;

use crate::attribute::subnet::port_info as fields;
use crate::datagram::{self, BASE_VERSION, Datagram, status};
use crate::directed_route::Place;
use congestion::CongestionAgent;
use performance::{PerformanceAgent, Totals};
use port::{Port, PortState};
use proto::counters::DropReason;
use proto::ids::{Lid, PortNumber};
use proto::link::LinkConfig;
use proto::link::credit::{LinkState, Observation};
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tables::SwitchTables;
use trap::Traps;

/// What a node is. Source: IBTA Vol 1, 14.2.5.3 (NodeType).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A channel adapter.
    Adapter = 1,
    /// A switch.
    Switch = 2,
}

/// Puts a node under a subnet manager: its links begin in Initialize, its LID and its tables are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagementConfig {
    /// The node GUID. Port n of an adapter has this number plus n, port 0 of a switch the same number.
    pub guid: u64,
}

/// Something that the device must apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The link of a port may advance to this state and no further. [`LinkState::Down`] disables the port.
    Link(PortNumber, LinkState),
    /// The node has this LID.
    Address(Lid),
    /// What subnet administration has answered may have changed: the manager wants the programs of this node to
    /// register again, or is another. Source: IBTA Vol 1, 14.2.5.6 (ClientReregister).
    Reregister,
    /// The arbitration of a port: [`Agents::arbitration`].
    Arbitration(PortNumber),
    /// The lanes of the service levels from an input to an output: [`Agents::lanes`]. Port 0 of an adapter stands
    /// for both.
    Lanes {
        /// The input.
        input: u8,
        /// The output.
        output: u8,
    },
    /// A block of 64 LIDs has new outputs: [`Agents::output`].
    Routes {
        /// The number of the block.
        block: u16,
    },
    /// A block of 32 multicast LIDs has new outputs: [`Agents::outputs`].
    Multicast {
        /// The number of the block.
        block: u16,
    },
    /// Congestion control has new parameters: [`Agents::congestion`].
    Congestion,
    /// A port has another P_Key table, or checks otherwise: [`Agents::partitions`], [`Agents::enforces`].
    Partitions(u8),
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The datagram is now the answer.
    Answer,
    /// It was taken, and there is no answer.
    Taken,
    /// No agent takes it: it is for a manager beside the node, if one waits for it.
    Client,
    /// It is discarded.
    Refused(DropReason),
}

/// The agents of one node.
#[derive(Debug)]
pub struct Agents {
    kind: NodeKind,
    guid: u64,
    description: [u8; 64],
    /// By port number. Port 0 of an adapter does not exist; its place is not used.
    ports: Vec<Port>,
    /// Adapters only: the lanes of the service levels.
    lanes: [u8; 8],
    /// Switches only.
    switch: Option<Box<SwitchTables>>,
    performance: PerformanceAgent,
    congestion: CongestionAgent,
    traps: Traps,
    changes: VecDeque<Change>,
}

impl Agents {
    /// The agents of a node with these links, in the state after a reset.
    pub fn new(
        kind: NodeKind,
        name: &str,
        config: &ManagementConfig,
        links: &[&LinkConfig],
    ) -> Agents {
        let mut description = [0; 64];
        let octets = &name.as_bytes()[..name.len().min(64)];
        description[..octets.len()].copy_from_slice(octets);
        let inner = Port::management(config.guid);
        let guid = |index: usize| match kind {
            NodeKind::Adapter => config.guid + index as u64 + 1,
            NodeKind::Switch => config.guid,
        };
        let outer =
            links.iter().enumerate().map(|(index, link)| Port::new(kind, guid(index), link));
        let is_switch = kind == NodeKind::Switch;
        Agents {
            kind,
            guid: config.guid,
            description,
            ports: std::iter::once(inner).chain(outer).collect(),
            lanes: [0; 8],
            switch: is_switch.then(|| Box::new(SwitchTables::new(links.len()))),
            performance: PerformanceAgent::default(),
            congestion: CongestionAgent::default(),
            traps: Traps::default(),
            changes: VecDeque::new(),
        }
    }

    /// Whether the node is a switch.
    pub fn is_switch(&self) -> bool {
        self.kind == NodeKind::Switch
    }

    /// The number of ports with a cable.
    pub fn links(&self) -> u8 {
        (self.ports.len() - 1) as u8
    }

    /// This node as a directed route sees it, entered by `arrival`.
    pub fn place(&self, arrival: u8) -> Place {
        Place { is_switch: self.is_switch(), ports: self.links(), arrival }
    }

    /// The number of the port that has the LID: 0 at a switch, 1 at an adapter.
    fn home(&self) -> usize {
        usize::from(!self.is_switch())
    }

    /// The LID of the node; 0 before it has one.
    pub fn lid(&self) -> Lid {
        Lid::new(fields::LID.get(&self.ports[self.home()].info) as u16)
    }

    /// Whether `lid` is one of the node's, by its LMC.
    pub fn owns(&self, lid: Lid) -> bool {
        let info = &self.ports[self.home()].info;
        let (base, bits) = (fields::LID.get(info) as u16, fields::LMC.get(info) as u32);
        base != 0 && lid.get() >> bits == base >> bits
    }

    /// The GID prefix of the subnet.
    pub fn prefix(&self) -> u64 {
        fields::GID_PREFIX.get(&self.ports[self.home()].info)
    }

    /// Bits of a LID that this node does not distinguish. Source: IBTA Vol 1, 4.1.2 (LMC).
    pub fn lid_mask_bits(&self) -> u8 {
        fields::LMC.get(&self.ports[self.home()].info) as u8
    }

    /// The LID of the subnet manager; 0 before one has introduced itself.
    pub fn manager(&self) -> Lid {
        Lid::new(fields::MASTER_SM_LID.get(&self.ports[self.home()].info) as u16)
    }

    /// The state of a port; `None` if there is no such port.
    pub fn port_state(&self, port: u8) -> Option<PortState> {
        self.ports.get(usize::from(port)).map(Port::state)
    }

    /// Answers a datagram that came by `arrival`; 0 is the node's own management port. `is_local` marks one of a
    /// client of this node. `totals` reads the counters of a port.
    pub fn receive(
        &mut self,
        datagram: &mut Datagram,
        arrival: u8,
        is_local: bool,
        totals: &mut dyn FnMut(PortNumber) -> Totals,
        now: Instant,
    ) -> Outcome {
        if datagram.get(&BASE_VERSION) != 1 {
            return Outcome::Refused(DropReason::Management);
        }
        match datagram.class() {
            datagram::SUBNET_LID_ROUTED | datagram::SUBNET_DIRECTED => {
                self.subnet(datagram, arrival, is_local, now)
            }
            _ if datagram.is_response() => Outcome::Client,
            datagram::PERFORMANCE => {
                let (links, ports) = (self.links(), &self.ports);
                let read = &mut |port: PortNumber| {
                    totals(port).with_state(&ports[usize::from(port.get())])
                };
                self.performance.receive(datagram, (self.kind, links), read)
            }
            datagram::CONGESTION => {
                let outcome = self.congestion.receive(datagram, self.kind, now);
                if self.congestion.take_news() {
                    self.changes.push_back(Change::Congestion);
                }
                outcome
            }
            datagram::ADMINISTRATION => Outcome::Client,
            _ if datagram.method() == datagram::method::SEND => Outcome::Client,
            _ => {
                datagram.answer(status::ATTRIBUTE);
                Outcome::Answer
            }
        }
    }

    /// Reports what the link of a port does: a peer is there or not, the state that flow control has reached, and how
    /// often the peer has made it start again.
    pub fn observe(&mut self, number: PortNumber, link: Observation, now: Instant) {
        let port = &mut self.ports[usize::from(number.get())];
        let before = port.state();
        let restarted = std::mem::replace(&mut port.restarts, link.restarts) != link.restarts;
        let after = match before {
            PortState::Down if link.is_up && !port.is_disabled() => PortState::Initialize,
            PortState::Down => return,
            _ if !link.is_up => PortState::Down,
            PortState::Armed | PortState::Active if restarted => PortState::Initialize,
            // The first data packet makes an armed port active. Source: IBTA Vol 1, 7.2.7.
            PortState::Armed if link.state == LinkState::Active => PortState::Active,
            _ => return,
        };
        if before == PortState::Active && after < before {
            port.downed += 1;
        }
        port.enter(after, link.is_up);
        if after != PortState::Active {
            self.report_port_change(now);
        }
    }

    /// A port changed its state by itself: a switch tells so in SwitchInfo and by trap 128.
    fn report_port_change(&mut self, now: Instant) {
        if let Some(switch) = &mut self.switch {
            switch.note_port_change();
            let lid = self.lid();
            self.traps.raise(trap::link_state_change(lid), now);
        }
    }

    /// Claims or gives up the place of the subnet manager at this node: the bit IsSM of its port.
    pub fn set_manager(&mut self, on: bool, now: Instant) {
        let home = self.home();
        let info = &mut self.ports[home].info;
        let before = fields::CAPABILITY_MASK.get(info);
        let mask = before & !port::IS_SM | if on { port::IS_SM } else { 0 };
        fields::CAPABILITY_MASK.set(info, mask);
        if mask != before {
            let (lid, kind) = (self.lid(), self.kind);
            self.traps.raise(trap::capability_mask_change(lid, kind, mask as u32), now);
        }
    }

    /// Whether a subnet manager sits beside this node.
    pub fn has_manager(&self) -> bool {
        fields::CAPABILITY_MASK.get(&self.ports[self.home()].info) & port::IS_SM != 0
    }

    /// The next change that the device must apply.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// The next notice for the subnet manager that is due at `now`, addressed to [`Agents::manager`].
    pub fn poll_trap(&mut self, now: Instant) -> Option<Datagram> {
        let repeat = self.trap_interval()?;
        self.traps.poll(repeat, now)
    }

    /// When [`Agents::poll_trap`] or [`Agents::handle_timeout`] is needed next.
    pub fn poll_timeout(&self) -> Instant {
        let trap = match self.trap_interval() {
            Some(_) => self.traps.poll_timeout(),
            None => Instant::NEVER,
        };
        self.ports.iter().map(|port| port.lease_ends).fold(trap, Instant::min)
    }

    /// Ends the protection of keys whose lease has expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ports.iter_mut().for_each(|port| key::expire(port, now));
    }

    /// The time between two sendings of a notice; `None` while notices have no way.
    fn trap_interval(&self) -> Option<proto::units::Duration> {
        let port = &self.ports[self.home()];
        let manager = self.manager();
        let is_known = port.state() == PortState::Active && manager.is_unicast();
        let has_way = !self.is_switch() || self.owns(manager) || self.output(manager).is_some();
        (is_known && has_way).then(|| trap::interval(fields::SUBNET_TIMEOUT.get(&port.info)))
    }

    /// The parameters of congestion control that were set.
    pub fn congestion(&self) -> &CongestionAgent {
        &self.congestion
    }
}

#[cfg(test)]
mod tests;
