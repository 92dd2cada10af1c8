//! Unix-datagram cables: between processes of one host, at half the cost of UDP.
//!
//! A full receiver makes the sender wait (EAGAIN) instead of dropping the datagram, so no frame is lost.

use super::datagram::{DatagramSocket, Peer};
use super::peer_socket::bind_file;
use socket2::SockAddr;
use std::io;
use std::path::Path;

/// Opens the socket of process `process` as a file in `directory`. The file is removed with the socket. One that a killed
/// process has left is replaced.
///
/// # Errors
/// If a process uses the file or it cannot be created, or its path is longer than a socket address holds.
pub fn open(directory: &Path, process: usize) -> io::Result<DatagramSocket> {
    let file = directory.join(format!("{process}.sock"));
    let text = file.to_str().map(str::to_owned);
    let text = text.ok_or_else(|| io::Error::other(format!("{} is not UTF-8", file.display())))?;
    DatagramSocket::new(bind_file(&file)?, text, Some(file))
}

/// The peer whose socket is the file `address`.
///
/// # Errors
/// If the path is longer than a socket address holds.
pub fn peer(address: &str) -> io::Result<Peer> {
    Ok(Peer::new(SockAddr::unix(address)?))
}
