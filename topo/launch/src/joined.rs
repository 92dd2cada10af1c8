//! Daemons that join their launcher by TCP: they are authenticated by the lab's token, their clocks are compared
//! with this one, and they get their configuration. From then on they run like child processes.
//!
//! A client without the token gets a random text and no other answer: it can send two short lines within a few seconds,
//! and the number of such clients is bounded. The launcher says which clients it refuses, and why.

use super::daemons::configuration::{daemon_config, not_toml};
use super::daemons::{Cabling, session::Session};
use super::placement::Hosting;
use super::processes::{Daemon, DaemonEvent, send_line};
use super::{Job, LaunchError, Outcome, Progress, interrupt, refuse_attached, refuse_exact};
use daemon::DaemonConfig;
use daemon::join::{AS_DAEMON, AS_LAUNCHER, FromJoining, Join, TOKEN_VARIABLE, ToJoining, boot};
use daemon::protocol::read_line;
use daemon::token::Token;
use emulation::cable::exchange::DATAGRAM_MAX;
use emulation::cable::shim::{self, Shim};
use emulation::clock::{Stopwatch, monotonic_ns};
use emulation::exact::Promise;
use scenario::run::Pace;
use serde::de::DeserializeOwned;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Time until all daemons must have joined: containers may have to be started on several machines.
const JOIN_TIMEOUT: Duration = Duration::from_secs(120);
/// Time for a client to send its first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest line that a client may send, in octets.
const LINE_MAX: u64 = 4096;
/// Unauthenticated clients at once; further ones wait in the kernel's bounded backlog.
const PENDING_MAX: usize = 64;
/// Refused clients that are reported one by one; further ones are counted.
const REPORTED_MAX: u64 = 20;
/// The number of clock readings; the one with the shortest round trip is used.
const CLOCK_ROUNDS: usize = 16;
/// Octets of the headers of IPv4 and UDP.
const IP_AND_UDP: usize = 28;
/// Octets of headers that a frame may have beyond a full one: GRH, or IPv6 and tags.
const EXTRA_HEADERS: usize = 64;

/// A daemon that has authenticated itself.
struct JoinedDaemon {
    join: Join,
    /// The text that the daemon has signed.
    challenge: String,
    from: SocketAddr,
    output: BufReader<OwnedReadHalf>,
    commands: OwnedWriteHalf,
}

/// By how much the clock of another machine is ahead of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockOffset {
    ahead_ns: i64,
    /// The uncertainty: half the shortest round trip.
    within_ns: u64,
}

/// Runs `job` with daemons that join at `listener` with `token`.
///
/// # Errors
/// If a daemon does not join, refuses its configuration or dies, or the user interrupts.
pub(crate) async fn run(
    job: &Job<'_>,
    hosting: Hosting,
    listener: TcpListener,
    token: &Token,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    refuse_attached(job)?;
    refuse_exact(job)?;
    if job.capture.is_some() || !job.injections.is_empty() {
        let reason = "captures and replays need daemons on this host: use --backend udp";
        return Err(LaunchError::config(reason));
    }
    let joined = accept_all(&listener, token, hosting.kinds.len()).await?;
    let (sender, events) = unbounded_channel();
    let mut daemons = Vec::with_capacity(joined.len());
    for daemon in joined {
        daemons.push(configure(job, &hosting, daemon, token, sender.clone()).await?);
    }
    Session::new(hosting, Cabling::UDP, daemons, events).run(job, |_| {}, progress).await
}

/// Waits until every process of the lab has joined, and returns them in their order.
async fn accept_all(
    listener: &TcpListener,
    token: &Token,
    count: usize,
) -> Result<Vec<JoinedDaemon>, LaunchError> {
    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    let mut slots: Vec<Option<JoinedDaemon>> = (0..count).map(|_| None).collect();
    let mut pending = JoinSet::new();
    let mut refused = 0;
    let stopwatch = Stopwatch::start();
    while slots.iter().any(Option::is_none) {
        if interrupt::requested() {
            return Err(LaunchError::interrupted());
        }
        if stopwatch.seconds() > JOIN_TIMEOUT.as_secs_f64() {
            let missing: Vec<String> =
                (0..count).filter(|slot| slots[*slot].is_none()).map(|n| n.to_string()).collect();
            let (missing, within) = (missing.join(", "), JOIN_TIMEOUT.as_secs());
            let reason = format!("processes {missing} of {count} did not join within {within} s");
            return Err(LaunchError::died(reason));
        }
        tokio::select! {
            accepted = listener.accept(), if pending.len() < PENDING_MAX => {
                // A connection that is gone before it is accepted does no harm.
                if let Ok((stream, from)) = accepted {
                    let client = authenticate(stream, from, token.clone());
                    pending.spawn(async move { (from, timeout(HELLO_TIMEOUT, client).await) });
                }
            }
            Some(ended) = pending.join_next() => {
                let Ok((from, ended)) = ended else { continue };
                if let Err(reason) = seat(ended, &mut slots).await {
                    report_refusal(&mut refused, from, &reason);
                }
            }
            () = interval(POLL_INTERVAL) => {}
        }
    }
    Ok(slots.into_iter().flatten().collect())
}

/// Waits, for the launcher's own polling; no packet depends on it.
async fn interval(length: Duration) {
    let _ = timeout(length, std::future::pending::<()>()).await;
}

/// Gives a client its place among the daemons.
///
/// # Errors
/// Why it gets none.
async fn seat(
    client: Result<Result<JoinedDaemon, String>, Elapsed>,
    slots: &mut [Option<JoinedDaemon>],
) -> Result<(), String> {
    let within = HELLO_TIMEOUT.as_secs();
    let silent = |_| format!("it did not prove within {within} s that it has the token");
    let mut daemon = client.map_err(silent)??;
    if let Some(reason) = refusal(&daemon.join, slots) {
        // A daemon that is gone needs no answer.
        let _ = send_line(&mut daemon.commands, &ToJoining::Refused(reason.clone())).await;
        return Err(reason);
    }
    let slot = daemon.join.process;
    slots[slot] = Some(daemon);
    Ok(())
}

/// Prints the refusal of a client, unless there were many.
fn report_refusal(refused: &mut u64, from: SocketAddr, reason: &str) {
    *refused += 1;
    match *refused {
        1..=REPORTED_MAX => eprintln!("{from} may not join: {reason}"),
        count if count == REPORTED_MAX + 1 => eprintln!("further refusals are not printed"),
        _ => {}
    }
}

/// Lets a client prove that it has the token.
///
/// # Errors
/// Why it is not a daemon of this lab.
async fn authenticate(
    stream: TcpStream,
    from: SocketAddr,
    token: Token,
) -> Result<JoinedDaemon, String> {
    let gone = |error: io::Error| format!("the connection broke: {error}");
    let nonsense = "its first lines are not those of a daemon of this version";
    stream.set_nodelay(true).map_err(gone)?;
    let (output, mut commands) = stream.into_split();
    let mut output = BufReader::new(output);
    let Ok(FromJoining::Join(join)) = receive(&mut output).await else {
        return Err(nonsense.to_owned());
    };
    let challenge = Token::make().map_err(gone)?.text().to_owned();
    send_line(&mut commands, &ToJoining::Challenge(challenge.clone())).await.map_err(gone)?;
    let Ok(FromJoining::Proof(proof)) = receive(&mut output).await else {
        return Err(nonsense.to_owned());
    };
    match token.has_signed(AS_DAEMON, &[&join.nonce, &challenge], &proof) {
        true => Ok(JoinedDaemon { join, challenge, from, output, commands }),
        false => Err(format!("its {TOKEN_VARIABLE} is not that of this lab")),
    }
}

/// Why a daemon cannot join, if so.
fn refusal(join: &Join, slots: &[Option<JoinedDaemon>]) -> Option<String> {
    let (process, count) = (join.process, slots.len());
    if join.shim_version != shim::VERSION {
        let (theirs, ours) = (join.shim_version, shim::VERSION);
        return Some(format!("its shim version is {theirs}, the launcher needs {ours}"));
    }
    match slots.get(process) {
        None => Some(format!("there is no process {process} of {count}")),
        Some(Some(other)) => {
            Some(format!("process {process} has joined already, from {}", other.from))
        }
        Some(None) => None,
    }
}

/// Reads the clock of a daemon, and sends it its configuration.
async fn configure(
    job: &Job<'_>,
    hosting: &Hosting,
    mut joined: JoinedDaemon,
    token: &Token,
    events: UnboundedSender<(usize, DaemonEvent)>,
) -> Result<Daemon, LaunchError> {
    let process = joined.join.process;
    let from = joined.from;
    let lost = || LaunchError::died(format!("process {process} at {from}")).caused::<io::Error>();
    let offset = match joined.join.boot == boot() && !joined.join.boot.is_empty() {
        true => ClockOffset { ahead_ns: 0, within_ns: 0 },
        false => clock_of(&mut joined).await.map_err(lost())?,
    };
    if offset.within_ns > 0 {
        let (ahead, within) = (offset.ahead_ns as f64 / 1e3, offset.within_ns as f64 / 1e3);
        eprintln!(
            "process {process} at {from}: its clock is {ahead:.1} µs ahead, ± {within:.1} µs"
        );
    }
    let config = daemon_config(job, hosting, &Cabling::UDP, process, None)?;
    // Folders of this host mean nothing there, and the daemon accepts none.
    let datagram_max = datagram_max(job, &joined)?;
    let config = DaemonConfig { datagram_max, socket_dir: None, ..config };
    let text = toml::to_string(&config).map_err(not_toml())?;
    let proof = token.sign(AS_LAUNCHER, &[&joined.join.nonce, &joined.challenge, &text]);
    let configuration = ToJoining::Configuration { text, proof };
    send_line(&mut joined.commands, &configuration).await.map_err(lost())?;
    let kind = hosting.kinds[process];
    let mut daemon = Daemon::over(kind, process, joined.commands, joined.output, events);
    daemon.clock_ahead_ns = offset.ahead_ns;
    Ok(daemon)
}

/// The largest datagram that the path to a daemon carries without fragments, in octets.
fn datagram_max(job: &Job<'_>, joined: &JoinedDaemon) -> Result<usize, LaunchError> {
    let full = job.lab.fabric.full_frame.get() as usize;
    let promise = if job.run.pace == Pace::Exact { Promise::LENGTH } else { 0 };
    let needed = full + EXTRA_HEADERS + promise + Shim::LENGTH + IP_AND_UDP;
    let mtu = joined.join.path_mtu;
    if mtu < needed {
        let (process, from) = (joined.join.process, joined.from);
        return Err(LaunchError::config(format!(
            "process {process} at {from}: the path MTU is {mtu}, frames of {full} octets need {needed}"
        )));
    }
    Ok(DATAGRAM_MAX.min(mtu - IP_AND_UDP))
}

async fn clock_of(joined: &mut JoinedDaemon) -> io::Result<ClockOffset> {
    let mut best = ClockOffset { ahead_ns: 0, within_ns: u64::MAX };
    for _ in 0..CLOCK_ROUNDS {
        let asked = monotonic_ns();
        send_line(&mut joined.commands, &ToJoining::Clock).await?;
        let FromJoining::Clock(theirs) = receive(&mut joined.output).await? else {
            return Err(io::Error::other("it did not answer with its clock"));
        };
        let offset = offset(asked, theirs, monotonic_ns());
        if offset.within_ns < best.within_ns {
            best = offset;
        }
    }
    Ok(best)
}

/// The offset from one reading: the other clock was read between both instants of this one.
fn offset(asked_ns: u64, theirs_ns: u64, answered_ns: u64) -> ClockOffset {
    let within_ns = answered_ns.saturating_sub(asked_ns) / 2;
    ClockOffset {
        ahead_ns: theirs_ns.wrapping_sub(asked_ns + within_ns) as i64,
        within_ns: within_ns.max(1),
    }
}

async fn receive<T: DeserializeOwned>(output: &mut BufReader<OwnedReadHalf>) -> io::Result<T> {
    let mut line = String::new();
    output.take(LINE_MAX).read_line(&mut line).await?;
    read_line(&line).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
