//! QEMU's monitor (QMP), of the one machine that saves its state.

use crate::HostError;
use crate::process::pause;
use emulation::clock::Stopwatch;
use guest::protocol::{Lines, lines};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde_json::{Value, json};
use std::io::{IoSlice, Read};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// The interval at which the progress is read.
const POLL: Duration = Duration::from_millis(50);
/// Octets a second; a file takes them at its own rate.
const BANDWIDTH: u64 = 4 << 30;

/// Our end of the monitor.
#[derive(Debug)]
pub struct Monitor {
    stream: UnixStream,
    lines: Lines,
}

impl Monitor {
    /// Our end and that of QEMU.
    pub fn pair() -> Result<(Monitor, OwnedFd), HostError> {
        let (stream, theirs) = UnixStream::pair().map_err(HostError::io("socket pair"))?;
        stream.set_read_timeout(Some(ANSWER)).map_err(HostError::io("socket pair"))?;
        Ok((Monitor { stream, lines: lines() }, theirs.into()))
    }

    /// Saves the state of the machine to an open file.
    pub fn save(&mut self, file: BorrowedFd<'_>, limit: Duration) -> Result<(), HostError> {
        self.execute("qmp_capabilities", json!({}), None)?;
        self.execute("getfd", json!({ "fdname": "state" }), Some(file))?;
        self.execute("migrate-set-parameters", json!({ "max-bandwidth": BANDWIDTH }), None)?;
        self.execute("migrate", json!({ "uri": "fd:state" }), None)?;
        let watch = Stopwatch::start();
        while watch.seconds() < limit.as_secs_f64() {
            let found = self.execute("query-migrate", json!({}), None)?;
            match found["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => {
                    return Err(HostError::Failed(format!("QEMU cannot save a state: {found}")));
                }
                _ => pause(POLL),
            }
        }
        Err(HostError::Late { what: "saving a state".to_owned(), limit })
    }

    /// Executes a command and returns its result.
    fn execute(
        &mut self,
        command: &str,
        arguments: Value,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Value, HostError> {
        let text = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        let files: Vec<i32> = file.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&files)];
        let rights = if files.is_empty() { &[][..] } else { &rights[..] };
        let parts = [IoSlice::new(text.as_bytes())];
        sendmsg::<()>(self.stream.as_raw_fd(), &parts, rights, MsgFlags::MSG_NOSIGNAL, None)
            .map_err(HostError::io("QEMU's monitor"))?;
        loop {
            // Greetings and events have neither member.
            let mut answer: Value = self.next()?;
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
            if let Some(error) = answer.get("error") {
                return Err(HostError::Failed(format!("QEMU refuses {command}: {error}")));
            }
        }
    }

    fn next(&mut self) -> Result<Value, HostError> {
        loop {
            if let Some(message) = self.lines.next_message() {
                return Ok(message);
            }
            let mut buffer = [0; 4096];
            let length = self.stream.read(&mut buffer).map_err(HostError::io("QEMU's monitor"))?;
            if length == 0 {
                return Err(HostError::Failed("QEMU has closed its monitor".to_owned()));
            }
            self.lines.push(&buffer[..length]);
        }
    }
}
