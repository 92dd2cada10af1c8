//! `pausebed logs`: prints the log of a lab's supervisor and daemons, or what a host has printed to its console.

use super::{Place, choose, find_host};
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use host::text::escaped;
use launch::interrupt;
use launch::lab::LabStore;
use launch::lab::folder::{LOG, RUN};
use scenario::host::HostKind;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// The interval at which the log is polled.
const POLL_NS: u64 = 200_000_000;
/// A line longer than this is printed in parts.
const LINE_MAX: usize = 1 << 16;

/// Options of `logs`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// The lab, needed if there are several; or one of its hosts
    #[arg(value_name = "LAB|HOST", add = completion::labs_and_hosts())]
    name: Option<String>,
    /// The lab of the host; needed if there are several
    #[arg(long, value_name = "NAME", add = completion::labs())]
    lab: Option<String>,
    /// Continue until interrupted
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let file = file(&options.place.labs()?, options)?;
    let log = File::open(&file).map_err(|error| Failure::host(error).of(file.display()))?;
    interrupt::install_handlers();
    let mut pending = Vec::new();
    // An error means that the reader has closed standard output.
    while print(&log, &mut pending, options.follow).is_ok() && options.follow {
        interrupt::pause(POLL_NS);
        if interrupt::requested() || !file.exists() {
            break;
        }
    }
    Ok(Exit::Good)
}

/// The log of the chosen lab or host.
fn file(labs: &LabStore, options: &Options) -> Result<PathBuf, Failure> {
    let Options { name, lab, .. } = options;
    let host = name.as_ref().filter(|name| lab.is_some() || !labs.all().contains_key(*name));
    let Some(host) = host else {
        return Ok(labs.folder(&choose(labs, name.as_deref())?.lab).join(LOG));
    };
    let record = choose(labs, lab.as_deref()).map_err(|failure| match lab {
        // Neither a lab nor, among several labs, one host.
        None => Failure::usage(format!("no lab is called {host}; of a host: --lab NAME")),
        Some(_) => failure,
    })?;
    let host = find_host(&record, host)?;
    if host.kind != HostKind::Vm {
        return Err(Failure::usage(format!("host {} has no console", host.name)));
    }
    Ok(labs.folder(&record.lab).join(RUN).join(format!("{}.console.log", host.name)))
}

/// Prints what is new, up to the last end of a line if more may follow. Control characters are escaped.
fn print(log: &File, pending: &mut Vec<u8>, more_follows: bool) -> io::Result<()> {
    loop {
        let is_end = log.take(LINE_MAX as u64).read_to_end(pending)? == 0;
        let whole = pending.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1);
        let waits = pending.len() < LINE_MAX && (more_follows || !is_end);
        let end = if waits { whole } else { pending.len() };
        let text = escaped(&pending[..end]);
        pending.drain(..end);
        io::stdout().write_all(text.as_bytes())?;
        if is_end {
            return io::stdout().flush();
        }
    }
}
