//! `pausebed capture PORT…`: captures frames of a running lab into a file or to standard output.

use super::Choice;
use crate::exit::{Exit, Outcome};
use daemon::admin::CaptureRequest;
use emulation::clock::Stopwatch;
use emulation::frame_tap::CaptureStatistics;
use launch::interrupt;
use launch::lab::client::{self, ClientError};
use launch::lab::{LabRecord, folder::DaemonRecord, pipe};
use proto::units::Bytes;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

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
    match options.write == Path::new("-") {
        true => print(options, &record)?,
        false => capture(options, &record, &options.write, || false)?,
    }
    Ok(Exit::Good)
}

/// Captures into `file`, or into one file for each daemon, until the end.
fn capture(
    options: &Options,
    record: &LabRecord,
    file: &Path,
    is_enough: impl Fn() -> bool,
) -> Result<(), ClientError> {
    let file = std::path::absolute(file).map_err(|error| ClientError::refused(&error))?;
    let requests = requests(options, record, &file)?;
    let mut begun: Vec<&DaemonRecord> = Vec::new();
    let mut result = Ok(());
    for (daemon, request) in &requests {
        result = client::capture(daemon, request);
        if result.is_err() {
            break;
        }
        begun.push(daemon);
    }
    if result.is_ok() {
        wait(options.seconds, record, is_enough);
    }
    for daemon in begun {
        if let Some(statistics) = client::end_capture(daemon)? {
            eprintln!("{}", text(&statistics));
        }
    }
    result
}

/// Captures to standard output: a daemon writes into a pipe, and this process copies from the pipe.
fn print(options: &Options, record: &LabRecord) -> Result<(), ClientError> {
    let refused = |error: io::Error| ClientError::refused(&error);
    let folder = tempfile::tempdir().map_err(refused)?;
    let file = folder.path().join("frames");
    if requests(options, record, &file)?.len() > 1 {
        let reason = "ports of several daemons cannot go to standard output: use a file";
        return Err(ClientError::Refused(reason.to_owned()));
    }
    let pipe = pipe::make(&file).map_err(refused)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (begin, begun) = mpsc::channel();
    let copying = copy_when(begun, pipe, Arc::clone(&is_over));
    let captured = capture(options, record, &file, || {
        // Only the first message counts.
        let _ = begin.send(());
        is_over.load(Ordering::Relaxed)
    });
    drop(begin);
    // If the daemon did not end the capture, the copy would never end.
    captured?;
    let copied = copying.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    copied.map_err(refused)
}

/// Copies from the pipe on a separate thread, from the first message of `begun` on.
fn copy_when(
    begun: mpsc::Receiver<()>,
    mut pipe: File,
    is_over: Arc<AtomicBool>,
) -> JoinHandle<io::Result<()>> {
    std::thread::spawn(move || {
        // There is no message if the daemon refuses.
        let copied = begun.recv().map_or(Ok(()), |()| copy(&mut pipe));
        // The daemon notices that the pipe has no reader.
        drop(pipe);
        is_over.store(true, Ordering::Relaxed);
        copied
    })
}

/// Copies to standard output until the end of the pipe, or until the reader closes standard output.
fn copy(pipe: &mut File) -> io::Result<()> {
    pipe::set_blocking(pipe)?;
    let mut out = io::stdout().lock();
    let mut octets = vec![0; 1 << 16];
    loop {
        let count = match pipe.read(&mut octets) {
            Ok(0) => return Ok(()),
            // After Ctrl-C, which ends the capture, the rest of the pipe still belongs to it.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        match out.write_all(&octets[..count]).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
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

/// Waits for the end of the time, a signal, `is_enough`, or the end of the lab.
fn wait(seconds: Option<f64>, record: &LabRecord, is_enough: impl Fn() -> bool) {
    let stopwatch = Stopwatch::start();
    let is_over = || is_enough() || seconds.is_some_and(|seconds| stopwatch.seconds() >= seconds);
    while !is_over() && !interrupt::requested() && record.is_alive() {
        interrupt::pause(POLL_NS);
    }
}

fn text(statistics: &CaptureStatistics) -> String {
    let seen: u64 = statistics.interfaces.iter().map(|interface| interface.seen).sum();
    let dropped: u64 = statistics.interfaces.iter().map(|interface| interface.dropped).sum();
    let error = statistics.error.as_deref().map_or(String::new(), |error| format!(", {error}"));
    format!("{}: {seen} frames seen, {dropped} of them dropped{error}", statistics.file.display())
}
