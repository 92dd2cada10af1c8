//! `[lab]`: what of this host the fabric is cabled to.

use crate::attached::{AttachedPort, WORK_CONSERVING};
use crate::fabric::FabricSettings;
use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::{Complaint, Problems};
use crate::shapes::listed::parse_end;
use crate::topology::Topology;
use emulation::wiring::{End, NodeKind, Sending};
use proto::params::{Key, KeyTable, Kind};
use proto::technology::Technology;

/// The ways to send, by their words.
const SENDS: [(&str, Sending); 2] = [("ring", Sending::Ring), ("socket", Sending::Socket)];

/// The longest name of an interface. Source: Linux, IFNAMSIZ without the terminating zero.
const NAME_MAX: usize = 15;

/// The keys of `[lab]`.
pub static KEYS: KeyTable = KeyTable::new(
    "what of this host the fabric is cabled to; on the backend netns, at dilation 1",
    &[Key::optional(
        "attach",
        Kind::Tables(&ATTACH),
        "interfaces of this host at ports of switches",
    )],
);

static ATTACH: KeyTable = KeyTable::new(
    "an interface of this host at a port of a switch",
    &[
        Key::required(
            "port",
            Kind::Text,
            "the port, as node:port; one that no cable uses, beyond the last if need be",
        ),
        Key::required(
            "iface",
            Kind::Text,
            "the interface, in the network namespace where pausebed is started",
        ),
        Key::new(
            "rate",
            Kind::Either(&[Kind::Word(|| vec!["none"]), Kind::Rate]),
            "none",
            "the port's rate, or none: it sends what there is at once",
        ),
        Key::new("mtu", Kind::Octets, "9000 B", "the largest payload of a frame there"),
        Key::new(
            "send",
            Kind::Word(|| words(&SENDS)),
            "ring",
            "how frames leave: by a ring of AF_XDP if the interface has one free, or a packet socket",
        ),
    ],
);

/// Reads `[lab]`; ports beyond the last of a switch become its own.
pub fn read(root: &Fields<'_>, fabric: Option<&mut FabricSettings>, problems: &mut Problems) {
    let (Some(fields), Some(fabric)) = (root.table("lab"), fabric) else { return };
    for fields in fields.tables("attach") {
        let (Some(text), Some(interface)) = (fields.text("port"), fields.text("iface")) else {
            continue;
        };
        if fabric.technology != Technology::Ethernet {
            let complaint =
                Complaint::new("interfaces carry Ethernet", "technology = \"ethernet\"");
            fields.report(problems, "iface", complaint);
            continue;
        }
        if interface.is_empty() || interface.len() > NAME_MAX || interface.contains('/') {
            let message = format!("{interface:?} is the name of no interface");
            fields.report(problems, "iface", Complaint::new(message, "as `ip link` shows it"));
            continue;
        }
        match free_port(text, fabric) {
            Ok(at) => {
                let ports = &mut fabric.topology.nodes[at.node].ports;
                *ports = at.port.get().max(*ports);
                let rate = match fields.text("rate") {
                    Some("none") => Some(WORK_CONSERVING),
                    _ => fields.rate("rate"),
                };
                let (size, send) = (fields.size("mtu"), fields.word("send", &SENDS));
                let Some(((rate, mtu), send)) = rate.zip(size).zip(send) else { continue };
                let interface = interface.to_owned();
                fabric.topology.attached.push(at);
                fabric.attached.push(AttachedPort { at, interface, rate, mtu, send });
            }
            Err(complaint) => fields.report(problems, "port", complaint),
        }
    }
}

/// A port of a switch that nothing is cabled to.
fn free_port(text: &str, fabric: &FabricSettings) -> Result<End, Complaint> {
    let topology: &Topology = &fabric.topology;
    let at = parse_end(text, topology)?;
    if topology.nodes[at.node].kind != NodeKind::Switch {
        return Err(Complaint::new(
            format!("{text} is no port of a switch"),
            "only those are free",
        ));
    }
    if topology.cable_at(at).is_some() || fabric.attached.iter().any(|other| other.at == at) {
        let next = u16::from(topology.nodes[at.node].ports) + 1;
        let hint = format!("the next free port is {}", topology.nodes[at.node].name);
        return Err(Complaint::new(format!("{text} has a cable"), format!("{hint}:{next}")));
    }
    Ok(at)
}
