//! `pausebed capture PORT…`: frames of a lab that runs, into a file or to a reader, until interrupted.

use super::{Choice, failed};
use crate::command::Exit;
use daemon::admin::CaptureRequest;
use emulation::clock::{Stopwatch, monotonic_ns};
use emulation::frame_tap::CaptureStatistics;
use emulation::timer;
use launch::interrupt;
use launch::lab::client::{self, ClientError};
use launch::lab::{Record, folder::DaemonRecord};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use proto::units::{BitRate, Bytes};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// How often it is looked whether it shall end.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// Options of `capture`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Ports of the lab, as in leaf1:4
    #[arg(required = true, value_name = "PORT")]
    ports: Vec<String>,
    /// The file; - is standard output, as frames come. Ports of several daemons go to a file each
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
    let captured = match options.write == Path::new("-") {
        true => print(options, &record),
        false => capture(options, &record, &options.write, || false),
    };
    match captured {
        Ok(()) => Exit::Good,
        Err(error) => failed(&error),
    }
}

/// Captures into `file`, or into one beside it for each daemon, until somebody says so.
fn capture(
    options: &Options,
    record: &Record,
    file: &Path,
    is_enough: impl Fn() -> bool,
) -> Result<(), ClientError> {
    let file = std::path::absolute(file).map_err(|error| refused(&error))?;
    let wishes = wishes(options, record, &file)?;
    let mut begun: Vec<&DaemonRecord> = Vec::new();
    let mut result = Ok(());
    for (daemon, request) in &wishes {
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
        if let Some(saw) = client::end_capture(daemon)? {
            eprintln!("{}", in_words(&saw));
        }
    }
    result
}

/// Captures to standard output, as frames come: a daemon writes into a pipe, whose other end is read here.
fn print(options: &Options, record: &Record) -> Result<(), ClientError> {
    let folder = tempfile::tempdir().map_err(|error| refused(&error))?;
    let file = folder.path().join("frames");
    if wishes(options, record, &file)?.len() > 1 {
        let reason = "ports of several daemons cannot go to one output: name a file";
        return Err(ClientError::Refused(reason.to_owned()));
    }
    let pipe = pipe(&file).map_err(|error| refused(&error))?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (begin, begun) = mpsc::channel();
    let copying = copy_when(begun, pipe, Arc::clone(&is_over));
    // The daemon finds a reader, so it does not wait for one.
    let captured = capture(options, record, &file, || {
        // Once is enough.
        let _ = begin.send(());
        is_over.load(Ordering::Relaxed)
    });
    drop(begin);
    // A daemon that did not end the capture would be read for ever.
    captured?;
    let copied = copying.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    copied.map_err(|error| refused(&error))
}

/// Copies from the pipe once somebody writes there, on a thread of its own.
fn copy_when(
    begun: mpsc::Receiver<()>,
    mut pipe: File,
    is_over: Arc<AtomicBool>,
) -> JoinHandle<io::Result<()>> {
    std::thread::spawn(move || {
        // Nobody begins if the daemon refuses.
        let copied = begun.recv().map_or(Ok(()), |()| copy(&mut pipe));
        // Whoever still writes finds that nobody reads.
        drop(pipe);
        is_over.store(true, Ordering::Relaxed);
        copied
    })
}

/// Makes a pipe with a name, and opens the end that is read.
fn pipe(file: &Path) -> io::Result<File> {
    nix::unistd::mkfifo(file, Mode::S_IRUSR | Mode::S_IWUSR)?;
    File::options().read(true).custom_flags(libc::O_NONBLOCK).open(file)
}

/// Copies to standard output until the end. Who reads that may go away, and then it is over.
fn copy(pipe: &mut File) -> io::Result<()> {
    fcntl(&*pipe, FcntlArg::F_SETFL(OFlag::empty()))?;
    let mut out = io::stdout().lock();
    let mut octets = vec![0; 1 << 16];
    loop {
        let count = match pipe.read(&mut octets) {
            Ok(0) => return Ok(()),
            // By Ctrl-C, which ends the capture, and what is still in the pipe belongs to it.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        match out.write_all(&octets[..count]).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
}

/// What each daemon is asked for.
fn wishes<'a>(
    options: &Options,
    record: &'a Record,
    file: &Path,
) -> Result<Vec<(&'a DaemonRecord, CaptureRequest)>, ClientError> {
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
    let request = |(number, (daemon, ports)): (usize, (_, _))| {
        let file = match is_alone {
            true => file.to_owned(),
            false => file.with_file_name(format!("{stem}-{number}.pcapng")),
        };
        (daemon, CaptureRequest { file, ports, snaplen: options.snaplen })
    };
    Ok(by_socket.into_values().enumerate().map(request).collect())
}

/// Until time is over, somebody interrupts or has enough, or the lab ends.
fn wait(seconds: Option<f64>, record: &Record, is_enough: impl Fn() -> bool) {
    let stopwatch = Stopwatch::start();
    let is_over = || is_enough() || seconds.is_some_and(|seconds| stopwatch.seconds() >= seconds);
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

fn refused(error: &io::Error) -> ClientError {
    ClientError::Refused(error.to_string())
}
