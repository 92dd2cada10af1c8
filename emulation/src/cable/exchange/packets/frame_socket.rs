//! The socket of a port: on an interface, or to another program.

use crate::cable::datagram::Buffers;
use crate::cable::packet_socket::{OutgoingFrame, PacketSocket, ReceiveBuffers, Reception};
use crate::cable::peer_socket::PeerSocket;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The socket of a port.
#[derive(Debug)]
pub enum FrameSocket {
    /// On an interface of the host.
    Interface(PacketSocket),
    /// To another program.
    Peer(PeerSocket),
}

impl From<PacketSocket> for FrameSocket {
    fn from(socket: PacketSocket) -> FrameSocket {
        FrameSocket::Interface(socket)
    }
}

impl From<PeerSocket> for FrameSocket {
    fn from(socket: PeerSocket) -> FrameSocket {
        FrameSocket::Peer(socket)
    }
}

impl FrameSocket {
    /// The name of its interface.
    pub(super) fn interface(&self) -> Option<&str> {
        match self {
            FrameSocket::Interface(socket) => Some(socket.name()),
            FrameSocket::Peer(_) => None,
        }
    }

    /// Sends the first frames of `batch`; see [`PacketSocket::send`].
    pub(crate) fn send<'a>(
        &mut self,
        batch: impl Iterator<Item = OutgoingFrame<'a>> + Clone,
    ) -> io::Result<usize> {
        match self {
            FrameSocket::Interface(socket) => socket.send(batch),
            FrameSocket::Peer(socket) => socket.send(batch),
        }
    }

    /// Receives a batch of frames that wait; see [`PacketSocket::receive`].
    pub(crate) fn receive(
        &self,
        room: &mut ReceiveBuffers,
        each: impl FnMut(Reception<'_>),
    ) -> usize {
        match self {
            FrameSocket::Interface(socket) => socket.receive(room, each),
            FrameSocket::Peer(socket) => socket.receive(room, each),
        }
    }

    /// The sizes of its buffers.
    pub(super) const fn buffers(&self) -> Buffers {
        match self {
            FrameSocket::Interface(socket) => socket.buffers(),
            FrameSocket::Peer(socket) => socket.buffers(),
        }
    }

    /// Frames that the kernel dropped since the last call, because the receive buffer was full.
    pub(super) fn overflows(&self) -> u32 {
        match self {
            FrameSocket::Interface(socket) => socket.overflows(),
            FrameSocket::Peer(socket) => socket.overflows(),
        }
    }

    /// Reads and clears the error of the socket.
    pub(super) fn clear_error(&self) {
        match self {
            FrameSocket::Interface(socket) => socket.clear_error(),
            FrameSocket::Peer(socket) => socket.clear_error(),
        }
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            FrameSocket::Interface(socket) => socket.as_fd(),
            FrameSocket::Peer(socket) => socket.as_fd(),
        }
    }
}
