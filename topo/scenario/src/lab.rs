//! `[lab]`: what of this host the fabric is cabled to.

use crate::attached::{AttachedPort, PortRate};
use crate::fabric::FabricSettings;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use crate::shapes::listed::parse_end;
use emulation::wiring::{End, NodeKind, Sending};
use proto::params::{Key, KeyTable, Kind, Params};
use proto::technology::Technology;
use proto::units::Bytes;

/// The longest name of an interface. Source: Linux, IFNAMSIZ without the terminating zero.
const NAME_MAX: usize = 15;

/// The keys of `[lab]`.
pub static KEYS: KeyTable = KeyTable::new(
    "what of this host the fabric is cabled to; on the backend netns, at dilation 1",
    &[Key::optional(
        "attach",
        Kind::Tables(&ATTACH),
        "Interfaces of this host at ports of switches.",
    )],
);

static ATTACH: KeyTable =
    KeyTable::new("an interface of this host at a port of a switch", Attach::KEYS);

proto::params! {
    /// One `[[lab.attach]]` as written.
    pub struct Attach {
        /// The port, as node:port; one that no cable uses, beyond the last if need be.
        port: String = Text, Required;
        /// The interface, in the network namespace where pausebed is started.
        iface: String = Text, Required;
        /// The port's rate, or none: it sends what there is at once.
        rate: PortRate = Either(&[Word(|| vec!["none"]), Rate]), Default("none");
        /// The largest payload of a frame there.
        mtu: Bytes = Octets, Default("9000 B");
        /// How frames leave: by a ring of AF_XDP if the interface has one free, or a packet socket.
        send: Sending = Sending::KIND, Default("ring");
    }
}

/// Reads `[lab]`; ports beyond the last of a switch become its own.
pub fn read(root: &Fields<'_>, fabric: &mut FabricSettings) {
    let Some(lab) = root.table("lab") else { return };
    for (fields, Attach { port, iface, rate, mtu, send }) in lab.each("attach") {
        if fabric.technology != Technology::Ethernet {
            fields.error("iface", "interfaces carry Ethernet", "technology = \"ethernet\"");
        } else if iface.is_empty() || iface.len() > NAME_MAX || iface.contains('/') {
            let message = format!("{iface:?} is the name of no interface");
            fields.error("iface", message, "as `ip link` shows it");
        } else if let Some(at) = fields.accept("port", free_port(&port, fabric)) {
            let ports = &mut fabric.topology.nodes[at.node].ports;
            *ports = at.port.get().max(*ports);
            fabric.topology.attached.push(at);
            fabric.attached.push(AttachedPort { at, interface: iface, rate: rate.0, mtu, send });
        }
    }
}

/// A port of a switch that nothing is cabled to.
fn free_port(text: &str, fabric: &FabricSettings) -> Result<End, Complaint> {
    let at = parse_end(text, &fabric.topology)?;
    let node = &fabric.topology.nodes[at.node];
    if node.kind != NodeKind::Switch {
        let message = format!("{text} is no port of a switch");
        return Err(Complaint::new(message, "only those are free"));
    }
    if fabric.topology.cable_at(at).is_some() || fabric.attached_at(at).is_some() {
        let hint = format!("the next free port is {}:{}", node.name, u16::from(node.ports) + 1);
        return Err(Complaint::new(format!("{text} has a cable"), hint));
    }
    Ok(at)
}
