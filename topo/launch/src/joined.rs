//! Daemons that come to their launcher: listened for, asked for the lab's token and their clocks, told
//! what to be, and from then on run like child processes.
//!
//! Whoever has no token learns nothing and disturbs nobody: a stranger gets one line and a few
//! seconds, and only so many of them at a time.

use super::daemons::configuration::describe;
use super::daemons::{Cabling, Session};
use super::placement::Hosting;
use super::processes::{Daemon, News};
use super::{Job, LaunchError, Outcome, Progress, interrupt, refuse_attached};
use daemon::DaemonConfig;
use daemon::join::{FromJoining, Join, ToJoining, boot};
use daemon::protocol::{read_line, write_line};
use daemon::token::Token;
use emulation::cable::exchange::DATAGRAM_MAX;
use emulation::cable::shim::{self, Shim};
use emulation::clock::{Stopwatch, monotonic_ns};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// All daemons must have come by then: containers may have to be started on several machines.
const ALL_WITHIN: Duration = Duration::from_secs(120);
/// A stranger must have said who it is by then.
const WORD_WITHIN: Duration = Duration::from_secs(5);
/// Octets of the longest line that a stranger may say.
const WORD_MAX: u64 = 4096;
/// Strangers heard at once; further ones wait in the kernel's queue, which is bounded too.
const STRANGERS_MAX: usize = 64;
/// How often a clock is asked for; the quickest answer says most.
const CLOCK_ROUNDS: usize = 16;
/// Headers of IPv4 and UDP.
const IP_AND_UDP: usize = 28;
/// The longest headers that any full frame of ours has beyond the scenario's: GRH, or IPv6 and tags.
const FURTHER_HEADERS: usize = 64;

/// A daemon that has the token.
struct Visitor {
    join: Join,
    from: SocketAddr,
    output: BufReader<OwnedReadHalf>,
    commands: OwnedWriteHalf,
}

/// How far another machine's clock is ahead of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    ahead_ns: i64,
    /// Half the quickest round trip: the figure is this good.
    within_ns: u64,
}

/// Runs `job` with daemons that come to `listener` and have `token`.
///
/// # Errors
/// If one does not come, refuses its configuration or dies, or somebody interrupts.
pub async fn run(
    job: &Job<'_>,
    hosting: Hosting,
    listener: TcpListener,
    token: &Token,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    refuse_attached(job)?;
    if job.capture.is_some() || !job.injections.is_empty() {
        let reason = "captures and replays need daemons on this host: use --backend udp";
        return Err(LaunchError::Config(reason.to_owned()));
    }
    let visitors = gather(&listener, token, hosting.kinds.len()).await?;
    let (sender, news) = unbounded_channel();
    let mut daemons = Vec::with_capacity(visitors.len());
    for visitor in visitors {
        daemons.push(employ(job, &hosting, visitor, sender.clone()).await?);
    }
    let mut session = Session::of(hosting, Cabling::by_udp(), daemons, news);
    let outcome = session.play(job, progress).await;
    for daemon in &mut session.daemons {
        daemon.end().await;
    }
    outcome
}

/// Waits until every process of the lab has come; they in their order.
async fn gather(
    listener: &TcpListener,
    token: &Token,
    count: usize,
) -> Result<Vec<Visitor>, LaunchError> {
    const LOOK_AGAIN: Duration = Duration::from_millis(100);
    let mut seats: Vec<Option<Visitor>> = (0..count).map(|_| None).collect();
    let mut strangers = JoinSet::new();
    let stopwatch = Stopwatch::start();
    while seats.iter().any(Option::is_none) {
        if interrupt::requested() {
            return Err(LaunchError::Interrupted);
        }
        if stopwatch.seconds() > ALL_WITHIN.as_secs_f64() {
            let missing: Vec<String> =
                (0..count).filter(|seat| seats[*seat].is_none()).map(|n| n.to_string()).collect();
            let (missing, within) = (missing.join(", "), ALL_WITHIN.as_secs());
            let reason = format!("processes {missing} of {count} did not join within {within} s");
            return Err(LaunchError::Died(reason));
        }
        tokio::select! {
            accepted = listener.accept(), if strangers.len() < STRANGERS_MAX => {
                // A connection that is gone before it is taken is nobody's loss.
                if let Ok((stream, from)) = accepted {
                    strangers.spawn(timeout(WORD_WITHIN, receive(stream, from, token.clone())));
                }
            }
            Some(heard) = strangers.join_next() => {
                let Ok(Ok(Some(mut visitor))) = heard else { continue };
                match objection(&visitor.join, &seats) {
                    None => {
                        let seat = visitor.join.process;
                        seats[seat] = Some(visitor);
                    }
                    Some(reason) => {
                        eprintln!("{} may not join: {reason}", visitor.from);
                        // A visitor that is gone by now needs no answer.
                        let _ = tell(&mut visitor.commands, &ToJoining::Refused(reason)).await;
                    }
                }
            }
            () = interval(LOOK_AGAIN) => {}
        }
    }
    Ok(seats.into_iter().flatten().collect())
}

/// Time for the launcher to look around; no packet depends on it.
async fn interval(length: Duration) {
    // A future that never ends, given up after `length`.
    let _ = timeout(length, std::future::pending::<()>()).await;
}

/// Who a stranger is; nobody, if it has not got the token.
async fn receive(stream: TcpStream, from: SocketAddr, token: Token) -> Option<Visitor> {
    stream.set_nodelay(true).ok()?;
    let (output, commands) = stream.into_split();
    let mut output = BufReader::new(output);
    match hear(&mut output).await.ok()? {
        FromJoining::Join(join) if token.is(&join.token) => {
            Some(Visitor { join, from, output, commands })
        }
        _ => None,
    }
}

fn objection(join: &Join, seats: &[Option<Visitor>]) -> Option<String> {
    let (process, count) = (join.process, seats.len());
    if join.shim_version != shim::VERSION {
        let (theirs, ours) = (join.shim_version, shim::VERSION);
        return Some(format!("it speaks shim version {theirs}, the launcher version {ours}"));
    }
    match seats.get(process) {
        None => Some(format!("there is no process {process} of {count}")),
        Some(Some(other)) => {
            Some(format!("process {process} is here already, from {}", other.from))
        }
        Some(None) => None,
    }
}

/// Asks for the clock of a visitor, and tells it what to be.
async fn employ(
    job: &Job<'_>,
    hosting: &Hosting,
    mut visitor: Visitor,
    news: UnboundedSender<(usize, News)>,
) -> Result<Daemon, LaunchError> {
    let process = visitor.join.process;
    let from = visitor.from;
    let lost =
        |error: io::Error| LaunchError::Died(format!("process {process} at {from}: {error}"));
    let offset = match visitor.join.boot == boot() && !visitor.join.boot.is_empty() {
        true => Offset { ahead_ns: 0, within_ns: 0 },
        false => clock_of(&mut visitor).await.map_err(lost)?,
    };
    if offset.within_ns > 0 {
        let (ahead, within) = (offset.ahead_ns as f64 / 1e3, offset.within_ns as f64 / 1e3);
        eprintln!(
            "process {process} at {from}: its clock is {ahead:.1} µs ahead, ± {within:.1} µs"
        );
    }
    let config = describe(job, hosting, &Cabling::by_udp(), process, None)?;
    let config = DaemonConfig { datagram_max: datagram_max(job, &visitor)?, ..config };
    let text = toml::to_string(&config).map_err(|error| LaunchError::Config(error.to_string()))?;
    tell(&mut visitor.commands, &ToJoining::Configuration(text)).await.map_err(lost)?;
    let kind = hosting.kinds[process];
    let mut daemon = Daemon::over(kind, process, visitor.commands, visitor.output, news);
    daemon.clock_ahead_ns = offset.ahead_ns;
    Ok(daemon)
}

/// Octets of the largest datagram that the path of a visitor takes whole.
fn datagram_max(job: &Job<'_>, visitor: &Visitor) -> Result<usize, LaunchError> {
    let full = job.lab.fabric.full_frame.get() as usize;
    let needed = full + FURTHER_HEADERS + Shim::LENGTH + IP_AND_UDP;
    let mtu = visitor.join.path_mtu;
    if mtu < needed {
        let (process, from) = (visitor.join.process, visitor.from);
        return Err(LaunchError::Config(format!(
            "process {process} at {from}: its path takes {mtu} octets whole, frames of {full} need an \
             MTU of {needed}"
        )));
    }
    Ok(DATAGRAM_MAX.min(mtu - IP_AND_UDP))
}

async fn clock_of(visitor: &mut Visitor) -> io::Result<Offset> {
    let mut best: Option<Offset> = None;
    for _ in 0..CLOCK_ROUNDS {
        let asked = monotonic_ns();
        tell(&mut visitor.commands, &ToJoining::Clock).await?;
        let FromJoining::Clock(theirs) = hear(&mut visitor.output).await? else {
            return Err(io::Error::other("it was asked for its clock and said something else"));
        };
        let offset = offset(asked, theirs, monotonic_ns());
        if best.is_none_or(|best| offset.within_ns < best.within_ns) {
            best = Some(offset);
        }
    }
    best.ok_or_else(|| io::Error::other("its clock was never asked for"))
}

/// What one question shows: their clock was read somewhere between ours before and after.
fn offset(asked_ns: u64, theirs_ns: u64, answered_ns: u64) -> Offset {
    let within_ns = answered_ns.saturating_sub(asked_ns) / 2;
    Offset {
        ahead_ns: theirs_ns.wrapping_sub(asked_ns + within_ns) as i64,
        within_ns: within_ns.max(1),
    }
}

async fn hear<T: DeserializeOwned>(output: &mut BufReader<OwnedReadHalf>) -> io::Result<T> {
    let mut line = String::new();
    output.take(WORD_MAX).read_line(&mut line).await?;
    read_line(&line).map_err(io::Error::other)
}

async fn tell(commands: &mut OwnedWriteHalf, message: &impl Serialize) -> io::Result<()> {
    let mut line = Vec::new();
    write_line(&mut line, message)?;
    commands.write_all(&line).await
}

#[cfg(test)]
mod tests;
