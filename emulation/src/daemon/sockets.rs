//! The sockets of a daemon between their opening and the start of its run.

use super::config::DaemonConfig;
use crate::cable::datagram::DatagramSocket;
use crate::cable::exchange::packets::{PacketExchange, PortSocket};
use crate::cable::exchange::{Exchange, Session};
use crate::cable::lines::Lines;
use crate::cable::namespace::within;
use crate::cable::packet_socket::PacketSocket;
use crate::clock::{Clock, monotonic_ns};
use crate::timer;
use crate::wiring::Sending;
use std::io;

/// An interface has one send ring, and the kernel takes it away a little after its last owner has gone, a switch
/// that was just ended, say. So long it is waited for, in nanoseconds, and asked for so often.
const RING_WITHIN_NS: u64 = 500_000_000;
const RING_AGAIN_NS: u64 = 10_000_000;

/// What carries this process's frames.
#[derive(Debug)]
pub enum Sockets {
    /// One socket for all.
    Datagrams(DatagramSocket),
    /// One for each port.
    Packets(Vec<PortSocket>),
}

impl Sockets {
    /// Opens a packet socket on every interface that `config` names.
    pub(super) fn on_interfaces(config: &DaemonConfig) -> io::Result<Sockets> {
        let own: Vec<usize> = config.own_nodes().collect();
        let open = |face: &super::PortInterface| {
            let device = own.iter().position(|node| *node == face.at.node);
            let device = device.ok_or_else(|| io::Error::other("a port of another process"))?;
            let attached = config.wiring.attached.iter().find(|attached| attached.at == face.at);
            let open = || {
                let mut socket = PacketSocket::open(&face.name)?;
                // An old kernel has no such rings, and an interface has one at a time.
                if attached.is_some_and(|attached| attached.send == Sending::Ring)
                    && let Err(error) = give_send_ring(&mut socket)
                {
                    eprintln!("interface {}: frames leave by a socket: {error}", face.name);
                }
                Ok(socket)
            };
            let mut socket = within(face.namespace.as_deref(), open)?;
            if let Some(octets) = config.receive_buffer {
                socket.narrow(octets)?;
            } else if attached.is_some() {
                socket = socket.with_ring()?;
            }
            Ok(PortSocket { device, port: face.at.port, socket })
        };
        config.interfaces.iter().map(open).collect::<io::Result<_>>().map(Sockets::Packets)
    }

    /// Where others send to; a cable of its own needs no address.
    pub fn address(&self) -> String {
        match self {
            Sockets::Datagrams(socket) => socket.address().to_owned(),
            Sockets::Packets(ports) => format!("{} interfaces", ports.len()),
        }
    }

    /// Begins to carry the frames of `lines`.
    ///
    /// # Errors
    /// If interfaces and cables do not fit each other.
    pub fn exchange(
        self,
        session: Session,
        bare: bool,
        clock: Clock,
        lines: &Lines,
    ) -> io::Result<Exchange> {
        match self {
            Sockets::Datagrams(socket) => Ok(Exchange::new(socket, session, lines)),
            Sockets::Packets(ports) => {
                let packets = PacketExchange::new(ports, bare, session.epoch, clock, lines)?;
                Ok(Exchange::Packets(Box::new(packets)))
            }
        }
    }
}

/// A ring to send by; one that another has for longer is theirs.
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
