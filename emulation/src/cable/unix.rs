//! Unix-datagram cables: between processes of one host, at half the cost of UDP.
//!
//! A full receiver makes the sender wait (EAGAIN) instead of dropping the datagram, so no frame is lost.

use super::datagram::{DatagramSocket, Peer};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::path::Path;

/// Opens the socket of process `process` as a file in `directory`. The file is removed with the socket.
///
/// # Errors
/// If the file exists or cannot be created, or its path is longer than a socket address holds.
pub fn open(directory: &Path, process: usize) -> io::Result<DatagramSocket> {
    let file = directory.join(format!("{process}.sock"));
    let address = SockAddr::unix(&file)?;
    let text = file.to_str().map(str::to_owned);
    let text = text.ok_or_else(|| io::Error::other(format!("{} is not UTF-8", file.display())))?;
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    socket.bind(&address)?;
    DatagramSocket::new(socket, text, Some(file))
}

/// The peer whose socket is the file `address`.
///
/// # Errors
/// If the path is longer than a socket address holds.
pub fn peer(address: &str) -> io::Result<Peer> {
    Ok(Peer::new(SockAddr::unix(address)?))
}
