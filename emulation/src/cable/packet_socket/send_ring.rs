//! A send ring: memory that the kernel takes frames from, a batch in one call.
//!
//! It is an AF_XDP socket that only sends, in copy mode. Nothing is attached to the interface and its settings
//! do not change. Receiving stays with the packet socket, which reports offloads. A call that sends frames one
//! by one has a fixed cost for each; with the ring only the cost of the frame remains. Source: Linux,
//! Documentation/networking/af_xdp.rst.

use super::counts::SendCounts;
use super::mapping::Mapping;
use super::{OutgoingFrame, has_no_room};
use crate::cable::socket_calls::BATCH;
use crate::cable::socket_calls::{self, set_option, widen};
use socket2::{Domain, Socket, Type};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Octets of the addresses and the EtherType, which the MTU does not include.
const ETHERNET: usize = 14;
/// Octets of a slot, at most a page. Longer frames are sent by the packet socket.
const PLACE: usize = 4_096;
/// An address outside the memory of frames.
const NOWHERE: u64 = 1 << 47;
/// Frames in transmission at most; an interface with hardware of its own keeps them for a while.
const PLACES: usize = 512;

type Counts = SendCounts<PLACES, PLACE>;

/// The send ring of one interface.
#[derive(Debug)]
pub(crate) struct SendRing {
    socket: Socket,
    /// Memory of the frames.
    frames: Mapping,
    /// Slots with frames to send, taken by the kernel (TX ring).
    waiting: Queue,
    /// Slots whose frames have been sent, returned by the kernel (completion ring).
    gone: Queue,
    /// Which slots are free, and how many frames the kernel has taken.
    counts: Counts,
    /// Octets of the longest frame that fits the interface's MTU and a slot.
    frame_max: usize,
}

/// The result of sending a batch.
#[derive(Debug)]
pub enum Sent {
    /// The first so many frames were sent; the others must be offered again.
    Frames(usize),
    /// No frame was sent, since there is no room now.
    None,
    /// The first so many frames must be sent in another way, and then [`SendRing::skip`] called.
    Otherwise(usize),
    /// No frame was sent, since the interface is switched off.
    Down,
    /// The ring can no longer be used.
    Broken,
}

/// A queue of numbers in memory shared with the kernel: one side writes, the other takes.
#[derive(Debug)]
struct Queue {
    memory: Mapping,
    /// Places of the producer index, the consumer index and the first entry.
    at: libc::xdp_ring_offset,
}

impl Queue {
    fn of<T>(socket: &Socket, page: i64, at: libc::xdp_ring_offset) -> io::Result<Queue> {
        let length = at.desc as usize + PLACES * size_of::<T>();
        Ok(Queue { memory: Mapping::of(socket.as_fd(), page, length)?, at })
    }

    fn count(&self, at: u64) -> &AtomicU32 {
        // SAFETY: the kernel has named this offset of a count inside the mapping; counts are aligned, and only ever
        // used as atomics, on both sides. Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
        unsafe { AtomicU32::from_ptr(self.memory.start().add(at as usize).cast().as_ptr()) }
    }

    fn written(&self) -> &AtomicU32 {
        self.count(self.at.producer)
    }

    fn taken(&self) -> &AtomicU32 {
        self.count(self.at.consumer)
    }

    /// The entry of this number, of the type that the queue was made for.
    fn entry<T>(&self, number: u32) -> NonNull<T> {
        let place = self.at.desc as usize + Counts::entry(number) * size_of::<T>();
        // SAFETY: the mapping was made long enough for so many entries.
        // Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
        unsafe { self.memory.start().add(place).cast() }
    }
}

/// Octets of the longest frame that fits this MTU and a slot.
const fn frame_max(mtu: usize) -> usize {
    let frame = mtu.saturating_add(ETHERNET);
    if frame < PLACE { frame } else { PLACE }
}

impl SendRing {
    /// Creates a ring on the interface `index` with this `mtu`, in the namespace of the calling thread.
    ///
    /// # Errors
    /// Those of the system; `EBUSY` if another AF_XDP socket is bound there.
    pub fn new(index: u32, mtu: usize) -> io::Result<SendRing> {
        let socket = Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None)?;
        widen(&socket)?;
        let frames = Mapping::own(PLACES * PLACE)?;
        // SAFETY: plain data, for which all zeros is a valid value.
        // Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
        let mut memory: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        memory.addr = frames.start().as_ptr() as u64;
        memory.len = frames.len() as u64;
        memory.chunk_size = PLACE as u32;
        set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
        // Nothing is received, but every AF_XDP socket needs a fill ring.
        let queues = [
            (libc::XDP_UMEM_FILL_RING, 1),
            (libc::XDP_UMEM_COMPLETION_RING, PLACES),
            (libc::XDP_TX_RING, PLACES),
        ];
        for (queue, entries) in queues {
            set_option(&socket, libc::SOL_XDP, queue, &(entries as u32))?;
        }
        // SAFETY: the option is plain data. Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
        let at: libc::xdp_mmap_offsets =
            unsafe { socket_calls::option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)? };
        let waiting = Queue::of::<libc::xdp_desc>(&socket, libc::XDP_PGOFF_TX_RING, at.tx)?;
        let page = libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64;
        let gone = Queue::of::<u64>(&socket, page, at.cr)?;
        // SAFETY: plain data, for which all zeros is a valid value.
        // Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
        let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = libc::XDP_COPY;
        address.sxdp_ifindex = index;
        socket_calls::bind(&socket, &address)?;
        let (counts, frame_max) = (Counts::new(0), frame_max(mtu));
        Ok(SendRing { socket, frames, waiting, gone, counts, frame_max })
    }

    /// Sends the first frames of `batch`, at most [`BATCH`]. Offer those not sent again with the next call,
    /// first and in the same order.
    pub fn send<'a>(&mut self, batch: impl Iterator<Item = OutgoingFrame<'a>> + Clone) -> Sent {
        if self.counts.is_refused() {
            return Sent::Otherwise(1);
        }
        self.take_back();
        for frame in batch.clone().take(BATCH).skip(self.counts.waits()) {
            let place = if self.fits(&frame) { self.counts.put() } else { None };
            let Some((place, number)) = place else { break };
            self.write(place, number, frame.octets);
        }
        if self.counts.waits() > 0 {
            return self.call();
        }
        match batch.take(BATCH).take_while(|frame| !self.fits(frame)).count() {
            0 => Sent::None,
            count => Sent::Otherwise(count),
        }
    }

    /// Forgets the frames put in and not taken: the kernel skips their entries, which name no place from now on.
    /// Returns false if too many such entries are left, because the kernel has not looked at the ring for long.
    pub fn forget_waiting(&mut self) -> bool {
        for number in self.counts.forget() {
            let entry = self.waiting.entry::<libc::xdp_desc>(number);
            // SAFETY: the kernel reads entries in calls on this socket only, and none is in progress.
            // Test: frames_pass_with_the_rings_after_each_flap.
            let address = unsafe { entry.read() }.addr;
            let nowhere = libc::xdp_desc { addr: NOWHERE, len: 1, options: 0 };
            // SAFETY: as before. Test: frames_pass_with_the_rings_after_each_flap.
            unsafe { entry.write(nowhere) };
            self.counts.returned(address);
        }
        self.counts.is_near(self.waiting.taken().load(Ordering::Acquire))
    }

    /// Adapts to a new MTU of the interface, in octets.
    pub const fn set_mtu(&mut self, mtu: usize) {
        self.frame_max = frame_max(mtu);
    }

    fn fits(&self, frame: &OutgoingFrame<'_>) -> bool {
        frame.head.is_empty() && frame.octets.len() <= self.frame_max
    }

    /// The frame that the kernel refused was sent in another way.
    pub fn skip(&mut self) {
        self.counts.skip();
    }

    /// Number of frames that the kernel has taken, as it shows it.
    #[cfg(test)]
    pub fn taken(&self) -> u32 {
        self.waiting.taken().load(Ordering::Acquire)
    }

    /// Takes back slots whose frames have been sent.
    fn take_back(&mut self) {
        let written = self.gone.written().load(Ordering::Acquire);
        let mut taken = self.gone.taken().load(Ordering::Relaxed);
        while taken != written {
            // SAFETY: the kernel has written this entry, and does not touch it until the consumer index below is advanced.
            // Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
            let address = unsafe { self.gone.entry::<u64>(taken).read() };
            self.counts.returned(address);
            taken = taken.wrapping_add(1);
        }
        self.gone.taken().store(taken, Ordering::Release);
    }

    fn write(&mut self, place: usize, number: u32, octets: &[u8]) {
        let address = Counts::address(place);
        let descriptor = libc::xdp_desc { addr: address, len: octets.len() as u32, options: 0 };
        // SAFETY: a free place is in the mapping, at least as long as any frame that fits, and belongs to this ring alone; and the
        // kernel has taken this entry, for there are as many as places.
        // Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
        unsafe {
            let place = self.frames.start().add(address as usize);
            place.copy_from_nonoverlapping(NonNull::from(octets).cast(), octets.len());
            self.waiting.entry::<libc::xdp_desc>(number).write(descriptor);
        }
    }

    /// Makes the kernel take the frames put in; those it takes are sent when the call returns.
    fn call(&mut self) -> Sent {
        self.waiting.written().store(self.counts.written(), Ordering::Release);
        let once = || {
            let nothing = std::ptr::null();
            let (descriptor, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
            // SAFETY: no memory is passed.
            // Test: more_frames_than_a_ring_has_places_all_leave_and_in_order.
            let result = unsafe { libc::sendto(descriptor, nothing, 0, flags, nothing.cast(), 0) };
            let error = (result < 0).then(io::Error::last_os_error);
            (self.waiting.taken().load(Ordering::Acquire), error)
        };
        let is_refusal = |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY);
        match self.counts.call(once, is_refusal) {
            (0, _) if self.counts.is_refused() => Sent::Otherwise(1),
            (0, Some(error)) if error.raw_os_error() == Some(libc::ENETDOWN) => Sent::Down,
            (0, Some(error)) if !has_no_room(&error) => Sent::Broken,
            (0, _) => Sent::None,
            (sent, _) => Sent::Frames(sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: libc::xdp_ring_offset =
        libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };

    /// A ring whose other side is the test.
    fn ring() -> SendRing {
        let queue = |entry| {
            let memory = Mapping::own(AT.desc as usize + PLACES * entry).expect("memory");
            Queue { memory, at: AT }
        };
        let (socket, _) = std::os::unix::net::UnixStream::pair().expect("a pair");
        SendRing {
            socket: Socket::from(std::os::fd::OwnedFd::from(socket)),
            frames: Mapping::own(PLACES * PLACE).expect("memory"),
            waiting: queue(size_of::<libc::xdp_desc>()),
            gone: queue(size_of::<u64>()),
            counts: Counts::new(0),
            frame_max: frame_max(1500),
        }
    }

    fn put(ring: &mut SendRing, octets: &[u8]) {
        ring.take_back();
        let (place, number) = ring.counts.put().expect("a free place");
        ring.write(place, number, octets);
        ring.waiting.written().store(ring.counts.written(), Ordering::Release);
    }

    /// What the kernel does in a call: it takes all entries, and returns the places of frames.
    fn take(ring: &mut SendRing) -> Vec<Vec<u8>> {
        let (mut sent, mut returned) = (Vec::new(), ring.gone.written().load(Ordering::Acquire));
        let mut taken = ring.waiting.taken().load(Ordering::Acquire);
        while taken != ring.waiting.written().load(Ordering::Acquire) {
            // SAFETY: an entry that `put` has written, of a place in the memory of frames if its address is one.
            let octets = unsafe {
                let entry = ring.waiting.entry::<libc::xdp_desc>(taken).read();
                let start = (entry.addr != NOWHERE)
                    .then(|| ring.frames.start().add(entry.addr as usize).as_ptr());
                start.map(|start| (entry, std::slice::from_raw_parts(start, entry.len as usize)))
            };
            taken = taken.wrapping_add(1);
            let Some((entry, octets)) = octets else { continue };
            sent.push(octets.to_vec());
            // SAFETY: entries of the completion ring, of which there are as many as places.
            unsafe { ring.gone.entry::<u64>(returned).write(entry.addr) };
            returned = returned.wrapping_add(1);
        }
        ring.waiting.taken().store(taken, Ordering::Release);
        ring.gone.written().store(returned, Ordering::Release);
        ring.counts.call(|| (taken, None::<io::Error>), |_| false);
        sent
    }

    #[test]
    fn frames_leave_in_order_and_forgotten_ones_do_not() {
        let mut ring = ring();
        let frame = |number: usize| vec![number as u8; 14 + number % 1500];
        let all: Vec<usize> = (0..2 * PLACES + 5).collect();
        for batch in all.chunks(7) {
            batch.iter().for_each(|number| put(&mut ring, &frame(*number)));
            let expected: Vec<_> = batch.iter().map(|number| frame(*number)).collect();
            assert_eq!(take(&mut ring), expected);
        }
        (0..3).for_each(|number| put(&mut ring, &frame(number)));
        assert!(ring.forget_waiting());
        put(&mut ring, &frame(9));
        assert_eq!(take(&mut ring), [frame(9)]);
        // All places are free again, and no place is free twice.
        (0..PLACES).for_each(|number| put(&mut ring, &frame(number)));
        assert_eq!(take(&mut ring), (0..PLACES).map(frame).collect::<Vec<_>>());
    }
}
