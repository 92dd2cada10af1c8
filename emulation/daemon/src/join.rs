//! Joining a launcher by TCP: for daemons that are not started by the launcher but in a container or on another
//! machine. The connection replaces the configuration file and the pipes.
//!
//! ```text
//!   daemon ── join, nonce ─────────────────▶ launcher
//!          ◀────────── challenge: a nonce ──
//!          ── proof ───────────────────────▶          signs both nonces
//!          ◀──────────────────────── clock? ──        a few times: offset between the clocks
//!          ── clock ───────────────────────▶
//!          ◀──────── configuration, proof ──          signs both nonces and the configuration
//!          …  from here on as through pipes: hello, start, beats, report
//! ```
//!
//! Both sides prove that they have the lab's token and neither shows it: another user's program at the launcher's
//! address learns nothing and cannot configure the daemon. Even the launcher may not name a file or an interface of the
//! daemon's host. The connection is not encrypted.
//!
//! A daemon starts with only the launcher's address and a token. It binds its own sockets at the local address of
//! that connection, and the launcher bundles frames according to the path's MTU.

use crate::config::{AdminConfig, DaemonConfig, TcpConfig};
use crate::error::{Context, DaemonError};
use crate::protocol::{LINE_MAX, next_line, read_line, write_line};
use crate::token::Token;
use emulation::cable::shim;
use emulation::clock::monotonic_ns;
use emulation::timer;
use nix::sys::socket::{getsockopt, sockopt};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The environment variable with the token.
pub const TOKEN_VARIABLE: &str = "PAUSEBED_TOKEN";
/// How long the daemon waits for the launcher to start.
const LAUNCHER_WITHIN_NS: u64 = 60_000_000_000;
const TRY_AGAIN_NS: u64 = 200_000_000;
/// How long a launcher may be silent before the configuration: it waits for all other daemons.
const CONFIGURED_WITHIN: Duration = Duration::from_secs(300);
/// How long a daemon that has ended waits for the launcher to close the connection.
const CLOSED_WITHIN: Duration = Duration::from_secs(60);
/// What the daemon signs with both nonces, to prove that it has the token.
pub const AS_DAEMON: &str = "pausebed daemon joins";
/// What the launcher signs with both nonces and the configuration.
pub const AS_LAUNCHER: &str = "pausebed launcher configures";
/// The minimum MTU of IPv6 (RFC 8200, 5), for paths whose MTU the system does not state.
const PATH_MTU_MIN: usize = 1280;

/// The first message of a daemon that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The number of the process in the lab.
    pub process: usize,
    /// A random text that the launcher's proof must contain.
    pub nonce: String,
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
    /// The signature of both nonces, the daemon's first.
    Proof(String),
    /// The daemon's monotonic clock, in nanoseconds.
    Clock(u64),
}

/// A message to a daemon that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToJoining {
    /// A random text that the daemon's proof must contain.
    Challenge(String),
    /// Request for the clock.
    Clock,
    /// The configuration.
    Configuration {
        /// As in the file of other daemons.
        text: String,
        /// The signature of both nonces, the daemon's first, and the text.
        proof: String,
    },
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
/// If there is no token, no launcher answers within a minute, the launcher refuses this daemon or does not have the
/// token, or its configuration names a file or an interface of this host.
pub fn join(
    address: &str,
    process: usize,
    token: &Token,
    admin: Option<(String, u16)>,
) -> Result<(DaemonConfig, BufReader<TcpStream>, TcpStream), DaemonError> {
    if token.text().is_empty() {
        let reason = format!("{TOKEN_VARIABLE} is not set: it must be the launcher's");
        return Err(DaemonError::Fault(reason));
    }
    let admin = admin.map(|(name, port)| {
        let tcp = TcpConfig { port, name: Some(name), token: token.clone() };
        AdminConfig { socket: None, tcp: Some(tcp) }
    });
    let stream = connect(address).context(format!("no launcher at {address}"))?;
    let nonce = Token::make().context("no random octets")?.text().to_owned();
    let introduced = || -> io::Result<_> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CONFIGURED_WITHIN))?;
        let mut replies = stream.try_clone()?;
        let introduction = Join {
            process,
            nonce: nonce.clone(),
            shim_version: shim::VERSION,
            boot: boot(),
            path_mtu: path_mtu(&stream),
        };
        write_line(&mut replies, &FromJoining::Join(introduction))?;
        Ok((replies, stream.local_addr()?.ip()))
    };
    let (mut replies, bind) = introduced().context(address)?;
    let mut commands = BufReader::new(stream);
    let text = await_configuration(&mut commands, &mut replies, token, &nonce)?;
    let config = DaemonConfig::parse(&text)?;
    config.refuse_local()?;
    commands.get_ref().set_read_timeout(None).context(address)?;
    Ok((DaemonConfig { bind, admin, ..config }, commands, replies))
}

/// Ends the connection to the launcher, and waits until the launcher has closed its end: by then it has read everything.
/// The network of a container ends with its process, and with it what the launcher's host has not received yet.
pub fn part(mut line: TcpStream) {
    // Errors mean that the connection has ended.
    let _ = line.shutdown(Shutdown::Write);
    let _ = line.set_read_timeout(Some(CLOSED_WITHIN));
    while line.read(&mut [0; 512]).is_ok_and(|octets| octets > 0) {}
}

/// Answers the launcher's questions until it sends a configuration that it has signed.
fn await_configuration(
    commands: &mut impl BufRead,
    replies: &mut impl io::Write,
    token: &Token,
    nonce: &str,
) -> Result<String, DaemonError> {
    const BROKEN: &str = "the connection to the launcher broke";
    let fault = |reason: &str| Err(DaemonError::Fault(reason.to_owned()));
    let mut challenge = String::new();
    loop {
        let Some(line) = next_line(commands, LINE_MAX).context(BROKEN)? else {
            let reason =
                format!("the launcher closed the connection: is its {TOKEN_VARIABLE} this?");
            return Err(DaemonError::Fault(reason));
        };
        let answer = match read_line(&line)? {
            ToJoining::Challenge(_) if !challenge.is_empty() => return fault("a second challenge"),
            ToJoining::Challenge(theirs) => {
                challenge = theirs;
                FromJoining::Proof(token.sign(AS_DAEMON, &[nonce, &challenge]))
            }
            ToJoining::Clock => FromJoining::Clock(monotonic_ns()),
            ToJoining::Configuration { text, proof } => {
                let parts = [nonce, &challenge, &text];
                if !challenge.is_empty() && token.has_signed(AS_LAUNCHER, &parts, &proof) {
                    return Ok(text);
                }
                return fault("what listens at this address does not have the token of the lab");
            }
            // Text of a stranger: without what a terminal would interpret.
            ToJoining::Refused(reason) => return fault(&reason.escape_debug().to_string()),
        };
        write_line(&mut *replies, &answer).context(BROKEN)?;
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
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    const NONCE: &str = "mine";

    fn token() -> Token {
        Token::new("00112233445566778899aabbccddeeff")
    }

    /// The answers to these lines, and what comes of them.
    fn hear(lines: &[ToJoining]) -> (Vec<FromJoining>, Result<String, String>) {
        let mut words = Vec::new();
        lines.iter().for_each(|line| write_line(&mut words, line).expect("a vector"));
        let mut answers = Vec::new();
        let end = await_configuration(&mut words.as_slice(), &mut answers, &token(), NONCE);
        let answers = String::from_utf8(answers).expect("JSON is UTF-8");
        let answers = answers.lines().map(|line| read_line(line).expect("an answer")).collect();
        (answers, end.map_err(|error| error.to_string()))
    }

    fn configuration(signer: &Token, parts: [&str; 3]) -> ToJoining {
        let proof = signer.sign(AS_LAUNCHER, &parts);
        ToJoining::Configuration { text: "lab = 1".to_owned(), proof }
    }

    #[test]
    fn a_daemon_ends_after_the_launcher_has_read_everything() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut daemon =
            TcpStream::connect(listener.local_addr().expect("it has one")).expect("it");
        let (mut launcher, _) = listener.accept().expect("a connection");
        let closed = AtomicBool::new(false);
        thread::scope(|scope| {
            write_line(&mut daemon, &NONCE).expect("a connection");
            let ending = scope.spawn(|| {
                part(daemon);
                closed.load(Ordering::SeqCst)
            });
            let mut report = String::new();
            launcher.read_to_string(&mut report).expect("everything until the end");
            assert_eq!(report, format!("\"{NONCE}\"\n"));
            closed.store(true, Ordering::SeqCst);
            drop(launcher);
            assert!(ending.join().expect("no panic"), "it did not wait");
        });
    }

    #[test]
    fn a_launcher_is_answered_until_it_says_what_to_be() {
        let challenge = ToJoining::Challenge("theirs".to_owned());
        let good = configuration(&token(), [NONCE, "theirs", "lab = 1"]);
        let (answers, end) = hear(&[challenge, ToJoining::Clock, ToJoining::Clock, good]);
        assert_eq!(end.as_deref(), Ok("lab = 1"));
        let proof = token().sign(AS_DAEMON, &[NONCE, "theirs"]);
        assert_eq!(answers[0], FromJoining::Proof(proof));
        assert!(matches!(answers[1..], [FromJoining::Clock(a), FromJoining::Clock(b)] if a <= b));
    }

    #[test]
    fn what_listens_without_the_token_configures_nothing_and_never_sees_it() {
        let challenge = || ToJoining::Challenge("theirs".to_owned());
        let stranger = Token::new("guess");
        for (lines, what) in [
            (vec![configuration(&token(), [NONCE, "", "lab = 1"])], "no challenge"),
            (
                vec![challenge(), configuration(&stranger, [NONCE, "theirs", "lab = 1"])],
                "another token",
            ),
            (
                vec![challenge(), configuration(&token(), ["old", "theirs", "lab = 1"])],
                "a proof of another session",
            ),
            (
                vec![challenge(), configuration(&token(), [NONCE, "theirs", "lab = 2"])],
                "another text",
            ),
        ] {
            let (answers, end) = hear(&lines);
            assert!(end.is_err_and(|why| why.contains("does not have the token")), "{what}");
            let said = serde_json::to_string(&answers).expect("plain data");
            assert!(!said.contains(token().text()), "{what}");
        }
        let (_, end) = hear(&[challenge(), challenge()]);
        assert_eq!(end, Err("a second challenge".to_owned()), "one proof a connection");
    }

    #[test]
    fn a_launcher_that_refuses_goes_away_or_talks_nonsense_is_an_error_in_words() {
        let refused = ToJoining::Refused("no process 7\u{1b}[2J".to_owned());
        assert_eq!(hear(&[refused]).1, Err("no process 7\\u{1b}[2J".to_owned()));
        let closed = hear(&[]).1.expect_err("nothing to be");
        assert!(closed.starts_with("the launcher closed the connection"), "{closed}");
        let nonsense =
            await_configuration(&mut &b"welcome\n"[..], &mut Vec::new(), &token(), NONCE);
        assert!(nonsense.expect_err("nothing to be").to_string().contains("welcome"));
    }
}
