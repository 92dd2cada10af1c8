//! A live capture for Wireshark: each daemon writes into a pipe, and the merged capture goes into Wireshark's pipe.
//!
//! A daemon never waits: it drops and counts what it cannot write. When Wireshark is gone, reading continues until
//! the daemon has ended its capture.

use super::filter::Filter;
use super::merge::{CaptureMerger, MergeInput, read_block};
use capture::Ending;
use daemon::admin::CaptureRequest as DaemonCapture;
use emulation::clock::Stopwatch;
use emulation::frame_tap::CaptureStatistics;
use launch::interrupt;
use launch::lab::client::{self, ClientError};
use launch::lab::{LabRecord, folder::DaemonRecord, pipe};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proto::units::{BitRate, Bytes};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

/// The interval at which the end is polled.
const POLL_NS: u64 = 50_000_000;
/// Time for Wireshark to open its pipe, in seconds.
const OPENS_WITHIN_S: f64 = 20.0;

/// A capture that Wireshark asks for.
#[derive(Clone, Debug)]
pub struct CaptureRequest<'a> {
    /// The lab.
    pub record: &'a LabRecord,
    /// The ports.
    pub ports: &'a [String],
    /// Octets kept of each frame; all if none.
    pub snaplen: Option<Bytes>,
    /// The frames to keep.
    pub filter: Filter,
}

impl CaptureRequest<'_> {
    /// Checks the ports before an output is opened.
    ///
    /// # Errors
    /// If one does not exist.
    pub fn check(&self) -> Result<(), ClientError> {
        client::by_daemon(self.record, self.ports).map(|_| ())
    }
}

/// Why a capture failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A daemon refuses or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A pipe cannot be used.
    #[error("cannot use {0}")]
    Pipe(String, #[source] io::Error),
}

/// Captures into Wireshark's pipe `fifo` until a signal, the end of Wireshark, or the end of the lab.
///
/// # Errors
/// If a port does not exist, a daemon refuses, or a pipe cannot be used.
pub fn run(request: &CaptureRequest<'_>, fifo: &Path) -> Result<(), SessionError> {
    // Before the pipe is opened, because opening waits for the other side.
    request.check()?;
    let failed = |error| SessionError::Pipe(fifo.display().to_string(), error);
    let Some(out) = open_for_writing(fifo).map_err(failed)? else { return Ok(()) };
    capture_into(out, fifo, request, || false).map(|_| ())
}

/// Captures into `out`, which is called `name`, until a signal, the end of its reader, the end of the lab, or `is_enough`.
/// Returns the account: frames are lost where a daemon has no room for them, and where `out` cannot be written.
///
/// # Errors
/// If a port does not exist, a daemon refuses, or a pipe cannot be used.
pub fn capture_into(
    out: File,
    name: &Path,
    request: &CaptureRequest<'_>,
    is_enough: impl Fn() -> bool,
) -> Result<CaptureStatistics, SessionError> {
    let parts = client::by_daemon(request.record, request.ports)?;
    let mut inputs = Vec::new();
    let begun = parts.into_iter().try_for_each(|(daemon, ports)| {
        inputs.push((daemon, begin(request, daemon, ports)?));
        Ok(())
    });
    let watched = out.try_clone().map_err(|e| SessionError::Pipe("the output".to_owned(), e))?;
    // A lock, because one thread per daemon appends blocks to the one output.
    let merger = Mutex::new(CaptureMerger::new(out, request.filter));
    let is_over = || {
        let is_ended = interrupt::requested() || !request.record.is_alive();
        is_ended || is_closed(&watched) || is_enough()
    };
    let ended = pump(inputs, &merger, begun.is_ok(), is_over);
    let mut ending = merger.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    if is_closed(&watched) {
        // A reader that closes its pipe has seen enough.
        ending = Ending { bytes: ending.bytes, ..Ending::default() };
    }
    begun.and(ended).map(|inputs| sum(name, inputs, ending))
}

/// The account of one daemon, if it has one, and the interfaces of its capture.
type Ended = (Option<CaptureStatistics>, MergeInput);

/// One account of all daemons and the output.
fn sum(name: &Path, inputs: Vec<Ended>, ending: Ending) -> CaptureStatistics {
    let mut whole = CaptureStatistics {
        file: name.to_owned(),
        bytes: ending.bytes,
        error: ending.error,
        interfaces: Vec::new(),
    };
    for (statistics, input) in inputs {
        let Some(mut statistics) = statistics else {
            let reason = "it ended early: another capture of the same device took its place";
            whole.error.get_or_insert_with(|| reason.to_owned());
            continue;
        };
        for (interface, lost) in statistics.interfaces.iter_mut().zip(input.lost(&ending.lost)) {
            interface.dropped += lost;
        }
        whole.interfaces.append(&mut statistics.interfaces);
        whole.error = whole.error.or(statistics.error);
    }
    whole
}

/// Starts the capture of a daemon into a pipe beside its socket, where it may write. Returns the other end of the pipe,
/// which then has no name.
fn begin(
    request: &CaptureRequest<'_>,
    daemon: &DaemonRecord,
    ports: BTreeMap<String, BitRate>,
) -> Result<File, SessionError> {
    let name = format!("capture-{}.pipe", std::process::id());
    let file = daemon.socket.with_extension(name);
    let failed = |error: io::Error| SessionError::Pipe(file.display().to_string(), error);
    let input = pipe::make(&file).map_err(failed)?;
    let wanted = DaemonCapture {
        file: file.clone(),
        ports,
        snaplen: request.snaplen.filter(|_| !request.filter.reads_headers()),
    };
    let begun = client::capture(daemon, &wanted);
    // Both ends are open, or the capture has not begun.
    let _ = std::fs::remove_file(&file);
    begun?;
    pipe::set_blocking(&input).map_err(failed)?;
    Ok(input)
}

/// Moves blocks until all captures have ended, and ends the captures when `is_over`.
fn pump(
    inputs: Vec<(&DaemonRecord, File)>,
    merger: &Mutex<CaptureMerger>,
    may_go_on: bool,
    is_over: impl Fn() -> bool,
) -> Result<Vec<Ended>, SessionError> {
    std::thread::scope(|scope| {
        let spawn = |(daemon, input)| (daemon, scope.spawn(move || carry(input, merger)));
        let daemons: Vec<_> = inputs.into_iter().map(spawn).collect();
        while may_go_on && !is_over() && daemons.iter().any(|(_, work)| !work.is_finished()) {
            interrupt::pause(POLL_NS);
        }
        // Every capture is ended, whatever becomes of the others: the threads wait for that.
        let ends = daemons.into_iter().map(|(daemon, work)| {
            // A capture that has ended by itself was replaced by another client's, which must continue.
            let is_replaced = work.is_finished();
            (if is_replaced { Ok(None) } else { client::end_capture(daemon) }, work)
        });
        let ends: Vec<_> = ends.collect();
        let account = |(statistics, work): (Result<_, ClientError>, ScopedJoinHandle<'_, _>)| {
            Ok((statistics?, work.join().unwrap_or_default()))
        };
        ends.into_iter().map(account).collect()
    })
}

/// Moves the blocks of one daemon; discards the rest after an invalid one. Returns the interfaces.
fn carry(input: File, merger: &Mutex<CaptureMerger>) -> MergeInput {
    let mut input = BufReader::new(input);
    let mut source = MergeInput::default();
    let mut block = Vec::new();
    while let Ok(true) = read_block(&mut input, &mut block) {
        let mut merger = merger.lock().unwrap_or_else(PoisonError::into_inner);
        if merger.add(&mut source, &mut block).is_err() {
            break;
        }
    }
    let _ = io::copy(&mut input, &mut io::sink());
    source
}

/// Opens the pipe when it has a reader. Returns none after a signal.
fn open_for_writing(fifo: &Path) -> io::Result<Option<File>> {
    let stopwatch = Stopwatch::start();
    loop {
        if let Some(file) = pipe::open_for_writing(fifo)? {
            return Ok(Some(file));
        }
        if interrupt::requested() {
            return Ok(None);
        }
        if stopwatch.seconds() > OPENS_WITHIN_S {
            return Err(io::ErrorKind::TimedOut.into());
        }
        interrupt::pause(POLL_NS);
    }
}

/// Whether a pipe has lost its reader.
fn is_closed(out: &File) -> bool {
    let mut asked = [PollFd::new(out.as_fd(), PollFlags::empty())];
    let found = poll(&mut asked, PollTimeout::ZERO);
    let events = asked[0].revents().unwrap_or(PollFlags::empty());
    found.is_ok() && events.intersects(PollFlags::POLLERR | PollFlags::POLLHUP)
}
