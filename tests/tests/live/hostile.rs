//! Foreign and forged datagrams to the sockets of daemons.
//!
//! A datagram from an unknown source has one reason for refusal. The other reasons need datagrams with a
//! peer's source port, which a raw socket can forge (CAP_NET_RAW).

use emulation::cable::shim::{MAGIC, SendingEnd, Shim};
use emulation::clock::monotonic_ns;
use emulation::timer;
use proto::frame::FrameKind;
use proto::units::Instant;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// Every kind of invalid datagram: its name, its octets, and the reason for refusal if a peer sends it.
pub fn nonsense() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let shim = Shim {
        kind: FrameKind::Infiniband,
        flags: 0,
        end: SendingEnd::A,
        link: 0,
        // Only the daemons have the real epoch; a random one matches it with probability 2^-32.
        epoch: 0x5eed_5eed,
        sequence: 0,
        length: 100,
        stamp: Instant::from_ps(1),
    };
    let changed = |at: usize, octet: u8| {
        let mut octets = record(&shim, 100);
        octets[at] = octet;
        octets
    };
    vec![
        ("garbage", (0..200u8).map(|octet| octet ^ 0xa5).collect(), "magic"),
        ("a single octet", vec![0x70], "truncated"),
        ("half a shim", record(&shim, 0)[..17].to_vec(), "truncated"),
        ("less than it announces", record(&shim, 40), "truncated"),
        ("65000 octets", record(&Shim { length: 64_968, ..shim }, 64_968), "oversize"),
        ("another run's frame", record(&shim, 100), "epoch"),
        ("a link that is none", record(&Shim { link: u32::MAX, ..shim }, 100), "epoch"),
        ("an end that is none", changed(7, 9), "link"),
        ("a frame of no known kind", changed(5, 77), "kind"),
        ("another version's frame", changed(4, 200), "version"),
        ("only the magic", MAGIC.to_vec(), "truncated"),
    ]
}

fn record(shim: &Shim, body: usize) -> Vec<u8> {
    let mut octets = shim.emit().to_vec();
    octets.resize(Shim::LENGTH + body, 0x5a);
    octets
}

/// The UDP ports on which a process listens, read from /proc.
pub fn udp_ports(process: u32) -> Vec<u16> {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let sockets: BTreeSet<String> = targets
        .filter_map(|target| {
            Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = fs::read_to_string(format!("/proc/{process}/net/udp")).unwrap_or_default();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let own = rows.filter(|row| row.get(9).is_some_and(|inode| sockets.contains(*inode)));
    own.filter_map(|row| u16::from_str_radix(row[1].split_once(':')?.1, 16).ok()).collect()
}

fn loopback(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

/// The pace of foreign datagrams.
#[derive(Clone, Copy)]
pub enum Pace {
    /// Datagrams per second, sent evenly in steps of 1 ms.
    PerSecond(u64),
    /// Bursts of 500, ten times per second.
    Bursts,
    /// As fast as possible.
    FlatOut,
}

/// Sends invalid datagrams to `ports` for `seconds`; returns the number that the kernel accepted.
pub fn stranger(ports: &[u16], pace: Pace, seconds: f64) -> u64 {
    let socket = UdpSocket::bind(loopback(0)).expect("a socket");
    let nonsense = nonsense();
    let (large, small): (Vec<_>, Vec<_>) =
        nonsense.iter().partition(|(_, octets, _)| octets.len() > 1_000);
    let begin = monotonic_ns();
    let end = begin + (seconds * 1e9) as u64;
    let (step_ns, a_step) = match pace {
        Pace::PerSecond(rate) => (1_000_000, rate / 1_000),
        Pace::Bursts => (100_000_000, 500),
        Pace::FlatOut => (0, 64),
    };
    let (mut tried, mut sent) = (0u64, 0);
    let mut next = begin;
    while monotonic_ns() < end {
        for _ in 0..a_step {
            // One in a hundred is large: only large datagrams would test the host's memory bandwidth.
            let kinds = if tried % 100 == 99 { &large } else { &small };
            let (_, octets, _) = kinds[tried as usize % kinds.len()];
            let port = ports[(tried / 7) as usize % ports.len()];
            sent += u64::from(socket.send_to(octets, loopback(port)).is_ok());
            tried += 1;
        }
        next += step_ns;
        timer::wait(None, next);
    }
    sent
}

/// Sends each kind of invalid datagram `times` times to every port, with every other port as source; returns the
/// number of datagrams of each kind.
///
/// # Errors
/// If the process may not open raw sockets.
pub fn impostor(ports: &[u16], times: usize) -> io::Result<u64> {
    let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP))?;
    // A raw socket receives a copy of every UDP datagram from its peer. Connecting it to an unused address avoids that.
    raw.connect(&SockAddr::from(SocketAddrV4::new(Ipv4Addr::new(127, 99, 99, 99), 0)))?;
    let mut of_each = 0;
    for _ in 0..times {
        for (from, to) in ports.iter().flat_map(|from| ports.iter().map(move |to| (*from, *to))) {
            if from == to {
                continue;
            }
            for (_, octets, _) in nonsense() {
                raw.send_to(&udp_datagram(from, to, &octets), &SockAddr::from(loopback(0)))?;
            }
            of_each += 1;
        }
        // Pause between rounds, so that every datagram arrives.
        timer::wait(None, monotonic_ns() + 2_000_000);
    }
    Ok(of_each)
}

/// A UDP header and its payload. A checksum of zero means none (RFC 768).
fn udp_datagram(from: u16, to: u16, octets: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + octets.len()).expect("datagrams are shorter than 64 KiB");
    let header = [from, to, length, 0].into_iter().flat_map(u16::to_be_bytes);
    header.chain(octets.iter().copied()).collect()
}
