//! The sockets of the attacked switch, of its neighbours, and of the hostile far end.

use super::bed::{Carrier, EPOCH, HOSTILE, HOSTILE_LINK, NEIGHBOURS, SWITCH, hostile_end};
use emulation::cable::datagram::{DatagramSocket, Peer};
use emulation::cable::exchange::packets::PortSocket;
use emulation::cable::exchange::{DATAGRAM_MAX, Exchange, Session, Sockets};
use emulation::cable::interface::{PairEnd, address_of};
use emulation::cable::lines::Lines;
use emulation::cable::link_watch::LinkWatch;
use emulation::cable::namespace::Namespace;
use emulation::cable::packet_socket::{OutgoingFrame, PacketSocket, ReceiveBuffers};
use emulation::cable::peer_socket::PeerSocket;
use emulation::cable::shim::SendingEnd;
use emulation::cable::{udp, unix};
use emulation::clock::{Clock, monotonic_ns};
use emulation::timer;
use emulation::wiring::{SocketPair, Wiring};
use proto::ids::PortNumber;
use proto::technology::Technology;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::path::Path;
use tempfile::TempDir;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// MTU of interfaces in octets, above that of the fabric.
const MTU: u32 = 9_000;

/// The hostile far end.
pub enum Enemy {
    Datagrams { own: DatagramSocket, foreign: DatagramSocket, target: Peer },
    Interface { socket: PacketSocket, room: ReceiveBuffers, head: Vec<u8> },
}

impl Enemy {
    /// Sends octets to the port. Returns false if the kernel refuses them, as it does with frames that no cable could
    /// carry.
    pub fn send(&mut self, octets: &[u8], foreign: bool) -> bool {
        loop {
            let sent = match self {
                Enemy::Datagrams { own, foreign: other, target } => {
                    let from = if foreign { other } else { own };
                    from.send([(&*target, octets)].into_iter())
                }
                Enemy::Interface { socket, head, .. } => {
                    // A frame of another protocol than ours.
                    let strange = [&head[..head.len().min(12)], &[0x88, 0xb6]].concat();
                    let head = if foreign && !head.is_empty() { &strange } else { &*head };
                    socket.send([OutgoingFrame { head, octets }].into_iter())
                }
            };
            match sent {
                Ok(count) => return count == 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    timer::wait(None, monotonic_ns() + 50_000);
                }
                Err(_) => return false,
            }
        }
    }

    /// Reads what the switch has sent.
    pub fn read(&mut self) {
        match self {
            Enemy::Datagrams { own, .. } => while own.receive(|_| {}) > 0 {},
            Enemy::Interface { socket, room, .. } => while socket.receive(room, |_| {}) > 0 {},
        }
    }
}

/// The sockets of all, and what must live as long as they.
pub struct Cables {
    pub sockets: [Option<Sockets>; 2],
    peers: Vec<Peer>,
    pub enemy: Enemy,
    _folder: TempDir,
    _namespaces: Vec<Namespace>,
}

impl Cables {
    /// # Errors
    /// Where the test may not make namespaces.
    pub fn new(carrier: Carrier, seed: u64, wiring: &Wiring) -> io::Result<Cables> {
        let folder = tempfile::tempdir()?;
        if carrier.has_interfaces() {
            return interfaces(carrier, folder, wiring);
        }
        let open = |process: usize| match carrier {
            Carrier::Unix => unix::open(folder.path(), process),
            _ => udp::open(LOOPBACK),
        };
        let peer = |socket: &DatagramSocket| match carrier {
            Carrier::Unix => unix::peer(socket.address()),
            _ => udp::peer(socket.address()),
        };
        let (switch, neighbours) = (open(SWITCH)?, open(NEIGHBOURS)?);
        let mut peers = vec![peer(&switch)?, peer(&neighbours)?];
        let (switch, enemy) = if carrier == Carrier::Program {
            let (port, enemy) = program(folder.path(), seed)?;
            (Sockets::Mixed(switch, vec![port]), enemy)
        } else {
            let (own, foreign) = (open(HOSTILE)?, open(HOSTILE + 1)?);
            peers.push(peer(&own)?);
            let target = peers[SWITCH].clone();
            (Sockets::Datagrams(switch), Enemy::Datagrams { own, foreign, target })
        };
        let sockets = [Some(switch), Some(Sockets::Datagrams(neighbours))];
        Ok(Cables { sockets, peers, enemy, _folder: folder, _namespaces: Vec::new() })
    }

    /// The exchange of a process.
    pub fn exchange(
        &mut self,
        process: usize,
        carrier: Carrier,
        clock: &Clock,
        lines: &Lines,
    ) -> Exchange {
        let session = Session {
            epoch: EPOCH,
            peers: self.peers.clone(),
            datagram_max: DATAGRAM_MAX,
            bare: carrier.technology() == Technology::Ethernet && carrier.has_interfaces(),
            clock: clock.clone(),
        };
        let sockets = self.sockets[process].take().expect("each process takes its own");
        Exchange::new(sockets, session, lines).expect("each line has its socket")
    }
}

/// The socket of the port, and the other program: by UDP or, with an even seed, by files.
fn program(folder: &Path, seed: u64) -> io::Result<(PortSocket, Enemy)> {
    let (pair, own, foreign, target);
    if seed.is_multiple_of(2) {
        (own, foreign) = (unix::open(folder, HOSTILE)?, unix::open(folder, HOSTILE + 1)?);
        let local = folder.join("lab");
        target = unix::peer(&local.display().to_string())?;
        pair = SocketPair::Unix { local, remote: own.address().into() };
    } else {
        (own, foreign) = (udp::open(LOOPBACK)?, udp::open(LOOPBACK)?);
        let free = udp::open(LOOPBACK)?.address().to_owned();
        target = udp::peer(&free)?;
        let address = |text: &str| text.parse().expect("an address of a socket");
        pair = SocketPair::Udp { local: address(&free), remote: address(own.address()) };
    }
    let socket = PeerSocket::open(&pair, false)?.into();
    let port = PortNumber::from_index(2);
    let port = PortSocket { device: 0, port, socket, watch: None };
    Ok((port, Enemy::Datagrams { own, foreign, target }))
}

/// A pair of interfaces for each cable, in namespaces of the test.
fn interfaces(carrier: Carrier, folder: TempDir, wiring: &Wiring) -> io::Result<Cables> {
    let namespaces = Namespace::make(3)?;
    let mut sockets = [Vec::new(), Vec::new()];
    for link in 0..2 {
        let names = [format!("p{link}"), format!("h{link}")];
        make_pair(&namespaces, link, &names, NEIGHBOURS)?;
        for side in [SWITCH, NEIGHBOURS] {
            let socket = namespaces[side].enter(|| PacketSocket::open(&names[side]))?.into();
            let (device, port) =
                if side == SWITCH { (0, link as usize) } else { (link as usize, 0) };
            let port = PortNumber::from_index(port);
            sockets[side].push(PortSocket { device, port, socket, watch: None });
        }
    }
    let names = ["near".to_owned(), "far".to_owned()];
    make_pair(&namespaces, HOSTILE_LINK, &names, HOSTILE)?;
    let is_attached = carrier.is_attached();
    let near = namespaces[SWITCH].enter(|| {
        let mut socket = PacketSocket::open(&names[0])?;
        if is_attached {
            // Old kernels have no send rings.
            let _ = socket.give_send_ring();
            socket = socket.with_ring()?;
        }
        Ok(socket)
    })?;
    let (port, watch) = (PortNumber::from_index(2), is_attached.then_some(0));
    sockets[SWITCH].push(PortSocket { device: 0, port, socket: near.into(), watch });
    let watches =
        if is_attached { vec![namespaces[SWITCH].enter(LinkWatch::here)?] } else { vec![] };
    let socket = namespaces[HOSTILE].enter(|| PacketSocket::open(&names[1]))?;
    let end = hostile_end(wiring);
    let head = if carrier.has_shim() {
        let (to, from) = (address_of(HOSTILE_LINK, end.other()), address_of(HOSTILE_LINK, end));
        [&to[..], &from, &[0x88, 0xb5]].concat()
    } else {
        Vec::new()
    };
    let enemy = Enemy::Interface { socket, room: ReceiveBuffers::default(), head };
    let [switch, neighbours] = sockets;
    let sockets =
        [Some(Sockets::Packets(switch, watches)), Some(Sockets::Packets(neighbours, vec![]))];
    Ok(Cables { sockets, peers: Vec::new(), enemy, _folder: folder, _namespaces: namespaces })
}

/// Makes the pair of interfaces of a link, and switches both on: the first is the switch's.
fn make_pair(
    namespaces: &[Namespace],
    link: u32,
    names: &[String; 2],
    far: usize,
) -> io::Result<()> {
    let end = |name, of: usize, end| PairEnd {
        name,
        address: address_of(link, end),
        namespace: namespaces[of].as_fd(),
    };
    let (near, other) = (end(&names[0], SWITCH, SendingEnd::B), end(&names[1], far, SendingEnd::A));
    namespaces[SWITCH].interfaces.make_pair(near, other, MTU)?;
    namespaces[SWITCH].interfaces.switch_on(&names[0], "a test")?;
    namespaces[far].interfaces.switch_on(&names[1], "a test")
}
