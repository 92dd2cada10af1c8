//! A receive ring: memory that the kernel puts frames into, so that receiving needs no system call.
//!
//! A slot belongs to the kernel until its status shows that a frame is in it, and again after the frame has been
//! read. A frame longer than a slot (a jumbo frame, or one that needs segmentation) is in the socket's queue,
//! and its slot only marks its place in the order. Source: Linux, Documentation/networking/packet_mmap.rst
//! (TPACKET_V2).

use super::auxiliary::{self, Auxiliary};
use super::counts::{NextSlot, frame_in_slot};
use super::mapping::Mapping;
use crate::cable::socket_calls::set_option;
use socket2::Socket;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Octets of a slot: a frame with 1500 octets of payload and tags, and the kernel's header.
const SLOT: usize = 2_048;
/// Octets that the kernel allocates at a time.
const BLOCK: usize = 1 << 16;
/// Octets of the whole ring.
const OCTETS: usize = 8 << 20;
const SLOTS: usize = OCTETS / SLOT;
/// Octets of the virtio header before a frame.
const UNFINISHED: usize = 10;

/// The receive ring of one socket.
#[derive(Debug)]
pub struct Ring {
    memory: Mapping,
    /// The slot that the kernel fills next.
    next: NextSlot<SLOTS>,
}

/// The content of a slot.
pub enum Slot<'a> {
    /// A virtio header and the frame behind it, with its control data.
    Frame(&'a [u8], Auxiliary),
    /// The frame is the next in the socket's queue.
    Queued,
    /// The start of a long frame that did not fit the queue either.
    Cut,
}

impl Ring {
    /// Adds a ring to `socket`, which must have PACKET_VNET_HDR. Frames in its queue are lost.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(socket: &Socket) -> io::Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1i32)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (OCTETS / BLOCK) as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Ring { memory: Mapping::of(socket.as_fd(), 0, OCTETS)?, next: NextSlot::default() })
    }

    /// Passes on the next frame. Returns whether there was one.
    pub fn take(&self, each: impl FnOnce(Slot<'_>)) -> bool {
        let place = self.next.index();
        // SAFETY: `place` is below `SLOTS`, so all of the slot lies in the mapping, which is aligned to pages
        // and lives as long as the ring; its first word is only ever used as an atomic, on both sides.
        // Test: frames_come_out_as_they_went_in_tags_and_all.
        let (slot, status) = unsafe {
            let slot = self.memory.start().add(place * SLOT);
            (slot, AtomicU32::from_ptr(slot.as_ptr().cast()))
        };
        let word = status.load(Ordering::Acquire);
        if word & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the kernel has filled the slot and leaves it alone until it is given back below.
        // Test: frames_come_out_as_they_went_in_tags_and_all.
        let (header, octets) = unsafe {
            let header = slot.cast::<libc::tpacket2_hdr>().read();
            (header, std::slice::from_raw_parts(slot.as_ptr(), SLOT))
        };
        each(match frame_in_slot(SLOT, UNFINISHED, header.tp_mac, header.tp_snaplen) {
            Some(frame) if header.tp_snaplen == header.tp_len => {
                Slot::Frame(&octets[frame], auxiliary_of(word, &header))
            }
            _ if word & libc::TP_STATUS_COPY != 0 => Slot::Queued,
            _ => Slot::Cut,
        });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next.advance();
        true
    }
}

fn auxiliary_of(status: u32, header: &libc::tpacket2_hdr) -> Auxiliary {
    let at_ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
    Auxiliary {
        tag: auxiliary::tag(status, header.tp_vlan_tpid, header.tp_vlan_tci),
        at_ns: Some(at_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes what the kernel writes for a frame of `octets`, of which the slot has the first `kept`.
    fn fill(ring: &Ring, number: usize, octets: &[u8], kept: usize, status: u32) {
        let offset = 66 + UNFINISHED;
        let slot = &mut [0; SLOT];
        slot[offset..offset + kept].copy_from_slice(&octets[..kept]);
        // SAFETY: a slot of the mapping, which nothing else uses now.
        unsafe {
            let place = ring.memory.start().add(number % SLOTS * SLOT);
            place.cast().write(*slot);
            let mut header: libc::tpacket2_hdr = std::mem::zeroed();
            header.tp_len = octets.len() as u32;
            header.tp_snaplen = kept as u32;
            header.tp_mac = offset as u16;
            (header.tp_sec, header.tp_nsec) = (2, number as u32);
            header.tp_status = libc::TP_STATUS_USER | status;
            place.cast().write(header);
        }
    }

    #[test]
    fn slots_are_read_in_turn_and_given_back() {
        let ring =
            Ring { memory: Mapping::own(OCTETS).expect("memory"), next: NextSlot::default() };
        let read = |expected: &mut dyn FnMut(Slot<'_>)| ring.take(expected);
        assert!(!read(&mut |_| panic!("all slots are the kernel's")));
        for number in 0..SLOTS + 3 {
            let octets = [number as u8; 60];
            fill(&ring, number, &octets, 60, 0);
            assert!(read(&mut |slot| match slot {
                Slot::Frame(frame, auxiliary) => {
                    assert_eq!((frame.len(), &frame[UNFINISHED..]), (UNFINISHED + 60, &octets[..]));
                    assert_eq!(auxiliary.at_ns, Some(2_000_000_000 + number as u64));
                }
                Slot::Queued | Slot::Cut => panic!("a whole frame"),
            }));
            assert!(!read(&mut |_| panic!("it was given back")));
        }
        for (ahead, status) in [(3, libc::TP_STATUS_COPY), (4, 0)] {
            fill(&ring, SLOTS + ahead, &[1; 9_000], 1_500, status);
            let is_queued = status != 0;
            assert!(read(&mut |slot| match slot {
                Slot::Queued => assert!(is_queued),
                Slot::Cut => assert!(!is_queued),
                Slot::Frame(..) => panic!("a part of a frame"),
            }));
        }
    }
}
