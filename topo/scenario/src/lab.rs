//! `[lab]`: what of this host the fabric is cabled to, and whether a subnet manager has it.

use crate::attached::{AttachedPort, PAUSE_RATE, PortRate};
use crate::fabric::FabricSettings;
use crate::fabric::link::{MAPS, MODES};
use crate::keyfile::fields::{Fields, meaning, words};
use crate::keyfile::problem::Complaint;
use crate::shapes::listed::parse_end;
use emulation::cable::peer_socket::PATH_MAX;
use emulation::wiring::{End, NodeKind, Sending, SocketPair};
use proto::link::{FlowControlConfig, PauseMode};
use proto::params::{Key, KeyTable, Kind, Params};
use proto::technology::Technology;
use proto::units::{BitRate, Bytes};
use proto::wire::classify::PriorityMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The longest name of an interface. Source: Linux, IFNAMSIZ without the terminating zero.
const NAME_MAX: usize = 15;

/// The longest name of a pair of sockets in the folder of the run.
const SOCKET_NAME_MAX: usize = 32;

/// The keys of `[lab]`.
pub static KEYS: KeyTable = KeyTable::new(
    "what of this host the fabric is cabled to, at dilation 1; interfaces on the backend netns, programs on udp too",
    &[
        Key::new(
            "managed",
            Kind::Flag,
            "false",
            "Leave the fabric to a subnet manager: ports begin in Initialize, without LIDs, routes and lanes.",
        ),
        Key::optional(
            "attach",
            Kind::Tables(&ATTACH),
            "Interfaces of this host, and other programs, at ports of switches.",
        ),
    ],
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
        /// How the port and the interface's far end stop each other: not at all, by PAUSE, or by PFC for each priority.
        pause: Option<String> = Word(|| words(&MODES)), Else("`pause` of `[fabric.link]`");
        /// The rate whose bit times pause quanta count: the speed that the far end assumes. The port sends by `rate`.
        pause_rate: Option<BitRate> = Rate, Else("`rate`; 10 Gbps without one");
        /// What gives a frame its priority: upper three bits of the DSCP, or the tag's PCP.
        priorities: Option<String> = Word(|| words(&MAPS)), Else("`priorities` of `[fabric.link]`");
    }
}

/// What is attached to a port.
pub(crate) struct FarEnd {
    /// The name of the interface or the host, or of the cable to another program.
    pub interface: String,
    /// The cable to another program.
    pub socket: Option<SocketPair>,
    /// Whether the lab makes it.
    pub is_host: bool,
}

/// Reads `[lab]`; ports beyond the last of a switch become its own.
pub fn read(root: &Fields<'_>, fabric: &mut FabricSettings) {
    let Some(lab) = root.table("lab") else { return };
    fabric.managed = lab.get("managed").unwrap_or(false);
    if fabric.managed && fabric.technology != Technology::Infiniband {
        lab.error(
            "managed",
            "a subnet manager has a fabric of InfiniBand",
            "technology = \"infiniband\"",
        );
    }
    for (fields, written) in lab.each::<Attach>("attach") {
        if let Some(far_end) = far_end(&fields, &written) {
            attach(&fields, fabric, written, far_end);
        }
    }
}

/// Attaches `far_end` to the port that `written` names, and returns the port; `None` after an error.
pub(crate) fn attach(
    fields: &Fields<'_>,
    fabric: &mut FabricSettings,
    written: Attach,
    far_end: FarEnd,
) -> Option<End> {
    let FlowControlConfig::Pause(link) = &fabric.link.control else {
        let message = "attached ports carry Ethernet";
        return fields.refuse("port", message, "technology = \"ethernet\"");
    };
    let (mode, map) = (link.mode, link.priorities);
    let at = fields.accept("port", free_port(&written.port, fabric))?;
    let port = attached(at, far_end, written, mode, map);
    if port.pause == PauseMode::None && fields.is_written("pause_rate") {
        let message = "this port neither sends nor obeys pauses";
        fields.error("pause_rate", message, "pause = \"pfc\" or \"pause\"");
    }
    let ports = &mut fabric.topology.nodes[at.node].ports;
    *ports = at.port.get().max(*ports);
    if fabric.attached.iter().any(|other| other.interface == port.interface) {
        let message = format!("{} is attached to another port already", port.interface);
        return fields.refuse("port", message, "an interface, socket or host has one port");
    }
    fabric.topology.attached.push(at);
    fabric.attached.push(port);
    Some(at)
}

/// The interface or the cable to another program; `None` after an error.
fn far_end(fields: &Fields<'_>, attach: &Attach) -> Option<FarEnd> {
    let found = |interface, socket| Some(FarEnd { interface, socket, is_host: false });
    match (&attach.iface, &attach.socket, &attach.local, &attach.remote) {
        (Some(iface), None, None, None) => {
            if iface.is_empty() || iface.len() > NAME_MAX || iface.contains('/') {
                let message = format!("{iface:?} is the name of no interface");
                fields.error("iface", message, "as `ip link` shows it");
                return None;
            }
            found(iface.clone(), None)
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
            found(format!("unix:{name}"), Some(pair))
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
            found(local.clone(), Some(pair))
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
        .ok_or_else(|| Complaint::new(format!("{text:?} is not an address on loopback"), hint))
}

/// The port as written; `pause` and `priorities` are those of the default link.
fn attached(
    at: End,
    FarEnd { interface, socket, is_host }: FarEnd,
    written: Attach,
    pause: PauseMode,
    priorities: PriorityMap,
) -> AttachedPort {
    let Attach { rate: PortRate(rate), mtu, send, .. } = written;
    let mut port = AttachedPort {
        at,
        interface,
        socket,
        is_host,
        rate,
        mtu,
        send,
        pause_rate: PAUSE_RATE,
        pause: written.pause.and_then(|word| meaning(&MODES, &word)).unwrap_or(pause),
        priorities: written.priorities.and_then(|word| meaning(&MAPS, &word)).unwrap_or(priorities),
    };
    port.pause_rate = written.pause_rate.or(port.line_rate()).unwrap_or(PAUSE_RATE);
    port
}

/// A port of a switch that nothing is cabled to.
fn free_port(text: &str, fabric: &FabricSettings) -> Result<End, Complaint> {
    let at = parse_end(text, &fabric.topology)?;
    let node = &fabric.topology.nodes[at.node];
    if node.kind != NodeKind::Switch {
        let message = format!("{text} is not a port of a switch");
        return Err(Complaint::new(message, "only those are free"));
    }
    if fabric.topology.cable_at(at).is_some() || fabric.attached_at(at).is_some() {
        let hint = format!("the next free port is {}:{}", node.name, u16::from(node.ports) + 1);
        return Err(Complaint::new(format!("{text} has a cable"), hint));
    }
    Ok(at)
}

#[cfg(test)]
mod tests;
