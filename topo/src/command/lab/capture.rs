//! `pausebed capture PORT…`: captures frames of a running lab into a file or to standard output.

use super::Choice;
use crate::exit::{Exit, Failure, Outcome};
use daemon::admin::CaptureRequest;
use emulation::clock::Stopwatch;
use emulation::frame_tap::CaptureStatistics;
use launch::lab::client::{self, ClientError};
use launch::lab::{LabRecord, folder::DaemonRecord};
use launch::{interrupt, with_sources};
use proto::units::Bytes;
use serve::wireshark::extcap::filter::Filter;
use serve::wireshark::extcap::session::{self, SessionError};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The interval at which the end is polled.
const POLL_NS: u64 = 100_000_000;

/// Options of `capture`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// Ports of the lab, as in leaf1:4
    #[arg(required = true, value_name = "PORT")]
    ports: Vec<String>,
    /// The file; - is standard output. Ports of several daemons need one file for each daemon
    #[arg(short, long = "write", value_name = "FILE", default_value = "capture.pcapng")]
    write: PathBuf,
    /// Octets kept of each frame, as in "96 B"; all if left out
    #[arg(long, value_name = "SIZE")]
    snaplen: Option<Bytes>,
    /// End after this many seconds of wall time (default: with Ctrl-C)
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    #[command(flatten)]
    choice: Choice,
}

/// Runs the command.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let record = options.choice.running()?;
    interrupt::install_handlers();
    let captured = match options.write == Path::new("-") {
        true => print(options, &record)?,
        false => capture(options, &record)?,
    };
    captured.iter().for_each(|statistics| eprintln!("{}", text(statistics)));
    Ok(Exit::Good)
}

/// Captures to standard output until the end.
fn print(options: &Options, record: &LabRecord) -> Result<Vec<CaptureStatistics>, Failure> {
    let out = io::stdout().as_fd().try_clone_to_owned().map_err(Failure::host)?;
    let Options { ports, snaplen, .. } = options;
    let request =
        session::CaptureRequest { record, ports, snaplen: *snaplen, filter: Filter::default() };
    let stopwatch = Stopwatch::start();
    let captured = session::capture_into(out.into(), &request, || options.is_over(stopwatch));
    captured.map_err(|error| match error {
        SessionError::Client(error) => error.into(),
        SessionError::Pipe(..) => Failure::host(with_sources(&error)),
    })
}

/// Captures into a file, or into one file for each daemon, until the end.
fn capture(options: &Options, record: &LabRecord) -> Result<Vec<CaptureStatistics>, Failure> {
    let file = std::path::absolute(&options.write).map_err(Failure::bad_file(&options.write))?;
    let requests = requests(options, record, &file)?;
    let mut begun: Vec<&DaemonRecord> = Vec::new();
    let result = requests.iter().try_for_each(|(daemon, request)| {
        client::capture(daemon, request)?;
        begun.push(daemon);
        Ok::<(), ClientError>(())
    });
    let stopwatch = Stopwatch::start();
    while result.is_ok()
        && !options.is_over(stopwatch)
        && !interrupt::requested()
        && record.is_alive()
    {
        interrupt::pause(POLL_NS);
    }
    let mut captured = Vec::new();
    for daemon in begun {
        captured.extend(client::end_capture(daemon)?);
    }
    Ok(result.map(|()| captured)?)
}

impl Options {
    /// Whether the capture has lasted long enough.
    fn is_over(&self, stopwatch: Stopwatch) -> bool {
        self.seconds.is_some_and(|seconds| stopwatch.seconds() >= seconds)
    }
}

/// The capture of each daemon.
fn requests<'a>(
    options: &Options,
    record: &'a LabRecord,
    file: &Path,
) -> Result<Vec<(&'a DaemonRecord, CaptureRequest)>, ClientError> {
    let parts = client::by_daemon(record, &options.ports)?;
    let is_single = parts.len() == 1;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let request = |(number, (daemon, ports)): (usize, (_, _))| {
        let file = match is_single {
            true => file.to_owned(),
            false => file.with_file_name(format!("{stem}-{number}.pcapng")),
        };
        (daemon, CaptureRequest { file, ports, snaplen: options.snaplen })
    };
    Ok(parts.into_iter().enumerate().map(request).collect())
}

fn text(statistics: &CaptureStatistics) -> String {
    let seen: u64 = statistics.interfaces.iter().map(|interface| interface.seen).sum();
    let dropped: u64 = statistics.interfaces.iter().map(|interface| interface.dropped).sum();
    let error = statistics.error.as_deref().map_or(String::new(), |error| format!(", {error}"));
    format!("{}: {seen} frames seen, {dropped} of them dropped{error}", statistics.file.display())
}
