//! A packet filter on another process's socket that drops some datagrams of one link at random.
//!
//! Neither end is informed, as with a real firewall: tests use it to show that a loss is noticed. The filter is
//! attached to a descriptor fetched from the process, which needs the right to trace it: its parent or root has
//! that.

use super::shim::field;
use nix::unistd::Pid;
use socket2::{SockFilter, Socket};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The filter of a UDP socket sees the UDP header before the datagram.
const UDP_HEADER: u32 = 8;
/// Return values of a filter: accept no octets, or all.
const DROP: u32 = 0;
const ACCEPT: u32 = u32::MAX;

/// A filter in place; it stays as long as the socket.
#[derive(Debug)]
pub struct Firewall {
    inode: u64,
}

impl Firewall {
    /// Attaches a filter to the UDP socket of `process` that is bound to `address`. It drops one in `one_in`
    /// datagrams of `link`.
    ///
    /// # Errors
    /// If there is no such socket, or the process may not be traced.
    pub fn before(
        process: Pid,
        address: SocketAddr,
        link: u32,
        one_in: u32,
    ) -> io::Result<Firewall> {
        let missing = || io::Error::other(format!("no socket of {process} is bound to {address}"));
        let inode = rows()?.find(|row| row.port == address.port()).ok_or_else(missing)?.inode;
        let number = descriptor(process, inode)?.ok_or_else(missing)?;
        let socket = Socket::from(fetch(process, number)?);
        socket.attach_filter(&program(link, one_in))?;
        Ok(Firewall { inode })
    }

    /// Datagrams that the kernel dropped at that socket so far, for any reason.
    ///
    /// # Errors
    /// If the socket is closed or `/proc/net/udp` cannot be read.
    pub fn dropped(&self) -> io::Result<u64> {
        let row = rows()?.find(|row| row.inode == self.inode);
        row.map(|row| row.drops).ok_or_else(|| io::Error::other("the socket has been closed"))
    }
}

/// Accepts datagrams of other links, and those of this link except one in `one_in` at random.
fn program(link: u32, one_in: u32) -> [SockFilter; 6] {
    let step = |code: u32, k: u32, jt: u8, jf: u8| SockFilter::new(code as u16, jt, jf, k);
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    [
        step(load, UDP_HEADER + field::LINK.start as u32, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, link, 0, 3),
        step(load, random, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, u32::MAX / one_in, 1, 0),
        step(libc::BPF_RET | libc::BPF_K, DROP, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, ACCEPT, 0, 0),
    ]
}

/// A socket in the kernel's table.
struct Row {
    port: u16,
    inode: u64,
    drops: u64,
}

/// The UDP sockets of this namespace. Source: proc_net(5): local address, …, inode tenth, drops last.
fn rows() -> io::Result<impl Iterator<Item = Row>> {
    let table = std::fs::read_to_string("/proc/net/udp")?;
    let rows: Vec<Row> = table.lines().skip(1).filter_map(row).collect();
    Ok(rows.into_iter())
}

fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, port) = words.get(1)?.split_once(':')?;
    Some(Row {
        port: u16::from_str_radix(port, 16).ok()?,
        inode: words.get(9)?.parse().ok()?,
        drops: words.last()?.parse().ok()?,
    })
}

/// The number of `process`'s descriptor of the socket with this inode.
fn descriptor(process: Pid, inode: u64) -> io::Result<Option<i32>> {
    let wanted = format!("socket:[{inode}]");
    for entry in std::fs::read_dir(format!("/proc/{process}/fd"))? {
        let entry = entry?;
        let is_it =
            std::fs::read_link(entry.path()).is_ok_and(|leads| leads.as_os_str() == &*wanted);
        if is_it {
            return Ok(entry.file_name().to_string_lossy().parse().ok());
        }
    }
    Ok(None)
}

/// Duplicates the descriptor `number` of `process` into this process.
fn fetch(process: Pid, number: i32) -> io::Result<OwnedFd> {
    // SAFETY: neither call takes memory; each gives a new descriptor, owned from here on, or fails.
    // Test: one_link_loses_all_and_another_nothing.
    unsafe {
        let process = owned(libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0))?;
        owned(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0))
    }
}

/// # Safety
/// `answer` is the result of a call that returns a new descriptor. Test: one_link_loses_all_and_another_nothing.
unsafe fn owned(answer: libc::c_long) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as the caller promises. Test: one_link_loses_all_and_another_nothing.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable::udp;
    use socket2::{Domain, Type};
    use std::net::{IpAddr, Ipv4Addr};

    /// Octets of a datagram for `link`.
    fn datagram(link: u32) -> Vec<u8> {
        let mut octets = vec![0; 40];
        octets[field::LINK].copy_from_slice(&link.to_be_bytes());
        octets
    }

    #[test]
    fn one_link_loses_all_and_another_nothing() {
        let socket = udp::open(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("a socket");
        let address: SocketAddr = socket.address().parse().expect("an address");
        let firewall = Firewall::before(nix::unistd::getpid(), address, 7, 1).expect("our own");
        let sender = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
        for link in [7, 8, 7, 7] {
            sender.send_to(&datagram(link), &address.into()).expect("room");
        }
        assert_eq!(firewall.dropped().expect("a table"), 3);
    }

    #[test]
    fn a_socket_of_somebody_else_is_not_found() {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        assert!(Firewall::before(nix::unistd::getpid(), nowhere, 0, 1).is_err());
    }
}
