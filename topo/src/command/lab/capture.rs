//! `pausebed capture PORT…`: frames of a lab that runs, into a file until interrupted.

use super::{Choice, failed};
use crate::command::Exit;
use crate::launch::interrupt;
use crate::launch::lab::client::{self, ClientError};
use crate::launch::lab::{Record, folder::DaemonRecord};
use emulation::capture::CaptureStatistics;
use emulation::clock::{Stopwatch, monotonic_ns};
use emulation::daemon::admin::CaptureWish;
use emulation::timer;
use proto::units::{BitRate, Bytes};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How often it is looked whether it shall end.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// Options of `capture`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Ports of the lab, as in leaf1:4
    #[arg(required = true, value_name = "PORT")]
    ports: Vec<String>,
    /// The file; - is standard output, when the capture ends. Ports of several daemons go to a file each
    #[arg(short, long = "write", value_name = "FILE", default_value = "capture.pcapng")]
    write: PathBuf,
    /// Octets kept of each frame, as in "96 B"; all if left out
    #[arg(long, value_name = "SIZE")]
    snaplen: Option<Bytes>,
    /// End after so many seconds of wall time; when interrupted if left out
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    #[command(flatten)]
    choice: Choice,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let record = match options.choice.running() {
        Ok(record) => record,
        Err(exit) => return exit,
    };
    interrupt::watch();
    let to_output = options.write == Path::new("-");
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => {
            eprintln!("no folder for the capture: {error}");
            return Exit::Host;
        }
    };
    let file = if to_output { scratch.path().join("c.pcapng") } else { options.write.clone() };
    let captured = capture(options, &record, &file).and_then(|files| match files.as_slice() {
        [only] if to_output => print(only),
        _ if to_output => Err(ClientError::Refused(
            "ports of several daemons cannot go to one output: name a file".to_owned(),
        )),
        _ => Ok(()),
    });
    match captured {
        Ok(()) => Exit::Good,
        Err(error) => failed(&error),
    }
}

/// Captures into `file`, or into one beside it for each daemon; which files there are.
fn capture(options: &Options, record: &Record, file: &Path) -> Result<Vec<PathBuf>, ClientError> {
    let file = std::path::absolute(file).map_err(|error| refused(&error))?;
    let wishes = wishes(options, record, &file)?;
    let mut begun: Vec<&DaemonRecord> = Vec::new();
    let mut result = Ok(());
    for (daemon, wish) in &wishes {
        result = client::capture(daemon, wish);
        if result.is_err() {
            break;
        }
        begun.push(daemon);
    }
    if result.is_ok() {
        wait(options.seconds, record);
    }
    for daemon in begun {
        if let Some(saw) = client::end_capture(daemon)? {
            eprintln!("{}", in_words(&saw));
        }
    }
    result.map(|()| wishes.into_iter().map(|(_, wish)| wish.file).collect())
}

/// What each daemon is asked for.
fn wishes<'a>(
    options: &Options,
    record: &'a Record,
    file: &Path,
) -> Result<Vec<(&'a DaemonRecord, CaptureWish)>, ClientError> {
    let mut by_socket: BTreeMap<&Path, (&DaemonRecord, BTreeMap<String, BitRate>)> =
        BTreeMap::new();
    for port in &options.ports {
        let daemon = client::daemon_at(record, port)?;
        let rate = record.rate_of(port).ok_or_else(|| {
            ClientError::Refused(format!("no cable at {port} in lab {}", record.lab))
        })?;
        let (_, ports) = by_socket.entry(&daemon.socket).or_insert((daemon, BTreeMap::new()));
        ports.insert(port.clone(), rate);
    }
    let is_alone = by_socket.len() == 1;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let wish = |(number, (daemon, ports)): (usize, (_, _))| {
        let file = match is_alone {
            true => file.to_owned(),
            false => file.with_file_name(format!("{stem}-{number}.pcapng")),
        };
        (daemon, CaptureWish { file, ports, snaplen: options.snaplen })
    };
    Ok(by_socket.into_values().enumerate().map(wish).collect())
}

/// Until time is over, somebody interrupts, or the lab ends.
fn wait(seconds: Option<f64>, record: &Record) {
    let stopwatch = Stopwatch::start();
    let is_over = || seconds.is_some_and(|seconds| stopwatch.seconds() >= seconds);
    while !is_over() && !interrupt::requested() && record.is_alive() {
        timer::wait(None, monotonic_ns() + LOOK_EVERY_NS);
    }
}

fn in_words(saw: &CaptureStatistics) -> String {
    let seen: u64 = saw.interfaces.iter().map(|interface| interface.seen).sum();
    let dropped: u64 = saw.interfaces.iter().map(|interface| interface.dropped).sum();
    let error = saw.error.as_deref().map_or(String::new(), |error| format!(", {error}"));
    format!("{}: {seen} frames seen, {dropped} of them dropped{error}", saw.file.display())
}

fn print(file: &Path) -> Result<(), ClientError> {
    let copy = || io::copy(&mut fs::File::open(file)?, &mut io::stdout());
    copy().map(|_| ()).map_err(|error| refused(&error))
}

fn refused(error: &io::Error) -> ClientError {
    ClientError::Refused(error.to_string())
}
