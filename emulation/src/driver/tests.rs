//! Workers in threads of this process, over real sockets, in wall-clock time.

use super::account::Account;
use super::*;
use crate::cable::datagram::{DatagramSocket, Peer};
use crate::cable::exchange::packets::PortSocket;
use crate::cable::exchange::{DATAGRAM_MAX, ExchangeReport, Session, Sockets};
use crate::cable::impairment::Injected;
use crate::cable::interface::{PairEnd, address_of};
use crate::cable::lines::Lines;
use crate::cable::namespace::{Namespace, within};
use crate::cable::packet_socket::PacketSocket;
use crate::cable::reconcile::reconcile;
use crate::cable::shim::SendingEnd;
use crate::cable::{FrameTally, udp, unix};
use crate::clock::Clock;
use crate::fidelity::judge;
use crate::recorder::{Recorder, RecordingPlan};
use crate::wiring::{Action, End, FrameFilter, Impairment, Wiring};
use proto::frame::FrameKind;
use proto::ids::PortNumber;
use proto::units::Duration;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::toy::{CHAIN, Log, Toy, arrival};

/// The traffic then takes milliseconds of wall time.
const DILATION: NonZeroU64 = NonZeroU64::new(500).expect("not zero");
const FRAMES: u32 = 60;
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Quiet(AtomicBool);

impl Supervisor for Quiet {
    fn stop_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn beat(&self, _: Beat) {}
}

struct Lab {
    wiring: Wiring,
    hosts: [usize; 3],
    local: bool,
    stop: Instant,
    bare: bool,
    sockets: Vec<Sockets>,
    peers: Vec<Peer>,
}

impl Lab {
    fn udp(hosts: [usize; 3], local: bool) -> Lab {
        let open = |_| udp::open(LOOPBACK).expect("loopback is there");
        let sockets: Vec<_> = (0..2).map(open).collect();
        let peer = |s: &DatagramSocket| udp::peer(s.address()).expect("its own address");
        let peers = sockets.iter().map(peer).collect();
        // The traffic takes a quarter of it: a host may pause for the rest.
        let stop = Instant::from_ps(500_000_000);
        let sockets = sockets.into_iter().map(Sockets::Datagrams).collect();
        Lab {
            wiring: serde_json::from_str(CHAIN).expect("a wiring"),
            hosts,
            local,
            stop,
            bare: false,
            sockets,
            peers,
        }
    }

    fn unix(directory: &std::path::Path) -> Lab {
        let open = |process| unix::open(directory, process).expect("a fresh directory");
        let sockets: Vec<_> = (0..2).map(open).collect();
        let peer = |s: &DatagramSocket| unix::peer(s.address()).expect("its own address");
        let peers = sockets.iter().map(peer).collect();
        let sockets = sockets.into_iter().map(Sockets::Datagrams).collect();
        Lab { peers, sockets, ..Lab::udp([0, 0, 1], false) }
    }

    /// The relay in a process and a namespace of its own, the other devices in another; `None` without the
    /// rights for that. Keep the returned namespaces as long as the lab.
    fn packets(bare: bool) -> Option<(Lab, Vec<Namespace>)> {
        let namespaces = match Namespace::make(2) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                skip::because!("making network namespaces takes CAP_SYS_ADMIN: {error}");
                return None;
            }
            made => made.expect("two namespaces"),
        };
        let mut sockets = [Vec::new(), Vec::new()];
        // Source and sink are devices 0 and 1 of process 0, the relay is device 0 of process 1.
        for (link, device) in [(0, 0), (1, 1)] {
            let names = [format!("e{link}"), format!("r{link}")];
            let end = |side: usize, end| PairEnd {
                name: &names[side],
                address: address_of(link, end),
                namespace: namespaces[side].as_fd(),
            };
            let ends = (end(0, SendingEnd::A), end(1, SendingEnd::B));
            namespaces[0].interfaces.make_pair(ends.0, ends.1, 1_500).expect("a pair");
            for (side, namespace) in namespaces.iter().enumerate() {
                namespace.interfaces.switch_on(&names[side], "a test").expect("it is there");
                let path = format!("/proc/self/fd/{}", namespace.descriptor());
                let open = || PacketSocket::open(&names[side]);
                let socket = within(Some(std::path::Path::new(&path)), open).expect("a socket");
                let (device, port) = if side == 0 { (device, 0) } else { (0, link as usize) };
                let port = PortNumber::from_index(port);
                let socket = socket.into();
                sockets[side].push(PortSocket { device, port, socket, watch: None });
            }
        }
        let sockets =
            sockets.into_iter().map(|ports| Sockets::Packets(ports, Vec::new())).collect();
        let lab = Lab { bare, sockets, ..Lab::udp([0, 0, 1], false) };
        Some((lab, namespaces))
    }

    /// What both workers need.
    fn assignments(self, clock: &Clock, log: &Log) -> Vec<Assignment> {
        let mut assignments = vec![];
        for (process, sockets) in self.sockets.into_iter().enumerate() {
            let lines =
                Lines::new(&self.wiring, &self.hosts, process, self.local).expect("a good wiring");
            let session = Session {
                epoch: 9,
                peers: self.peers.clone(),
                datagram_max: DATAGRAM_MAX,
                bare: self.bare,
                clock: clock.clone(),
            };
            let toys = [(1, FRAMES), (1, 0), (2, 0)].into_iter().zip(self.hosts);
            let own = toys.filter(|(_, host)| *host == process);
            let nodes = (0..3).filter(|node| self.hosts[*node] == process);
            let plan = RecordingPlan {
                tau: Duration::from_ns(2_000),
                stop: self.stop,
                bin: Duration::from_us(20),
                edges: vec![],
                measured: vec![],
                all_events: false,
                named: Vec::new(),
                watched: false,
            };
            assignments.push(Assignment {
                process,
                processes: 2,
                clock: clock.clone(),
                begin: Instant::ZERO,
                recorder: Recorder::new(plan.clone(), &self.wiring, nodes.collect()),
                plan,
                devices: own.map(|((ports, send), _)| Toy::boxed(ports, send, log)).collect(),
                impairers: impairers(&self.wiring, 3),
                exchange: Exchange::new(sockets, session, &lines)
                    .expect("every cable has its interface"),
                lines,
            });
        }
        assignments
    }

    /// Workers that have not begun.
    fn workers(self) -> Vec<Worker> {
        let clock = Clock::new(monotonic_ns() + 20_000_000, DILATION);
        let assignments = self.assignments(&clock, &Log::default()).into_iter();
        assignments.map(|run| Worker::new(run, Priority::Normal)).collect()
    }

    /// Runs both workers. Returns their reports and the sink's log.
    fn run(self, stop_after: Option<std::time::Duration>) -> (Vec<Report>, Log) {
        let log = Log::default();
        let clock = Clock::new(monotonic_ns() + 20_000_000, DILATION);
        let quiet = Quiet(AtomicBool::new(false));
        let assignments = self.assignments(&clock, &log);
        let reports = std::thread::scope(|scope| {
            let start = |run| scope.spawn(|| Worker::new(run, Priority::Normal).run(&quiet));
            let threads: Vec<_> = assignments.into_iter().map(start).collect();
            if let Some(pause) = stop_after {
                timer::wait(None, clock.origin_ns() + pause.as_nanos() as u64);
                quiet.0.store(true, Ordering::Relaxed);
            }
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        (reports, log)
    }
}

fn accounts(reports: &[Report]) -> impl Iterator<Item = &ExchangeReport> {
    reports.iter().map(|report| &report.exchange)
}

/// Every frame arrived, in order, at exactly the instant that the model gives: the lateness of the workers was
/// not inherited from hop to hop.
fn assert_complete(reports: &[Report], log: &Log) {
    let log = log.lock().expect("no test thread panicked");
    let seen: Vec<_> = log.iter().map(|(number, arrived, _)| (*number, *arrived)).collect();
    let expected: Vec<_> = (0..FRAMES).map(|number| (number, arrival(number))).collect();
    assert_eq!(seen, expected);
    assert_eq!(reconcile(accounts(reports)).lost.total(), 0);
    let departures: u64 = reports.iter().map(|report| report.departures).sum();
    assert_eq!(departures, u64::from(FRAMES) * 2);
    let late: u64 = reports.iter().map(|report| report.lateness.frames.count()).sum();
    // On a busy host frames that were handled late count in addition to departures.
    assert!(late >= departures, "without windows every departure is measured");
    assert_eq!(evidence(reports, vec![]).lateness.frames.count(), late);
    for report in reports {
        let binned: u64 = report.timeline.iter().map(|bin| bin.departures).sum();
        assert_eq!(binned, report.departures);
        assert_eq!((report.cut_short, report.in_flight), (false, InFlight::default()));
    }
}

#[test]
fn a_chain_over_udp_delivers_every_frame_in_order_at_its_exact_instant() {
    let (reports, log) = Lab::udp([0, 0, 1], false).run(None);
    assert_complete(&reports, &log);
    let judged = judge(&evidence(&reports, vec![]), DILATION);
    eprintln!("UDP: {judged:?}");
    assert_eq!(judged.transport_lost, 0);
}

#[test]
fn a_chain_over_unix_datagrams_does_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let (reports, log) = Lab::unix(directory.path()).run(None);
    assert_complete(&reports, &log);
    let left = std::fs::read_dir(directory.path()).expect("still there").count();
    assert_eq!(left, 0, "sockets are removed with their workers");
}

#[test]
fn a_chain_over_packet_sockets_does_the_same_behind_the_shim() {
    let Some((lab, _namespaces)) = Lab::packets(false) else { return };
    let (reports, log) = lab.run(None);
    assert_complete(&reports, &log);
    assert!(reports.iter().all(|report| report.exchange.rejected.total() == 0), "{reports:?}");
}

/// Without stamps a frame arrives when it was sent plus the delay: in order, and never before the model's
/// instant, since no frame leaves early.
#[test]
fn a_chain_of_bare_cables_delivers_every_frame_and_none_before_its_instant() {
    let Some((lab, _namespaces)) = Lab::packets(true) else { return };
    let (reports, log) = lab.run(None);
    let log = log.lock().expect("no test thread panicked");
    let seen: Vec<_> = log.iter().map(|(number, ..)| *number).collect();
    assert_eq!(seen, (0..FRAMES).collect::<Vec<_>>());
    for (number, arrived, _) in log.iter() {
        assert!(*arrived >= arrival(*number), "frame {number} at {arrived:?}");
    }
    assert_eq!(reconcile(accounts(&reports)).lost.total(), 0);
    let sent: u64 =
        accounts(&reports).flat_map(|account| &account.sent).map(|line| line.sent.total()).sum();
    assert_eq!(sent, u64::from(FRAMES) * 2);
}

#[test]
fn a_process_talks_to_itself_through_its_socket_or_through_memory() {
    for local in [false, true] {
        let (reports, log) = Lab::udp([0, 0, 0], local).run(None);
        assert_complete(&reports, &log);
        let lines = reports[0].exchange.sent.len();
        assert_eq!(lines, if local { 0 } else { 4 });
    }
}

#[test]
fn memory_and_socket_cables_meet_in_one_process() {
    let (reports, log) = Lab::udp([0, 1, 1], true).run(None);
    assert_complete(&reports, &log);
    let lines = reports.iter().map(|report| report.exchange.sent.len());
    assert_eq!(lines.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn noise_from_a_third_socket_is_counted_and_harmless() {
    let lab = Lab::udp([0, 0, 1], false);
    let victim = udp::peer(&lab.sockets[1].address()).expect("an address");
    let noise = udp::open(LOOPBACK).expect("loopback is there");
    let big = vec![0x70; 60_000];
    let garbage = [&b"garbage"[..], b"pbed", b"", &big];
    let sent = noise.send(garbage.iter().map(|octets| (&victim, *octets)));
    assert_eq!(sent.expect("loopback takes it"), garbage.len());
    let (reports, log) = lab.run(None);
    assert_complete(&reports, &log);
    assert_eq!(reports[1].exchange.rejected.foreign, 4);
    assert_eq!(reports[0].exchange.rejected.total(), 0);
}

#[test]
fn injected_faults_are_counted_as_such_and_are_no_loss_of_the_transport() {
    let mut lab = Lab::udp([0, 0, 1], false);
    let from = End { node: 0, port: PortNumber::from_index(0) };
    let fault = |action| Impairment { from, frames: FrameFilter::All, action, chance: (1, 4) };
    lab.wiring.impairments = vec![fault(Action::Lose), fault(Action::Duplicate)];
    let (reports, log) = lab.run(None);
    let injected = reports[0].injected;
    assert!(injected.lost.total() > 0 && injected.duplicated.total() > 0, "{injected:?}");
    assert_eq!(reports[1].injected, Injected::default());
    assert_eq!(reconcile(accounts(&reports)).lost.total(), 0);
    // On a busy host some frames may be in flight when the run ends.
    let under_way = reports.iter().map(|report| report.in_flight);
    let under_way = under_way.map(|flying| flying.on_the_line.plus(flying.on_cables).total());
    let delivered = log.lock().expect("no test thread panicked").len() as u64;
    let expected = u64::from(FRAMES) + injected.duplicated.total() - injected.lost.total();
    assert_eq!(delivered + under_way.sum::<u64>(), expected);
}

/// Injected = delivered + in a device + in flight, whenever the run is stopped.
#[test]
fn a_stop_in_the_middle_accounts_for_every_frame() {
    let mut planned = Lab::udp([0, 0, 1], false);
    planned.stop = Instant::from_ps(41_234_567);
    let told = Lab::udp([0, 0, 1], false);
    let runs = [planned.run(None), told.run(Some(std::time::Duration::from_millis(31)))];
    for (reports, log) in runs {
        assert_eq!(reconcile(accounts(&reports)).lost.total(), 0);
        // A relay holds no frames: each frame of the source is one departure there, one here, and then
        // delivered; or in flight in between.
        let [end, middle] = &reports[..] else { panic!("two workers") };
        let line = |report: &Report| report.in_flight.on_the_line.total();
        let cable = |report: &Report| report.in_flight.on_cables.total();
        let delivered = log.lock().expect("no test thread panicked").len() as u64;
        assert_eq!(end.departures, cable(middle) + line(middle) + middle.departures);
        assert_eq!(middle.departures, cable(end) + delivered);
        assert!(delivered < u64::from(FRAMES), "the stop came before the end of the traffic");
    }
}

fn frame() -> Frame {
    Frame::intact(FrameKind::Infiniband, bytes::BytesMut::zeroed(64))
}

fn frames(end_to_end: u64) -> FrameTally {
    FrameTally { end_to_end, link_local: 0 }
}

/// The account of a worker a picosecond later.
fn account(worker: &mut Worker) -> Account {
    let (sender, receiver) = std::sync::mpsc::channel();
    let at = worker.now.max(worker.clock_read) + Duration::from_ps(1);
    worker.await_account(at, Box::new(move |account| sender.send(account).expect("it waits")));
    worker.make_account(at);
    *receiver.recv().expect("an answer").expect("nothing happens before")
}

/// What a neighbour has sent and no device has handled is under way in an account, and lost if that neighbour ends.
#[test]
fn frames_that_wait_are_under_way_and_those_of_a_process_that_ended_are_lost() {
    let [mut end, mut middle] = Lab::udp([0, 0, 1], false).workers().try_into().ok().expect("two");
    let first = PortNumber::from_index(0);
    let line = *end.run.lines.outgoing(0, first).expect("a cable");
    (0..3).for_each(|_| end.run.exchange.send(&line, frame(), Instant::ZERO));
    end.run.exchange.flush();
    while middle.arrivals.iter().count() < 3 {
        middle.receive();
    }
    let counted = |report: &ExchangeReport| {
        let lines = report.received.iter().filter(|from| from.end == line.end);
        lines.map(|from| from.counts.received).next()
    };
    assert_eq!(counted(&middle.run.exchange.report(&middle.run.lines)), Some(frames(3)));
    let counts = account(&mut middle);
    assert_eq!(counted(&counts.exchange), Some(FrameTally::default()));
    middle.part_from(0);
    assert_eq!(middle.peers_changed, 1);
    let back = *middle.run.lines.outgoing(0, first).expect("a cable");
    middle.run.exchange.send(&back, frame(), Instant::ZERO);
    let ended = account(&mut middle).exchange.ended;
    assert_eq!((ended.given, ended.taken), (FrameTally::default(), frames(1)));
}

#[test]
fn frames_between_devices_of_a_process_are_on_cables_in_its_account() {
    let mut workers = Lab::udp([0, 1, 1], true).workers();
    let (at, port) = (Instant::from_ps(9), PortNumber::from_index(0));
    workers[1].feed(FedFrame { device: 0, port, at, frame: frame() });
    let in_flight = account(&mut workers[1]).in_flight;
    assert_eq!(in_flight, InFlight { on_cables: frames(1), ..InFlight::default() });
}

#[test]
fn departures_by_a_port_without_a_cable_are_counted() {
    let mut lab = Lab::udp([0, 0, 1], false);
    lab.wiring.links.truncate(1);
    let (reports, log) = lab.run(None);
    assert!(log.lock().expect("no test thread panicked").is_empty());
    assert_eq!(reports[1].unwired, u64::from(FRAMES));
}
