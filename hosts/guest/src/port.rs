//! A virtio-serial port. Each has a thread; nothing blocks in it but a wait with all events.
//!
//! Without a client on the host's side the kernel reports a hang-up for ever (drivers/char/virtio_console.c,
//! `port_fops_poll`), so an idle port waits for edges.

use guest::protocol::{Lines, line, lines};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Octets of output above which no more is taken from a command.
pub const OUTPUT_LIMIT: usize = 64 * 1024;
/// Longest wait for an edge in milliseconds, after which the port is read in any case.
const IDLE_MS: u16 = 10_000;
/// Octets that one read takes.
const READ: usize = 32 * 1024;

/// An open port.
#[derive(Debug)]
pub struct Port {
    file: File,
    edges: Epoll,
    /// What has arrived.
    pub lines: Lines,
    output: Vec<u8>,
}

/// What a read of a port found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Octets, now in [`Port::lines`].
    Octets,
    /// Nothing yet.
    Nothing,
    /// No client is connected. What was pending is forgotten.
    NoClient,
}

impl Port {
    /// Opens the port with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(name: &str) -> io::Result<Port> {
        for entry in fs::read_dir("/sys/class/virtio-ports")? {
            let entry = entry?;
            if fs::read_to_string(entry.path().join("name")).is_ok_and(|text| text.trim() == name) {
                let device = std::path::Path::new("/dev").join(entry.file_name());
                let mut options = File::options();
                options.read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits());
                let file = options.open(device)?;
                let edges = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
                let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
                edges.add(&file, EpollEvent::new(flags, 0))?;
                return Ok(Port { file, edges, lines: lines(), output: Vec::new() });
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no port {name}")))
    }

    /// Reads once, if a client is connected. Without one nothing is read: octets may already be those of the next
    /// client, because data and the news of a connection come through queues of their own. They wait.
    pub fn read(&mut self) -> Arrival {
        let mut buffer = [0; READ];
        let outcome = if self.is_hung_up() { Ok(0) } else { self.file.read(&mut buffer) };
        match outcome {
            Ok(0) => {
                self.lines.forget();
                self.output.clear();
                Arrival::NoClient
            }
            Ok(length) => {
                self.lines.push(&buffer[..length]);
                Arrival::Octets
            }
            Err(_) => Arrival::Nothing,
        }
    }

    fn is_hung_up(&self) -> bool {
        let mut port = [PollFd::new(self.file.as_fd(), PollFlags::empty())];
        let found = poll(&mut port, PollTimeout::ZERO);
        let events = port[0].revents().unwrap_or(PollFlags::empty());
        found.is_ok() && events.contains(PollFlags::POLLHUP)
    }

    /// Waits until the state of the port may have changed.
    pub fn wait_edge(&self) {
        // An error is a signal: the port is read again, and then waited for again.
        let _ = self.edges.wait(&mut [EpollEvent::empty()], EpollTimeout::from(IDLE_MS));
    }

    /// Ends what an earlier client may have got half of.
    pub fn separate(&mut self) {
        self.output.push(b'\n');
    }

    /// Appends a message to the output.
    pub fn queue<M: Serialize>(&mut self, message: &M) {
        self.queue_line(&line(message));
    }

    /// Appends a line with its end to the output.
    pub fn queue_line(&mut self, line: &[u8]) {
        self.output.extend_from_slice(line);
    }

    /// Whether output waits.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether more of a command's output may be queued.
    pub fn has_room(&self) -> bool {
        self.output.len() < OUTPUT_LIMIT
    }

    /// Writes what the port takes now.
    pub fn flush(&mut self) {
        while !self.output.is_empty() {
            match self.file.write(&self.output) {
                Ok(length) if length > 0 => drop(self.output.drain(..length)),
                _ => break,
            }
        }
    }

    /// Writes all output, unless the client disappears.
    pub fn flush_all(&mut self) {
        loop {
            self.flush();
            if self.output.is_empty() {
                break;
            }
            let mut wanted = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
            let found = poll(&mut wanted, PollTimeout::NONE);
            let events = wanted[0].revents().unwrap_or(PollFlags::empty());
            if events.contains(PollFlags::POLLHUP)
                || found.is_err_and(|error| error != Errno::EINTR)
            {
                self.output.clear();
            }
        }
    }

    /// For `poll`.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
