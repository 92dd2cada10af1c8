//! The sockets of cables: datagrams on loopback, and buffers for bursts.

use super::Check;
use emulation::cable::datagram::{DatagramSocket, Peer};
use emulation::cable::exchange::DATAGRAM_MAX;
use emulation::cable::{udp, unix};
use emulation::clock::monotonic_ns;
use emulation::timer::wait;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The receive buffer for the time in which a worker does not run: the kernel may suspend a real-time thread for
/// 50 ms, while 80 MB/s arrive.
const BUFFER_WANTED: usize = 4 << 20;

/// The longest wait for a datagram.
const PATIENCE_NS: u64 = 1_000_000_000;

pub fn buffers() -> Check {
    let socket = match udp::open(LOOPBACK) {
        Ok(socket) => socket,
        Err(error) => return Check::bad(error.to_string(), "no UDP socket can be opened"),
    };
    // The kernel doubles the requested size for its own overhead.
    let granted = socket.buffers().receive / 2;
    let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    let mib = |octets: usize| octets as f64 / f64::from(1 << 20);
    let found = format!("{:.1} MiB to receive (net.core.rmem_max {})", mib(granted), limit.trim());
    let next = format!(
        "below {:.0} MiB a worker that is suspended for 50 ms may lose frames: \
         sysctl -w net.core.rmem_max={BUFFER_WANTED}",
        mib(BUFFER_WANTED)
    );
    Check::wanted(granted >= BUFFER_WANTED, found, &next)
}

pub fn udp() -> Check {
    let pair = || Ok((udp::open(LOOPBACK)?, udp::open(LOOPBACK)?));
    let tried = pair().and_then(|(a, b)| round_trip(a, b, udp::peer));
    let next = "127.0.0.1 must be up and not filtered (ip link set lo up; nft list ruleset)";
    Check::tried(tried.map(duration), Check::bad, next)
}

pub fn unix() -> Check {
    let tried = tempfile::tempdir().and_then(|folder| {
        let (a, b) = (unix::open(folder.path(), 0)?, unix::open(folder.path(), 1)?);
        round_trip(a, b, unix::peer)
    });
    let next = "carrier = \"unix\" will not work: is the path of the temporary folder very long?";
    Check::tried(tried.map(duration), Check::optional, next)
}

fn duration(ns: u64) -> String {
    format!("a round trip of {DATAGRAM_MAX} octets takes {:.0} µs", ns as f64 / 1e3)
}

/// Sends a datagram of the largest size from `a` to `b` and back, and compares it. Returns nanoseconds.
fn round_trip(
    mut a: DatagramSocket,
    mut b: DatagramSocket,
    peer: fn(&str) -> io::Result<Peer>,
) -> io::Result<u64> {
    let (to_a, to_b) = (peer(a.address())?, peer(b.address())?);
    let sent: Vec<u8> = (0..DATAGRAM_MAX).map(|octet| octet as u8).collect();
    let begin = monotonic_ns();
    a.send(std::iter::once((&to_b, sent.as_slice())))?;
    let there = receive_from(&mut b, &to_a)?;
    b.send(std::iter::once((&to_a, there.as_slice())))?;
    let back = receive_from(&mut a, &to_b)?;
    let took = monotonic_ns() - begin;
    if back == sent { Ok(took) } else { Err(io::Error::other("the octets changed on the way")) }
}

/// Waits for a datagram of `peer`, and ignores others.
fn receive_from(socket: &mut DatagramSocket, peer: &Peer) -> io::Result<Vec<u8>> {
    let deadline = monotonic_ns() + PATIENCE_NS;
    let mut octets = None;
    while octets.is_none() {
        if monotonic_ns() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "a datagram did not arrive"));
        }
        wait(Some(socket.as_fd()), deadline);
        socket.receive(|received| {
            if received.source == peer.key() {
                octets = Some(received.octets.to_vec());
            }
        });
    }
    Ok(octets.unwrap_or_default())
}
