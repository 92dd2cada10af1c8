//! `[lab]`: what of this host the fabric is cabled to.

use crate::attached::{AttachedPort, PortRate};
use crate::fabric::FabricSettings;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use crate::shapes::listed::parse_end;
use emulation::cable::peer_socket::PATH_MAX;
use emulation::wiring::{End, NodeKind, Sending, SocketPair};
use proto::params::{Key, KeyTable, Kind, Params};
use proto::technology::Technology;
use proto::units::Bytes;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The longest name of an interface. Source: Linux, IFNAMSIZ without the terminating zero.
const NAME_MAX: usize = 15;

/// The longest name of a pair of sockets in the folder of the run.
const SOCKET_NAME_MAX: usize = 32;

/// The keys of `[lab]`.
pub static KEYS: KeyTable = KeyTable::new(
    "what of this host the fabric is cabled to, at dilation 1; interfaces on the backend netns, programs on udp too",
    &[Key::optional(
        "attach",
        Kind::Tables(&ATTACH),
        "Interfaces of this host, and other programs, at ports of switches.",
    )],
);

static ATTACH: KeyTable =
    KeyTable::new("an interface of this host, or a program, at a port of a switch", Attach::KEYS);

proto::params! {
    /// One `[[lab.attach]]` as written.
    pub struct Attach {
        /// The port, as node:port; one that no cable uses, beyond the last if need be.
        port: String = Text, Required;
        /// The interface, in the network namespace where pausebed is started.
        iface: Option<String> = Text, Optional;
        /// Instead of iface, a cable to another program by Unix datagram sockets NAME.lab, which the lab makes, and
        /// NAME.peer, which the program makes, in the folder of the run. One datagram is one frame.
        socket: Option<String> = Text, Optional;
        /// Instead of iface, this end of a cable to another program: unix:PATH or udp:ADDRESS:PORT on loopback.
        local: Option<String> = Text, Optional;
        /// With local, the other end, of the same kind.
        remote: Option<String> = Text, Optional;
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
    for (fields, attach) in lab.each::<Attach>("attach") {
        if fabric.technology != Technology::Ethernet {
            fields.error("port", "attached ports carry Ethernet", "technology = \"ethernet\"");
            continue;
        }
        let Some((interface, socket)) = far_end(&fields, &attach) else { continue };
        let Attach { port, rate, mtu, send, .. } = attach;
        if let Some(at) = fields.accept("port", free_port(&port, fabric)) {
            let ports = &mut fabric.topology.nodes[at.node].ports;
            *ports = at.port.get().max(*ports);
            if fabric.attached.iter().any(|other| other.interface == interface) {
                let message = format!("{interface} is attached to another port already");
                fields.error("port", message, "an interface or socket has one port");
                continue;
            }
            fabric.topology.attached.push(at);
            fabric.attached.push(AttachedPort { at, interface, socket, rate: rate.0, mtu, send });
        }
    }
}

/// The name of what is attached, and the addresses if it is a program; `None` after an error.
fn far_end(fields: &Fields<'_>, attach: &Attach) -> Option<(String, Option<SocketPair>)> {
    match (&attach.iface, &attach.socket, &attach.local, &attach.remote) {
        (Some(iface), None, None, None) => {
            if iface.is_empty() || iface.len() > NAME_MAX || iface.contains('/') {
                let message = format!("{iface:?} is the name of no interface");
                fields.error("iface", message, "as `ip link` shows it");
                return None;
            }
            Some((iface.clone(), None))
        }
        (None, Some(name), None, None) => {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            if name.is_empty() || name.len() > SOCKET_NAME_MAX || !name.chars().all(is_plain) {
                let message = format!("{name:?} cannot be the name of a socket");
                fields.error("socket", message, "at most 32 letters, digits, - and _");
                return None;
            }
            let file = |ending: &str| PathBuf::from(format!("{name}.{ending}"));
            let pair = SocketPair::Unix { local: file("lab"), remote: file("peer") };
            Some((format!("unix:{name}"), Some(pair)))
        }
        (None, None, Some(local), Some(remote)) => {
            let local_end = fields.accept("local", address(local))?;
            let remote_end = fields.accept("remote", address(remote))?;
            let pair = match (local_end, remote_end) {
                (Address::Unix(local), Address::Unix(remote)) => SocketPair::Unix { local, remote },
                (Address::Udp(local), Address::Udp(remote)) => SocketPair::Udp { local, remote },
                _ => {
                    fields.error("remote", "both ends are of the same kind", "unix: or udp:");
                    return None;
                }
            };
            Some((local.clone(), Some(pair)))
        }
        _ => {
            let hint = "iface, or socket, or local and remote";
            fields.error("port", "a port is attached in one of three ways", hint);
            None
        }
    }
}

/// One end of a cable to another program.
enum Address {
    Unix(PathBuf),
    Udp(SocketAddr),
}

/// Parses `unix:PATH` or `udp:ADDRESS:PORT`.
fn address(text: &str) -> Result<Address, Complaint> {
    if let Some(path) = text.strip_prefix("unix:") {
        if !path.starts_with('/') {
            let message = format!("{text:?} has no absolute path");
            return Err(Complaint::new(message, "such as unix:/run/user/1000/vm1.lab"));
        }
        if path.len() > PATH_MAX {
            let message = format!("the path has {} octets", path.len());
            let hint = format!("the path of a socket has at most {PATH_MAX}");
            return Err(Complaint::new(message, hint));
        }
        return Ok(Address::Unix(path.into()));
    }
    let udp = text.strip_prefix("udp:").and_then(|udp| udp.parse::<SocketAddr>().ok());
    let udp = udp.filter(|udp| udp.ip().is_loopback() && udp.port() > 0);
    let hint = "unix:/PATH, or udp:127.0.0.1:5000";
    udp.map(Address::Udp)
        .ok_or_else(|| Complaint::new(format!("{text:?} is no address on loopback"), hint))
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
