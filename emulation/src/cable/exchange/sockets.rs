//! The open sockets of a process before its run begins.

use super::packets::{PacketExchange, PortSocket};
use super::{Exchange, Session};
use crate::cable::datagram::DatagramSocket;
use crate::cable::lines::Lines;
use crate::clock::Clock;
use std::io;

/// The sockets of one process.
#[derive(Debug)]
pub enum Sockets {
    /// One datagram socket for all lines.
    Datagrams(DatagramSocket),
    /// One packet socket for each port.
    Packets(Vec<PortSocket>),
}

impl Sockets {
    /// The address that peers send to; packet sockets need none.
    pub fn address(&self) -> String {
        match self {
            Sockets::Datagrams(socket) => socket.address().to_owned(),
            Sockets::Packets(ports) => format!("{} interfaces", ports.len()),
        }
    }

    /// Starts to carry the frames of `lines`.
    ///
    /// # Errors
    /// If interfaces and cables do not match.
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
