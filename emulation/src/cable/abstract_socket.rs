//! Datagram sockets with names in the abstract namespace, which no file permissions guard: the kernel states the
//! user of each sender.
//!
//! The names end with an octet of zero that counts, as the programs behind `libumad2sim` have it.

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials,
    bind, recvmsg, sendto, setsockopt, socket, sockopt,
};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A bound socket.
#[derive(Debug)]
pub struct AbstractSocket(OwnedFd);

/// The sender of a datagram, as the kernel states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The name of its socket; empty if that has none, or one without the closing zero.
    pub name: String,
    /// Its user.
    pub user: u32,
    /// Its process; 0 if that cannot be seen from here.
    pub process: i32,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The receiver has it.
    Whole,
    /// The receiver's queue is full.
    Full,
    /// There is no receiver.
    Gone,
}

fn address(name: &str) -> io::Result<UnixAddr> {
    Ok(UnixAddr::new_abstract(&[name.as_bytes(), &[0]].concat())?)
}

impl AbstractSocket {
    /// Binds a socket to `name`.
    ///
    /// # Errors
    /// If the name is taken in this network namespace, or longer than 106 octets.
    pub fn bind(name: &str) -> io::Result<AbstractSocket> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        let address = address(name)?;
        bind(socket.as_raw_fd(), &address).map_err(|error| {
            io::Error::new(io::Error::from(error).kind(), format!("{name}: {error}"))
        })?;
        Ok(AbstractSocket(socket))
    }

    /// The next datagram that waits, as far as `octets` holds it: its length there, and its sender.
    pub fn receive(&self, octets: &mut [u8]) -> Option<(usize, Sender)> {
        let mut vectors = [IoSliceMut::new(octets)];
        let mut room = cmsg_space!(UnixCredentials);
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let socket = self.0.as_raw_fd();
        let received = recvmsg::<UnixAddr>(socket, &mut vectors, Some(&mut room), flags).ok()?;
        let name = received.address.as_ref().and_then(UnixAddr::as_abstract);
        let name = name.and_then(|name| std::str::from_utf8(name.strip_suffix(&[0])?).ok());
        let name = name.unwrap_or_default().to_owned();
        let credentials = received.cmsgs().ok()?.find_map(|message| match message {
            ControlMessageOwned::ScmCredentials(credentials) => Some(credentials),
            _ => None,
        })?;
        let sender = Sender { name, user: credentials.uid(), process: credentials.pid() };
        Some((received.bytes, sender))
    }

    /// Sends a datagram to the socket called `name`, and never waits.
    pub fn send(&self, octets: &[u8], name: &str) -> Sent {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let Ok(to) = address(name) else { return Sent::Gone };
        match sendto(self.0.as_raw_fd(), octets, &to, flags) {
            Ok(_) => Sent::Whole,
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => Sent::Full,
            Err(_) => Sent::Gone,
        }
    }
}

impl AsFd for AbstractSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(end: &str) -> String {
        format!("pausebed-test-{}-{end}", std::process::id())
    }

    #[test]
    fn a_datagram_tells_its_sender_and_a_full_or_absent_receiver_is_noticed() {
        let [a, b] = ["a", "b"].map(|end| AbstractSocket::bind(&name(end)).expect("a free name"));
        assert!(AbstractSocket::bind(&name("a")).is_err());
        let mut octets = [0; 4];
        assert_eq!(b.receive(&mut octets), None);
        assert_eq!(a.send(b"long text", &name("b")), Sent::Whole);
        let user = nix::unistd::geteuid().as_raw();
        let sender = Sender { name: name("a"), user, process: std::process::id() as i32 };
        assert_eq!(b.receive(&mut octets), Some((4, sender)));
        assert_eq!(&octets, b"long");
        assert_eq!(a.send(b"x", &name("absent")), Sent::Gone);
        let sent = (0..10_000).map(|_| a.send(b"x", &name("b"))).find(|sent| *sent != Sent::Whole);
        assert_eq!(sent, Some(Sent::Full));
        drop(b);
        assert_eq!(a.send(b"x", &name("b")), Sent::Gone);
    }
}
