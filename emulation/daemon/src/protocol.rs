//! Messages between launcher and daemon: one JSON value a line, in both directions.
//!
//! Externally tagged, since serde buffers internally tagged values in a form without 128-bit integers, which
//! time integrals need.

use crate::error::{Context, DaemonError};
use emulation::clock::ClockChange;
use emulation::driver::{Beat, Report};
use emulation::exact::Secret;
use emulation::recorder::snapshot::BinSnapshot;
use emulation::timer::Priority;
use proto::ids::Lid;
use proto::units::Instant;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroU64;

/// Octets of the longest line to a daemon: the configuration of a lab of some ten thousand nodes.
pub const LINE_MAX: u64 = 64 << 20;

/// From daemon to launcher, on the daemon's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToLauncher {
    /// Ready to start.
    Hello(Hello),
    /// A heartbeat, at least every 250 ms from `start` until the report. The launcher decides how much silence it accepts.
    Beat(Box<Beat>),
    /// A bin has ended. Sent with the next heartbeat, if the plan asks for bins.
    Bin(Box<BinSnapshot>),
    /// The run is over. The last message.
    Report(Box<Report>),
    /// The daemon failed. The last message.
    Fatal {
        /// The cause, in one sentence.
        message: String,
    },
}

/// The first message of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program.
    pub version: String,
    /// Version of the shim. The launcher refuses a mixture.
    pub shim_version: u8,
    /// Address of its socket: `127.0.0.1:PORT` or a file.
    pub address: String,
    /// Address for administration by TCP, if that is configured.
    pub admin: Option<SocketAddr>,
    /// Its process id.
    pub pid: u32,
    /// How the data plane will be scheduled.
    pub priority: Priority,
}

/// From launcher to daemon, on the daemon's standard input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToDaemon {
    /// Start the run.
    Start {
        /// Identifies the run on the cables; chosen anew for every run.
        epoch: u32,
        /// Fabric zero on `CLOCK_MONOTONIC` of this host, in nanoseconds, far enough ahead for all daemons to
        /// be ready.
        origin_ns: u64,
        /// Wall time over fabric time.
        dilation: NonZeroU64,
        /// Addresses by process.
        peers: Vec<String>,
        /// When the devices begin: fabric zero, or later for a process that takes the place of another.
        #[serde(default)]
        begin: Instant,
        /// With exact pace: the secret of promises. Origin and dilation have no meaning then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<Secret>,
    },
    /// From an instant of fabric time that is still some way ahead, the clock runs with another dilation.
    ChangeClock(ClockChange),
    /// The process with this number has ended. Frames to it are lost, and links to it are down.
    Gone {
        /// Its number.
        process: usize,
    },
    /// Another process takes the place of one that has ended.
    Replaced {
        /// The number of both.
        process: usize,
        /// The address of the new one.
        address: String,
        /// The LIDs of its adapters, by the plan.
        adapters: Vec<Lid>,
    },
    /// End the run now and report.
    Stop,
}

/// Writes one line and flushes it.
///
/// # Errors
/// If the other side has closed the connection.
pub fn write_line(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads one line of at most `octets_max`; none at the end.
///
/// # Errors
/// Those of the system, or if the line is longer.
pub fn next_line(from: &mut impl BufRead, octets_max: u64) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = from.by_ref().take(octets_max).read_line(&mut line)?;
    if read as u64 == octets_max && !line.ends_with('\n') {
        let reason = format!("a line of more than {octets_max} octets");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok((read > 0).then_some(line))
}

/// Parses one line.
///
/// # Errors
/// If it is not a message of this version.
pub fn read_line<T: DeserializeOwned>(line: &str) -> Result<T, DaemonError> {
    let begin: String = line.chars().take(60).collect();
    serde_json::from_str(line).context(format!("cannot parse {begin:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_an_error_and_not_memory() {
        let mut text = &b"one\ntwo\nthree"[..];
        let mut next = || next_line(&mut text, 4).map_err(|error| error.kind());
        assert_eq!(next(), Ok(Some("one\n".to_owned())));
        assert_eq!(next(), Ok(Some("two\n".to_owned())));
        assert_eq!(next(), Err(io::ErrorKind::InvalidData));
        assert_eq!(next_line(&mut &b""[..], 4).expect("no error"), None);
        assert_eq!(next_line(&mut &b"end"[..], 4).expect("no error").as_deref(), Some("end"));
    }

    #[test]
    fn messages_survive_the_journey_and_nonsense_is_quoted() {
        let start = ToDaemon::Start {
            epoch: 7,
            origin_ns: u64::MAX,
            dilation: NonZeroU64::MIN,
            peers: vec!["127.0.0.1:4711".to_owned()],
            begin: Instant::from_ps(6),
            secret: Some(Secret::new([7; 16])),
        };
        let change = ClockChange { at: Instant::from_ps(5), dilation: NonZeroU64::MIN };
        let (address, adapters) = ("127.0.0.1:1".to_owned(), vec![Lid::new(3)]);
        let replaced = ToDaemon::Replaced { process: 1, address, adapters };
        for message in [start, ToDaemon::ChangeClock(change), replaced] {
            let mut line = Vec::new();
            write_line(&mut line, &message).expect("a vector takes everything");
            let line = String::from_utf8(line).expect("JSON is UTF-8");
            assert_eq!(read_line::<ToDaemon>(line.trim_end()).expect("a message"), message);
        }
        assert_eq!(read_line::<ToDaemon>("\"stop\"").expect("a stop"), ToDaemon::Stop);
        let error = read_line::<ToDaemon>("{\"begin\":1}").expect_err("no such message");
        assert!(error.to_string().contains("begin"), "{error}");
    }
}
