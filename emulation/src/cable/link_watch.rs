//! Reports every change of the interfaces of a namespace, from one netlink socket.
//!
//! The kernel sends a message for each interface that appears, changes or disappears (RTNLGRP_LINK). If messages
//! were lost because the socket was full, the list of all interfaces is read again. pnet has no such socket. Source:
//! rtnetlink(7).

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The group of messages about interfaces, as a mask. Source: linux/rtnetlink.h, RTMGRP_LINK.
const LINKS: u32 = 1;
/// Octets of the longest datagram; the kernel sends lists in parts of at most 32 KiB.
const ROOM: usize = 65_536;
/// Datagrams read in one call, so that a busy host cannot stop the worker.
const DATAGRAMS_MAX: usize = 32;

/// The state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkFacts {
    /// Its index.
    pub index: u32,
    /// It is switched on (IFF_UP).
    pub is_up: bool,
    /// Its link has a carrier (IFF_LOWER_UP).
    pub has_carrier: bool,
    /// Its MTU in octets.
    pub mtu: usize,
}

/// A message of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkNews<'a> {
    /// A list of all interfaces begins.
    Begin,
    /// The interface of this name exists and is in this state.
    Present(&'a str, LinkFacts),
    /// The interface of this index is gone.
    Removed(u32),
    /// The list is complete.
    Complete,
}

/// A netlink socket that receives all changes of interfaces.
#[derive(Debug)]
pub struct LinkWatch {
    socket: Socket,
    room: Vec<u8>,
    /// A list of all interfaces is on its way.
    is_listing: bool,
    /// Messages were lost since that list was requested.
    has_missed: bool,
}

impl LinkWatch {
    /// Watches the namespace in which the calling thread is.
    ///
    /// # Errors
    /// If the kernel has no netlink.
    pub fn here() -> io::Result<LinkWatch> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, LINKS))?;
        socket.set_non_blocking(true)?;
        let watch = LinkWatch { socket, room: vec![0; ROOM], is_listing: true, has_missed: false };
        watch.request_list()?;
        Ok(watch)
    }

    /// Passes on all messages that wait. The first are the list of all interfaces.
    pub(crate) fn read(&mut self, mut each: impl FnMut(LinkNews<'_>)) {
        for _ in 0..DATAGRAMS_MAX {
            if self.has_missed && !self.is_listing {
                self.has_missed = self.request_list().is_err();
                self.is_listing = !self.has_missed;
                each(LinkNews::Begin);
            }
            let mut room = &mut self.room[..];
            match self.socket.recv_from(&mut room, libc::MSG_DONTWAIT) {
                // Only the kernel has port 0.
                Ok((count, from)) if from.port_number() == 0 => {
                    self.is_listing &= !split(&self.room[..count.min(ROOM)], &mut each);
                }
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.has_missed = true,
                Err(_) => return,
            }
        }
    }

    fn request_list(&self) -> io::Result<()> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.finalize();
        let mut octets = vec![0; message.buffer_len()];
        message.serialize(&mut octets);
        self.socket.send_to(&octets, &SocketAddr::new(0, 0), libc::MSG_DONTWAIT).map(|_| ())
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Passes on the messages of a datagram. Returns whether a list ends in it.
fn split(mut octets: &[u8], each: &mut impl FnMut(LinkNews<'_>)) -> bool {
    let mut ends = false;
    while let Ok(buffer) = NetlinkBuffer::new_checked(octets) {
        // Messages begin at multiples of four octets.
        let length = (buffer.length() as usize).next_multiple_of(4).min(octets.len());
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(octets);
        octets = &octets[length..];
        match message.map(|message| message.payload) {
            Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))) => {
                if let Some((name, facts)) = facts(&link) {
                    each(LinkNews::Present(name, facts));
                }
            }
            // A bridge reports with a family of its own that an interface has left it.
            Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)))
                if link.header.interface_family == AddressFamily::Unspec =>
            {
                each(LinkNews::Removed(link.header.index));
            }
            Ok(NetlinkPayload::Done(_)) => {
                each(LinkNews::Complete);
                ends = true;
            }
            Ok(NetlinkPayload::Error(_)) => ends = true,
            _ => {}
        }
    }
    ends
}

fn facts(link: &LinkMessage) -> Option<(&str, LinkFacts)> {
    if link.header.interface_family != AddressFamily::Unspec {
        return None;
    }
    let (mut name, mut mtu) = (None, None);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text.as_str()),
            LinkAttribute::Mtu(octets) => mtu = Some(*octets as usize),
            _ => {}
        }
    }
    let flags = link.header.flags;
    let facts = LinkFacts {
        index: link.header.index,
        is_up: flags.contains(LinkFlags::Up),
        has_carrier: flags.contains(LinkFlags::LowerUp),
        mtu: mtu?,
    };
    Some((name?, facts))
}
