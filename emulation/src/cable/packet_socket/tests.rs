//! Frames between two namespaces that the test makes: whole, once, and only those that were sent.
//!
//! Whoever may not make namespaces skips these, and says so.

use super::*;
use crate::cable::interface::{PairEnd, address_of};
use crate::cable::namespace::{Namespace, within};
use crate::cable::shim::SendingEnd;
use crate::timer;
use std::path::PathBuf;

const MTU: u32 = 9_000;

/// A cable between two namespaces, and a socket at each end of it.
struct Cable {
    _namespaces: Vec<Namespace>,
    near: PacketSocket,
    far: PacketSocket,
    room: Room,
}

/// A cable whose far end receives through its queue or through a ring; none where it takes rights that the tests do
/// not have.
fn cable(has_ring: bool) -> Option<Cable> {
    let namespaces = match Namespace::make(2) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("SKIPPED: making network namespaces takes CAP_SYS_ADMIN: {error}");
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
        within(Some(&path), || PacketSocket::open(name)).expect("a socket on it")
    };
    let (near, far) = (open("near", 0), open("far", 1));
    let far = if has_ring { far.with_ring().expect("memory for a ring") } else { far };
    Some(Cable { near, far, room: Room::default(), _namespaces: namespaces })
}

/// A frame with the octets `behind` its addresses.
fn frame(behind: &[u8], octets: usize) -> Vec<u8> {
    let mut frame = [&[2u8; 12], behind].concat();
    while frame.len() < octets {
        frame.push(frame.len() as u8);
    }
    frame
}

fn put_together(inward: Inward<'_>) -> Vec<u8> {
    let tag = inward.tag.map(VlanTag::octets);
    let (addresses, rest) = inward.octets.split_at(12);
    [addresses, tag.as_ref().map_or(&[], |tag| &tag[..]), rest].concat()
}

impl Cable {
    fn send(&self, frames: &[Vec<u8>]) {
        let outward = |octets: &Vec<u8>| -> usize {
            self.near.send(std::iter::once(Outward { head: &[], octets })).expect("room for it")
        };
        assert_eq!(frames.iter().map(outward).sum::<usize>(), frames.len());
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

#[test]
fn frames_come_out_as_they_went_in_tags_and_all() {
    for has_ring in [false, true] {
        let Some(cable) = cable(has_ring) else { return };
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
    cable.far.narrow(4_096).expect("a small buffer");
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
    // The ring goes round.
    cable.send(&sent[..100]);
    assert_eq!(cable.received(), sent[..100]);
}

#[test]
fn a_frame_above_the_interfaces_mtu_is_refused_and_the_interface_is_named() {
    let Some(cable) = cable(false) else { return };
    let large = frame(&[0x88, 0xb5], MTU as usize + 15);
    let refused = cable.near.send(std::iter::once(Outward { head: &[], octets: &large }));
    assert_eq!(refused.expect_err("too long").raw_os_error(), Some(libc::EMSGSIZE));
    let error = PacketSocket::open("nowhere").expect_err("no such interface");
    assert!(error.to_string().contains("nowhere"), "{error}");
}
