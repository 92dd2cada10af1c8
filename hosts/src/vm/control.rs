//! The control line of a machine: a pair of sockets, one end for QEMU.

use crate::HostError;
use guest::protocol::{Control, Lines, Status, line, lines};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for room in the line: QEMU reads it all the time.
const SEND: Duration = Duration::from_secs(2);

/// Our end.
#[derive(Debug)]
pub struct ControlLine {
    stream: UnixStream,
    lines: Lines,
}

impl ControlLine {
    /// Our end and that of QEMU.
    pub fn pair() -> Result<(ControlLine, OwnedFd), HostError> {
        let (stream, theirs) = UnixStream::pair().map_err(HostError::io("socket pair"))?;
        stream.set_write_timeout(Some(SEND)).map_err(HostError::io("socket pair"))?;
        Ok((ControlLine { stream, lines: lines() }, theirs.into()))
    }

    /// Sends a message; it waits in the line until the guest reads.
    pub fn send(&mut self, message: &Control) -> Result<(), HostError> {
        self.stream.write_all(&line(message)).map_err(HostError::io("control line"))
    }

    /// The next message, or `None` if there is none within `limit`.
    ///
    /// # Errors
    /// If the other end is closed.
    pub fn receive(&mut self, limit: Duration) -> io::Result<Option<Status>> {
        if let Some(message) = self.lines.next_message() {
            return Ok(Some(message));
        }
        self.stream.set_read_timeout(Some(limit))?;
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.lines.push(&buffer[..length]);
                Ok(self.lines.next_message())
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
