//! Requests to the daemons of a lab: HTTP on Unix sockets.

use super::balance::Balance;
use super::folder::{DaemonRecord, LabRecord};
use daemon::admin::view::{Counters, Outputs, Status};
use daemon::admin::{
    CaptureRequest, Fault, Flows, LinkChange, Problem, TrafficChange, TrafficChanged,
};
use daemon::runtime::on_this_thread;
use daemon::{BoxedError, with_sources};
use emulation::cable::interface::Interfaces;
use emulation::cable::namespace::within;
use emulation::driver::account::Account;
use emulation::frame_tap::CaptureStatistics;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use proto::units::BitRate;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A daemon answers at once, or its worker is overloaded.
const ANSWER_WITHIN: Duration = Duration::from_secs(6);
/// Octets of an answer: the counters of a few hundred devices have some millions.
const ANSWER_MAX: usize = 256 << 20;
/// A daemon that has too many connections closes a further one at once, and the request is repeated.
const TRIES: usize = 20;
/// Nothing listens while a daemon is replaced. A try takes 20 ms.
const TRIES_TO_CONNECT: u32 = 100;

/// Wall time until the instant of an account, in nanoseconds: a request and the worker's orders take less.
const AHEAD_NS: u64 = 100_000_000;
/// The same for each daemon.
const AHEAD_EACH_NS: u64 = 5_000_000;
/// Tries, each with twice the time: a busy host answers late.
const BALANCE_TRIES: u32 = 4;

/// Why a request was not granted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon refuses, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The daemon did not answer, or its answer cannot be read.
    #[error("the daemon at {socket} does not answer")]
    Silent {
        /// The path of its socket.
        socket: String,
        /// What failed.
        source: BoxedError,
    },
}

impl ClientError {
    /// A refusal for a reason found on this side.
    pub fn refused(error: &dyn Error) -> ClientError {
        ClientError::Refused(with_sources(error))
    }
}

/// The state of every daemon that is not silent.
///
/// # Errors
/// If one does not answer.
pub fn status(record: &LabRecord) -> Result<Vec<Status>, ClientError> {
    let daemons = record.running().filter(|daemon| !daemon.is_silent);
    daemons.map(|daemon| json(daemon, Method::GET, "/status", &())).collect()
}

/// The counters of every daemon.
///
/// # Errors
/// If one does not answer.
pub fn counters(record: &LabRecord, flows: Flows) -> Result<Vec<Counters>, ClientError> {
    let path = match flows {
        Flows::All => "/counters",
        Flows::None => "/counters?flows=none",
    };
    all(record, Method::GET, path, &())
}

/// What the outputs of every daemon count.
///
/// # Errors
/// If one does not answer.
pub fn outputs(record: &LabRecord) -> Result<Vec<Outputs>, ClientError> {
    all(record, Method::GET, "/outputs", &())
}

/// The balance of a running lab, from a consistent cut through all its daemons.
///
/// # Errors
/// If a daemon does not answer, or too late every time.
pub fn balance(record: &LabRecord) -> Result<Balance, ClientError> {
    let mut ahead_ns = AHEAD_NS + AHEAD_EACH_NS * record.daemons.len() as u64;
    for _ in 0..BALANCE_TRIES {
        let read = status(record)?;
        let now_ps = read.iter().map(|status| status.at_ps).max().unwrap_or_default();
        let at_ps = now_ps + ahead_ns * 1_000 / record.dilation.max(1);
        if let Some(accounts) = accounts(record, at_ps)? {
            return Ok(Balance::of_accounts(at_ps, &accounts));
        }
        ahead_ns *= 2;
    }
    let why = "the daemons did not agree on an instant: is the host busy?";
    Err(ClientError::Refused(why.to_owned()))
}

/// The accounts of all daemons at an instant; none if it had passed when one of them was asked.
///
/// # Errors
/// If one does not answer.
fn accounts(record: &LabRecord, at_ps: u64) -> Result<Option<Vec<Account>>, ClientError> {
    let path = format!("/balance?at_ps={at_ps}");
    let ask = |daemon| json::<Option<Account>>(daemon, Method::GET, &path, &());
    // Each answers when the instant has passed.
    let answers: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let asked = record.running().map(|daemon| scope.spawn(move || ask(daemon)));
        let asked: Vec<_> = asked.collect();
        asked.into_iter().map(|thread| thread.join().expect("a request does not panic")).collect()
    });
    answers.map(|all| all.into_iter().collect())
}

/// Resets all counters to zero.
///
/// # Errors
/// If a daemon does not answer.
pub fn clear(record: &LabRecord) -> Result<(), ClientError> {
    all::<()>(record, Method::POST, "/clear", &()).map(|_| ())
}

/// Changes the link at `port`.
///
/// # Errors
/// If there is no such port, or its daemon does not answer.
pub fn change_link(record: &LabRecord, port: &str, change: &LinkChange) -> Result<(), ClientError> {
    at_port(record, Method::POST, "links", port, change)
}

/// Changes settings of the switch `name`, or of a port of that name, from the next frame on.
///
/// # Errors
/// If there is no such node, it refuses the change, or its daemon does not answer.
pub fn change_settings(
    record: &LabRecord,
    name: &str,
    settings: &toml::Table,
) -> Result<(), ClientError> {
    at_port(record, Method::POST, "settings", name, settings)
}

/// Adds a fault at `port`.
///
/// # Errors
/// If there is no such port, or its daemon does not answer.
pub fn add_fault(record: &LabRecord, port: &str, fault: &Fault) -> Result<(), ClientError> {
    at_port(record, Method::POST, "faults", port, fault)
}

/// Removes all changes and faults at `port`.
///
/// # Errors
/// If there is no such port, or its daemon does not answer.
pub fn remove_faults(record: &LabRecord, port: &str) -> Result<(), ClientError> {
    at_port(record, Method::DELETE, "faults", port, &())
}

fn at_port(
    record: &LabRecord,
    method: Method,
    what: &str,
    port: &str,
    body: &impl Serialize,
) -> Result<(), ClientError> {
    json(daemon_at(record, port)?, method, &format!("/{what}/{port}"), body)
}

/// Executes lines of calls to the agent of a node; the lines of the answers.
///
/// # Errors
/// If there is no such node, it has no agent, or its daemon does not answer.
pub fn ask_agent(
    record: &LabRecord,
    node: &str,
    lines: &[String],
) -> Result<Vec<String>, ClientError> {
    json(daemon_at(record, &format!("{node}:1"))?, Method::POST, &format!("/agent/{node}"), &lines)
}

/// Both ends of the cable at `port`, or `port` alone if it has no cable.
fn ends<'a>(record: &'a LabRecord, port: &'a str) -> impl Iterator<Item = &'a str> {
    std::iter::once(port).chain(record.peer(port))
}

/// Cuts the cable at `port` in both directions, or lets all frames pass again.
///
/// # Errors
/// If there is no such port, or a daemon does not answer.
pub fn cut(record: &LabRecord, port: &str, down: bool) -> Result<(), ClientError> {
    let change = LinkChange { down: Some(down), ..LinkChange::default() };
    ends(record, port).try_for_each(|end| change_link(record, end, &change))
}

/// Switches the interface of the host at `port` off or on, so that its far end loses its carrier or has it again.
///
/// # Errors
/// If the port has no such interface, or this process may not switch it.
pub fn set_carrier(record: &LabRecord, port: &str, down: bool) -> Result<(), ClientError> {
    let none = || {
        let reason = "has no interface of this host, and devices of a lab sense no carrier";
        ClientError::Refused(format!("{port} {reason}"))
    };
    if let Some(host) = record.hosts.iter().find(|host| host.port == port) {
        let command = format!("pausebed exec {} -- ip link set eth0 down", host.name);
        return Err(ClientError::Refused(format!("{port} leads to host {}: {command}", host.name)));
    }
    let interface = &record.attached_at(port).ok_or_else(none)?.interface;
    let namespace = |process: &str| PathBuf::from(format!("/proc/{process}/ns/net"));
    let there = namespace(&daemon_at(record, port)?.pid.to_string());
    let is_here = fs::read_link(&there).ok() == fs::read_link(namespace("self")).ok();
    let there = (!is_here).then_some(there);
    within(there.as_deref(), || Interfaces::here()?.set_state(interface, !down)).map_err(|error| {
        let word = if down { "off" } else { "on" };
        ClientError::Refused(format!(
            "interface {interface} cannot be switched {word}: {error}; that needs CAP_NET_ADMIN in \
             the network namespace of the lab"
        ))
    })
}

/// Removes all changes and faults at both ends of the cable at `port`.
///
/// # Errors
/// If there is no such port, or a daemon does not answer.
pub fn repair(record: &LabRecord, port: &str) -> Result<(), ClientError> {
    ends(record, port).try_for_each(|end| remove_faults(record, end))
}

/// The metrics page of every daemon.
///
/// # Errors
/// If one does not answer.
pub fn metrics(record: &LabRecord) -> Result<Vec<String>, ClientError> {
    let page = |daemon: &DaemonRecord| {
        let octets = exchange(&daemon.socket, Method::GET, "/metrics", &())?;
        String::from_utf8(octets.into()).map_err(|error| silent(&daemon.socket, error.into()))
    };
    record.running().map(page).collect()
}

/// The daemon that hosts the node of `port`.
fn daemon_at<'a>(record: &'a LabRecord, port: &str) -> Result<&'a DaemonRecord, ClientError> {
    let node = port.rsplit_once(':').map_or(port, |(node, _)| node);
    let daemon = record.daemon_of(node);
    daemon.ok_or_else(|| ClientError::Refused(format!("no node {node:?} in lab {}", record.lab)))
}

/// Line rates by port.
pub type Rates = BTreeMap<String, BitRate>;

/// The daemons that host `ports`, each with its ports and their line rates.
///
/// # Errors
/// If a port does not exist or has no cable.
pub fn by_daemon<'a>(
    record: &'a LabRecord,
    ports: &[String],
) -> Result<Vec<(&'a DaemonRecord, Rates)>, ClientError> {
    let mut parts: BTreeMap<&Path, (&DaemonRecord, BTreeMap<_, _>)> = BTreeMap::new();
    for port in ports {
        let daemon = daemon_at(record, port)?;
        let none = || ClientError::Refused(format!("no cable at {port} in lab {}", record.lab));
        let rate = record.rate_of(port).ok_or_else(none)?;
        let part = parts.entry(&daemon.socket).or_insert_with(|| (daemon, BTreeMap::new()));
        part.1.insert(port.clone(), rate);
    }
    Ok(parts.into_values().collect())
}

/// Starts or stops traffic items; returns the number of adapters that have such items.
///
/// # Errors
/// If a daemon does not answer.
pub fn traffic(record: &LabRecord, change: &TrafficChange) -> Result<usize, ClientError> {
    let changed: Vec<TrafficChanged> = all(record, Method::POST, "/traffic", change)?;
    Ok(changed.iter().map(|changed| changed.adapters).sum())
}

/// Starts a capture.
///
/// # Errors
/// If it cannot be made or the daemon does not answer.
pub fn capture(daemon: &DaemonRecord, request: &CaptureRequest) -> Result<(), ClientError> {
    json(daemon, Method::POST, "/capture", request)
}

/// Ends a capture; returns its statistics, if there was one.
///
/// # Errors
/// If the daemon does not answer.
pub fn end_capture(daemon: &DaemonRecord) -> Result<Option<CaptureStatistics>, ClientError> {
    json(daemon, Method::DELETE, "/capture", &())
}

/// The answers of all daemons.
fn all<T: DeserializeOwned>(
    record: &LabRecord,
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> Result<Vec<T>, ClientError> {
    record.running().map(|daemon| json(daemon, method.clone(), path, body)).collect()
}

/// The answer of a daemon; one without content is `null`.
fn json<T: DeserializeOwned>(
    daemon: &DaemonRecord,
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> Result<T, ClientError> {
    let octets = exchange(&daemon.socket, method, path, body)?;
    let content = if octets.is_empty() { b"null" } else { &octets[..] };
    serde_json::from_slice(content).map_err(|error| silent(&daemon.socket, error.into()))
}

/// The octets that the daemon at `socket` answers. A body of `()` is left out.
fn exchange(
    socket: &Path,
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> Result<Bytes, ClientError> {
    let ask = || -> Result<(StatusCode, Bytes), BoxedError> {
        let body = serde_json::to_vec(body)?;
        let body = if body == b"null" { Bytes::new() } else { body.into() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "lab")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let runtime = on_this_thread()?;
        runtime.block_on(async { timeout(ANSWER_WITHIN, send(socket, request)).await? })
    };
    let (status, body) = ask().map_err(|error| silent(socket, error))?;
    if status.is_success() {
        return Ok(body);
    }
    let problem: Option<Problem> = serde_json::from_slice(&body).ok();
    let said = || String::from_utf8_lossy(&body).into_owned();
    Err(ClientError::Refused(problem.map_or_else(said, |problem| problem.error)))
}

fn silent(socket: &Path, source: BoxedError) -> ClientError {
    ClientError::Silent { socket: socket.display().to_string(), source }
}

/// Sends a request, and sends it again while the daemon closes the connection without an answer.
async fn send(
    socket: &Path,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), BoxedError> {
    let mut tries = 1;
    loop {
        let stream = TokioIo::new(connect(socket).await?);
        let (mut sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(connection);
        match sender.send_request(request.clone()).await {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                let body = Limited::new(body, ANSWER_MAX).collect().await?;
                return Ok((head.status, body.to_bytes()));
            }
            Err(error) if tries < TRIES && !error.is_parse() => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn connect(socket: &Path) -> io::Result<UnixStream> {
    for _ in 0..TRIES_TO_CONNECT {
        if let Ok(stream) = UnixStream::connect(socket).await {
            return Ok(stream);
        }
        emulation::timer::wait(None, emulation::clock::monotonic_ns() + 20_000_000);
    }
    UnixStream::connect(socket).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    /// What `exchange` makes of a daemon that gives these answers, one a connection.
    fn answered(answers: &[&str]) -> Result<Bytes, ClientError> {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("daemon.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for answer in answers {
                    let (mut stream, _) = listener.accept().expect("a client");
                    // The first part of the request; an error means that the client is gone.
                    let _ = stream.read(&mut [0; 4_096]);
                    let _ = stream.write_all(answer.as_bytes());
                }
                drop(listener);
            });
            exchange(&socket, Method::GET, "/status", &())
        })
    }

    #[test]
    fn an_answer_after_a_closed_connection_is_read() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(answered(&["", answer]).expect("the second try succeeds"), "{}");
    }

    #[test]
    fn refusals_carry_the_daemons_reason() {
        let body = "{\"error\": \"no port\"}";
        let length = body.len();
        let answer =
            format!("HTTP/1.1 422 Unprocessable Entity\r\ncontent-length: {length}\r\n\r\n{body}");
        let refused = answered(&[&answer]).expect_err("it is refused");
        assert!(matches!(&refused, ClientError::Refused(why) if why == "no port"), "{refused}");
    }

    #[test]
    fn what_is_no_answer_has_a_cause() {
        let silent = answered(&["SSH-2.0-x\r\n\r\n"; 1]).expect_err("it is not HTTP");
        assert!(matches!(silent, ClientError::Silent { .. }), "{silent}");
        assert!(with_sources(&silent).contains("does not answer: "), "{silent}");
    }
}
