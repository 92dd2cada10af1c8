//! Messages between a host and its virtual machine: one JSON document a line, over virtio-serial ports.
//!
//! Lines keep a stream in step: a client that disappears may leave half a line behind, and the reader drops it. Each
//! message of a command carries the session of the client that started it, so that late output of an earlier command
//! is told apart.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Changes whenever an image of an older version would not understand its host.
pub const VERSION: u32 = 1;
/// Number of commands that run at once in one machine.
pub const EXEC_PORTS: usize = 8;
/// Prefix of the names of ports for commands; the number of the port follows.
pub const EXEC_PORT: &str = "pausebed.exec.";
/// Name of the port of the agent for verbs.
pub const VERBS_PORT: &str = "pausebed.verbs";
/// Name of the port that sets the identity and ends the machine.
pub const CONTROL_PORT: &str = "pausebed.control";
/// Longest line in octets, the end of the line included.
pub const LINE_LIMIT: usize = 256 * 1024;
/// Most octets of standard input or output in one message.
pub const CHUNK: usize = 16 * 1024;
/// Octets of standard input that a client may send before the guest has reported them as taken.
pub const STDIN_WINDOW: usize = 64 * 1024;
/// Longest total of arguments and environment in octets.
pub const COMMAND_LIMIT: usize = 96 * 1024;

/// Octets, as base64 in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Octets(pub Vec<u8>);

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Octets, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map(Octets).map_err(serde::de::Error::custom)
    }
}

/// A program to be run in a machine. No shell is involved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// The program, looked up in PATH unless it contains a slash, and its arguments. At least one.
    pub argv: Vec<String>,
    /// Variables in addition to PATH, HOME, TERM and HOSTNAME, which may be overwritten.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

impl ExecRequest {
    /// Checks that the request can be executed.
    ///
    /// # Errors
    /// The reason: no program, a NUL octet, an improper name of a variable, or more than [`COMMAND_LIMIT`] octets.
    pub fn check(&self) -> Result<(), String> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err("a command needs a program".to_owned());
        }
        let variables = self.environment.iter().flat_map(|(name, value)| [name, value]);
        let words = self.argv.iter().chain(variables);
        if words.clone().any(|word| word.contains('\0')) {
            return Err("arguments and environment must not contain NUL octets".to_owned());
        }
        if self.environment.keys().any(|name| name.is_empty() || name.contains('=')) {
            return Err("the name of a variable must not be empty or contain `=`".to_owned());
        }
        let octets: usize = words.map(|word| word.len() + 1).sum();
        if octets > COMMAND_LIMIT {
            return Err(format!("a command of {octets} octets exceeds {COMMAND_LIMIT}"));
        }
        Ok(())
    }
}

/// A message with the session of its command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InSession<M> {
    /// Chosen at random by the client.
    pub session: u64,
    /// The message.
    pub message: M,
}

/// From a client to the guest, on a port for commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToGuest {
    /// Starts a command; a command that still runs on this port is killed.
    Start(ExecRequest),
    /// Standard input, at most [`CHUNK`] octets, within [`STDIN_WINDOW`].
    Stdin(Octets),
    /// The end of standard input.
    StdinEnd,
}

/// From the guest to a client, on a port for commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromGuest {
    /// Standard output, at most [`CHUNK`] octets.
    Stdout(Octets),
    /// Standard error, at most [`CHUNK`] octets.
    Stderr(Octets),
    /// Octets of standard input that left the window.
    Taken(usize),
    /// The command has ended with this code, or 128 and the number of the signal; 127 if it was not found, 126 if it
    /// cannot be executed.
    Exit(i32),
    /// The request is not valid.
    Refused(String),
}

/// What makes one machine out of the saved state that all machines share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Host name: letters, digits and hyphens.
    pub name: String,
    /// MAC address of eth0.
    pub mac: [u8; 6],
    /// Addresses of eth0 with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU of eth0 in octets.
    pub mtu: u32,
    /// Calendar time in nanoseconds since 1970.
    pub time_ns: u64,
    /// Random octets of the host for the guest's generator.
    pub seed: Octets,
}

/// From the host to the guest, on [`CONTROL_PORT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Asks for [`Status`].
    Hello,
    /// Sets the identity, once.
    Identity(Identity),
    /// Ends the machine.
    PowerOff,
}

/// From the guest to the host, on [`CONTROL_PORT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Modules are loaded, and the machine has no identity yet.
    Waiting {
        /// [`VERSION`] of the guest.
        version: u32,
        /// Release of the kernel.
        kernel: String,
    },
    /// The identity is set.
    Ready,
    /// The identity cannot be set, for this reason.
    Failed(String),
}

/// A message as a line, with its end.
pub fn line<M: Serialize>(message: &M) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have string keys only");
    line.push(b'\n');
    line
}

/// Cuts a stream of octets into lines of at most [`LINE_LIMIT`].
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
    scanned: usize,
    is_skipping: bool,
}

impl Lines {
    /// Takes octets that have arrived.
    pub fn push(&mut self, octets: &[u8]) {
        self.pending.extend_from_slice(octets);
    }

    /// The next complete line without its end. A line above the limit is dropped whole.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let fresh = self.pending[self.scanned..].iter().position(|octet| *octet == b'\n');
            let Some(end) = fresh.map(|at| self.scanned + at) else {
                self.scanned = self.pending.len();
                if self.pending.len() >= LINE_LIMIT {
                    self.forget();
                    self.is_skipping = true;
                }
                return None;
            };
            let line: Vec<u8> = self.pending.drain(..=end).take(end).collect();
            self.scanned = 0;
            if !std::mem::take(&mut self.is_skipping) && line.len() < LINE_LIMIT {
                return Some(line);
            }
        }
    }

    /// The next message; lines that hold none are dropped.
    pub fn next_message<M: for<'de> Deserialize<'de>>(&mut self) -> Option<M> {
        loop {
            let line = self.next_line()?;
            if let Ok(message) = serde_json::from_slice(&line) {
                return Some(message);
            }
        }
    }

    /// Drops what has arrived.
    pub fn forget(&mut self) {
        self.pending.clear();
        self.scanned = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_half_a_line_before_it() {
        let message =
            InSession { session: 7, message: FromGuest::Stdout(Octets(vec![0, 10, 255])) };
        let whole = line(&message);
        let mut lines = Lines::default();
        lines.push(&whole[whole.len() / 2..]);
        for octet in &whole {
            lines.push(&[*octet]);
        }
        assert_eq!(lines.next_message(), Some(message));
        assert_eq!(lines.next_message::<InSession<FromGuest>>(), None);
    }

    #[test]
    fn the_largest_chunk_and_the_largest_command_fit_in_a_line() {
        let chunk =
            InSession { session: u64::MAX, message: ToGuest::Stdin(Octets(vec![9; CHUNK])) };
        assert!(line(&chunk).len() < LINE_LIMIT);
        let mut request =
            ExecRequest { argv: vec!["a".repeat(COMMAND_LIMIT - 1)], ..Default::default() };
        assert_eq!(request.check(), Ok(()));
        let start = InSession { session: 1, message: ToGuest::Start(request.clone()) };
        assert!(line(&start).len() < LINE_LIMIT);
        request.argv.push(String::new());
        assert!(request.check().is_err());
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory_and_is_dropped_whole() {
        let mut lines = Lines::default();
        for _ in 0..40 {
            lines.push(&[b'x'; 16 * 1024]);
            assert_eq!(lines.next_line(), None);
            assert!(lines.pending.len() < LINE_LIMIT);
        }
        lines.push(b"tail\n\"hello\"\n");
        assert_eq!(lines.next_message(), Some(Control::Hello));
    }

    #[test]
    fn improper_requests_are_refused() {
        let request = |argv: &[&str], name: &str| ExecRequest {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            environment: [(name.to_owned(), "v".to_owned())].into(),
        };
        assert_eq!(request(&["ping", "-c", "1"], "A").check(), Ok(()));
        for bad in
            [request(&[], "A"), request(&[""], "A"), request(&["a\0"], "A"), request(&["a"], "A=B")]
        {
            assert!(bad.check().is_err());
        }
    }
}
