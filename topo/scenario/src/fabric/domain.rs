//! `[fabric.switch.cn]`: the domain of congestion notification, and the ports at its edge.

use super::link::PRIORITIES;
use crate::keyfile::fields::{Fields, Priorities, TEXTS, Texts};
use crate::keyfile::problem::Complaint;
use crate::names;
use crate::topology::Topology;
use emulation::wiring::{End, NodeKind};
use proto::ids::Priority;
use proto::params::{Key, KeyTable, Kind, Params};
use switchd::config::{Defence, DomainConfig};

/// A domain has at most so many priorities: one must be left for what is outside.
/// Source: IEEE 802.1Q, 30.4.
const CNPVS_MAX: u32 = 7;

/// The keys of `[fabric.switch.cn]`.
pub static KEYS: KeyTable = KeyTable::new(
    "the domain of congestion notification",
    &[
        Key::new(
            "cnpv",
            PRIORITIES,
            "[3]",
            "Its priorities, seven at most: senders of others are never notified.",
        ),
        Key::new("defence", Defence::KIND, "interior-ready", "How all ports defend them."),
        Key::new(
            "cnm_priority",
            Kind::Whole(0, 7),
            "6",
            "Priority of congestion notification messages.",
        ),
        Key::new(
            "header_octets",
            Kind::Whole(0, 64),
            "0",
            "Octets of the sampled frame in a message of 802.1Qau (cpMinHeaderOctets).",
        ),
        Key::new("ports", Kind::Tables(&PORTS), "[]", "Ports that defend priorities otherwise."),
    ],
);

static PORTS: KeyTable = KeyTable::new("a port that defends priorities otherwise", Other::KEYS);

proto::params! {
    /// One `[[fabric.switch.cn.ports]]` as written.
    pub struct Other {
        /// Which ports of switches, "s0:1".
        at: Texts = TEXTS, Required;
        /// How it defends them.
        defence: Defence = Defence::KIND, Required;
        /// Which of the domain's; all if left out.
        priorities: Option<Priorities> = PRIORITIES, Optional;
        /// What an edge makes of them; if left out the next lower priority outside the domain, else the next higher.
        alternate: Option<u8> = Whole(0, 7), Optional;
    }
}

/// What all ports have in common, and those that differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Domain {
    common: DomainConfig,
    ports: Vec<(End, DomainConfig)>,
}

impl Domain {
    /// The part of the port at `end`.
    pub fn at(&self, end: End) -> DomainConfig {
        let own = self.ports.iter().rev().find(|(port, _)| *port == end);
        own.map_or(self.common, |(_, domain)| *domain)
    }
}

/// Reads `fabric.switch.cn`; without it every priority takes part and no tag is changed.
pub fn read(switch: &Fields<'_>, topology: &Topology) -> Option<Domain> {
    let fields = switch.table("cn")?;
    let Priorities(cnpvs) = fields.get("cnpv")?;
    if cnpvs.count_ones() > CNPVS_MAX {
        fields.error("cnpv", "all eight priorities", "one is left for what is outside");
    }
    let mut common = DomainConfig::new(cnpvs, fields.get("defence")?);
    common.cnm_priority = Priority::truncate(fields.get("cnm_priority")?);
    common.header_octets = fields.get("header_octets")?;
    let mut domain = Domain { common, ports: Vec::new() };
    for (fields, port) in fields.each::<Other>("ports") {
        let ends = fields.gather("at", &port.at, |text| switch_ports(topology, text));
        for end in ends.into_iter().flatten() {
            let own = own(&fields, &port, domain.at(end), cnpvs);
            domain.ports.push((end, own));
        }
    }
    Some(domain)
}

/// What `port` changes of a port's part.
fn own(fields: &Fields<'_>, port: &Other, mut domain: DomainConfig, cnpvs: u8) -> DomainConfig {
    let chosen = port.priorities.map_or(cnpvs, |priorities| priorities.0);
    if chosen & !cnpvs != 0 {
        fields.error("priorities", "priorities outside the domain", "see cn.cnpv");
    }
    let alternate = port.alternate.map(Priority::truncate);
    if alternate.is_some_and(|alternate| cnpvs >> alternate.get() & 1 == 1) {
        fields.error("alternate", "the alternate is a priority of the domain", "another one");
    }
    for priority in (0..8).filter(|priority| chosen >> priority & 1 == 1) {
        domain.defence[priority] = port.defence;
        domain.alternate[priority] = alternate.unwrap_or(domain.alternate[priority]);
    }
    domain
}

/// The ports that `text` names, all of them of switches.
///
/// # Errors
/// If it names none, or one of a NIC.
pub fn switch_ports(topology: &Topology, text: &str) -> Result<Vec<End>, Complaint> {
    let ends = names::ends(topology, text)?;
    match ends.iter().find(|end| topology.nodes[end.node].kind == NodeKind::Nic) {
        None => Ok(ends),
        Some(end) => {
            let message = format!("{} is a port of a NIC", topology.end_name(*end));
            Err(Complaint::new(message, "a port of a switch, \"s0:1\""))
        }
    }
}
