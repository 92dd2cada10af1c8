//! Frames between two namespaces that the test creates: complete, once, and no others.
//!
//! Skipped with a message if namespaces may not be created.

use super::*;
use crate::cable::interface::{PairEnd, address_of};
use crate::cable::namespace::{Namespace, within};
use crate::cable::shim::SendingEnd;
use crate::timer;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

const MTU: u32 = 9_000;

/// A cable between two namespaces, and a socket at each end of it.
struct Cable {
    namespaces: Vec<Namespace>,
    near: PacketSocket,
    far: PacketSocket,
    room: ReceiveBuffers,
}

/// A cable whose near end sends and whose far end receives, with rings or without; `None` without the rights to
/// create it.
fn cable(has_rings: bool) -> Option<Cable> {
    let namespaces = match Namespace::make(2) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            skip::because!("making network namespaces takes CAP_SYS_ADMIN: {error}");
            return None;
        }
        made => made.expect("two namespaces"),
    };
    let end = |name, of: usize, end| PairEnd {
        name,
        address: address_of(0, end),
        namespace: namespaces[of].as_fd(),
    };
    let [near, far] = [end("near", 0, SendingEnd::A), end("far", 1, SendingEnd::B)];
    let made = namespaces[0].interfaces.make_pair(near, far, MTU);
    made.expect("a pair of interfaces");
    for (namespace, name) in namespaces.iter().zip(["near", "far"]) {
        namespace.interfaces.switch_on(name, "an end of a test").expect("it is there");
    }
    let open = |name: &'static str, of: usize| {
        let path = PathBuf::from(format!("/proc/self/fd/{}", namespaces[of].descriptor()));
        let open = || {
            let mut socket = PacketSocket::open(name)?;
            if has_rings {
                socket.give_send_ring()?;
                socket = socket.with_ring()?;
            }
            Ok(socket)
        };
        within(Some(&path), open).expect("a socket on it")
    };
    let (near, far) = (open("near", 0), open("far", 1));
    Some(Cable { near, far, room: ReceiveBuffers::default(), namespaces })
}

/// A frame with `behind` after its MAC addresses.
fn frame(behind: &[u8], octets: usize) -> Vec<u8> {
    let mut frame = [&[2u8; 12], behind].concat();
    while frame.len() < octets {
        frame.push(frame.len() as u8);
    }
    frame
}

fn put_together(inward: ReceivedFrame<'_>) -> Vec<u8> {
    let tag = inward.tag.map(VlanTag::octets);
    let (addresses, rest) = inward.octets.split_at(12);
    [addresses, tag.as_ref().map_or(&[], |tag| &tag[..]), rest].concat()
}

fn outward(octets: &Vec<u8>) -> OutgoingFrame<'_> {
    OutgoingFrame { head: &[], octets }
}

impl Cable {
    /// Sends all `frames` in batches.
    fn send(&mut self, frames: &[Vec<u8>]) {
        let mut sent = 0;
        while sent < frames.len() {
            sent += self.near.send(frames[sent..].iter().map(outward)).expect("room for it");
        }
    }

    /// Sends all `frames` once the interface takes them.
    fn send_patiently(&mut self, frames: &[Vec<u8>]) {
        let deadline = crate::clock::monotonic_ns() + 5_000_000_000;
        let mut sent = 0;
        while sent < frames.len() && crate::clock::monotonic_ns() < deadline {
            sent += self.near.send(frames[sent..].iter().map(outward)).unwrap_or(0);
        }
        assert_eq!(sent, frames.len());
    }

    /// Switches the near end, 0, or the far end, 1, on or off.
    fn switch(&self, end: usize, on: bool) {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.namespaces[end].descriptor()));
        let name = ["near", "far"][end];
        within(Some(&path), || switch_here(name, on)).expect("an interface can be switched");
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let deadline = crate::clock::monotonic_ns() + 100_000_000;
        timer::wait(Some(self.far.as_fd()), deadline);
        while self.far.receive(&mut self.room, |inward| {
            let inward = inward.expect("a frame that fits");
            assert!(inward.at_ns.is_some(), "the kernel notes when it came");
            frames.push(put_together(inward));
        }) > 0
        {}
        frames
    }
}

/// Switches an interface of the namespace in which this thread is.
fn switch_here(name: &str, on: bool) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // SAFETY: plain data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, octet) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = octet as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = if on { libc::IFF_UP as libc::c_short } else { 0 };
    // SAFETY: `request` outlives the call, which reads a name there that ends with zero, and flags.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn frames_come_out_as_they_went_in_tags_and_all() {
    for has_rings in [false, true] {
        let Some(cable) = cable(has_rings) else { return };
        assert_faithful(cable);
    }
}

fn assert_faithful(mut cable: Cable) {
    let frames = [
        frame(&[0x88, 0xb5], 14),
        frame(&[0x08, 0x00, 0x45], 60),
        frame(&[0x81, 0x00, 0x60, 0x05, 0x89, 0x15], 1_200),
        frame(&[0x81, 0x00, 0x00, 0x00, 0x88, 0xb6], 64),
        frame(&[0x88, 0xa8, 0x20, 0x07, 0x81, 0x00, 0xe0, 0x05, 0x88, 0xb6], 300),
        frame(&[0x88, 0x08, 0x01, 0x01], 60),
        frame(&[0x88, 0xb5], MTU as usize + 14),
        frame(&[0x81, 0x00, 0x60, 0x05, 0x88, 0xb5], MTU as usize + 18),
        frame(&[0x88, 0xb6], 100),
    ];
    cable.send(&frames);
    assert_eq!(cable.received(), frames);
    let mut echoes = 0;
    cable.near.receive(&mut cable.room, |_| echoes += 1);
    assert_eq!(echoes, 0, "what this host sends is not heard again");
}

#[test]
fn the_kernel_says_nothing_of_its_own_accord() {
    let Some(mut cable) = cable(false) else { return };
    timer::wait(None, crate::clock::monotonic_ns() + 1_500_000_000);
    assert_eq!(cable.received(), [[0u8; 0]; 0], "no neighbour discovery, no group reports");
}

#[test]
fn frames_too_many_for_the_buffer_are_counted() {
    let Some(mut cable) = cable(false) else { return };
    cable.far.shrink_receive_buffer(4_096).expect("a small buffer");
    let frames = vec![frame(&[0x88, 0xb6], 1_000); 200];
    cable.send(&frames);
    let received = cable.received().len();
    assert!(received < frames.len(), "the buffer is small");
    assert_eq!(received + cable.far.overflows() as usize, frames.len());
    assert_eq!(cable.far.overflows(), 0, "the kernel tells it once");
}

#[test]
fn frames_too_many_for_a_ring_are_counted_and_the_others_come_in_order() {
    let Some(mut cable) = cable(true) else { return };
    let number = |frame: u32| frame.to_be_bytes();
    let sent: Vec<_> =
        (0..6_000).map(|n| frame(&[&[0x88, 0xb6][..], &number(n)].concat(), 64)).collect();
    cable.send(&sent);
    let received = cable.received();
    assert!(received.len() < sent.len(), "the ring is smaller");
    assert_eq!(
        received,
        sent[..received.len()],
        "none is taken after the first that found no room"
    );
    assert_eq!(received.len() + cable.far.overflows() as usize, sent.len());
    // The ring wraps around.
    cable.send(&sent[..100]);
    assert_eq!(cable.received(), sent[..100]);
}

#[test]
fn a_frame_above_the_interfaces_mtu_is_refused_and_the_interface_is_named() {
    for has_rings in [false, true] {
        let Some(mut cable) = cable(has_rings) else { return };
        let large = frame(&[0x88, 0xb5], MTU as usize + 15);
        let refused = cable.near.send(std::iter::once(outward(&large)));
        assert_eq!(refused.expect_err("too long").raw_os_error(), Some(libc::EMSGSIZE));
        let next = [frame(&[0x88, 0xb5], 100)];
        cable.send(&next);
        assert_eq!(cable.received(), next, "one that is refused holds up nobody");
    }
    let error = PacketSocket::open("nowhere").expect_err("no such interface");
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn more_frames_than_a_ring_has_places_all_leave_and_in_order() {
    let Some(mut cable) = cable(true) else { return };
    let number = |frame: u32| frame.to_be_bytes();
    // Some frames are too long for the ring.
    let octets = |n: u32| if n % 7 < 2 { 5_000 } else { 60 + n as usize % 1_000 };
    let sent: Vec<_> =
        (0..1_500).map(|n| frame(&[&[0x88, 0xb6][..], &number(n)].concat(), octets(n))).collect();
    cable.send(&sent);
    assert!(cable.received() == sent, "1500 frames, as they were sent");
}

/// The kernel accepts no frames for a cable whose far end is off; the sender keeps them.
#[test]
fn frames_that_a_ring_could_not_send_stay_and_leave_later_in_order() {
    let Some(mut cable) = cable(true) else { return };
    let sent: Vec<_> = (0..40).map(|n| frame(&[0x88, 0xb6, n], 200)).collect();
    cable.send(&sent[..1]);
    assert_eq!(cable.received(), sent[..1]);
    cable.switch(1, false);
    for _ in 0..3 {
        let refused = cable.near.send(sent.iter().map(outward));
        assert!(has_no_room(&refused.expect_err("nobody is there")));
    }
    cable.switch(1, true);
    cable.send_patiently(&sent);
    assert_eq!(cable.received(), sent, "each once");
}

/// Each end goes off and on again. Frames in a ring stay there, those that were refused leave later or are forgotten, and
/// the kernel goes on with both rings.
#[test]
fn frames_pass_with_the_rings_after_each_flap() {
    let Some(mut cable) = cable(true) else { return };
    let mut number = 0;
    let mut frames = |count| -> Vec<Vec<u8>> {
        number += count;
        (number - count..number).map(|number| frame(&[0x88, 0xb6, number], 200)).collect()
    };
    let taken = |cable: &Cable| cable.near.send_ring.as_ref().expect("the ring stays").taken();
    for round in 0..24 {
        let (end, stays) = (round % 2, round % 4 < 2);
        let [before, meanwhile, after] = [3, 2, 3].map(&mut frames);
        cable.send(&before);
        cable.switch(end, false);
        for _ in 0..3 {
            let refused = cable.near.send(meanwhile.iter().map(outward));
            assert!(refused.is_err(), "round {round}: {refused:?}");
        }
        let later = if stays {
            [meanwhile, after].concat()
        } else {
            cable.near.forget_unsent();
            after
        };
        cable.switch(end, true);
        let through_ring = taken(&cable);
        cable.send_patiently(&later);
        // One that the interface refused is sent in another way.
        let through_ring = taken(&cable).wrapping_sub(through_ring) as usize;
        assert!(through_ring >= later.len() - 1, "round {round}: {through_ring}");
        // The far end may report that it was off.
        cable.far.clear_error();
        assert_eq!(cable.received(), [before, later].concat(), "round {round}");
    }
}

#[test]
fn an_interface_has_one_send_ring_and_who_finds_it_taken_sends_as_before() {
    let Some(mut cable) = cable(true) else { return };
    let path = PathBuf::from(format!("/proc/self/fd/{}", cable.namespaces[0].descriptor()));
    let second = within(Some(&path), || {
        let mut socket = PacketSocket::open("near")?;
        let taken = socket.give_send_ring().expect_err("there is one already");
        assert_eq!(taken.raw_os_error(), Some(libc::EBUSY));
        Ok(socket)
    });
    let sent = [frame(&[0x88, 0xb6], 100)];
    cable.near = second.expect("a packet socket beside the other");
    cable.send(&sent);
    assert_eq!(cable.received(), sent);
}
