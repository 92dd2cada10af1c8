//! Exact workers in threads of this process, over real sockets, and what breaks their protocol.

use super::*;
use crate::cable::datagram::{DatagramSocket, Peer};
use crate::cable::exchange::packets::PortSocket;
use crate::cable::exchange::{DATAGRAM_MAX, Sockets};
use crate::cable::inbox::Rejected;
use crate::cable::interface::{PairEnd, address_of};
use crate::cable::namespace::{Namespace, within};
use crate::cable::outbox::SendCounts;
use crate::cable::packet_socket::{OutgoingFrame, PacketSocket};
use crate::cable::shim::SendingEnd;
use crate::cable::{udp, unix};
use crate::driver::impairers;
use crate::wiring::{Action, End, FrameFilter, Impairment, Wiring};
use proto::frame::FrameKind;
use proto::random::Random;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::toy::{CHAIN, Log, Toy, arrival};

const FRAMES: u32 = 40;
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SECRET: Secret = Secret::new([7; 16]);
const STOP: Instant = Instant::from_ps(100_000_000);
const EPOCH: u32 = 9;

#[derive(Default)]
struct Quiet(AtomicBool);

impl Supervisor for Quiet {
    fn stop_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn beat(&self, _: Beat) {}
}

/// Two processes: source and sink, and the relay between them.
struct Lab {
    wiring: Wiring,
    hosts: [usize; 3],
    local: bool,
    bare: bool,
    stop: Instant,
    sockets: Vec<Sockets>,
    /// By process: the addresses that it is given.
    peers: [Vec<Peer>; 2],
}

fn address(socket: &DatagramSocket) -> Peer {
    udp::peer(socket.address()).expect("its own address")
}

fn chain() -> Wiring {
    serde_json::from_str(CHAIN).expect("a wiring")
}

impl Lab {
    fn over(sockets: [DatagramSocket; 2], peer: impl Fn(&DatagramSocket) -> Peer) -> Lab {
        let peers: Vec<Peer> = sockets.iter().map(peer).collect();
        let sockets = sockets.into_iter().map(Sockets::Datagrams).collect();
        let peers = [peers.clone(), peers];
        let (wiring, hosts, stop) = (chain(), [0, 0, 1], STOP);
        Lab { wiring, hosts, local: false, bare: false, stop, sockets, peers }
    }

    fn udp() -> Lab {
        Lab::over([0, 1].map(|_| udp::open(LOOPBACK).expect("loopback is there")), address)
    }

    fn unix(directory: &Path) -> Lab {
        let open = |process| unix::open(directory, process).expect("a fresh directory");
        Lab::over([0, 1].map(open), |s| unix::peer(s.address()).expect("its own address"))
    }

    /// Each link a pair of interfaces between two namespaces; `None` without the rights for that.
    fn packets(bare: bool, directory: &Path) -> Option<(Lab, Vec<Namespace>)> {
        let namespaces = match Namespace::make(2) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                skip::because!("making network namespaces takes CAP_SYS_ADMIN: {error}");
                return None;
            }
            made => made.expect("two namespaces"),
        };
        let mut ports = [Vec::new(), Vec::new()];
        for (link, device) in [(0, 0), (1, 1)] {
            let names = [format!("e{link}"), format!("r{link}")];
            let end = |side: usize, end| PairEnd {
                name: &names[side],
                address: address_of(link, end),
                namespace: namespaces[side].as_fd(),
            };
            let (near, far) = match link {
                0 => (end(0, SendingEnd::A), end(1, SendingEnd::B)),
                _ => (end(0, SendingEnd::B), end(1, SendingEnd::A)),
            };
            namespaces[0].interfaces.make_pair(near, far, 1_500).expect("a pair");
            for (side, namespace) in namespaces.iter().enumerate() {
                namespace.interfaces.switch_on(&names[side], "a test").expect("it is there");
                let path = format!("/proc/self/fd/{}", namespace.descriptor());
                let open = || PacketSocket::open(&names[side]);
                let socket = within(Some(Path::new(&path)), open).expect("a socket").into();
                let (device, port) = if side == 0 { (device, 0) } else { (0, link as usize) };
                let port = PortNumber::from_index(port);
                ports[side].push(PortSocket { device, port, socket, watch: None });
            }
        }
        let lab = Lab::unix(directory);
        let beside = lab.sockets.into_iter().zip(ports).map(|(socket, ports)| match socket {
            Sockets::Datagrams(socket) => Sockets::Beside(socket, ports),
            other => other,
        });
        Some((Lab { bare, sockets: beside.collect(), ..lab }, namespaces))
    }

    /// Runs both workers. Returns what became of them, and the sink's log.
    fn run(self) -> (Vec<Result<Report, Fault>>, Log) {
        let (log, quiet) = (Log::default(), Quiet::default());
        let mut workers = Vec::new();
        for (process, (sockets, peers)) in self.sockets.into_iter().zip(self.peers).enumerate() {
            let lines =
                Lines::new(&self.wiring, &self.hosts, process, self.local).expect("a good wiring");
            let plan = RecordingPlan { stop: self.stop, ..plan() };
            let session = Session {
                process,
                epoch: EPOCH,
                secret: SECRET,
                peers,
                datagram_max: DATAGRAM_MAX,
                stop: plan.stop,
            };
            let mesh = Mesh::new(sockets, self.bare, session, &lines, &self.wiring);
            let toys = [(1, FRAMES), (1, 0), (2, 0)].into_iter().zip(self.hosts);
            let own = toys.filter(|(_, host)| *host == process);
            let nodes = (0..3).filter(|node| self.hosts[*node] == process);
            workers.push(ExactWorker::new(ExactAssignment {
                process,
                spins: false,
                recorder: Recorder::new(plan.clone(), &self.wiring, nodes.collect()),
                plan,
                devices: own.map(|((ports, send), _)| Toy::boxed(ports, send, &log)).collect(),
                impairers: impairers(&self.wiring, 3),
                mesh: mesh.expect("sockets for every cable"),
                lines,
            }));
        }
        let ends = std::thread::scope(|scope| {
            let start = |worker: ExactWorker| {
                scope.spawn(|| {
                    let ended = worker.run(&quiet);
                    // One that fails would leave the other waiting for a minute.
                    quiet.0.fetch_or(ended.is_err(), Ordering::Relaxed);
                    ended.map(|(report, lingering)| {
                        lingering.serve(&quiet);
                        report
                    })
                })
            };
            let threads: Vec<_> = workers.into_iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        (ends, log)
    }
}

fn plan() -> RecordingPlan {
    RecordingPlan {
        tau: Duration::from_ns(2_000),
        stop: STOP,
        bin: Duration::from_us(20),
        edges: vec![],
        measured: vec![],
        all_events: false,
        named: Vec::new(),
        watched: false,
    }
}

/// Every frame arrived at exactly the instant of the model and was handled then.
fn assert_exact(ends: Vec<Result<Report, Fault>>, log: &Log) -> Vec<Report> {
    let reports: Vec<Report> = ends.into_iter().map(|end| end.expect("no fault")).collect();
    let log = log.lock().expect("no test thread panicked");
    let expected: Vec<_> =
        (0..FRAMES).map(|number| (number, arrival(number), arrival(number))).collect();
    assert_eq!(*log, expected);
    let departures: u64 = reports.iter().map(|report| report.departures).sum();
    assert_eq!(departures, u64::from(FRAMES) * 2);
    for report in &reports {
        assert_eq!((report.cut_short, report.stopped_at), (false, STOP));
        assert_eq!(report.in_flight, InFlight::default());
    }
    reports
}

#[test]
fn a_chain_is_exact_over_udp_and_unix_datagrams() {
    let (ends, log) = Lab::udp().run();
    let reports = assert_exact(ends, &log);
    assert!(reports.iter().all(|report| report.exchange.rejected.total() == 0), "{reports:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let (ends, log) = Lab::unix(directory.path()).run();
    assert_exact(ends, &log);
}

#[test]
fn a_chain_is_exact_over_packet_sockets_behind_the_shim_and_bare() {
    for bare in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let Some((lab, _namespaces)) = Lab::packets(bare, directory.path()) else { return };
        let (ends, log) = lab.run();
        assert_exact(ends, &log);
    }
}

#[test]
fn a_process_may_talk_to_itself_by_its_socket_or_by_memory() {
    for (hosts, local) in
        [([0, 0, 0], false), ([0, 0, 0], true), ([0, 1, 1], true), ([0, 1, 1], false)]
    {
        let (ends, log) = Lab { hosts, local, ..Lab::udp() }.run();
        assert_exact(ends, &log);
    }
}

/// Between the processes stands a path that loses every tenth datagram, and delays each by up to 3 ms.
#[test]
fn what_a_path_loses_or_overtakes_changes_nothing() {
    let mut lab = Lab::udp();
    let [towards, back] = [0, 1].map(|_| udp::open(LOOPBACK).expect("loopback is there"));
    // Process 0 knows process 1 by the address of `towards`, and is known to it by that of `back`.
    let ends = [lab.peers[0][0].clone(), lab.peers[0][1].clone()];
    lab.peers[0][1] = address(&towards);
    lab.peers[1][0] = address(&back);
    let over = AtomicBool::new(false);
    let lost = std::thread::scope(|scope| {
        let path = scope.spawn(|| relay([towards, back], &ends, &over));
        let (ends, log) = lab.run();
        over.store(true, Ordering::Relaxed);
        let reports = assert_exact(ends, &log);
        let repeated: u64 = reports.iter().map(|report| report.exchange.sending.repeated).sum();
        let lost = path.join().expect("no panic");
        assert!(lost > 0 && repeated > 0, "{lost} lost, {repeated} repeated");
        lost
    });
    eprintln!("{lost} datagrams were lost");
}

/// Passes datagrams on between two sockets and the ends behind them. Returns how many it lost.
fn relay(mut sockets: [DatagramSocket; 2], ends: &[Peer; 2], over: &AtomicBool) -> u64 {
    let mut random = Random::stream(11, "path", "relay");
    let mut waiting: Vec<(u64, usize, Vec<u8>)> = Vec::new();
    let mut lost = 0;
    while !over.load(Ordering::Relaxed) {
        let now = monotonic_ns();
        for (side, socket) in sockets.iter_mut().enumerate() {
            socket.receive(|datagram| {
                if random.chance(1, 10) {
                    lost += 1;
                } else {
                    let due = now + random.below(3_000_000);
                    waiting.push((due, side, datagram.octets.to_vec()));
                }
            });
        }
        for (_, side, octets) in waiting.extract_if(.., |(due, ..)| *due <= now) {
            // What came for process 1 at the first socket leaves by the second, and the reverse.
            let (from, to) = (&sockets[1 - side], &ends[1 - side]);
            let _ = from.send(std::iter::once((to, octets.as_slice())));
        }
        timer::wait(None, now + 200_000);
    }
    lost
}

/// Datagrams of strangers, and of the peer's address without the secret, are refused. A peer that breaks its word ends
/// the run, and the fault names the cable.
#[test]
fn forgeries_are_refused_and_broken_promises_end_the_run() {
    let say = |promises: &[Promise], last: u64| {
        // Process 1 is played by this test.
        let mut lab = Lab::udp();
        let Some(Sockets::Datagrams(tester)) = lab.sockets.pop() else { panic!("two sockets") };
        let stranger = udp::open(LOOPBACK).expect("loopback is there");
        let victim = lab.peers[0][0].clone();
        let octets: Vec<_> = promises.iter().map(Promise::emit).collect();
        for from in [&stranger, &tester] {
            let batch = octets.iter().map(|octets| (&victim, &octets[..]));
            assert_eq!(from.send(batch).expect("loopback takes it"), octets.len());
        }
        let fault = Promise { number: last, frames: 99, ..PROMISE };
        let _ = tester.send(std::iter::once((&victim, &fault.emit()[..])));
        let (ends, _) = lab.run();
        ends.into_iter().next().expect("one worker").expect_err("a fault")
    };
    let counted = say(&[PROMISE], 1);
    assert_eq!((counted.peer, counted.cable.as_str()), (1, "source:1 – relay:1"));
    assert!(counted.what.contains("it counts 99 frames, and 0 came"), "{counted}");
    let forged = Promise { secret: Secret::new([8; 16]), number: 1, ..PROMISE };
    let foreign = Promise { epoch: EPOCH + 1, number: 1, ..PROMISE };
    let refused = say(&[PROMISE, forged, foreign], 1);
    assert!(refused.what.contains("it counts 99"), "number 1 is still due: {refused}");
    let far = Promise { number: 1_000_000, ..PROMISE };
    assert!(say(&[PROMISE, far], 1).what.contains("datagram 1000000 came when 1 was due"));
    let back = Promise { number: 1, pledge: until(1), ..PROMISE };
    assert!(say(&[PROMISE, back], 2).what.contains("goes back"));
    let beyond = Promise { number: 1, pledge: until(STOP.as_ps() + 1), ..PROMISE };
    assert!(say(&[PROMISE, beyond], 2).what.contains("beyond the run's end"));
    let ahead = Promise { number: 1, complete: 1_000_000, ..PROMISE };
    assert!(say(&[PROMISE, ahead], 2).what.contains("were sent"));
}

#[test]
fn impairments_of_the_scenario_are_applied_where_the_frame_leaves() {
    let mut lab = Lab::udp();
    let from = End { node: 0, port: PortNumber::from_index(0) };
    let fault = |action| Impairment { from, frames: FrameFilter::All, action, chance: (1, 4) };
    lab.wiring.impairments = vec![fault(Action::Lose), fault(Action::Duplicate)];
    let (ends, log) = lab.run();
    let reports: Vec<Report> = ends.into_iter().map(|end| end.expect("no fault")).collect();
    let injected = reports[0].injected;
    assert!(injected.lost.total() > 0 && injected.duplicated.total() > 0, "{injected:?}");
    assert_eq!(reports[1].injected, Injected::default());
    let under_way: u64 = reports.iter().map(|report| report.in_flight.on_cables.total()).sum();
    let delivered = log.lock().expect("no test thread panicked").len() as u64;
    let expected = u64::from(FRAMES) + injected.duplicated.total() - injected.lost.total();
    assert_eq!(delivered + under_way, expected);
}

#[test]
fn a_stop_in_the_middle_leaves_frames_on_cables() {
    // A frame of the relay is half way, and on both cables another one has begun.
    let stop = arrival(4) + Duration::from_ns(1_750);
    let (ends, log) = Lab { stop, ..Lab::udp() }.run();
    let reports: Vec<Report> = ends.into_iter().map(|end| end.expect("no fault")).collect();
    let under_way = reports.iter().map(|report| report.in_flight.on_cables.total());
    assert_eq!(under_way.collect::<Vec<_>>(), [2, 1]);
    assert_eq!(log.lock().expect("no test thread panicked").len(), 5);
}

/// The mesh of process 0, and the socket of process 1.
fn half(lab: Lab) -> (Mesh, Lines, Sockets) {
    let Lab { wiring, hosts, sockets, peers: [peers, _], bare, .. } = lab;
    let lines = Lines::new(&wiring, &hosts, 0, false).expect("a good wiring");
    let (process, epoch, secret) = (0, EPOCH, SECRET);
    let session = Session { process, epoch, secret, peers, datagram_max: DATAGRAM_MAX, stop: STOP };
    let [own, other] = <[Sockets; 2]>::try_from(sockets).expect("two processes");
    (Mesh::new(own, bare, session, &lines, &wiring).expect("a mesh"), lines, other)
}

/// The mesh of process 0 and its address, and the socket of process 1, which the test plays.
fn played(lab: Lab) -> (Mesh, Lines, DatagramSocket, Peer) {
    let victim = lab.peers[0][0].clone();
    let (mesh, lines, tester) = half(lab);
    let Sockets::Datagrams(tester) = tester else { panic!("a socket") };
    (mesh, lines, tester, victim)
}

/// A pledge that nothing the neighbour sends can break.
const fn until(ps: u64) -> Pledge {
    Pledge { until: Instant::from_ps(ps), idle: Instant::from_ps(ps) }
}

const PROMISE: Promise = Promise {
    flags: 0,
    sender: 1,
    epoch: EPOCH,
    secret: SECRET,
    pledge: until(500_000),
    number: 0,
    complete: 0,
    frames: 0,
};

#[test]
fn each_datagram_that_is_refused_has_its_own_reason() {
    let (mut mesh, lines, tester, victim) = played(Lab::udp());
    let stranger = udp::open(LOOPBACK).expect("loopback is there");
    let good = PROMISE.emit().to_vec();
    let with = |at: usize, octet: u8| {
        let mut octets = good.clone();
        octets[at] = octet;
        octets
    };
    let foreign = Promise { epoch: EPOCH + 1, ..PROMISE }.emit().to_vec();
    let forged = Promise { secret: Secret::new([8; 16]), ..PROMISE }.emit().to_vec();
    let bad = [good[..9].to_vec(), with(0, 0), with(4, 99), with(5, 99), foreign, forged];
    let send = |from: &DatagramSocket, octets: &[u8]| {
        assert_eq!(from.send(std::iter::once((&victim, octets))).expect("loopback takes it"), 1);
    };
    send(&stranger, &good);
    bad.iter().for_each(|octets| send(&tester, octets));
    // Loopback delivers before it returns. A few calls suffice, and one that does not count leaves no test waiting.
    for _ in 0..100 {
        mesh.receive(&lines, |_, _, _| {}).expect("nothing is broken");
    }
    let rejected = Rejected {
        foreign: 1,
        truncated: 1,
        magic: 1,
        version: 1,
        other_version: Some(99),
        kind: 1,
        epoch: 1,
        secret: 1,
        ..Rejected::default()
    };
    assert_eq!(mesh.report().rejected, rejected);
}

#[test]
fn a_datagram_that_does_not_fit_the_buffer_is_refused_as_a_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut mesh, lines, tester, victim) = played(Lab::unix(directory.path()));
    let long = [&PROMISE.emit()[..], &[0; 65_507]].concat();
    assert_eq!(tester.send(std::iter::once((&victim, &long[..]))).expect("room"), 1);
    mesh.receive(&lines, |_, _, _| {}).expect("nothing is broken");
    assert_eq!(mesh.report().rejected, Rejected { oversize: 1, ..Rejected::default() });
}

/// Frames of others on the interfaces are refused, by their shim or by their octets.
#[test]
fn frames_that_nothing_has_announced_are_counted_and_not_delivered() {
    for bare in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let Some((lab, namespaces)) = Lab::packets(bare, directory.path()) else { return };
        let (wiring, peers) = (chain(), lab.peers[1].clone());
        let (mut mesh, lines, sockets) = half(lab);
        let theirs = Lines::new(&wiring, &[0, 0, 1], 1, false).expect("a good wiring");
        let (process, epoch, secret, stop) = (1, EPOCH, SECRET, STOP);
        let session = Session { process, epoch, secret, peers, datagram_max: DATAGRAM_MAX, stop };
        let mut relay = Mesh::new(sockets, bare, session, &theirs, &wiring).expect("a mesh");
        let path = format!("/proc/self/fd/{}", namespaces[1].descriptor());
        let open = || PacketSocket::open("r0");
        let mut noise = within(Some(Path::new(&path)), open).expect("a socket");
        let octets = [0xff; 64];
        let frame = OutgoingFrame { head: &[], octets: &octets };
        assert_eq!(noise.send(std::iter::once(frame)).expect("room"), 1);
        let line = theirs.outgoing(0, PortNumber::from_index(0)).expect("a cable");
        let frame = Frame::intact(FrameKind::Ethernet, bytes::BytesMut::zeroed(64));
        relay.send(line, frame, Instant::from_ps(1_000));
        relay.flush(Instant::from_ps(2_000), Instant::ZERO).expect("no fault");
        let mut delivered = 0;
        while delivered == 0 {
            mesh.receive(&lines, |_, _, _| delivered += 1).expect("nothing is broken");
        }
        // The system may have sent frames of its own before.
        assert!(mesh.report().rejected.foreign >= 1 && delivered == 1);
    }
}

#[test]
fn promises_answers_and_failures_of_a_mesh_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut mesh, lines, tester, victim) = played(Lab::unix(directory.path()));
    let flush = |mesh: &mut Mesh, windows: u64| {
        let at = Instant::ZERO + mesh.window() * windows;
        mesh.flush(at, at).expect("no fault");
    };
    flush(&mut mesh, 1);
    assert_eq!(tester.send(std::iter::once((&victim, &PROMISE.emit()[..]))).expect("room"), 1);
    mesh.receive(&lines, |_, _, _| {}).expect("nothing is broken");
    mesh.answer();
    let counts = SendCounts { datagrams: 1, alone: 1, asides: 1, ..SendCounts::default() };
    assert_eq!(mesh.report().sending, counts);
    let mut at = 1;
    while !mesh.waiting() {
        at += 1;
        flush(&mut mesh, at);
    }
    let full = SendCounts { datagrams: at - 1, alone: at, deferred: 1, ..counts };
    assert_eq!(mesh.report().sending, full);
    drop(tester);
    mesh.transmit();
    assert_eq!(mesh.report().sending.errors, 1);
}

/// A peer whose process gets no time costs no more than some datagrams, and gets a pledge as soon as it answers.
#[test]
fn a_peer_that_answers_nothing_is_sent_few_promises() {
    let (mut mesh, lines, tester, victim) = played(Lab::udp());
    let flush = |mesh: &mut Mesh, windows: u64| {
        let at = Instant::ZERO + mesh.window() * windows;
        mesh.flush(at, at).expect("no fault");
        mesh.report().sending.alone
    };
    let alone = (1..=3_000).map(|windows| flush(&mut mesh, windows)).last();
    assert_eq!(alone, Some(512));
    let answer = Promise { flags: Promise::ASIDE, complete: 100, ..PROMISE };
    tester.send(std::iter::once((&victim, &answer.emit()[..]))).expect("loopback takes it");
    assert!(mesh.receive(&lines, |_, _, _| {}).expect("nothing is broken"), "there is room again");
    assert_eq!(flush(&mut mesh, 3_000), 513);
    assert!(!mesh.receive(&lines, |_, _, _| {}).expect("nothing is broken"));
}

/// Nothing happens in this process for a long time, and its peer runs: it acknowledges what it gets.
#[test]
fn a_process_with_nothing_to_send_acknowledges() {
    let (mut mesh, lines, tester, victim) = played(Lab::udp());
    mesh.flush(Instant::ZERO, Instant::NEVER).expect("no fault");
    for number in 0..600 {
        let pledge = until(500_000 + number);
        let promise = Promise { number, pledge, ..PROMISE };
        tester.send(std::iter::once((&victim, &promise.emit()[..]))).expect("loopback takes it");
        mesh.receive(&lines, |_, _, _| {}).expect("nothing is broken");
        mesh.flush(Instant::ZERO, Instant::NEVER).expect("no fault");
    }
    let counts = SendCounts { datagrams: 1, alone: 1, asides: 2, ..SendCounts::default() };
    assert_eq!(mesh.report().sending, counts);
}

/// Long before its end this run has nothing more to do, and processes leap to it: each reports how far it is, and no more.
#[test]
fn quiet_processes_leap() {
    let stop = Instant::from_ps(100 * STOP.as_ps());
    for hosts in [[0, 0, 1], [0, 1, 1]] {
        let (ends, log) = Lab { stop, hosts, ..Lab::udp() }.run();
        let reports: Vec<Report> = ends.into_iter().map(|end| end.expect("no fault")).collect();
        assert_eq!(log.lock().expect("no test thread panicked").len() as u32, FRAMES);
        for Report { exchange, .. } in reports {
            let SendCounts { datagrams, alone, .. } = exchange.sending;
            assert!(alone < 200 && datagrams < 400, "{alone} of {datagrams}");
        }
    }
}

/// A frame that a pledge excluded would come too late: the run ends, and does not compute without it.
#[test]
fn a_frame_from_the_past_ends_the_run() {
    let mut lab = Lab { hosts: [1, 0, 0], ..Lab::udp() };
    let Some(Sockets::Datagrams(tester)) = lab.sockets.pop() else { panic!("two sockets") };
    let victim = lab.peers[0][0].clone();
    let theirs = Lines::new(&lab.wiring, &lab.hosts, 1, false).expect("a good wiring");
    let line = *theirs.outgoing(0, PortNumber::from_index(0)).expect("a cable");
    let idle = Promise { pledge: Pledge { idle: STOP, ..PROMISE.pledge }, ..PROMISE };
    let frame = Frame::intact(FrameKind::Ethernet, bytes::BytesMut::zeroed(64));
    let mut early = Promise { number: 1, frames: 1, ..PROMISE }.emit().to_vec();
    early.extend(line.shim(&frame, EPOCH, 0, PROMISE.pledge.until).emit());
    early.extend_from_slice(&frame.octets);
    let send = |octets: &[u8]| tester.send(std::iter::once((&victim, octets))).expect("room");
    let ends = std::thread::scope(|scope| {
        let run = scope.spawn(|| lab.run().0);
        assert_eq!(send(&idle.emit()), 1);
        // Until the worker is where the pledge lets it be.
        let end = monotonic_ns() + 300_000_000;
        timer::wait(None, end);
        assert_eq!(send(&early), 1);
        run.join().expect("no panic")
    });
    let fault = ends.into_iter().next().expect("one worker").expect_err("a fault");
    assert!(fault.what.contains("a frame arrives at"), "{fault}");
}

#[test]
fn a_cable_without_delay_promises_nothing_and_is_refused() {
    let mut wiring = chain();
    wiring.links[1].delay = Duration::ZERO;
    let lines = Lines::new(&wiring, &[0, 0, 1], 0, false).expect("a good wiring");
    let socket = udp::open(LOOPBACK).expect("loopback is there");
    let peers = vec![address(&socket); 2];
    let (process, epoch, secret) = (0, EPOCH, SECRET);
    let session = Session { process, epoch, secret, peers, datagram_max: DATAGRAM_MAX, stop: STOP };
    let refused = Mesh::new(Sockets::Datagrams(socket), false, session, &lines, &wiring);
    let text = refused.expect_err("no lookahead").to_string();
    assert!(text.contains("relay:2 – sink:1 has no delay"), "{text}");
}
