//! Datagrams at the receiving end of a cable: each is refused or delivered, and every record is counted.

use crate::tape::Tape;
use emulation::cable::datagram::{Peer, Received};
use emulation::cable::inbox::Inbox;
use emulation::cable::lines::Lines;
use emulation::cable::shim::Shim;
use emulation::cable::udp;
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use proto::frame::FramePool;
use proto::ids::PortNumber;
use proto::units::Duration;
use std::sync::LazyLock;

/// The epoch of accepted datagrams.
pub const EPOCH: u32 = 77;

/// Two processes with two links between them; the receiver is process 0.
static FABRIC: LazyLock<(Lines, [Peer; 3])> = LazyLock::new(|| {
    let node = |name: &str| NodeWiring {
        name: name.to_owned(),
        kind: NodeKind::Switch,
        ports: 2,
        level: 0,
    };
    let link = |index| LinkWiring {
        a: End { node: 0, port: PortNumber::from_index(index) },
        b: End { node: 1, port: PortNumber::from_index(index) },
        delay: Duration::from_ps(5),
        frame_time: Duration::from_ps(100),
    };
    let wiring = Wiring {
        nodes: vec![node("far"), node("near")],
        links: vec![link(0), link(1)],
        ..Wiring::default()
    };
    let lines = Lines::new(&wiring, &[1, 0], 0, false).expect("the wiring is valid");
    let addresses = ["127.0.0.1:4000", "127.0.0.1:4001", "127.0.0.1:4002"];
    (lines, addresses.map(|address| udp::peer(address).expect("an address")))
});

/// A sequence of datagrams: for each two octets of length, one octet of options, and its octets.
pub fn check(input: &[u8]) {
    if let Ok(shim) = Shim::parse(input) {
        assert_eq!(Shim::parse(&shim.emit()), Ok(shim), "emit reproduces the parsed octets");
    }
    let (lines, peers) = &*FABRIC;
    let mut inbox = Inbox::new(EPOCH, &peers[..2], lines.count());
    let mut pool = FramePool::default();
    let mut tape = Tape::new(input);
    let (mut delivered, mut octets_in) = (0u64, 0);
    while let Some(high) = tape.pull() {
        let length = u16::from_be_bytes([high, tape.u8()]);
        let how = tape.u8();
        let octets = tape.take(length.into());
        octets_in += octets.len();
        // One datagram in eight has a foreign source, one in eight is truncated.
        let source = peers[if how & 7 == 7 { 2 } else { 1 }].key();
        if how & 0x80 != 0 {
            inbox.draining = true;
        }
        let datagram = Received { source, octets, cut: how & 0x70 == 0x70 };
        inbox.accept(datagram, lines, &mut pool, |accepted| {
            assert!(accepted.frame.octets.len() <= octets.len());
            delivered += 1;
        });
    }
    let counted: u64 = inbox
        .received(lines)
        .map(|line| {
            let both = line.counts.received.plus(line.counts.drained);
            both.end_to_end + both.link_local
        })
        .sum();
    assert_eq!(delivered, counted, "every frame delivered is counted once");
    assert!(delivered as usize * Shim::LENGTH <= octets_in);
    let lost: u64 = inbox.received(lines).map(|line| line.counts.lost).sum();
    assert_eq!(lost, inbox.lost);
}
