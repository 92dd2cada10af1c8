//! Creates pairs of interfaces and configures interfaces through netlink.
//!
//! One message creates a pair: both ends with their names, addresses, MTU and namespaces. An end can be
//! switched on only when both exist, so a second message does that and leaves a note that names the owner. By
//! hand on netlink packets, since pnet only lists interfaces.

use super::shim::SendingEnd;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Octets of the longest alias that the kernel keeps, without the terminating zero (IFALIASZ).
pub(crate) const NOTE_MAX: usize = 255;
/// Octets of the longest name, without the terminating zero (IFNAMSIZ).
pub const NAME_MAX: usize = 15;

/// One end of a veth pair.
#[derive(Clone, Copy, Debug)]
pub struct PairEnd<'a> {
    /// Its name, at most [`NAME_MAX`] octets.
    pub name: &'a str,
    /// Its MAC address.
    pub address: [u8; 6],
    /// Its namespace.
    pub namespace: BorrowedFd<'a>,
}

/// A netlink socket for the interfaces of one namespace.
#[derive(Debug)]
pub struct Interfaces {
    socket: Socket,
}

impl Interfaces {
    /// Opens a socket in the namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel has no netlink.
    pub fn here() -> io::Result<Interfaces> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        Ok(Interfaces { socket })
    }

    /// Creates a veth pair of this `mtu` in octets. Both ends are switched off.
    ///
    /// # Errors
    /// Those of the kernel; EPERM without `CAP_NET_ADMIN` in both namespaces.
    pub fn make_pair(&self, near: PairEnd<'_>, far: PairEnd<'_>, mtu: u32) -> io::Result<()> {
        let far = link(far, mtu);
        let mut near = link(near, mtu);
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        self.ask(RouteNetlinkMessage::NewLink(near), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Switches the interface `name` on and sets its alias to `note`, cut to [`NOTE_MAX`] octets.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn switch_on(&self, name: &str, note: &str) -> io::Result<()> {
        let mut end = note.len().min(NOTE_MAX);
        while !note.is_char_boundary(end) {
            end -= 1;
        }
        let mut message = LinkMessage::default();
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::IfAlias(note[..end].to_owned()));
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Switches the interface `name` on or off; off, the far end of a veth pair or a tap loses its carrier.
    ///
    /// # Errors
    /// Those of the kernel; EPERM without `CAP_NET_ADMIN`.
    pub fn set_state(&self, name: &str, on: bool) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.flags = if on { LinkFlags::Up } else { LinkFlags::empty() };
        message.header.change_mask = LinkFlags::Up;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Creates a bridge, switched off, without spanning tree.
    ///
    /// # Errors
    /// Those of the kernel; EPERM without `CAP_NET_ADMIN`.
    pub fn make_bridge(&self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]));
        self.ask(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sets how long the bridge `name` keeps a silent address, in hundredths of a second (USER_HZ).
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_ageing(&self, name: &str, hundredths: u64) -> io::Result<()> {
        let ageing = InfoBridge::AgeingTime(u32::try_from(hundredths).unwrap_or(u32::MAX));
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Bridge),
            LinkInfo::Data(InfoData::Bridge(vec![ageing])),
        ]));
        self.ask(RouteNetlinkMessage::NewLink(message), 0)
    }

    /// Makes the interface `name` a port of the bridge with this index.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_controller(&self, name: &str, bridge: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::Controller(bridge));
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Changes the MTU of the interface `name`, in octets.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Removes the interface `name`; the other end of a pair goes with it.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.ask(RouteNetlinkMessage::DelLink(message), 0)
    }

    /// Adds an address with a prefix of `prefix` bits to the interface of this `index`. No frame asks whether another
    /// host has it already (IFA_F_NODAD).
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn give_address(&self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family =
            if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends one request and reads the kernel's acknowledgement.
    fn ask(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        message.finalize();
        let mut octets = vec![0; message.buffer_len()];
        message.serialize(&mut octets);
        self.socket.send_to(&octets, &SocketAddr::new(0, 0), 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let invalid = |_| io::Error::other("the kernel sent an invalid netlink message");
        NetlinkBuffer::new_checked(&answer[..]).map_err(invalid)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
        match answer.map_err(invalid)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::Error(_) => Ok(()),
            _ => Err(io::Error::other("the kernel sent an unexpected netlink message")),
        }
    }
}

fn link(end: PairEnd<'_>, mtu: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Address(end.address.to_vec()),
        LinkAttribute::Mtu(mtu),
        LinkAttribute::NetNsFd(end.namespace.as_raw_fd()),
    ];
    link
}

/// The MAC address of an end of a link: locally administered, and outside the fabric's address plan.
pub const fn address_of(link: u32, end: SendingEnd) -> [u8; 6] {
    let [_, a, b, c] = link.to_be_bytes();
    [0x02, 0x70, a, b, c, end as u8]
}
