//! The open sockets of a process before its run begins.

use super::packets::{PacketExchange, PortSocket};
use super::{Exchange, Session};
use crate::cable::datagram::DatagramSocket;
use crate::cable::lines::Lines;
use crate::clock::Clock;
use std::io;

/// What carries this process's frames.
#[derive(Debug)]
pub enum Sockets {
    /// One socket for all.
    Datagrams(DatagramSocket),
    /// One for each port.
    Packets(Vec<PortSocket>),
}

impl Sockets {
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
