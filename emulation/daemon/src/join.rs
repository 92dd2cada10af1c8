//! Joining a launcher by TCP: for daemons that are not started by the launcher but in a container or on another
//! machine. The connection replaces the configuration file and the pipes.
//!
//! ```text
//!   daemon ── join ───────────▶ launcher
//!          ◀───────── clock? ──           a few times: offset between the clocks
//!          ── clock ──────────▶
//!          ◀── configuration ──
//!          …  from here on as through pipes: hello, start, beats, report
//! ```
//!
//! A daemon starts with only the launcher's address and a token. It binds its own sockets at the local address of
//! that connection, and the launcher bundles frames according to the path's MTU.

use crate::config::{AdminConfig, DaemonConfig, TcpConfig};
use crate::error::{Context, DaemonError};
use crate::protocol::{read_line, write_line};
use crate::token::Token;
use emulation::cable::shim;
use emulation::clock::monotonic_ns;
use emulation::timer;
use nix::sys::socket::{getsockopt, sockopt};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader};
use std::net::TcpStream;

/// The environment variable with the token.
pub const TOKEN_VARIABLE: &str = "PAUSEBED_TOKEN";
/// How long the daemon waits for the launcher to start.
const LAUNCHER_WITHIN_NS: u64 = 60_000_000_000;
const TRY_AGAIN_NS: u64 = 200_000_000;
/// The minimum MTU of IPv6 (RFC 8200, 5), for paths whose MTU the system does not state.
const PATH_MTU_MIN: usize = 1280;

/// The first message of a daemon that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The number of the process in the lab.
    pub process: usize,
    /// The lab's token.
    pub token: String,
    /// The version of the shim.
    pub shim_version: u8,
    /// Identifies one boot of one machine. Daemons with the same value share a clock.
    pub boot: String,
    /// The MTU of the path to the launcher, in octets of an IP packet.
    pub path_mtu: usize,
}

/// A message from a daemon that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromJoining {
    /// The first message.
    Join(Join),
    /// The daemon's monotonic clock, in nanoseconds.
    Clock(u64),
}

/// A message to a daemon that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToJoining {
    /// Request for the clock.
    Clock,
    /// The configuration, as in the file of other daemons.
    Configuration(String),
    /// The launcher refuses the daemon, for this reason.
    Refused(String),
}

/// The identifier of this boot of this machine; empty if the system has none.
pub fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Joins the lab of the launcher at `address` as process `process`. `token` must be the lab's. Clients that know it may
/// administer the daemon by the name and at the port of `admin`. Returns the configuration that the launcher sent, and
/// the streams of its messages and of those to it.
///
/// # Errors
/// If no launcher answers within a minute, or the launcher refuses this daemon.
pub fn join(
    address: &str,
    process: usize,
    token: String,
    admin: Option<(String, u16)>,
) -> Result<(DaemonConfig, BufReader<TcpStream>, TcpStream), DaemonError> {
    let admin = admin.map(|(name, port)| {
        let tcp = TcpConfig { port, name: Some(name), token: Token::new(&token) };
        AdminConfig { socket: None, tcp: Some(tcp) }
    });
    let stream = connect(address).context(format!("no launcher at {address}"))?;
    let introduced = || -> io::Result<_> {
        stream.set_nodelay(true)?;
        let mut replies = stream.try_clone()?;
        let introduction = Join {
            process,
            token,
            shim_version: shim::VERSION,
            boot: boot(),
            path_mtu: path_mtu(&stream),
        };
        write_line(&mut replies, &FromJoining::Join(introduction))?;
        Ok((replies, stream.local_addr()?.ip()))
    };
    let (mut replies, bind) = introduced().context(address)?;
    let mut commands = BufReader::new(stream);
    let text = await_configuration(&mut commands, &mut replies)?;
    let config = DaemonConfig { bind, admin, ..DaemonConfig::parse(&text)? };
    Ok((config, commands, replies))
}

/// Answers the launcher's questions until it sends the configuration.
fn await_configuration(
    commands: &mut impl BufRead,
    replies: &mut impl io::Write,
) -> Result<String, DaemonError> {
    const BROKEN: &str = "the connection to the launcher broke";
    loop {
        let mut line = String::new();
        if commands.read_line(&mut line).context(BROKEN)? == 0 {
            return Err(DaemonError::Fault("the launcher closed the connection".to_owned()));
        }
        match read_line(&line)? {
            ToJoining::Clock => {
                let clock = FromJoining::Clock(monotonic_ns());
                write_line(&mut *replies, &clock).context(BROKEN)?;
            }
            ToJoining::Configuration(text) => return Ok(text),
            ToJoining::Refused(reason) => return Err(DaemonError::Fault(reason)),
        }
    }
}

/// Waits for the launcher, since the containers of a lab start in any order.
fn connect(address: &str) -> io::Result<TcpStream> {
    let deadline = monotonic_ns() + LAUNCHER_WITHIN_NS;
    loop {
        match TcpStream::connect(address) {
            Err(_) if monotonic_ns() < deadline => {
                timer::wait(None, monotonic_ns() + TRY_AGAIN_NS);
            }
            done => return done,
        }
    }
}

fn path_mtu(stream: &TcpStream) -> usize {
    let known = getsockopt(stream, sockopt::IpMtu);
    known.ok().and_then(|octets| usize::try_from(octets).ok()).unwrap_or(PATH_MTU_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_answered_until_it_says_what_to_be() {
        let questions = b"\"clock\"\n\"clock\"\n{\"configuration\":\"lab = 1\"}\n";
        let mut answers = Vec::new();
        let text = await_configuration(&mut &questions[..], &mut answers);
        assert_eq!(text.expect("the configuration arrives"), "lab = 1");
        let answers = String::from_utf8(answers).expect("JSON is UTF-8");
        let clocks: Vec<u64> = answers
            .lines()
            .map(|line| match read_line(line) {
                Ok(FromJoining::Clock(ns)) => ns,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(clocks.len() == 2 && clocks[0] <= clocks[1], "{clocks:?}");
    }

    #[test]
    fn a_launcher_that_refuses_goes_away_or_talks_nonsense_is_an_error_in_words() {
        let refusal = |words: &[u8]| {
            let error = await_configuration(&mut &words[..], &mut Vec::new());
            error.expect_err("nothing to be").to_string()
        };
        assert_eq!(refusal(b"{\"refused\":\"the token is wrong\"}\n"), "the token is wrong");
        assert_eq!(refusal(b""), "the launcher closed the connection");
        assert!(refusal(b"welcome\n").contains("welcome"));
    }
}
