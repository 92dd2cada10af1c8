//! A small subnet manager of test code, beside one device: it sweeps, assigns LIDs and routes, and makes ports Active.
//!
//! ```text
//! Discover ──▶ Address ──▶ Route ──▶ Arm ──▶ Activate ──▶ Done ──trap 128──▶ Discover …
//! ```
//!
//! [`Beside`] is the device with the manager: one device for any driver. One request is open at a time, and it is
//! repeated until its answer comes, since VL15 loses datagrams. Shortest routes are spread over parallel links by LID.

mod administration;
mod beside;
mod fabric;

pub use administration::{Administration, Group};
pub use beside::Beside;
pub use fabric::{Fabric, Node};

use management::Datagram;
use management::attribute::subnet::{
    linear_forwarding, multicast_forwarding, node_info, notice, p_key_table, port_info, sl_to_vl,
    switch_info, vl_arbitration,
};
use management::datagram::{HOP_COUNT, INITIAL_PATH, METHOD, SUBNET_DIRECTED, TRANSACTION, method};
use proto::device::ManagementDatagram;
use proto::ids::{Lid, QueuePairNumber};
use proto::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The wait for an answer.
const PATIENCE: Duration = Duration::from_us(200);
/// The trap that reports a link.
const LINK_STATE_CHANGE: u64 = 128;
/// Sendings of one request at most.
const TRIES: u32 = 10;

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A node behind a port of a known one; `None` for the manager's own.
    Node(Option<(usize, u8)>),
    /// The state of a port.
    Port(usize, u8),
    /// Nothing but its success.
    Applied,
    /// Nothing: a port that has the state already refuses it.
    Tried,
    /// The test reads the answer.
    Asked,
}

#[derive(Debug)]
struct Request {
    peer: Lid,
    datagram: Datagram,
    purpose: Purpose,
}

#[derive(Debug)]
struct Open {
    request: Request,
    due: Instant,
    tries: u32,
}

/// What the manager does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It looks for nodes and links.
    Discover,
    /// It sets LIDs.
    Address,
    /// It sets forwarding tables.
    Route,
    /// It sets ports to Armed.
    Arm,
    /// It sets ports to Active.
    Activate,
    /// All was answered.
    Done,
}

/// The manager.
#[derive(Debug)]
pub struct Manager {
    /// LIDs by node GUID; other nodes get free ones from 100 on.
    pub lids: BTreeMap<u64, Lid>,
    /// What the latest sweep has found.
    pub fabric: Fabric,
    /// What it does now.
    pub phase: Phase,
    /// The LMC of every adapter. Their LIDs are multiples of its power of two.
    pub lid_mask_bits: u8,
    /// When each sweep was done.
    pub done: Vec<Instant>,
    /// Answers to requests of the test, in order.
    pub answers: Vec<Datagram>,
    /// The traps that came.
    pub traps: Vec<Datagram>,
    /// Answers requests for paths.
    pub administration: Administration,
    /// Requests sent, repetitions included.
    pub sent: u64,
    /// Requests that were never answered.
    pub lost: u64,
    /// A link has changed since the last sweep began.
    has_news: bool,
    starts: Instant,
    transactions: u64,
    waiting: VecDeque<Request>,
    open: Option<Open>,
    outgoing: VecDeque<ManagementDatagram>,
}

impl Manager {
    /// A manager that begins its first sweep at `starts` and gives these LIDs to these nodes.
    pub fn new(lids: impl IntoIterator<Item = (u64, Lid)>, starts: Instant) -> Manager {
        Manager {
            lids: lids.into_iter().collect(),
            fabric: Fabric::default(),
            phase: Phase::Done,
            lid_mask_bits: 0,
            done: Vec::new(),
            answers: Vec::new(),
            traps: Vec::new(),
            administration: Administration::default(),
            sent: 0,
            lost: 0,
            has_news: false,
            starts,
            transactions: 0,
            waiting: VecDeque::new(),
            open: None,
            outgoing: VecDeque::new(),
        }
    }

    /// Asks along a directed route. The answer joins [`Manager::answers`].
    pub fn ask_along(
        &mut self,
        path: &[u8],
        method: u8,
        attribute: u16,
        modifier: u32,
        data: &[u8],
    ) {
        self.request(path, method, attribute, modifier, Purpose::Asked, |to| {
            to[..data.len()].copy_from_slice(data);
        });
    }

    /// How many traps of a number came.
    pub fn count_traps(&self, number: u64) -> usize {
        self.traps.iter().filter(|trap| notice::TRAP.get(trap.data()) == number).count()
    }

    /// Sets the P_Key table of a port of the node at `path`, and, at a switch, whether the port checks what comes in and
    /// what leaves.
    pub fn set_partitions(
        &mut self,
        path: &[u8],
        port: u8,
        keys: &[u16],
        (inbound, outbound): (bool, bool),
    ) {
        let modifier = u32::from(port) << 16;
        self.request(path, method::SET, 0x16, modifier, Purpose::Applied, |data| {
            for (index, key) in keys.iter().enumerate() {
                p_key_table::P_KEY.set_at(index, data, (*key).into());
            }
        });
        if inbound || outbound {
            self.request(path, method::SET, 0x15, port.into(), Purpose::Applied, |data| {
                port_info::ENFORCE_PARTITIONS_IN.set(data, inbound.into());
                port_info::ENFORCE_PARTITIONS_OUT.set(data, outbound.into());
            });
        }
    }

    /// Asks the node with LID `peer`. The answer joins [`Manager::answers`].
    pub fn ask(&mut self, peer: Lid, mut datagram: Datagram) {
        self.transactions += 1;
        datagram.set(&TRANSACTION, self.transactions);
        self.waiting.push_back(Request { peer, datagram, purpose: Purpose::Asked });
    }

    /// Sets the lanes of all service levels from `input` to `output` of the node at `path`.
    pub fn set_lanes(&mut self, path: &[u8], (input, output): (u8, u8), lanes: [u8; 16]) {
        let modifier = u32::from(input) << 8 | u32::from(output);
        self.request(path, method::SET, 0x17, modifier, Purpose::Applied, |data| {
            for (level, lane) in lanes.into_iter().enumerate() {
                sl_to_vl::VL.set_at(level, data, lane.into());
            }
        });
    }

    /// Sets the low arbitration table of a port of the node at `path`, and empties its high table.
    pub fn set_weights(&mut self, path: &[u8], port: u8, weights: &[(u8, u8)]) {
        for (block, entries) in [(1, weights), (3, &[])] {
            let modifier = block << 16 | u32::from(port);
            self.request(path, method::SET, 0x18, modifier, Purpose::Applied, |data| {
                for (index, (lane, weight)) in entries.iter().enumerate() {
                    vl_arbitration::VL.set_at(index, data, (*lane).into());
                    vl_arbitration::WEIGHT.set_at(index, data, (*weight).into());
                }
            });
        }
    }

    fn request(
        &mut self,
        path: &[u8],
        method: u8,
        attribute: u16,
        modifier: u32,
        purpose: Purpose,
        fill: impl FnOnce(&mut [u8]),
    ) {
        self.transactions += 1;
        let (class, id) = (SUBNET_DIRECTED, self.transactions);
        let mut datagram = Datagram::request(class, method, attribute, modifier, id).along(path);
        fill(datagram.data_mut());
        self.waiting.push_back(Request { peer: Lid::PERMISSIVE, datagram, purpose });
    }

    /// When [`Manager::handle_timeout`] is needed.
    pub fn poll_timeout(&self) -> Instant {
        self.open.as_ref().map_or(Instant::NEVER, |open| open.due).min(self.starts)
    }

    /// Begins a sweep, or repeats the open request.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.starts <= now {
            self.starts = Instant::NEVER;
            self.phase = Phase::Discover;
            self.fabric = Fabric::default();
            self.get(&[], node_info::ATTRIBUTE.id, 0, Purpose::Node(None));
        }
        if let Some(open) = self.open.take_if(|open| open.due <= now) {
            if open.tries >= TRIES {
                self.lost += 1;
            } else {
                self.send(open.request, open.tries, now);
            }
        }
        self.advance(now);
    }

    /// The next datagram for the device to send.
    pub fn poll_outgoing(&mut self, now: Instant) -> Option<ManagementDatagram> {
        self.advance(now);
        self.outgoing.pop_front()
    }

    /// A datagram came from the device.
    pub fn receive(&mut self, message: &ManagementDatagram) {
        let mut datagram = Datagram(*message.octets);
        if datagram.method() == method::TRAP {
            self.has_news |= notice::TRAP.get(datagram.data()) == LINK_STATE_CHANGE;
            self.traps.push(datagram.clone());
            datagram.set(&METHOD, method::TRAP_REPRESS.into());
            self.outgoing.push_back(outgoing(message.peer, &datagram));
            return;
        }
        let path = self.administration.answer(message, &self.fabric);
        if let Some(answer) = path.or_else(|| self.administration.join(message)) {
            self.outgoing.push_back(answer);
            if std::mem::take(&mut self.administration.has_new_members) {
                self.set_groups();
            }
            return;
        }
        let id = datagram.get(&TRANSACTION);
        let fits = |open: &mut Open| open.request.datagram.get(&TRANSACTION) == id;
        if let Some(open) = self.open.take_if(fits) {
            self.on_answer(open.request, datagram);
        }
    }

    fn on_answer(&mut self, request: Request, answer: Datagram) {
        match request.purpose {
            Purpose::Applied => assert_eq!(answer.status(), 0, "{answer:?}"),
            Purpose::Tried => {}
            Purpose::Asked => self.answers.push(answer),
            Purpose::Node(from) => {
                let path = path_of(&request.datagram);
                let (node, is_new) = self.fabric.meet(from, path, answer.data());
                if is_new {
                    let ports = self.fabric.nodes[node].cabled_ports();
                    let path = self.fabric.nodes[node].path.clone();
                    for port in ports {
                        let id = port_info::ATTRIBUTE.id;
                        self.get(&path, id, port.into(), Purpose::Port(node, port));
                    }
                }
            }
            Purpose::Port(node, port) => {
                let is_linked = port_info::PORT_STATE.get(answer.data()) >= 2;
                if is_linked && !self.fabric.nodes[node].peers.contains_key(&port) {
                    let mut path = self.fabric.nodes[node].path.clone();
                    path.push(port);
                    let from = Purpose::Node(Some((node, port)));
                    self.get(&path, node_info::ATTRIBUTE.id, 0, from);
                }
            }
        }
    }

    fn get(&mut self, path: &[u8], attribute: u16, modifier: u32, purpose: Purpose) {
        self.request(path, method::GET, attribute, modifier, purpose, |_| {});
    }

    /// Sends the next request, or enters the next phase.
    fn advance(&mut self, now: Instant) {
        while self.open.is_none() {
            if let Some(next) = self.waiting.pop_front() {
                return self.send(next, 0, now);
            }
            self.phase = match self.phase {
                Phase::Discover => Phase::Address,
                Phase::Address => Phase::Route,
                Phase::Route => Phase::Arm,
                Phase::Arm => Phase::Activate,
                Phase::Activate => {
                    self.done.push(now);
                    Phase::Done
                }
                Phase::Done => {
                    if std::mem::take(&mut self.has_news) {
                        self.starts = now;
                    }
                    return;
                }
            };
            match self.phase {
                Phase::Address => self.set_addresses(false),
                Phase::Route => self.set_routes(),
                Phase::Arm => self.set_states(3),
                Phase::Activate => self.set_states(4),
                Phase::Discover | Phase::Done => {}
            }
        }
    }

    fn send(&mut self, request: Request, tries: u32, now: Instant) {
        self.outgoing.push_back(outgoing(request.peer, &request.datagram));
        self.sent += 1;
        self.open = Some(Open { request, due: now + PATIENCE, tries: tries + 1 });
    }

    /// Sets the LIDs of all nodes, and asks their clients to register again or not.
    pub fn set_addresses(&mut self, again: bool) {
        self.fabric.assign(&self.lids);
        let (manager, bits) = (self.fabric.nodes[0].lid, self.lid_mask_bits);
        for node in self.fabric.nodes.clone() {
            let port = u32::from(!node.is_switch);
            self.request(&node.path, method::SET, 0x15, port, Purpose::Applied, |data| {
                introduce(data, &node, (manager, bits));
                port_info::CLIENT_REREGISTER.set(data, again.into());
            });
        }
    }

    fn set_routes(&mut self) {
        let top = self.fabric.nodes.iter().map(|node| node.lid.get()).max().unwrap_or(0);
        let top = top + (1 << self.lid_mask_bits) - 1;
        for (index, node) in self.fabric.nodes.clone().into_iter().enumerate() {
            if !node.is_switch {
                continue;
            }
            self.request(&node.path, method::SET, 0x12, 0, Purpose::Applied, |data| {
                switch_info::LINEAR_FDB_TOP.set(data, top.into());
                switch_info::PORT_STATE_CHANGE.set(data, 1);
            });
            let table = self.fabric.routes(index, self.lid_mask_bits);
            for block in 0..=top / 64 {
                self.request(
                    &node.path,
                    method::SET,
                    0x19,
                    block.into(),
                    Purpose::Applied,
                    |data| {
                        for place in 0..64 {
                            let lid = Lid::new(block * 64 + place);
                            let port = table.get(&lid).copied().unwrap_or(255);
                            linear_forwarding::PORT.set_at(place.into(), data, port.into());
                        }
                    },
                );
            }
        }
    }

    /// Sets the multicast forwarding tables of all switches, for groups in the first block and ports below 16.
    pub fn set_groups(&mut self) {
        for (index, node) in self.fabric.nodes.clone().into_iter().enumerate() {
            if !node.is_switch {
                continue;
            }
            let groups = self.administration.groups.clone();
            let fabric = self.fabric.clone();
            self.request(&node.path, method::SET, 0x1b, 0, Purpose::Applied, |data| {
                for group in groups {
                    let ports = fabric.tree(index, &group.members);
                    let mask = ports.into_iter().fold(0, |mask, port| mask | 1 << port);
                    let place = usize::from(group.mlid.get() - 0xc000);
                    multicast_forwarding::PORTS.set_at(place, data, mask);
                }
            });
        }
    }

    fn set_states(&mut self, state: u64) {
        let (manager, bits) = (self.fabric.nodes[0].lid, self.lid_mask_bits);
        for node in self.fabric.nodes.clone() {
            for port in node.peers.keys().copied() {
                self.request(&node.path, method::SET, 0x15, port.into(), Purpose::Tried, |data| {
                    introduce(data, &node, (manager, bits));
                    port_info::PORT_STATE.set(data, state);
                });
            }
        }
    }
}

/// The fields of PortInfo that a manager writes to the port with the LID; others ignore them.
fn introduce(data: &mut [u8], node: &Node, (manager, bits): (Lid, u8)) {
    port_info::LID.set(data, node.lid.get().into());
    port_info::LMC.set(data, if node.is_switch { 0 } else { bits.into() });
    port_info::MASTER_SM_LID.set(data, manager.get().into());
    port_info::SUBNET_TIMEOUT.set(data, 8);
}

/// The ports by which a request leaves each node.
fn path_of(datagram: &Datagram) -> Vec<u8> {
    let hops = datagram.get(&HOP_COUNT) as usize;
    (1..=hops).map(|hop| INITIAL_PATH.at(hop, &datagram.0) as u8).collect()
}

fn outgoing(peer: Lid, datagram: &Datagram) -> ManagementDatagram {
    let general = u32::from(!datagram.is_subnet_management());
    let queue_pair = QueuePairNumber::truncate(general);
    ManagementDatagram { peer, queue_pair, octets: Box::new(datagram.0) }
}
