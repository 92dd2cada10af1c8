//! Requests to the daemons of a lab: HTTP on Unix sockets, as much of it as their answers take.

use super::folder::{DaemonRecord, Record};
use daemon::admin::view::{Counters, Outputs, Status};
use daemon::admin::{
    CaptureRequest, Fault, Flows, LinkChange, Problem, TrafficChange, TrafficChanged,
};
use emulation::frame_tap::CaptureStatistics;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A daemon answers at once, or its worker has too much to do.
const ANSWER_WITHIN: Duration = Duration::from_secs(6);
/// Octets of an answer: the counters of a few hundred devices have some millions.
const ANSWER_MAX: u64 = 256 << 20;
/// A daemon that has too many connections closes a further one at once: it is asked again.
const TRIES: usize = 20;

/// Why a request was not granted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon says why.
    #[error("{0}")]
    Refused(String),
    /// There is no answer.
    #[error("the daemon at {0} does not answer: {1}")]
    Silent(String, io::Error),
}

/// How every daemon does.
///
/// # Errors
/// If one does not answer.
pub fn status(record: &Record) -> Result<Vec<Status>, ClientError> {
    record.daemons.iter().map(|daemon| get(&daemon.socket, "/status")).collect()
}

/// What every daemon counts.
///
/// # Errors
/// If one does not answer.
pub fn counters(record: &Record, flows: Flows) -> Result<Vec<Counters>, ClientError> {
    let path = match flows {
        Flows::All => "/counters",
        Flows::None => "/counters?flows=none",
    };
    record.daemons.iter().map(|daemon| get(&daemon.socket, path)).collect()
}

/// What the outputs of every daemon have done.
///
/// # Errors
/// If one does not answer.
pub fn outputs(record: &Record) -> Result<Vec<Outputs>, ClientError> {
    record.daemons.iter().map(|daemon| get(&daemon.socket, "/outputs")).collect()
}

/// Lets all counters begin at zero.
///
/// # Errors
/// If a daemon does not answer.
pub fn clear(record: &Record) -> Result<(), ClientError> {
    for daemon in &record.daemons {
        exchange(&daemon.socket, "POST", "/clear", None)?;
    }
    Ok(())
}

/// Changes something at a port, as in `/links/leaf1:4`.
///
/// # Errors
/// If there is no such port, or its daemon does not answer.
pub fn at_port(
    record: &Record,
    method: &str,
    what: &str,
    port: &str,
    body: Option<&impl Serialize>,
) -> Result<(), ClientError> {
    let daemon = daemon_at(record, port)?;
    let body = body.map(|body| serde_json::to_string(body).expect("plain data"));
    exchange(&daemon.socket, method, &format!("/{what}/{port}"), body.as_deref()).map(|_| ())
}

/// Cuts the cable at `port` both ways, or lets everything through again.
///
/// # Errors
/// If there is no such port, or a daemon does not answer.
pub fn cut(record: &Record, port: &str, down: bool) -> Result<(), ClientError> {
    let change = LinkChange { down: Some(down), ..LinkChange::default() };
    let ends = std::iter::once(port).chain(record.peer(port));
    ends.into_iter().try_for_each(|end| at_port(record, "POST", "links", end, Some(&change)))
}

/// Ends everything that was done at both ends of the cable at `port`.
///
/// # Errors
/// If there is no such port, or a daemon does not answer.
pub fn mend(record: &Record, port: &str) -> Result<(), ClientError> {
    let ends = std::iter::once(port).chain(record.peer(port));
    ends.into_iter().try_for_each(|end| at_port(record, "DELETE", "faults", end, None::<&Fault>))
}

/// Every daemon's page for Prometheus.
///
/// # Errors
/// If one does not answer.
pub fn metrics(record: &Record) -> Result<Vec<String>, ClientError> {
    let page = |daemon: &DaemonRecord| exchange(&daemon.socket, "GET", "/metrics", None);
    record.daemons.iter().map(page).collect()
}

/// The daemon that hosts the node of `port`.
///
/// # Errors
/// If there is none.
pub fn daemon_at<'a>(record: &'a Record, port: &str) -> Result<&'a DaemonRecord, ClientError> {
    let node = port.rsplit_once(':').map_or(port, |(node, _)| node);
    let daemon = record.daemon_of(node);
    daemon.ok_or_else(|| ClientError::Refused(format!("no node {node:?} in lab {}", record.lab)))
}

/// Lets traffic items post, or not; how many adapters have such.
///
/// # Errors
/// If a daemon does not answer.
pub fn traffic(record: &Record, change: &TrafficChange) -> Result<usize, ClientError> {
    let body = serde_json::to_string(change).expect("plain data");
    let mut adapters = 0;
    for daemon in &record.daemons {
        let text = exchange(&daemon.socket, "POST", "/traffic", Some(&body))?;
        let changed: TrafficChanged = read(&daemon.socket, &text)?;
        adapters += changed.adapters;
    }
    Ok(adapters)
}

/// Begins a capture.
///
/// # Errors
/// If it cannot be made or the daemon does not answer.
pub fn capture(daemon: &DaemonRecord, wish: &CaptureRequest) -> Result<(), ClientError> {
    let body = serde_json::to_string(wish).expect("plain data");
    exchange(&daemon.socket, "POST", "/capture", Some(&body)).map(|_| ())
}

/// Ends a capture; what it saw, if there was one.
///
/// # Errors
/// If the daemon does not answer.
pub fn end_capture(daemon: &DaemonRecord) -> Result<Option<CaptureStatistics>, ClientError> {
    read(&daemon.socket, &exchange(&daemon.socket, "DELETE", "/capture", None)?)
}

fn get<T: DeserializeOwned>(socket: &Path, path: &str) -> Result<T, ClientError> {
    read(socket, &exchange(socket, "GET", path, None)?)
}

fn read<T: DeserializeOwned>(socket: &Path, text: &str) -> Result<T, ClientError> {
    serde_json::from_str(text).map_err(|error| silent(socket, error.into()))
}

fn silent(socket: &Path, error: io::Error) -> ClientError {
    ClientError::Silent(socket.display().to_string(), error)
}

/// One request and the body of its answer.
fn exchange(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<&str>,
) -> Result<String, ClientError> {
    let mut answer = String::new();
    for _ in 0..TRIES {
        answer = once(socket, method, path, body).map_err(|error| silent(socket, error))?;
        if !answer.is_empty() {
            break;
        }
    }
    let understood = understand(&answer);
    let (status, body) =
        understood.ok_or_else(|| silent(socket, io::ErrorKind::UnexpectedEof.into()))?;
    if status < 300 {
        return Ok(body.to_owned());
    }
    let problem: Option<Problem> = serde_json::from_str(body).ok();
    Err(ClientError::Refused(problem.map_or(body.to_owned(), |problem| problem.error)))
}

/// What comes back, or nothing if the daemon closes the connection without a word.
fn once(socket: &Path, method: &str, path: &str, body: Option<&str>) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    let body = body.unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    let spoken = stream.write_all(request.as_bytes());
    let heard = spoken.and_then(|()| stream.take(ANSWER_MAX).read_to_string(&mut answer));
    match heard {
        Err(error) if is_closed(&error) => Ok(String::new()),
        Err(error) => Err(error),
        Ok(_) => Ok(answer),
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Status and body of an answer that is not chunked, as those of daemons are.
fn understand(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood_and_nonsense_is_not() {
        let answer = "HTTP/1.1 422 Unprocessable Entity\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(understand(answer), Some((422, "{}")));
        assert_eq!(understand("HTTP/1.1 204 No Content\r\n\r\n"), Some((204, "")));
        assert_eq!(understand("SSH-2.0"), None);
        assert_eq!(understand(""), None);
    }
}
