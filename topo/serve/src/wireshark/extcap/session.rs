//! A live capture for Wireshark: each daemon writes into a pipe, and the merged capture goes into Wireshark's pipe.
//!
//! A daemon never waits: it drops and counts what it cannot write. When Wireshark is gone, reading continues until
//! the daemon has ended its capture.

use super::filter::Filter;
use super::merge::{CaptureMerger, MergeInput, read_block};
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
    client::by_daemon(request.record, request.ports)?;
    let failed = |error| SessionError::Pipe(fifo.display().to_string(), error);
    let Some(out) = open_for_writing(fifo).map_err(failed)? else { return Ok(()) };
    capture_into(out, request, || false).map(|_| ())
}

/// Captures into `out` until a signal, the end of its reader, the end of the lab, or `is_enough`. Returns the accounts of
/// the daemons.
///
/// # Errors
/// If a port does not exist, a daemon refuses, or a pipe cannot be used.
pub fn capture_into(
    out: File,
    request: &CaptureRequest<'_>,
    is_enough: impl Fn() -> bool,
) -> Result<Vec<CaptureStatistics>, SessionError> {
    let parts = client::by_daemon(request.record, request.ports)?;
    let scratch = tempfile::tempdir().map_err(|e| SessionError::Pipe("a folder".to_owned(), e))?;
    let mut inputs = Vec::new();
    let begun = parts.into_iter().enumerate().try_for_each(|(number, (daemon, ports))| {
        let file = scratch.path().join(format!("{number}.pipe"));
        inputs.push((daemon, begin(request, daemon, ports, &file)?));
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
    begun.and(ended)
}

/// Starts the capture of a daemon into a pipe, and returns the other end of the pipe.
fn begin(
    request: &CaptureRequest<'_>,
    daemon: &DaemonRecord,
    ports: BTreeMap<String, BitRate>,
    file: &Path,
) -> Result<File, SessionError> {
    let failed = |error: io::Error| SessionError::Pipe(file.display().to_string(), error);
    let input = pipe::make(file).map_err(failed)?;
    let wanted = DaemonCapture {
        file: file.to_owned(),
        ports,
        snaplen: request.snaplen.filter(|_| !request.filter.reads_headers()),
    };
    client::capture(daemon, &wanted)?;
    pipe::set_blocking(&input).map_err(failed)?;
    Ok(input)
}

/// Moves blocks until all captures have ended, and ends the captures when `is_over`.
fn pump(
    inputs: Vec<(&DaemonRecord, File)>,
    merger: &Mutex<CaptureMerger<File>>,
    may_go_on: bool,
    is_over: impl Fn() -> bool,
) -> Result<Vec<CaptureStatistics>, SessionError> {
    std::thread::scope(|scope| {
        let spawn = |(daemon, input)| (daemon, scope.spawn(move || carry(input, merger)));
        let daemons: Vec<_> = inputs.into_iter().map(spawn).collect();
        while may_go_on && !is_over() && daemons.iter().any(|(_, work)| !work.is_finished()) {
            interrupt::pause(POLL_NS);
        }
        let mut statistics = Vec::new();
        let mut ended = Ok(());
        // A capture that has ended by itself was replaced by another client's, which must continue.
        for (daemon, _) in daemons.into_iter().filter(|(_, work)| !work.is_finished()) {
            match client::end_capture(daemon) {
                Ok(found) => statistics.extend(found),
                Err(error) => ended = ended.and(Err(error.into())),
            }
        }
        ended.map(|()| statistics)
    })
}

/// Moves the blocks of one daemon, and discards the rest after an error of the output.
fn carry(input: File, merger: &Mutex<CaptureMerger<File>>) {
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
