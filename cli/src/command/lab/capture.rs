//! `pausebed capture PORT…`: captures frames of a running lab into a file or to standard output.

use super::Choice;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::terminal::summary;
use emulation::clock::Stopwatch;
use launch::{interrupt, with_sources};
use proto::units::Bytes;
use serve::wireshark::extcap::filter::Filter;
use serve::wireshark::extcap::session::{self, CaptureRequest, SessionError};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Options of `capture`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// Ports of the lab, as in leaf1:4
    #[arg(required = true, value_name = "PORT", add = completion::ports())]
    ports: Vec<String>,
    /// The file; - is standard output. The captures of several daemons are merged
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

/// Runs the command. It ends with 6 if frames that passed are not in the file.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let record = options.choice.running()?;
    interrupt::install_handlers();
    let Options { ports, snaplen, .. } = options;
    let request =
        CaptureRequest { record: &record, ports, snaplen: *snaplen, filter: Filter::default() };
    request.check()?;
    let (out, name) = options.open()?;
    let stopwatch = Stopwatch::start();
    let is_over = || options.seconds.is_some_and(|seconds| stopwatch.seconds() >= seconds);
    let captured = session::capture_into(out, name, &request, is_over).map_err(|error| {
        let message = with_sources(&error);
        match error {
            SessionError::Client(error) => error.into(),
            SessionError::Pipe(..) => Failure::host(message),
        }
    })?;
    eprintln!("{}", summary::account(&captured));
    Ok(if captured.is_whole() { Exit::Good } else { Exit::Incomplete })
}

impl Options {
    /// The output and its name.
    fn open(&self) -> Result<(File, &Path), Failure> {
        if self.write == Path::new("-") {
            let out = io::stdout().as_fd().try_clone_to_owned().map_err(Failure::host)?;
            return Ok((out.into(), Path::new("standard output")));
        }
        let file = File::create(&self.write).map_err(Failure::cannot_write(&self.write))?;
        Ok((file, &self.write))
    }
}
