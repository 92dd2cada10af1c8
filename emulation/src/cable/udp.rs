//! UDP cables: between namespaces, containers and hosts, and on loopback.

use super::datagram::{DatagramSocket, Peer};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Opens a socket at `host`, on a port that the kernel chooses.
///
/// # Errors
/// If the address is not one of this machine, or no descriptors or ports are left.
pub fn open(host: IpAddr) -> io::Result<DatagramSocket> {
    let wish = SocketAddr::new(host, 0);
    let socket = Socket::new(Domain::for_address(wish), Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&SockAddr::from(wish))?;
    let bound = socket.local_addr()?.as_socket();
    let bound = bound.ok_or_else(|| io::Error::other("the UDP socket has no IP address"))?;
    DatagramSocket::new(socket, bound.to_string(), None)
}

/// Parses the address of a peer.
///
/// # Errors
/// If `address` is not an IP address with a port.
pub fn peer(address: &str) -> io::Result<Peer> {
    let parsed: SocketAddr = address.parse().map_err(|_| {
        let reason = format!("{address:?} is not an address such as 127.0.0.1:4711");
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    })?;
    Ok(Peer::new(SockAddr::from(parsed)))
}
