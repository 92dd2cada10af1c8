//! `[fabric.switch.cn]`: the domain of congestion notification, and the ports that stand at its border.

use super::link::priorities;
use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use crate::topology::Topology;
use emulation::wiring::{End, NodeKind};
use proto::ids::Priority;
use proto::params::{Key, KeyTable, Kind};
use switchd::config::{Defence, DomainConfig};

const DEFENCES: [(&str, Defence); 4] = [
    ("disabled", Defence::Disabled),
    ("edge", Defence::Edge),
    ("interior", Defence::Interior),
    ("interior-ready", Defence::InteriorReady),
];

/// A domain has at most so many priorities: one must be left for what is outside.
/// Source: IEEE 802.1Q, 30.4.
const CNPVS_MAX: u32 = 7;

/// The keys of `[fabric.switch.cn]`.
pub static KEYS: KeyTable = KeyTable::new(
    "the domain of congestion notification",
    &[
        Key::new(
            "cnpv",
            Kind::List(&Kind::Whole(0, 7)),
            "[3]",
            "its priorities, seven at most: senders of others are never notified",
        ),
        Key::new(
            "defence",
            Kind::Word(|| words(&DEFENCES)),
            "interior-ready",
            "how all ports defend them",
        ),
        Key::new(
            "cnm_priority",
            Kind::Whole(0, 7),
            "6",
            "priority of congestion notification messages",
        ),
        Key::new(
            "header_octets",
            Kind::Whole(0, 64),
            "0",
            "octets of the sampled frame in a message of 802.1Qau (cpMinHeaderOctets)",
        ),
        Key::new("ports", Kind::Tables(&PORTS), "[]", "ports that defend priorities otherwise"),
    ],
);

static PORTS: KeyTable = KeyTable::new(
    "a port that defends priorities otherwise",
    &[
        Key::required(
            "at",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "which ports of switches, \"s0:1\"",
        ),
        Key::required("defence", Kind::Word(|| words(&DEFENCES)), "how it defends them"),
        Key::optional(
            "priorities",
            Kind::List(&Kind::Whole(0, 7)),
            "which of the domain's; all if left out",
        ),
        Key::optional(
            "alternate",
            Kind::Whole(0, 7),
            "what an edge makes of them; if left out the next lower priority outside the \
                    domain, else the next higher",
        ),
    ],
);

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

/// Reads `fabric.switch.cn`; without it every priority takes part and nothing is touched.
pub fn read(switch: &Fields<'_>, topology: &Topology, problems: &mut Problems) -> Domain {
    let Some(fields) = switch.table("cn") else { return Domain::default() };
    let cnpvs = priorities(&fields, "cnpv");
    if cnpvs.count_ones() > CNPVS_MAX {
        let complaint = Complaint::new("all eight priorities", "one is left for what is outside");
        fields.report(problems, "cnpv", complaint);
    }
    let Some(defence) = fields.word("defence", &DEFENCES) else { return Domain::default() };
    let mut common = DomainConfig::new(cnpvs, defence);
    common.cnm_priority = Priority::truncate(fields.whole("cnm_priority").unwrap_or(6));
    common.header_octets = fields.whole("header_octets").unwrap_or(0);
    let mut domain = Domain { common, ports: Vec::new() };
    for port in fields.tables("ports") {
        for (text, place) in port.texts("at") {
            match switch_ports(topology, text) {
                Ok(ends) => {
                    for end in ends {
                        let own = own(&port, domain.at(end), cnpvs, problems);
                        domain.ports.push((end, own));
                    }
                }
                Err(complaint) => problems.report(place, format!("{}.at", port.path), complaint),
            }
        }
    }
    domain
}

/// What `port` changes of a port's part.
fn own(
    port: &Fields<'_>,
    mut domain: DomainConfig,
    cnpvs: u8,
    problems: &mut Problems,
) -> DomainConfig {
    let chosen = if port.has("priorities") { priorities(port, "priorities") } else { cnpvs };
    if chosen & !cnpvs != 0 {
        let complaint = Complaint::new("priorities outside the domain", "see cn.cnpv");
        port.report(problems, "priorities", complaint);
    }
    let alternate = port.whole("alternate").map(Priority::truncate);
    if alternate.is_some_and(|alternate| cnpvs >> alternate.get() & 1 == 1) {
        let complaint = Complaint::new("the alternate is a priority of the domain", "another one");
        port.report(problems, "alternate", complaint);
    }
    for priority in (0..8).filter(|priority| chosen >> priority & 1 == 1) {
        if let Some(defence) = port.word("defence", &DEFENCES) {
            domain.defence[priority] = defence;
        }
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
