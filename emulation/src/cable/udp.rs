//! UDP cables: across namespaces, containers and hosts, and on loopback like everywhere else.

use super::datagram::{DatagramSocket, Peer};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Opens a socket at `host`, on a port the kernel chooses.
///
/// # Errors
/// If the address is not one of this machine, or sockets are used up.
pub fn open(host: IpAddr) -> io::Result<DatagramSocket> {
    let wish = SocketAddr::new(host, 0);
    let socket = Socket::new(Domain::for_address(wish), Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&SockAddr::from(wish))?;
    let bound = socket.local_addr()?.as_socket();
    let bound = bound.ok_or_else(|| io::Error::other("a UDP socket without an IP address"))?;
    DatagramSocket::new(socket, bound.to_string(), None)
}

/// The peer that calls itself `address`.
///
/// # Errors
/// If that is no IP address with a port.
pub fn peer(address: &str) -> io::Result<Peer> {
    let parsed: SocketAddr = address.parse().map_err(|_| {
        let reason = format!("{address:?} is not an address such as 127.0.0.1:4711");
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    })?;
    Ok(Peer::new(SockAddr::from(parsed)))
}
