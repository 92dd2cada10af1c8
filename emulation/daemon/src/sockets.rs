//! Opens the sockets that a daemon's configuration names, and parses the addresses of its peers.

use crate::config::{DaemonConfig, PortInterface};
use crate::error::{Context, DaemonError};
use emulation::cable::Carrier;
use emulation::cable::datagram::Peer;
use emulation::cable::exchange::Sockets;
use emulation::cable::exchange::packets::PortSocket;
use emulation::cable::link_watch::LinkWatch;
use emulation::cable::namespace::within;
use emulation::cable::packet_socket::PacketSocket;
use emulation::cable::peer_socket::PeerSocket;
use emulation::cable::{udp, unix};
use emulation::clock::monotonic_ns;
use emulation::timer;
use emulation::wiring::Sending;
use std::io;
use std::path::PathBuf;

/// An interface has one send ring, and the kernel frees it shortly after the process that owned it has ended.
/// Nanoseconds to wait for that, and between tries.
const RING_WITHIN_NS: u64 = 500_000_000;
const RING_AGAIN_NS: u64 = 10_000_000;

/// Opens this process's sockets.
///
/// # Errors
/// Those of the system.
pub fn open(config: &DaemonConfig) -> io::Result<Sockets> {
    let socket = match (config.carrier, &config.socket_dir) {
        (Carrier::Packet, Some(directory)) if config.exact => {
            // Frames travel by the interfaces, and promises beside them.
            let promises = unix::open(directory, config.process)?;
            let Sockets::Packets(ports, _) = on_interfaces(config)? else {
                return Err(io::Error::other("interfaces have packet sockets"));
            };
            return Ok(Sockets::Beside(promises, ports));
        }
        (Carrier::Packet, _) => return on_interfaces(config),
        (Carrier::Udp, _) => udp::open(config.bind),
        (Carrier::Unix, Some(directory)) => unix::open(directory, config.process),
        (Carrier::Unix, None) => Err(io::Error::other("carrier \"unix\" needs socket_dir")),
    };
    let mut socket = socket?;
    if let Some(octets) = config.receive_buffer {
        socket.shrink_receive_buffer(octets)?;
    }
    let programs = to_programs(config)?;
    let is_plain = programs.is_empty();
    Ok(if is_plain { Sockets::Datagrams(socket) } else { Sockets::Mixed(socket, programs) })
}

/// Parses the addresses of all processes.
///
/// # Errors
/// If one is not an address, or there are too many or too few.
pub fn peers(config: &DaemonConfig, addresses: &[String]) -> Result<Vec<Peer>, DaemonError> {
    if addresses.len() != config.processes {
        let reason = format!("{} peers for {} processes", addresses.len(), config.processes);
        return Err(DaemonError::Fault(reason));
    }
    let all = addresses.iter().map(|address| peer(config.carrier, config.exact, address));
    all.filter_map(Result::transpose).collect()
}

/// Parses the address of a process; none where each cable has two ends and needs no address.
///
/// # Errors
/// If it is not an address.
pub fn peer(carrier: Carrier, exact: bool, address: &str) -> Result<Option<Peer>, DaemonError> {
    let parsed = match carrier {
        Carrier::Udp => udp::peer(address),
        Carrier::Packet if !exact => return Ok(None),
        Carrier::Unix | Carrier::Packet => unix::peer(address),
    };
    parsed.map(Some).context(address)
}

/// Opens the socket of every port of this process that has a cable to another program.
fn to_programs(config: &DaemonConfig) -> io::Result<Vec<PortSocket>> {
    let mut sockets = Vec::new();
    for (device, node) in config.own_nodes().enumerate() {
        for attached in config.wiring.attached.iter().filter(|attached| attached.at.node == node) {
            let Some(pair) = &attached.socket else { continue };
            let socket = PeerSocket::open(pair, attached.is_host).map_err(|error| {
                let what = format!("port {}: {error}", config.wiring.end_name(attached.at));
                io::Error::new(error.kind(), what)
            })?;
            let (port, socket) = (attached.at.port, socket.into());
            sockets.push(PortSocket { device, port, socket, watch: None });
        }
    }
    Ok(sockets)
}

/// Opens a packet socket on every interface that `config` names.
fn on_interfaces(config: &DaemonConfig) -> io::Result<Sockets> {
    let own: Vec<usize> = config.own_nodes().collect();
    // The namespaces with attached interfaces: this one and those of devices with hosts.
    let mut watched: Vec<Option<PathBuf>> = Vec::new();
    let mut open = |face: &PortInterface| {
        let device = own.iter().position(|node| *node == face.at.node);
        let device = device.ok_or_else(|| io::Error::other("a port of another process"))?;
        let attached = config.wiring.attached.iter().find(|attached| attached.at == face.at);
        let open = || {
            let mut socket = PacketSocket::open(&face.name)?;
            // Old kernels have no send rings, and another socket may hold the ring of this interface.
            if attached.is_some_and(|attached| attached.send == Sending::Ring)
                && let Err(error) = give_send_ring(&mut socket)
            {
                eprintln!("interface {}: frames leave by a socket: {error}", face.name);
            }
            Ok(socket)
        };
        let mut socket = within(face.namespace.as_deref(), open)?;
        if let Some(octets) = config.receive_buffer {
            socket.shrink_receive_buffer(octets)?;
        } else if attached.is_some() {
            socket = socket.with_ring()?;
        }
        let watch = attached.map(|_| {
            watched.iter().position(|other| *other == face.namespace).unwrap_or_else(|| {
                watched.push(face.namespace.clone());
                watched.len() - 1
            })
        });
        Ok(PortSocket { device, port: face.at.port, socket: socket.into(), watch })
    };
    let mut ports = config.interfaces.iter().map(&mut open).collect::<io::Result<Vec<_>>>()?;
    ports.extend(to_programs(config)?);
    let watches = watched.iter().map(|namespace| within(namespace.as_deref(), LinkWatch::here));
    Ok(Sockets::Packets(ports, watches.collect::<io::Result<_>>()?))
}

/// Opens a send ring, unless another socket keeps it for longer than [`RING_WITHIN_NS`].
fn give_send_ring(socket: &mut PacketSocket) -> io::Result<()> {
    let until = monotonic_ns() + RING_WITHIN_NS;
    loop {
        let given = socket.give_send_ring();
        let is_taken = matches!(&given, Err(error) if error.raw_os_error() == Some(libc::EBUSY));
        let now = monotonic_ns();
        if !is_taken || now >= until {
            return given;
        }
        timer::wait(None, now + RING_AGAIN_NS);
    }
}
