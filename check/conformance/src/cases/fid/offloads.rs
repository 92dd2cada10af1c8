//! FID-12 live: two kernels with a switch between them leave cutting and checksums to hardware that is not there.

use crate::prelude::*;
use crate::stage;
use daemon::PortInterface;
use emulation::cable::Carrier;
use emulation::cable::host::Host;
use emulation::cable::namespace::Namespace;
use emulation::cable::packet_socket::{PacketSocket, ReceiveBuffers};
use emulation::clock::{Stopwatch, monotonic_ns};
use emulation::driver::Report;
use emulation::timer;
use emulation::wiring::Attached;
use launch::Job;
use launch::daemons::tester::{self, TesterRun};
use launch::daemons::{Cabling, Setup};
use launch::placement::Hosting;
use proto::counters::Drops;
use proto::wire::internet::checksum;
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// A switch between two interfaces. What its ports carry is less than what the hosts may send.
const SCENARIO: &str = include_str!("offloads.toml");

/// What the hosts' interfaces carry: the sender's more than a port does.
const HOST_MTU: [u32; 2] = [9_000, 1_500];
/// Octets that go by UDP in one call, and of each datagram that they are to become.
const DATAGRAMS: usize = 46;
const SEGMENT: usize = 1_400;
/// Octets of a datagram that no port carries.
const ABOVE: usize = 4_000;
/// Octets that go by TCP.
const STREAM: usize = 4 << 20;
/// The port of the discard service. Source: RFC 863.
const DISCARD: u16 = 9;
/// Ethernet, IPv4 without options, UDP.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
/// Everything is over by then, on a busy host too.
const WITHIN_S: f64 = 3.0;

/// What the far host got.
struct Transfer {
    datagrams: Vec<Vec<u8>>,
    stream: Vec<u8>,
}

/// FID-12.
pub fn offloads(_: Level) -> Finding {
    let scenario = stage::read(SCENARIO)?;
    let lab = render(&scenario);
    let bench = Bench::set().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Failure::Skipped(format!("making network namespaces takes CAP_SYS_ADMIN: {error}"))
        }
        _ => Failure::Inconclusive(error.to_string()),
    })?;
    let TesterRun { reports, found: (data, _bench), .. } = run(&scenario, &lab, bench)?;
    let data = data.map_err(|error| Failure::Failed(format!("between the hosts: {error}")))?;
    let report = reports.first().ok_or("no daemon has reported")?;
    judge_account(report)?;
    judge_datagrams(&data.datagrams)?;
    ensure!(data.stream == stream(), "the stream of TCP is not what was sent");
    Ok(format!("{DATAGRAMS} datagrams of {SEGMENT}, {STREAM} octets by TCP, one frame too long"))
}

/// Two hosts, and the namespace where the ports of the switch are.
struct Bench {
    between: Namespace,
    hosts: [Host; 2],
}

impl Bench {
    fn set() -> io::Result<Bench> {
        let between = Namespace::make(1)?.pop().ok_or(io::ErrorKind::NotFound)?;
        let [near, far] = HOST_MTU;
        let hosts = [Host::cabled(1, &between, "a", near)?, Host::cabled(2, &between, "b", far)?];
        Ok(Bench { between, hosts })
    }

    /// The interfaces that the scenario names, where they really are.
    fn cabling(&self, lab: &Lab) -> Cabling {
        let descriptor = self.between.descriptor();
        let namespace = PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id()));
        let interface = |attached: &Attached| PortInterface {
            at: attached.at,
            namespace: Some(namespace.clone()),
            name: attached.interface.clone(),
        };
        let interfaces = lab.fabric.wiring.attached.iter().map(interface).collect();
        Cabling { carrier: Carrier::Packet, bare: true, interfaces }
    }

    /// Everything that one host sends the other.
    fn play(&self) -> io::Result<Transfer> {
        let [near, far] = &self.hosts;
        // First, since it repeats what is lost before the switch has learnt the addresses.
        let received = transfer(near, far)?;
        let witness = far.watch()?;
        let to = SocketAddrV4::new(far.address, DISCARD);
        let octets: Vec<u8> = (0..DATAGRAMS * SEGMENT).map(pattern).collect();
        near.send(to, &octets, Some(SEGMENT as u16))?;
        near.send(to, &octets[..ABOVE], None)?;
        Ok(Transfer { datagrams: listen(&witness), stream: received })
    }
}

fn run(
    scenario: &Scenario,
    lab: &Lab,
    bench: Bench,
) -> Result<TesterRun<(io::Result<Transfer>, Bench)>> {
    let scratch = tempfile::tempdir().map_err(Failure::of_host)?;
    // The hosts at the other ends run in real time, and so must the fabric.
    let job = Job::new(scenario, lab, scratch.path());
    let hosting = Hosting::new(&lab.fabric.wiring, job.run.placement, 1);
    let setting = Setup::new(hosting, bench.cabling(lab));
    let player = move |start: &tester::RunStart| {
        start.wait_until(ms(100));
        (bench.play(), bench)
    };
    tester::run(&job, setting, player).map_err(stage::died)
}

/// Octet `n` of what is sent: no two segments are alike.
fn pattern(n: usize) -> u8 {
    (n ^ (n >> 8).wrapping_mul(31)) as u8
}

fn stream() -> Vec<u8> {
    (0..STREAM).map(pattern).collect()
}

/// Sends the stream from one host to the other; what came.
fn transfer(near: &Host, far: &Host) -> io::Result<Vec<u8>> {
    const PATIENCE: Duration = Duration::from_secs(3);
    let listener = far.within(|| TcpListener::bind((far.address, 0)))?;
    let to = listener.local_addr()?;
    let mut sender = near.within(|| TcpStream::connect_timeout(&to, PATIENCE))?;
    let (mut receiver, _) = listener.accept()?;
    sender.set_write_timeout(Some(PATIENCE))?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let sending = std::thread::spawn(move || sender.write_all(&stream()));
    let mut received = Vec::new();
    receiver.read_to_end(&mut received)?;
    sending.join().map_err(|_| io::Error::other("the sender panicked"))??;
    Ok(received)
}

/// The datagrams that reach the witness, with their headers, until all are there or time is over.
fn listen(witness: &PacketSocket) -> Vec<Vec<u8>> {
    const LOOK_EVERY_NS: u64 = 5_000_000;
    let stopwatch = Stopwatch::start();
    let (mut room, mut datagrams) = (ReceiveBuffers::default(), Vec::new());
    while datagrams.len() < DATAGRAMS && stopwatch.seconds() < WITHIN_S {
        timer::wait(None, monotonic_ns() + LOOK_EVERY_NS);
        witness.receive(&mut room, |inward| {
            let Ok(inward) = inward else { return };
            let is_ours = inward.octets.get(ETHERNET + IPV4 + 2..ETHERNET + IPV4 + 4)
                == Some(&DISCARD.to_be_bytes());
            // Protocol 17 in IPv4.
            if is_ours && inward.octets[12..14] == [8, 0] && inward.octets[23] == 17 {
                datagrams.push(inward.octets.to_vec());
            }
        });
    }
    datagrams
}

/// Nothing was refused or lost, and the one frame above the MTU was dropped for that reason.
fn judge_account(report: &Report) -> Result<()> {
    let outside = report.exchange.outside.as_ref();
    let overflows = outside.map_or(0, |tally| tally.overflows);
    if overflows > 0 {
        return Err(Failure::Inconclusive(format!("the sockets lost {overflows} frames")));
    }
    same("frames refused at the sockets", report.exchange.rejected.total(), 0)?;
    same("frames that no interface took", outside.map_or(0, |tally| tally.unsent.total()), 0)?;
    let mut drops = Drops::default();
    let ports = report.recording.last.iter().flat_map(|device| &device.ports);
    ports.for_each(|port| drops.merge(&port.drops));
    same("frames above the MTU dropped", drops.get(DropReason::Mtu), 1)?;
    // A switch floods frames to unknown addresses only so often; TCP repeats what was lost.
    let others = drops.total() - drops.get(DropReason::Mtu) - drops.get(DropReason::FloodLimit);
    same("other frames dropped", others, 0)
}

/// All came, in order, none longer than the MTU, with right checksums and what was sent.
fn judge_datagrams(datagrams: &[Vec<u8>]) -> Result<()> {
    same("datagrams", datagrams.len(), DATAGRAMS)?;
    for (number, frame) in datagrams.iter().enumerate() {
        let (ip, datagram) = frame[ETHERNET..].split_at(IPV4);
        same(format!("octets of frame {number}"), frame.len(), ETHERNET + IPV4 + UDP + SEGMENT)?;
        let field = |at: usize| u16::from_be_bytes([datagram[at], datagram[at + 1]]);
        same(format!("length field of datagram {number}"), field(4), (UDP + SEGMENT) as u16)?;
        let computed = checksum::udp(&ip[12..], datagram);
        same(format!("checksum of datagram {number}"), field(6), computed)?;
        checksum::verify_ipv4_header(ip).map_err(|error| format!("frame {number}: {error}"))?;
        let sent = (number * SEGMENT..(number + 1) * SEGMENT).map(pattern);
        ensure!(datagram[UDP..].iter().copied().eq(sent), "datagram {number} holds something else");
    }
    Ok(())
}
