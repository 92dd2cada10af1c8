//! Attached interfaces that go away and return, in namespaces that the test creates.
//!
//! Skipped with a message if namespaces may not be created.

use super::*;
use crate::cable::exchange::{Exchange, Sockets};
use crate::cable::interface::PairEnd;
use crate::cable::namespace::{Namespace, within};
use crate::cable::packet_socket::{OutgoingFrame, PacketSocket};
use crate::cable::shim::SendingEnd;
use crate::timer;
use crate::wiring::Wiring;
use proto::events::CarrierLoss;
use proto::frame::FrameKind;
use std::path::PathBuf;

const MTU: u32 = 9_000;

/// A port of a switch attached to `near` in the first namespace; `far` in the second is its other end.
struct Bench {
    namespaces: Vec<Namespace>,
    lines: Lines,
    exchange: Exchange,
    far: PacketSocket,
    room: ReceiveBuffers,
}

const ONE_PORT: &str = r#"{
    "nodes": [{ "name": "s", "kind": "switch", "ports": 1, "level": 1 }], "links": [],
    "attached": [{ "at": { "node": 0, "port": 1 }, "interface": "near", "frame_time": "1 us" }]
}"#;

impl Bench {
    /// A bench whose port uses rings or not; `None` without the rights to create it.
    fn new(has_rings: bool) -> Option<Bench> {
        let namespaces = match Namespace::make(2) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                skip::because!("making network namespaces takes CAP_SYS_ADMIN: {error}");
                return None;
            }
            made => made.expect("two namespaces"),
        };
        pair(&namespaces);
        let wiring: Wiring = serde_json::from_str(ONE_PORT).expect("a wiring");
        let lines = Lines::new(&wiring, &[0], 0, false).expect("a good wiring");
        let clock = Clock::new(monotonic_ns(), 1.try_into().expect("not zero"));
        let session = Session { epoch: 1, peers: vec![], datagram_max: 60_000, bare: true, clock };
        let open = || {
            let mut socket = PacketSocket::open("near")?;
            if has_rings {
                socket.give_send_ring()?;
                socket = socket.with_ring()?;
            }
            let port = PortNumber::from_index(0);
            let (socket, watch) = (socket.into(), Some(0));
            let ports = vec![PortSocket { device: 0, port, socket, watch }];
            Ok(Sockets::Packets(ports, vec![LinkWatch::here()?]))
        };
        let sockets = inside(&namespaces, 0, open);
        let far = inside(&namespaces, 1, || PacketSocket::open("far"));
        let exchange = Exchange::new(sockets, session, &lines).expect("a cable");
        Some(Bench { namespaces, lines, exchange, far, room: ReceiveBuffers::default() })
    }

    /// How often the exchange is ready in 100 ms although nothing arrives.
    fn idle_turns(&mut self) -> usize {
        let end = monotonic_ns() + 100_000_000;
        let mut turns = 0;
        while monotonic_ns() < end {
            self.exchange.receive(&self.lines, |_| {});
            timer::wait(Some(self.exchange.as_fd()), end);
            turns += 1;
        }
        turns
    }
}

impl Bench {
    /// Sends a frame with this last octet from the port.
    fn send(&mut self, octets: usize, last: u8) {
        self.send_as(octets, last, Integrity::Unchecked);
    }

    fn send_as(&mut self, octets: usize, last: u8, integrity: Integrity) {
        let mut frame = vec![0; octets];
        frame[..6].fill(0xff);
        frame[12..14].copy_from_slice(&[0x88, 0xb6]);
        frame[octets - 1] = last;
        let frame = Frame::unchecked(FrameKind::Ethernet, frame[..].into());
        let frame = Frame { integrity, ..frame };
        let port = PortNumber::from_index(0);
        let line = *self.lines.outgoing(0, port).expect("the port is attached");
        self.exchange.send(&line, frame, Instant::ZERO);
        self.exchange.flush();
    }

    /// The last octets of the frames of this test that arrived at the far end.
    fn arrived(&mut self) -> Vec<u8> {
        timer::wait(None, monotonic_ns() + 5_000_000);
        let mut arrived = Vec::new();
        let Bench { far, room, .. } = self;
        // The far end may have been down, which the next call would report instead of frames.
        far.clear_error();
        while far.receive(room, |frame| {
            let octets = frame.expect("a whole frame").octets;
            if octets[12..14] == [0x88, 0xb6] {
                arrived.extend(octets.last());
            }
        }) > 0
        {}
        arrived
    }

    /// Waits until the exchange has reported an event, and returns it.
    fn event(&mut self) -> EventKind {
        let end = monotonic_ns() + 5_000_000_000;
        while monotonic_ns() < end {
            if let Some((device, port, kind)) = self.exchange.poll_event() {
                assert_eq!((device, port), (0, PortNumber::from_index(0)));
                return kind;
            }
            self.exchange.receive(&self.lines, |_| {});
            timer::wait(Some(self.exchange.as_fd()), monotonic_ns() + 10_000_000);
        }
        panic!("no event within five seconds");
    }

    /// Waits until the interface is up again. Returns the number of frames dropped meanwhile.
    fn until_up(&mut self) -> u64 {
        loop {
            match self.event() {
                EventKind::CarrierUp { dropped, .. } => return dropped,
                EventKind::CarrierDown { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn outside(&self) -> OutsideTally {
        self.exchange.report(&self.lines).outside.expect("a port is attached")
    }
}

fn down(cause: CarrierLoss) -> EventKind {
    EventKind::CarrierDown { cause }
}

fn inside<T: Send>(
    namespaces: &[Namespace],
    of: usize,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> T {
    let path = PathBuf::from(format!("/proc/self/fd/{}", namespaces[of].descriptor()));
    within(Some(&path), work).expect("a socket there")
}

/// Creates both interfaces and switches them on.
fn pair(namespaces: &[Namespace]) {
    let end = |name, of: usize, end| PairEnd {
        name,
        address: address_of(0, end),
        namespace: namespaces[of].as_fd(),
    };
    let [near, far] = [end("near", 0, SendingEnd::A), end("far", 1, SendingEnd::B)];
    namespaces[0].interfaces.make_pair(near, far, MTU).expect("a pair");
    namespaces[0].interfaces.switch_on("near", "a test").expect("it is there");
    namespaces[1].interfaces.switch_on("far", "a test").expect("it is there");
}

#[test]
fn an_interface_that_was_down_does_not_keep_the_worker_awake() {
    for has_rings in [false, true] {
        let Some(mut bench) = Bench::new(has_rings) else { return };
        bench.namespaces[0].interfaces.set_state("near", false).expect("it is there");
        assert!(bench.idle_turns() < 10, "down, rings {has_rings}");
        bench.namespaces[0].interfaces.switch_on("near", "a test").expect("it is there");
        assert!(bench.idle_turns() < 10, "up again, rings {has_rings}");
        bench.namespaces[0].interfaces.remove("near").expect("it is there");
        assert!(bench.idle_turns() < 10, "removed, rings {has_rings}");
    }
}

#[test]
fn a_port_follows_its_interface_and_counts_what_it_drops() {
    for has_rings in [false, true] {
        let Some(mut bench) = Bench::new(has_rings) else { return };
        bench.send(100, 1);
        bench.idle_turns();
        assert_eq!(bench.arrived(), [1]);
        bench.namespaces[0].interfaces.set_state("near", false).expect("it is there");
        // The first frame meets the interface before the exchange has read the message.
        bench.send(100, 2);
        assert_eq!(bench.event(), down(CarrierLoss::Down));
        bench.send(100, 3);
        bench.namespaces[0].interfaces.switch_on("near", "a test").expect("it is there");
        // The first frame was dropped before or after the report of the loss.
        assert!((1..=2).contains(&bench.until_up()));
        bench.send(100, 4);
        assert_eq!(bench.arrived(), [4], "rings {has_rings}");
        bench.namespaces[1].interfaces.set_state("far", false).expect("it is there");
        assert_eq!(bench.event(), down(CarrierLoss::NoCarrier));
        bench.send(100, 5);
        bench.namespaces[1].interfaces.switch_on("far", "a test").expect("it is there");
        assert_eq!(bench.until_up(), 1);
        bench.send(100, 6);
        assert_eq!(bench.arrived(), [6], "rings {has_rings}");
        let outside = bench.outside();
        assert_eq!((outside.sent.total(), outside.away.total()), (3, 3), "rings {has_rings}");
        assert_eq!(outside.unsent.total(), 0);
    }
}

#[test]
fn an_interface_that_is_made_again_is_used_again() {
    for has_rings in [false, true] {
        let Some(mut bench) = Bench::new(has_rings) else { return };
        bench.namespaces[0].interfaces.remove("near").expect("it is there");
        while bench.event() != down(CarrierLoss::Removed) {}
        bench.send(100, 1);
        pair(&bench.namespaces);
        bench.far = inside(&bench.namespaces, 1, || PacketSocket::open("far"));
        assert_eq!(bench.until_up(), 1);
        bench.send(100, 2);
        assert_eq!(bench.arrived(), [2], "rings {has_rings}");
        let octets = [&[0xff; 12][..], &[0x88, 0xb6], &[0; 50]].concat();
        bench
            .far
            .send([OutgoingFrame { head: &[], octets: &octets }].into_iter())
            .expect("it is up");
        let mut received = 0;
        for _ in 0..100 {
            bench.exchange.receive(&bench.lines, |accepted| {
                received += usize::from(accepted.frame.octets == octets);
            });
            timer::wait(Some(bench.exchange.as_fd()), monotonic_ns() + 1_000_000);
        }
        assert_eq!(received, 1, "rings {has_rings}");
        assert_eq!((bench.outside().sent.total(), bench.outside().away.total()), (1, 1));
    }
}

#[test]
fn frames_above_the_mtu_of_the_interface_are_counted() {
    for has_rings in [false, true] {
        let Some(mut bench) = Bench::new(has_rings) else { return };
        bench.idle_turns();
        bench.namespaces[0].interfaces.set_mtu("near", 1_500).expect("it is there");
        // The port has not heard of it yet, so the kernel refuses the frame.
        let refused = u64::from(!has_rings);
        (0..refused).for_each(|_| bench.send(9_014, 0));
        bench.send_as(64, 0, Integrity::Aborted);
        let mtu = proto::units::Bytes::new(1_500);
        assert_eq!(bench.event(), EventKind::InterfaceMtu { mtu });
        bench.send(1_514, 1);
        bench.send(1_515, 2);
        bench.send(3_000, 3);
        bench.namespaces[0].interfaces.set_mtu("near", 9_000).expect("it is there");
        bench.event();
        bench.send(9_014, 4);
        assert_eq!(bench.arrived(), [1, 4], "rings {has_rings}");
        let OutsideTally { sent, too_long, unsent, .. } = bench.outside();
        assert_eq!((sent.total(), too_long.total(), unsent.total()), (2, 2, 1 + refused));
        let SendCounts { datagrams, errors, unsent, .. } =
            bench.exchange.report(&bench.lines).sending;
        assert_eq!((datagrams, errors, unsent), (2, refused, 1 + refused), "rings {has_rings}");
    }
}

#[expect(clippy::disallowed_methods, reason = "these tests play the other program")]
mod peers {
    use super::*;
    use crate::cable::peer_socket::PeerSocket;
    use crate::cable::udp;
    use crate::wiring::SocketPair;
    use std::os::unix::net::UnixDatagram;
    use tempfile::TempDir;

    /// A port with a cable to another program, beside the datagram socket of the fabric.
    struct Cable {
        lines: Lines,
        exchange: Exchange,
        folder: TempDir,
    }

    impl Cable {
        fn new(is_host: bool) -> Cable {
            let folder = tempfile::tempdir().expect("a folder");
            let [local, remote] = ["lab", "peer"].map(|name| folder.path().join(name));
            let wiring: Wiring = serde_json::from_str(ONE_PORT).expect("a wiring");
            let lines = Lines::new(&wiring, &[0], 0, false).expect("a good wiring");
            let clock = Clock::new(monotonic_ns(), 1.try_into().expect("not zero"));
            let session =
                Session { epoch: 1, peers: vec![], datagram_max: 60_000, bare: false, clock };
            let pair = SocketPair::Unix { local, remote };
            let socket = PeerSocket::open(&pair, is_host).expect("a free path").into();
            let port = PortNumber::from_index(0);
            let port = PortSocket { device: 0, port, socket, watch: None };
            let fabric = udp::open(std::net::Ipv4Addr::LOCALHOST.into()).expect("a free port");
            let sockets = Sockets::Mixed(fabric, vec![port]);
            let exchange = Exchange::new(sockets, session, &lines).expect("a cable");
            Cable { lines, exchange, folder }
        }

        fn send(&mut self, last: u8) {
            let frame = [&[0xff; 12][..], &[0x88, 0xb6], &[last; 50]].concat();
            let frame = Frame::unchecked(FrameKind::Ethernet, frame[..].into());
            let line = *self.lines.outgoing(0, PortNumber::from_index(0)).expect("attached");
            self.exchange.send(&line, frame, Instant::ZERO);
            self.exchange.flush();
        }

        fn peer(&self) -> UnixDatagram {
            let peer = UnixDatagram::bind(self.folder.path().join("peer")).expect("a free path");
            peer.set_nonblocking(true).expect("an option");
            peer
        }

        fn event(&mut self) -> Option<EventKind> {
            self.exchange.poll_event().map(|(_, _, kind)| kind)
        }

        fn outside(&self) -> OutsideTally {
            self.exchange.report(&self.lines).outside.expect("a port is attached")
        }
    }

    fn pause_ns(ns: u64) {
        timer::wait(None, monotonic_ns() + ns);
    }

    #[test]
    fn a_peer_that_goes_and_returns_gets_nothing_late() {
        let mut cable = Cable::new(false);
        cable.send(1);
        assert_eq!(cable.event(), Some(down(CarrierLoss::NoPeer)));
        let peer = cable.peer();
        pause_ns(2_000_000);
        cable.send(2);
        assert!(matches!(cable.event(), Some(EventKind::CarrierUp { dropped: 1, .. })));
        let mut room = [0; 100];
        assert_eq!(peer.recv(&mut room).map(|count| room[count - 1]).ok(), Some(2));
        drop(peer);
        pause_ns(2_000_000);
        cable.send(3);
        assert_eq!(cable.event(), Some(down(CarrierLoss::NoPeer)));
        let outside = cable.outside();
        assert_eq!((outside.sent.total(), outside.away.total()), (1, 2));
        assert_eq!((outside.unsent.total(), cable.exchange.lost()), (0, 0));
    }

    #[test]
    fn a_peer_that_does_not_read_is_given_up_after_a_while() {
        let mut cable = Cable::new(false);
        let peer = cable.peer();
        // The kernel holds at most some hundred datagrams for it.
        (0..2_000).for_each(|_| cable.send(1));
        pause_ns(505_000_000);
        cable.exchange.flush();
        assert_eq!(cable.event(), Some(down(CarrierLoss::NoPeer)));
        assert!(!cable.exchange.waiting());
        let before = cable.outside();
        assert_eq!(before.sent.total() + before.away.total(), 2_000);
        let mut room = [0; 100];
        while peer.recv(&mut room).is_ok() {}
        pause_ns(2_000_000);
        cable.send(2);
        assert!(matches!(cable.event(), Some(EventKind::CarrierUp { .. })));
        assert_eq!(peer.recv(&mut room).map(|count| room[count - 1]).ok(), Some(2));
    }

    #[test]
    fn a_host_that_does_not_read_for_a_while_gets_all_frames() {
        let mut cable = Cable::new(true);
        let peer = cable.peer();
        (0..1_000).for_each(|number| cable.send(number as u8));
        pause_ns(100_000_000);
        cable.exchange.flush();
        assert_eq!(cable.event(), None);
        assert!(cable.outside().unsent.total() > 0, "the kernel holds fewer");
        let (mut room, mut next) = ([0; 100], 0);
        while cable.exchange.waiting() || next < 1_000 {
            cable.exchange.flush();
            while let Ok(count) = peer.recv(&mut room) {
                assert_eq!(room[count - 1], next as u8, "frame {next}");
                next += 1;
            }
        }
        assert_eq!((next, cable.outside().sent.total()), (1_000, 1_000));
    }

    #[test]
    fn wrong_sizes_are_counted_and_frames_arrive() {
        let mut cable = Cable::new(false);
        let peer = cable.peer();
        let lab = cable.folder.path().join("lab");
        for length in [0, 13, 14, 1_514, 16_384, 16_385, 65_000] {
            peer.send_to(&vec![0xff; length], &lab).expect("room for a datagram");
        }
        let mut lengths = Vec::new();
        for _ in 0..10 {
            cable.exchange.receive(&cable.lines, |accepted| {
                lengths.push(accepted.frame.octets.len());
            });
        }
        assert_eq!(lengths, [14, 1_514, 16_384]);
        let rejected = cable.exchange.rejected();
        assert_eq!((rejected.truncated, rejected.oversize), (2, 2));
        assert_eq!(cable.outside().received.total(), 3);
    }
}
