//! A capture for Wireshark while it lasts: each daemon writes into a pipe, and what comes out of the pipes
//! goes into Wireshark's.
//!
//! A daemon never waits: what it cannot get rid of it drops, and counts. Whoever reads here reads on when
//! Wireshark has gone, until the daemon has ended its capture.

use super::filter::Filter;
use super::stitch::{Source, Stitch, read_block};
use daemon::admin::CaptureRequest;
use emulation::clock::{Stopwatch, monotonic_ns};
use emulation::timer;
use launch::interrupt;
use launch::lab::client::{self, ClientError};
use launch::lab::{Record, folder::DaemonRecord};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use proto::units::{BitRate, Bytes};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often it is looked whether it shall end.
const LOOK_EVERY_NS: u64 = 50_000_000;
/// Wireshark opens its pipe at once, or never.
const OPENS_WITHIN_S: f64 = 20.0;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// Of which lab.
    pub record: &'a Record,
    /// Of which ports.
    pub ports: &'a [String],
    /// Octets kept of each frame; all if none is said.
    pub snaplen: Option<Bytes>,
    /// Which frames.
    pub filter: Filter,
}

/// Why a capture came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A daemon refuses or is silent.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A pipe cannot be had.
    #[error("{0}: {1}")]
    Pipe(String, io::Error),
}

/// A daemon's part of the capture.
struct Part<'a> {
    daemon: &'a DaemonRecord,
    ports: BTreeMap<String, BitRate>,
}

/// Captures into Wireshark's pipe `fifo` until told to end, Wireshark goes, or the lab does.
///
/// # Errors
/// If there is nothing to capture, or no pipe.
pub fn run(request: &Wish<'_>, fifo: &Path) -> Result<(), SessionError> {
    // Before the pipe is opened: whoever opens it waits for the other.
    let parts = parts(request)?;
    let pipe = |error| SessionError::Pipe(fifo.display().to_string(), error);
    let Some(out) = open_for_writing(fifo).map_err(pipe)? else { return Ok(()) };
    let scratch = tempfile::tempdir().map_err(|e| SessionError::Pipe("a folder".to_owned(), e))?;
    let mut inputs = Vec::new();
    let mut begun = Ok(());
    for (number, part) in parts.iter().enumerate() {
        let file = scratch.path().join(format!("{number}.pipe"));
        match begin(request, part, &file) {
            Ok(input) => inputs.push((part.daemon, input)),
            Err(error) => {
                begun = Err(error);
                break;
            }
        }
    }
    let watched = out.try_clone().map_err(pipe)?;
    let stitch = Mutex::new(Stitch::new(out, request.filter));
    let is_over = || interrupt::requested() || !request.record.is_alive() || has_gone(&watched);
    let ended = pump(inputs, &stitch, begun.is_ok(), is_over);
    begun.and(ended)
}

/// What each daemon is asked for.
fn parts<'a>(request: &Wish<'a>) -> Result<Vec<Part<'a>>, ClientError> {
    let mut parts: BTreeMap<&Path, Part<'a>> = BTreeMap::new();
    for port in request.ports {
        let daemon = client::daemon_at(request.record, port)?;
        let none = || ClientError::Refused(format!("no cable at {port}"));
        let rate = request.record.rate_of(port).ok_or_else(none)?;
        let blank = || Part { daemon, ports: BTreeMap::new() };
        parts.entry(&daemon.socket).or_insert_with(blank).ports.insert(port.clone(), rate);
    }
    Ok(parts.into_values().collect())
}

/// Lets a daemon capture into a pipe; its other end.
fn begin(request: &Wish<'_>, part: &Part<'_>, file: &Path) -> Result<File, SessionError> {
    let pipe = |error: io::Error| SessionError::Pipe(file.display().to_string(), error);
    nix::unistd::mkfifo(file, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|e| pipe(e.into()))?;
    // Whoever opens an end waits for the other, unless told not to: the daemon shall find this one open.
    let input = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(file);
    let input = input.map_err(pipe)?;
    let wanted = CaptureRequest {
        file: file.to_owned(),
        ports: part.ports.clone(),
        snaplen: request.snaplen.filter(|_| !request.filter.reads_headers()),
    };
    client::capture(part.daemon, &wanted)?;
    fcntl(&input, FcntlArg::F_SETFL(OFlag::empty())).map_err(|error| pipe(error.into()))?;
    Ok(input)
}

/// Moves blocks until all captures have ended, and ends them once it is over.
fn pump(
    inputs: Vec<(&DaemonRecord, File)>,
    stitch: &Mutex<Stitch<File>>,
    may_go_on: bool,
    is_over: impl Fn() -> bool,
) -> Result<(), SessionError> {
    let flags: Vec<AtomicBool> = inputs.iter().map(|_| AtomicBool::new(false)).collect();
    std::thread::scope(|scope| {
        let mut daemons = Vec::new();
        for ((daemon, input), done) in inputs.into_iter().zip(&flags) {
            daemons.push((daemon, done));
            scope.spawn(move || {
                carry(input, stitch);
                done.store(true, Ordering::Release);
            });
        }
        let is_open = |done: &AtomicBool| !done.load(Ordering::Acquire);
        while may_go_on && !is_over() && daemons.iter().any(|(_, done)| is_open(done)) {
            timer::wait(None, monotonic_ns() + LOOK_EVERY_NS);
        }
        let mut ended = Ok(());
        // A capture that has ended by itself was taken over by somebody else's: that one is theirs.
        for (daemon, _) in daemons.into_iter().filter(|(_, done)| is_open(done)) {
            let end = client::end_capture(daemon).map(|_| ());
            ended = ended.and(end.map_err(SessionError::from));
        }
        ended
    })
}

/// Moves the blocks of one daemon; when nobody takes them any more, to nowhere.
fn carry(input: File, stitch: &Mutex<Stitch<File>>) {
    let mut input = BufReader::new(input);
    let mut source = Source::default();
    let mut block = Vec::new();
    while let Ok(true) = read_block(&mut input, &mut block) {
        let mut stitch = stitch.lock().unwrap_or_else(PoisonError::into_inner);
        if stitch.take(&mut source, &mut block).is_err() {
            break;
        }
    }
    let _ = io::copy(&mut input, &mut io::sink());
}

/// Opens the pipe once somebody reads from it; none if this process is told to end before.
fn open_for_writing(fifo: &Path) -> io::Result<Option<File>> {
    let stopwatch = Stopwatch::start();
    loop {
        let opened = File::options().write(true).custom_flags(libc::O_NONBLOCK).open(fifo);
        match opened {
            Ok(file) => {
                fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
                return Ok(Some(file));
            }
            // Nobody reads from it yet.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
            Err(error) => return Err(error),
        }
        if interrupt::requested() {
            return Ok(None);
        }
        if stopwatch.seconds() > OPENS_WITHIN_S {
            return Err(io::ErrorKind::TimedOut.into());
        }
        timer::wait(None, monotonic_ns() + LOOK_EVERY_NS);
    }
}

/// Whether nobody reads from a pipe any more.
fn has_gone(out: &File) -> bool {
    let mut asked = [PollFd::new(out.as_fd(), PollFlags::empty())];
    let found = poll(&mut asked, PollTimeout::ZERO);
    let events = asked[0].revents().unwrap_or(PollFlags::empty());
    found.is_ok() && events.intersects(PollFlags::POLLERR | PollFlags::POLLHUP)
}
