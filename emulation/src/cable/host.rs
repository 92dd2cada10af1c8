//! A host in a namespace of its own: the kernel's network stack behind one interface, which leaves checksums
//! and segmentation to hardware.
//!
//! Tests use it to send frames that this project did not make. The far end of its cable is an interface in
//! another namespace, where a port of the fabric may be attached.

use super::interface::{PairEnd, address_of};
use super::namespace::Namespace;
use super::packet_socket::PacketSocket;
use super::shim::SendingEnd;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;

/// The host's interface.
const INTERFACE: &str = "eth0";
/// All hosts are in 198.18.0.0/24, of the block for tests (RFC 2544).
const PREFIX: u8 = 24;

/// The host.
#[derive(Debug)]
pub struct Host {
    namespace: Namespace,
    /// Its address.
    pub address: Ipv4Addr,
}

impl Host {
    /// Creates host `number`. Its cable ends as the interface `port` in `beside`; both ends have this `mtu` in
    /// octets.
    ///
    /// # Errors
    /// Those of the kernel; EPERM without the rights to create namespaces.
    pub fn cabled(number: u8, beside: &Namespace, port: &str, mtu: u32) -> io::Result<Host> {
        let mut made = Namespace::make(1)?;
        let namespace = made.pop().ok_or(io::ErrorKind::NotFound)?;
        let address = |end| address_of(u32::from(number), end);
        let near = PairEnd {
            name: INTERFACE,
            address: address(SendingEnd::A),
            namespace: namespace.as_fd(),
        };
        let far =
            PairEnd { name: port, address: address(SendingEnd::B), namespace: beside.as_fd() };
        namespace.interfaces.make_pair(near, far, mtu)?;
        let host = Host { namespace, address: Ipv4Addr::new(198, 18, 0, number) };
        beside.interfaces.switch_on(port, "the port of a host")?;
        host.namespace.interfaces.switch_on(INTERFACE, "a host")?;
        let index = host.within(|| Ok(if_nametoindex(INTERFACE)?))?;
        host.namespace.interfaces.give_address(index, host.address.into(), PREFIX)?;
        Ok(host)
    }

    /// Runs `work` in its namespace.
    ///
    /// # Errors
    /// Those of `work`, or if the namespace may not be entered.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        self.namespace.enter(work)
    }

    /// Opens a socket that receives a copy of every frame that reaches the host.
    ///
    /// # Errors
    /// If no packet socket can be opened.
    pub fn watch(&self) -> io::Result<PacketSocket> {
        self.within(|| PacketSocket::open(INTERFACE))
    }

    /// Sends `octets` by UDP through the kernel's stack. With `segment`, the kernel leaves cutting into
    /// datagrams of so many octets to the interface (UDP_SEGMENT); checksums are always left to it.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&self, to: SocketAddrV4, octets: &[u8], segment: Option<u16>) -> io::Result<()> {
        self.within(|| {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
            if let Some(segment) = segment {
                setsockopt(&socket, sockopt::UdpGsoSegment, &i32::from(segment))?;
            }
            socket.send_to(octets, &SockAddr::from(to)).map(|_| ())
        })
    }
}
