//! The mesh: the sockets of a process, and its channels to all neighbours.

use super::beside::Beside;
use super::channel::{Channel, Content, Reception};
use super::fault::Fault;
use super::neighbours::{self, Bounds};
use super::promise::{Pledge, Promise, PromiseError, Secret};
use super::sending::Identity;
use crate::cable::datagram::{BATCH, DatagramSocket, Peer, Received};
use crate::cable::exchange::packets::PortSocket;
use crate::cable::exchange::{ExchangeReport, Sockets};
use crate::cable::inbox::{FRAME_MAX, Rejected};
use crate::cable::lines::{Destination, Incoming, Lines, Outgoing};
use crate::cable::outbox::SendCounts;
use crate::cable::packet_socket::has_no_room;
use crate::inputs::Times;
use crate::wiring::Wiring;
use proto::frame::{Frame, FramePool};
use proto::units::{Duration, Instant};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Reads of the socket in one call of [`Mesh::receive`].
const CALLS_MAX: usize = 32;

/// The identity of an exact run on the cables.
#[derive(Clone, Debug)]
pub struct Session {
    /// This process.
    pub process: usize,
    /// Chosen anew for every run.
    pub epoch: u32,
    /// The run's secret.
    pub secret: Secret,
    /// The address of each process's socket.
    pub peers: Vec<Peer>,
    /// Octets of the largest datagram to send.
    pub datagram_max: usize,
    /// When the run ends.
    pub stop: Instant,
}

/// The channels of a process and its sockets.
#[derive(Debug)]
pub struct Mesh {
    identity: Identity,
    /// By process: the address of its socket.
    peers: Vec<Peer>,
    socket: DatagramSocket,
    overflows_before: u32,
    /// Number of each process by its address.
    numbers: HashMap<Box<[u8]>, usize>,
    channels: Vec<Channel>,
    /// By process: its place among `channels`.
    places: Vec<Option<usize>>,
    /// The cables that frames have of their own.
    beside: Option<Beside>,
    pool: FramePool,
    rejected: Rejected,
    counts: SendCounts,
    /// The first fault.
    fault: Option<Fault>,
}

impl Mesh {
    /// Starts to carry the frames of `lines` of `wiring` through `sockets` in the run `session`.
    ///
    /// # Errors
    /// If sockets and cables do not match, a cable has no delay, or the system refuses.
    pub fn new(
        sockets: Sockets,
        bare: bool,
        session: Session,
        lines: &Lines,
        wiring: &Wiring,
    ) -> io::Result<Mesh> {
        let (socket, ports) = match sockets {
            Sockets::Datagrams(socket) => (socket, None),
            Sockets::Beside(socket, ports) => (socket, Some(ports)),
            Sockets::Mixed(..) | Sockets::Packets(..) => {
                return Err(io::Error::other("a port is attached: its far end gives no promises"));
            }
        };
        let beside = ports.is_some();
        let Session { process, epoch, secret, peers, datagram_max, stop } = session;
        let window = neighbours::window(wiring);
        let is_leaf = neighbours::is_leaf(process, lines);
        let identity =
            Identity { process, is_leaf, epoch, secret, stop, window, datagram_max, beside };
        let channels = neighbours::channels(identity, lines, wiring)?;
        let mut places = vec![None; peers.len()];
        for (place, channel) in channels.iter().enumerate() {
            let slot = places.get_mut(channel.peer);
            *slot.ok_or_else(|| io::Error::other("a neighbour has no address"))? = Some(place);
        }
        let beside = |ports: Vec<PortSocket>| Beside::new(ports, bare, epoch, lines, &socket);
        let number = |(process, peer): (usize, &Peer)| (peer.key().into(), process);
        Ok(Mesh {
            beside: ports.map(beside).transpose()?,
            overflows_before: socket.overflows(),
            numbers: peers.iter().enumerate().map(number).collect(),
            identity,
            peers,
            socket,
            channels,
            places,
            pool: FramePool::default(),
            rejected: Rejected::default(),
            counts: SendCounts::default(),
            fault: None,
        })
    }

    /// The width of the windows in which all processes run: the shortest delay of a cable, but for those without any.
    pub const fn window(&self) -> Duration {
        self.identity.window
    }

    /// Queues `frame`, whose last bit leaves at `stamp`, for the next flush.
    pub fn send(&mut self, line: &Outgoing, mut frame: Frame, stamp: Instant) {
        let Destination::Process(process) = line.to else { return self.pool.recycle(frame) };
        let Some(place) = self.places[process] else { return self.pool.recycle(frame) };
        if self.beside.is_some() {
            frame.materialise();
        }
        let channel = &mut self.channels[place];
        if let Err(fault) = channel.put(line, &frame, stamp) {
            self.fault.get_or_insert(fault);
        }
        match &mut self.beside {
            Some(beside) => beside.send(line, frame, channel.sending.number(), stamp),
            None => self.pool.recycle(frame),
        }
    }

    /// Sends queued frames, and gives every neighbour that can do more with it a pledge: frames leave at or after `until`,
    /// and `input` is the first input of this process that is known.
    ///
    /// # Errors
    /// The first fault so far.
    pub fn flush(&mut self, until: Instant, input: Instant) -> Result<(), Fault> {
        let own = self.places[self.identity.process];
        let under_way = own.map(|place| self.channels[place].sending.first_uncounted());
        let input = under_way.map_or(input, |arrives| arrives.min(input));
        let bounds = Bounds::of(&self.channels);
        for (place, channel) in self.channels.iter_mut().enumerate() {
            let idle = input.min(bounds.without(place)).max(until);
            let pledge = Pledge { until, idle };
            let is_alone = channel.promise(pledge)?;
            self.counts.alone += u64::from(is_alone);
        }
        self.answer_if(Channel::is_overdue);
        self.transmit();
        self.fault.take().map_or(Ok(()), Err)
    }

    /// Sends what the kernel has not got yet.
    pub fn transmit(&mut self) {
        if let Some(beside) = &mut self.beside {
            beside.flush(&mut self.counts);
        }
        let Mesh { peers, socket, channels, counts, .. } = self;
        channels.iter_mut().for_each(|channel| channel.full = false);
        loop {
            let open = channels.iter().filter(|channel| !channel.full);
            let ready = open.flat_map(|channel| {
                let peer = &peers[channel.peer];
                channel.sending.unsent().map(move |octets| (peer, octets))
            });
            match socket.send(ready) {
                Ok(0) => return,
                Ok(sent) => {
                    counts.datagrams += sent as u64;
                    (0..sent).for_each(|_| {
                        let first = first_ready(channels);
                        first.into_iter().for_each(|channel| channel.sending.sent_one());
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let Some(first) = first_ready(channels) else { return };
                    if has_no_room(&error) {
                        counts.deferred += 1;
                        first.full = true;
                    } else {
                        // UDP reports that an earlier datagram met a closed port. If this one is lost, the peer asks.
                        counts.errors += 1;
                        first.sending.sent_one();
                    }
                }
            }
        }
    }

    /// Whether something waits for room in the kernel.
    pub fn waiting(&self) -> bool {
        self.channels.iter().any(|channel| channel.sending.has_unsent())
            || self.beside.as_ref().is_some_and(Beside::waiting)
    }

    /// Reads the sockets. `each` gets every frame that is due, its line, and when it arrives. Returns whether anything of
    /// this run has come.
    ///
    /// # Errors
    /// If a neighbour contradicts itself.
    pub fn receive(
        &mut self,
        lines: &Lines,
        mut each: impl FnMut(&Incoming, Frame, Times),
    ) -> Result<bool, Fault> {
        let Mesh { identity, socket, numbers, channels, places, beside, pool, rejected, .. } = self;
        let (mut fault, mut has_news) = (None, false);
        let mut asked = Vec::new();
        for _ in 0..CALLS_MAX {
            let count = socket.receive(|datagram| {
                let admitted = admit(identity, numbers, places, rejected, &datagram);
                let Some((place, promise)) = admitted else { return };
                let mut content = |line: &Incoming, content: Content<'_>| match content {
                    Content::Frame(shim, octets) => {
                        let mut copy = pool.take();
                        copy.extend_from_slice(octets);
                        let (kind, integrity) = (shim.kind, shim.integrity());
                        let frame = Frame { integrity, ..Frame::unchecked(kind, copy) };
                        each(line, frame, (shim.stamp, shim.stamp + line.delay));
                    }
                    Content::Announced(frame) => {
                        beside.iter_mut().for_each(|beside| beside.expect(line, place, frame));
                    }
                };
                let channel = &mut channels[place];
                match channel.receive(&promise, datagram.octets, lines, &mut content) {
                    Ok(Reception::New) => has_news = true,
                    Ok(Reception::Old) => {}
                    Ok(Reception::Asked) => asked.push(place),
                    Err(found) => fault = fault.take().or(Some(found)),
                }
                has_news |= channel.may_pledge_again();
            });
            if count < BATCH {
                break;
            }
        }
        if let Some(beside) = beside {
            has_news |= beside.receive(channels, pool, rejected, |line, frame, stamp| {
                each(line, frame, (stamp, stamp + line.delay));
            });
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        for place in asked {
            self.repeat(place);
        }
        self.forget();
        Ok(has_news)
    }

    /// Drops the frames on cables of their own that their receivers have.
    fn forget(&mut self) {
        let Mesh { beside: Some(beside), channels, pool, .. } = self else { return };
        channels
            .iter()
            .for_each(|channel| beside.forget(channel.peer, channel.sending.first(), pool));
    }

    /// Sends everything again that the neighbour at `place` has not completed.
    fn repeat(&mut self, place: usize) {
        let datagrams = self.channels[place].sending.repeat();
        self.counts.repeated += datagrams;
        if let Some(beside) = &mut self.beside {
            beside.repeat(self.channels[place].peer);
        }
        if datagrams == 0 {
            self.say(place, false);
        }
        self.transmit();
    }

    /// The instant up to which all input is known, exclusive. This process itself sends nothing before `own`.
    pub fn horizon(&self, own: Instant) -> Instant {
        let others = self.channels.iter().filter(|channel| !channel.is_own());
        let others = others.map(Channel::bound).min().unwrap_or(Instant::NEVER);
        let to_itself = self.places[self.identity.process];
        to_itself.map_or(others, |place| {
            let own = own.min(others);
            others.min(self.channels[place].own_bound(own))
        })
    }

    /// Whether everything up to the end of the run has come from everywhere.
    pub fn is_done(&self) -> bool {
        self.channels.iter().all(Channel::is_done)
    }

    /// Whether every neighbour has everything up to the end.
    pub fn is_acknowledged(&self) -> bool {
        self.channels.iter().all(|channel| channel.sending.is_acknowledged())
    }

    /// The beginning of the window that contains `at`.
    pub fn whole(&self, at: Instant) -> Instant {
        let window = self.window().as_ps();
        Instant::from_ps(at.as_ps() / window * window)
    }

    /// The fault of a neighbour whose frame on `line` arrives at `arrives`, when this process has passed that instant.
    pub fn late(&self, line: &Incoming, arrives: Instant, position: Instant) -> Option<Fault> {
        let place = self.places.get(line.process).copied().flatten()?;
        let what =
            format!("a frame arrives at {arrives:?}, and the promises let {position:?} pass");
        Some(self.channels[place].fault(what))
    }

    /// The channels that keep this process at `horizon`, or from its end.
    fn blockers(&self, horizon: Instant) -> impl Iterator<Item = usize> + '_ {
        let blocks = move |channel: &Channel| match horizon >= self.identity.stop {
            true => !channel.is_done(),
            false => self.whole(channel.bound()) <= horizon,
        };
        (0..self.channels.len()).filter(move |place| blocks(&self.channels[*place]))
    }

    /// Asks the neighbours that keep this process at `horizon` to repeat what is missing.
    pub fn ask(&mut self, horizon: Instant) {
        let blockers: Vec<usize> = self.blockers(horizon).collect();
        for place in blockers {
            match self.channels[place].is_own() {
                true => self.repeat(place),
                false => self.say(place, true),
            }
        }
    }

    /// The fault of a neighbour that is silent for `seconds` while it keeps this process at `horizon`.
    pub fn silent(&self, horizon: Instant, seconds: u64) -> Option<Fault> {
        self.blockers(horizon).next().map(|place| self.channels[place].silent(seconds))
    }

    /// Acknowledges what came since the last datagram to each neighbour.
    pub fn answer(&mut self) {
        self.answer_if(|channel| channel.owes_answer);
    }

    fn answer_if(&mut self, is_due: impl Fn(&Channel) -> bool) {
        for place in 0..self.channels.len() {
            let channel = &self.channels[place];
            if is_due(channel) && !channel.is_own() {
                self.say(place, false);
            }
        }
    }

    /// Sends a datagram without number.
    fn say(&mut self, place: usize, asks: bool) {
        let channel = &mut self.channels[place];
        let octets = channel.aside(asks);
        // One that is lost is sent again after a while.
        let sent = self.socket.send(std::iter::once((&self.peers[channel.peer], &octets[..])));
        self.counts.asides += u64::from(sent.is_ok());
    }

    /// The account of the sockets.
    pub fn report(&self) -> ExchangeReport {
        let overflows = self.socket.overflows().wrapping_sub(self.overflows_before);
        ExchangeReport {
            buffers: self.socket.buffers(),
            overflows: overflows.into(),
            sending: self.counts,
            rejected: self.rejected,
            ..ExchangeReport::default()
        }
    }
}

impl AsFd for Mesh {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Frames on cables of their own come before their announcement, and alone permit nothing.
        let short = self.beside.as_ref().filter(|beside| beside.is_short());
        short.map_or_else(|| self.socket.as_fd(), AsFd::as_fd)
    }
}

/// The first channel with something to send and room for it.
fn first_ready(channels: &mut [Channel]) -> Option<&mut Channel> {
    channels.iter_mut().find(|channel| !channel.full && channel.sending.has_unsent())
}

/// The place of the channel of a datagram, and its promise; `None` if it is refused, and counted.
fn admit(
    identity: &Identity,
    numbers: &HashMap<Box<[u8]>, usize>,
    places: &[Option<usize>],
    rejected: &mut Rejected,
    datagram: &Received<'_>,
) -> Option<(usize, Promise)> {
    let place =
        numbers.get(datagram.source).and_then(|process| Some((*process, places[*process]?)));
    let Some((process, place)) = place else {
        rejected.foreign += 1;
        return None;
    };
    if datagram.cut {
        rejected.oversize += 1;
        return None;
    }
    let promise = Promise::parse(datagram.octets).map_err(|error| match error {
        PromiseError::Truncated => rejected.truncated += 1,
        PromiseError::Magic => rejected.magic += 1,
        PromiseError::Kind => rejected.kind += 1,
        PromiseError::Version(version) => {
            rejected.other_version = Some(version);
            rejected.version += 1;
        }
    });
    let promise = promise.ok()?;
    if promise.epoch != identity.epoch {
        rejected.epoch += 1;
        return None;
    }
    if promise.secret != identity.secret || promise.sender as usize != process {
        rejected.secret += 1;
        return None;
    }
    Some((place, promise))
}

const _: () = assert!(FRAME_MAX < crate::cable::datagram::DATAGRAM_LIMIT - Promise::LENGTH);
