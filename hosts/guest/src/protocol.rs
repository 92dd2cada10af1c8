//! Messages between a host and its virtual machine: one JSON document a line, over virtio-serial ports.
//!
//! Lines keep a stream in step: a client that disappears may leave half a line behind, and the reader drops it. Each
//! message of a command carries the session of the client that started it, so that late output of an earlier command
//! is told apart.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
pub use verbs::line::{Lines, line};
pub use verbs::octets::Octets;

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

/// Lines of this protocol.
pub fn lines() -> Lines {
    Lines::new(LINE_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

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
