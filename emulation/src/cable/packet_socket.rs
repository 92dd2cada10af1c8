//! A packet socket on one interface: whole frames, in batches, exactly as they were sent.
//!
//! The kernel changes frames on their way into such a socket, and this module undoes that. The kernel takes out
//! an 802.1Q tag and reports it beside the frame ([`auxiliary`]). It passes on unfinished work of its own
//! stack, partial checksums and unsegmented TCP; both are finished here ([`offload`]). Frames that this host
//! sends are not received.
//!
//! For high rates frames are received through a [`ring`] and sent through another ([`send_ring`]). The socket
//! is not opened through pnet, because pnet_datalink has neither PACKET_VNET_HDR nor tags nor an AF_XDP ring.

mod auxiliary;
pub mod counts;
mod mapping;
mod offload;
mod ring;
mod send_ring;

use super::datagram::{BATCH, Buffers};
use super::interface_info::interface;
use super::socket_calls::{self, bind, set_option, widen};
use auxiliary::Auxiliary;
pub use auxiliary::VlanTag;
use offload::VirtioHeader;
use ring::{Ring, Slot};
use send_ring::{SendRing, Sent};
use socket2::{Domain, Socket, Type};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Octets of a receive buffer: the longest unsegmented frame and its headers.
const ROOM: usize = 66_048;

/// Octets of the longest header that [`PacketSocket::send`] accepts before a frame.
pub(crate) const HEAD_MAX: usize = 46;

/// A frame to be sent, and the header before it.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrame<'a> {
    /// The header; empty for Ethernet.
    pub head: &'a [u8],
    /// The frame.
    pub octets: &'a [u8],
}

/// A received frame. To complete it, insert `tag` behind the addresses.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedFrame<'a> {
    /// Destination address to the last octet, without the outermost 802.1Q tag.
    pub octets: &'a [u8],
    /// The tag that the kernel took out.
    pub tag: Option<VlanTag>,
    /// Time stamp of the kernel, in nanoseconds of `CLOCK_REALTIME`.
    pub at_ns: Option<u64>,
}

/// Why a received frame was not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// It was longer than the buffer.
    Cut,
    /// It needs an offload that is not implemented.
    Unfinished,
    /// Another program than the peer sent it.
    Foreign,
}

/// A received frame, or why it was not passed on.
pub(super) type Reception<'a> = Result<ReceivedFrame<'a>, ReceiveError>;

/// Receive buffers, shared by all sockets of a worker.
#[derive(Debug)]
pub struct ReceiveBuffers {
    octets: Vec<u8>,
    control: Vec<auxiliary::Control>,
    /// Buffer for assembling segments.
    segment: Vec<u8>,
}

impl ReceiveBuffers {
    /// The buffers for [`BATCH`] datagrams, and the octets of each.
    pub(super) fn datagrams(&mut self) -> (&mut [u8], usize) {
        (&mut self.octets, ROOM)
    }
}

impl Default for ReceiveBuffers {
    fn default() -> ReceiveBuffers {
        ReceiveBuffers {
            octets: vec![0; BATCH * ROOM],
            control: vec![auxiliary::Control::default(); BATCH],
            segment: Vec::new(),
        }
    }
}

/// A socket cannot be opened on an interface; the cause is the system's error.
#[derive(Debug, thiserror::Error)]
#[error("interface {interface}: {what}")]
struct OpenError {
    interface: String,
    what: &'static str,
    source: io::Error,
}

/// Adds the interface and the failed step to an error of the system.
fn failed_at(interface: &str, what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    let interface = interface.to_owned();
    move |source| io::Error::new(source.kind(), OpenError { interface, what, source })
}

/// A packet socket.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
    name: String,
    /// The index of the interface that it is bound to.
    index: u32,
    buffers: Buffers,
    ring: Option<Ring>,
    send_ring: Option<SendRing>,
    /// Frames that arrived cut, since the last call of [`PacketSocket::overflows`].
    cut: Cell<u32>,
}

impl PacketSocket {
    /// Opens a socket on the interface `name` of the namespace in which the calling thread is.
    ///
    /// # Errors
    /// If there is no such interface, or without `CAP_NET_RAW`.
    pub fn open(name: &str) -> io::Result<PacketSocket> {
        let failed = |what| failed_at(name, what);
        let index = interface(name).map_err(failed("no such interface"))?.index;
        // Without a protocol it receives nothing until all options are set.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None);
        let socket = socket.map_err(failed("no packet socket"))?;
        socket.set_nonblocking(true)?;
        let buffers = widen(&socket)?;
        for option in
            [libc::PACKET_AUXDATA, libc::PACKET_IGNORE_OUTGOING, libc::PACKET_VNET_HDR, BYPASS]
        {
            let set = set_option(&socket, libc::SOL_PACKET, option, &1i32);
            set.map_err(failed("the kernel lacks an option of packet sockets"))?;
        }
        set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous(index))?;
        bind(&socket, &all_frames(index)).map_err(failed("cannot listen"))?;
        let name = name.to_owned();
        let (ring, send_ring, cut) = (None, None, Cell::new(0));
        Ok(PacketSocket { socket, name, index, buffers, ring, send_ring, cut })
    }

    /// Receives through a [`ring`], for interfaces with high rates. A ring takes 8 MiB, too much for the many
    /// slow cables of a fabric.
    ///
    /// # Errors
    /// Those of the system.
    pub fn with_ring(self) -> io::Result<PacketSocket> {
        let ring = Ring::new(&self.socket).map_err(failed_at(&self.name, "no ring"))?;
        Ok(PacketSocket { ring: Some(ring), ..self })
    }

    /// Sends through a [`send_ring`] from now on, except frames that are too long for it. The calling thread
    /// must be in the interface's namespace.
    ///
    /// # Errors
    /// Those of the system; the socket then sends as before.
    pub fn give_send_ring(&mut self) -> io::Result<()> {
        let interface = interface(&self.name)?;
        self.send_ring = Some(SendRing::new(interface.index, interface.mtu)?);
        Ok(())
    }

    /// Binds to the interface of this index instead, and sends without a ring from now on. Needs no rights.
    ///
    /// # Errors
    /// If there is no such interface.
    pub(crate) fn rebind(&mut self, index: u32) -> io::Result<()> {
        // An AF_XDP socket can be bound only once.
        self.send_ring = None;
        // Fails if the interface is gone, and its membership with it.
        let old = promiscuous(self.index);
        let _ = set_option(&self.socket, libc::SOL_PACKET, libc::PACKET_DROP_MEMBERSHIP, &old);
        self.index = index;
        let new = promiscuous(index);
        set_option(&self.socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &new)?;
        bind(&self.socket, &all_frames(index))
    }

    /// Forgets frames that were offered to [`PacketSocket::send`] and not sent; offer others next.
    pub(crate) fn forget_unsent(&mut self) {
        self.send_ring.take_if(|ring| !ring.forget_waiting());
    }

    /// Adapts the ring to a new MTU of the interface, in octets.
    pub(crate) fn set_mtu(&mut self, mtu: usize) {
        if let Some(ring) = &mut self.send_ring {
            ring.set_mtu(mtu);
        }
    }

    /// Reads and clears the error of the socket, for example that its interface went down.
    pub(crate) fn clear_error(&self) {
        // The interface's state comes by another way, and the next call reports any other error.
        let _ = self.socket.take_error();
    }

    /// The index of the interface that it is bound to.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shrinks the receive buffer, for tests of overflows. The kernel doubles `octets` and has a minimum of its
    /// own.
    ///
    /// # Errors
    /// Those of `setsockopt`.
    pub fn shrink_receive_buffer(&mut self, octets: usize) -> io::Result<()> {
        self.buffers.shrink_receive(&self.socket, octets)
    }

    /// The sizes of its buffers, as the kernel reports them.
    pub const fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// Frames that the kernel dropped since the last call, because the receive buffer was full.
    pub fn overflows(&self) -> u32 {
        // SAFETY: the option is plain data. Test: frames_too_many_for_the_buffer_are_counted.
        let counts: io::Result<libc::tpacket_stats> = unsafe {
            socket_calls::option(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)
        };
        counts.map_or(0, |counts| counts.tp_drops) + self.cut.take()
    }

    /// Sends the first frames of `batch`, at most [`BATCH`]. Returns how many were sent. Call again with the
    /// rest, in the same order; leave out a frame that was refused for another reason than lack of room.
    ///
    /// # Errors
    /// Why the first could not be sent. A later one that fails only ends the count.
    pub fn send<'a>(
        &mut self,
        batch: impl Iterator<Item = OutgoingFrame<'a>> + Clone,
    ) -> io::Result<usize> {
        let Some(ring) = &mut self.send_ring else { return self.send_direct(batch) };
        match ring.send(batch.clone()) {
            Sent::Frames(count) => Ok(count),
            Sent::None => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            Sent::Otherwise(count) => {
                let sent = self.send_direct(batch.take(count));
                let stays = sent.as_ref().is_err_and(has_no_room);
                if let Some(ring) = self.send_ring.as_mut().filter(|_| !stays) {
                    ring.skip();
                }
                sent
            }
            Sent::Down => Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
            Sent::Broken => {
                self.send_ring = None;
                self.send_direct(batch)
            }
        }
    }

    /// The same through the socket, without the ring.
    fn send_direct<'a>(&self, batch: impl Iterator<Item = OutgoingFrame<'a>>) -> io::Result<usize> {
        let parts = |frame: OutgoingFrame<'a>| [&VirtioHeader::FINISHED, frame.head, frame.octets];
        socket_calls::send(&self.socket, batch.map(|frame| (None, parts(frame))))
    }

    /// Receives up to [`BATCH`] frames that wait in the socket. Returns how many there were. A frame that needs
    /// segmentation is passed on as several.
    pub fn receive(&self, room: &mut ReceiveBuffers, mut each: impl FnMut(Reception<'_>)) -> usize {
        let Some(ring) = &self.ring else { return self.receive_queued(BATCH, room, &mut each) };
        let mut count = 0;
        while count < BATCH && ring.take(|slot| self.receive_slot(slot, room, &mut each)) {
            count += 1;
        }
        count
    }

    fn receive_slot(
        &self,
        slot: Slot<'_>,
        room: &mut ReceiveBuffers,
        each: &mut impl FnMut(Reception<'_>),
    ) {
        match slot {
            Slot::Frame(octets, auxiliary) => hand_on(octets, auxiliary, &mut room.segment, each),
            Slot::Queued if self.receive_queued(1, room, each) == 1 => {}
            Slot::Queued | Slot::Cut => self.cut.set(self.cut.get() + 1),
        }
    }

    /// Receives up to `most` frames, [`BATCH`] at most, from the socket's queue.
    fn receive_queued(
        &self,
        most: usize,
        room: &mut ReceiveBuffers,
        each: &mut impl FnMut(Reception<'_>),
    ) -> usize {
        let ReceiveBuffers { octets, control, segment } = room;
        let attach = |header: &mut libc::msghdr, control: &mut auxiliary::Control| {
            header.msg_control = std::ptr::from_mut(control).cast();
            header.msg_controllen = size_of_val(control) as _;
        };
        let each = |header: &libc::msghdr, _: &auxiliary::Control, octets: &[u8]| {
            if header.msg_flags & libc::MSG_TRUNC != 0 {
                each(Err(ReceiveError::Cut));
            } else {
                hand_on(octets, Auxiliary::of(header), segment, each);
            }
        };
        let (room, control) = ((octets.as_mut_slice(), ROOM), &mut control[..most]);
        // SAFETY: `attach` has each header point to its control data.
        // Test: frames_come_out_as_they_went_in_tags_and_all.
        unsafe { socket_calls::receive(&self.socket, room, control, attach, each) }
    }
}

/// Finishes the frame behind the virtio header in `octets` and passes on the result.
fn hand_on(
    octets: &[u8],
    Auxiliary { tag, at_ns }: Auxiliary,
    segment: &mut Vec<u8>,
    each: &mut impl FnMut(Reception<'_>),
) {
    let deliver = |octets: &[u8]| each(Ok(ReceivedFrame { octets, tag, at_ns }));
    if offload::finish(octets, segment, deliver).is_err() {
        each(Err(ReceiveError::Unfinished));
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the interface or the backlog behind it has no room now, or the call was interrupted. In these cases
/// the frame was not sent.
pub(crate) fn has_no_room(error: &io::Error) -> bool {
    let errors = [libc::EAGAIN, libc::ENOBUFS, libc::ENOMEM, libc::EINTR];
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

/// Frames bypass the queueing discipline, which would be a queue that the model does not have.
const BYPASS: libc::c_int = libc::PACKET_QDISC_BYPASS;

/// The membership for frames to all addresses at the interface `index`.
fn promiscuous(index: u32) -> libc::packet_mreq {
    libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    }
}

/// The address of all frames at the interface `index`.
fn all_frames(index: u32) -> libc::sockaddr_ll {
    // SAFETY: plain data, for which all zeros is a valid value. Test: frames_come_out_as_they_went_in_tags_and_all.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    address
}

#[cfg(test)]
mod tests;
