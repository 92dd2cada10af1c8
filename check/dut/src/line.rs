//! The line to a device under test: frames in and out of its ports in wall time, each kept for the capture of the case.
//!
//! It is a [`Bed`] for scripts, as the bench of the virtual clock and the tester of live daemons are. An instant is the
//! wall time since the case began.

use super::pace::Pace;
use super::verdict::{Check, Fault};
use bytes::BytesMut;
use capture::pcapng::{self, Interface, LinkType, Packet};
use emulation::cable::packet_socket::{OutgoingFrame, PacketSocket, ReceiveBuffers};
use emulation::cable::peer_socket::PeerSocket;
use emulation::clock::monotonic_ns;
use emulation::timer;
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::units::{Duration, Instant};
use std::io;
use std::path::Path;
use testbed::{Bed, Label, Neighbour, Script, Seen};

/// Frames of one case beyond which the device floods the tester.
const FLOOD: usize = 100_000;
/// The longest time that the device's end may take no frame, in nanoseconds.
const STUCK_NS: u64 = 500_000_000;
/// The interval at which several ports are read, in nanoseconds.
const TURN_NS: u64 = 200_000;
/// ENOBUFS.
const NO_BUFFERS: i32 = nix::errno::Errno::ENOBUFS as i32;
/// Octets before the EtherType, where a tag goes.
const ADDRESSES: usize = 12;
/// The EtherType of the tag that tells ports on one cable apart. C-tags of cases pass inside it.
const TRUNK: [u8; 2] = [0x88, 0xa8];
/// The VLAN of port 0 on such a cable.
const TRUNK_BASE: u16 = 100;

/// Puts the tag of a port in.
fn into_trunk(port: u8, octets: &[u8]) -> BytesMut {
    let (addresses, rest) = octets.split_at(ADDRESSES.min(octets.len()));
    let mut whole = BytesMut::from(addresses);
    whole.extend_from_slice(&TRUNK);
    whole.extend_from_slice(&(TRUNK_BASE + u16::from(port)).to_be_bytes());
    whole.extend_from_slice(rest);
    whole
}

/// Takes the tag of a port out; none if the frame is of no port of `ports`.
fn from_trunk(mut octets: BytesMut, ports: u8) -> Option<(u8, BytesMut)> {
    let control = octets.get(ADDRESSES..).filter(|rest| rest.starts_with(&TRUNK))?;
    let number = u16::from_be_bytes([*control.get(2)?, *control.get(3)?]) & 0x0fff;
    let port = u8::try_from(number.checked_sub(TRUNK_BASE)?).ok();
    let port = port.filter(|port| (1..=ports).contains(port))?;
    let rest = octets.split_off(ADDRESSES + 4);
    octets.truncate(ADDRESSES);
    octets.unsplit(rest);
    Some((port, octets))
}

/// The tester's end of the cable to a port.
#[derive(Debug)]
pub enum Socket {
    /// On an interface.
    Interface(Box<PacketSocket>),
    /// To another program.
    Peer(Box<PeerSocket>),
}

impl Socket {
    fn send(&mut self, octets: &[u8]) -> io::Result<usize> {
        let batch = std::iter::once(OutgoingFrame { head: &[], octets });
        match self {
            Socket::Interface(socket) => socket.send(batch),
            Socket::Peer(socket) => socket.send(batch),
        }
    }

    fn receive(&self, room: &mut ReceiveBuffers, each: impl FnMut(Result<BytesMut, ()>)) -> usize {
        let mut each = each;
        let hand_on = |frame: emulation::cable::packet_socket::ReceivedFrame<'_>| {
            let (addresses, rest) = frame.octets.split_at(ADDRESSES.min(frame.octets.len()));
            let mut whole = BytesMut::from(addresses);
            if let Some(tag) = frame.tag {
                whole.extend_from_slice(&tag.octets());
            }
            whole.extend_from_slice(rest);
            whole
        };
        match self {
            Socket::Interface(socket) => {
                socket.receive(room, |frame| each(frame.map(hand_on).map_err(|_| ())))
            }
            Socket::Peer(socket) => {
                socket.receive(room, |frame| each(frame.map(hand_on).map_err(|_| ())))
            }
        }
    }
}

/// A frame on the line, for the capture.
#[derive(Debug)]
struct Logged {
    at_ns: u64,
    port: u8,
    direction: Direction,
    octets: BytesMut,
}

/// The cables to all ports of a device.
#[derive(Debug)]
pub struct Line {
    sockets: Vec<Socket>,
    /// Ports on the cable of the only socket, told apart by tags; 0 if each port has a socket.
    trunk: u8,
    room: ReceiveBuffers,
    /// What the device has sent in this case.
    pub seen: Vec<Seen>,
    log: Vec<Logged>,
    /// Frames that the sockets could not hand on: cut, or unfinished.
    pub unreadable: u64,
    /// Whether tester and device keep time.
    pub pace: Pace,
    began_ns: u64,
    /// The longest time of a case.
    limit: Duration,
    failed: Option<Fault>,
}

impl Line {
    /// The line over these sockets, the first at port 1.
    pub fn new(sockets: Vec<Socket>, limit: Duration) -> Line {
        let (seen, log) = (Vec::new(), Vec::new());
        let began_ns = monotonic_ns();
        let room = ReceiveBuffers::default();
        let pace = Pace::default();
        let (trunk, unreadable, failed) = (0, 0, None);
        Line { sockets, trunk, room, seen, log, unreadable, pace, began_ns, limit, failed }
    }

    /// The line to so many ports on one cable.
    pub fn trunk(socket: Socket, ports: u8, limit: Duration) -> Line {
        Line { trunk: ports, ..Line::new(vec![socket], limit) }
    }

    /// How many ports the device has.
    pub fn ports(&self) -> u8 {
        if self.trunk > 0 { self.trunk } else { self.sockets.len() as u8 }
    }

    /// Begins an attempt.
    pub fn begin(&mut self) {
        self.forget();
        self.pace = Pace::default();
    }

    /// Begins a case: what is on the way belongs to what was before.
    pub fn forget(&mut self) {
        self.failed = None;
        // A device that floods would keep this busy for ever.
        for _ in 0..64 {
            if self.read() == 0 {
                break;
            }
        }
        self.forget_frames();
        self.unreadable = 0;
        self.began_ns = monotonic_ns();
    }

    /// Forgets the frames of the case so far: neither floods nor the capture count them.
    pub fn forget_frames(&mut self) {
        self.seen.clear();
        self.log.clear();
    }

    /// The wall time since the case began.
    pub fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_ns(monotonic_ns() - self.began_ns)
    }

    /// By how much later than it came a frame may have been read: the ports are read in turns.
    pub fn doubt(&self) -> Duration {
        self.pace.doubt() + Duration::from_ns(2 * TURN_NS)
    }

    fn read(&mut self) -> usize {
        let now = self.now();
        let Line { sockets, room, seen, log, unreadable, trunk, .. } = self;
        let mut count = 0;
        for (port, socket) in (1..).zip(sockets) {
            count += socket.receive(room, |octets| {
                let Ok(octets) = octets else {
                    *unreadable += 1;
                    return;
                };
                let (port, octets) = match *trunk {
                    0 => (port, octets),
                    ports => match from_trunk(octets, ports) {
                        Some(found) => found,
                        None => return,
                    },
                };
                let at_ns = now.as_ps() / 1_000;
                log.push(Logged { at_ns, port, direction: Direction::Tx, octets: octets.clone() });
                let frame = Frame::unchecked(FrameKind::Ethernet, octets);
                seen.push(Seen { port, at: now, received: now, frame });
            });
        }
        count
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// If the device floods the tester, or the time of the case is over.
    pub fn poll(&mut self) -> Check<()> {
        if let Some(fault) = self.failed.take() {
            return Err(fault);
        }
        self.read();
        if self.seen.len() > FLOOD {
            let count = self.seen.len();
            return Err(Fault::fail(format!("the device floods: {count} frames in one case")));
        }
        if self.now() > Instant::ZERO + self.limit {
            let limit = self.limit.as_ps() / 1_000_000_000_000;
            return Err(Fault::unclear(format!("the case takes longer than {limit} s")));
        }
        Ok(())
    }

    /// Sends a frame to `port` of the device.
    ///
    /// # Errors
    /// If the device's end is gone, or takes nothing.
    pub fn send(&mut self, port: u8, octets: &[u8]) -> Check<()> {
        let begin = monotonic_ns();
        let tagged = (self.trunk > 0).then(|| into_trunk(port, octets));
        let socket = if self.trunk > 0 { 0 } else { usize::from(port) - 1 };
        loop {
            match self.sockets[socket].send(tagged.as_deref().unwrap_or(octets)) {
                Ok(_) => break,
                // A veth reports what its far end drops.
                Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if monotonic_ns() - begin > STUCK_NS {
                        return Err(Fault::fail(format!("port {port} takes no frame any more")));
                    }
                    self.poll()?;
                    self.sleep(TURN_NS);
                }
                Err(error) => return Err(Fault::fail(format!("port {port} is gone: {error}"))),
            }
        }
        let at_ns = self.now().as_ps() / 1_000;
        let direction = Direction::Rx;
        self.log.push(Logged { at_ns, port, direction, octets: BytesMut::from(octets) });
        Ok(())
    }

    /// Reads until `enough`, at most until `until`. Returns whether it was enough.
    ///
    /// # Errors
    /// Those of [`Line::poll`].
    pub fn wait(&mut self, until: Instant, enough: impl FnMut(&[Seen]) -> bool) -> Check<bool> {
        self.wait_by(TURN_NS, until, enough)
    }

    /// The same; the ports are read each `turn_ns`.
    ///
    /// # Errors
    /// Those of [`Line::poll`].
    pub fn wait_by(
        &mut self,
        turn_ns: u64,
        until: Instant,
        mut enough: impl FnMut(&[Seen]) -> bool,
    ) -> Check<bool> {
        loop {
            self.poll()?;
            if enough(&self.seen) {
                return Ok(true);
            }
            if self.now() >= until {
                return Ok(false);
            }
            let left = until.since(self.now()).as_ps() / 1_000;
            self.sleep(left.min(turn_ns));
        }
    }

    fn sleep(&mut self, nanoseconds: u64) {
        let due = monotonic_ns() + nanoseconds;
        timer::wait(None, due);
        self.pace.woke(Duration::from_ns(monotonic_ns().saturating_sub(due)));
    }

    /// Follows `script`, and reads until `stop`.
    ///
    /// # Errors
    /// Those of [`Line::send`] and [`Line::poll`].
    pub fn play(&mut self, script: Script, stop: Instant) -> Check<()> {
        let begin = self.now().since(Instant::ZERO);
        let neighbour = || Neighbour::new(None, Duration::ZERO, None);
        let neighbours = (0..self.ports()).map(|_| neighbour()).collect();
        let mut player = Player { line: self, neighbours, now: Instant::ZERO };
        for (at, step) in script.into_steps() {
            player.line.wait(at + begin, |_| false)?;
            player.now = at;
            step(&mut player);
            player.line.poll()?;
        }
        self.wait(stop + begin, |_| false).map(|_| ())
    }

    /// Writes every frame of the case as pcapng; directions are those of the device.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_capture(&self, file: &Path, comment: &str) -> io::Result<()> {
        let mut out = Vec::new();
        pcapng::section(&mut out, comment);
        let link_type = LinkType::Ethernet;
        for port in 1..=self.ports() {
            let name = format!("port {port}");
            let description = "port of the device under test";
            let interface = Interface { link_type, snaplen: 0, name: &name, description, speed: 0 };
            pcapng::interface(&mut out, &interface);
        }
        for Logged { at_ns, port, direction, octets } in &self.log {
            pcapng::packet(
                &mut out,
                &Packet {
                    interface: u32::from(*port) - 1,
                    link_type,
                    at_ns: *at_ns,
                    octets,
                    wire_size: octets.len(),
                    direction: Some(*direction),
                    dropped_before: 0,
                },
            );
        }
        std::fs::write(file, out)
    }
}

/// The neighbours of a device while a script is played.
struct Player<'a> {
    line: &'a mut Line,
    neighbours: Vec<Neighbour>,
    now: Instant,
}

impl Bed for Player<'_> {
    fn now(&self) -> Instant {
        self.now
    }

    fn neighbour(&mut self, port: u8) -> &mut Neighbour {
        &mut self.neighbours[usize::from(port) - 1]
    }

    fn seen(&self) -> &[Seen] {
        &self.line.seen
    }

    fn put(&mut self, port: u8, _: FrameKind, octets: &[u8], _: Label) {
        // A step returns nothing: the next turn of the line reports it.
        if let Err(fault) = self.line.send(port, octets) {
            self.line.failed = Some(fault);
        }
    }

    fn sequence(&self, _: u8) -> u32 {
        0
    }

    fn hold_back(&mut self, _: u8, _: FrameKind, _: &[u8]) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_on_one_cable_are_told_apart_and_frames_of_no_port_are_left_out() {
        let frame = [&[7; 12][..], &[0x81, 0, 0x60, 5, 8, 0, 1, 2, 3]].concat();
        let inside = into_trunk(3, &frame);
        assert_eq!(inside[12..16], [0x88, 0xa8, 0, 103]);
        assert_eq!(from_trunk(inside.clone(), 3), Some((3, BytesMut::from(&frame[..]))));
        assert_eq!(from_trunk(inside, 2), None);
        assert_eq!(from_trunk(BytesMut::from(&frame[..]), 3), None);
        assert_eq!(from_trunk(BytesMut::from(&[0x88; 13][..]), 3), None);
    }
}
