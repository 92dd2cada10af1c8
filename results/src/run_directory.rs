//! The files of a run: tables, events, topology, verdict (docs/spec/seeing.md 3.4, docs/spec/design.md 5).
//!
//! Everything is written from recordings, one for each worker, merged by node. Tables hold integers
//! only, their rows are sorted, and the same run gives the same octets.

use crate::run_directory::sealed::Sealed;
use emulation::recorder::Recording;
use proto::units::Instant;
use scenario::inventory::{Fabric, FlowNames};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

mod clock;
pub mod conservation;
mod events;
pub mod hosts;
pub mod junit;
pub mod result;
mod sealed;
mod tables;
pub mod topology;

pub use emulation::fidelity::FidelityBin;
pub use sealed::{FileSummary, sha256};

/// The input of a run directory.
#[derive(Debug)]
pub struct RunRecord<'a> {
    /// The fabric.
    pub fabric: &'a Fabric,
    /// The recordings, one for each worker.
    pub recordings: &'a [Recording],
    /// Lateness of live workers; empty on the virtual clock.
    pub fidelity: &'a [FidelityBin],
    /// Events of the laboratory itself.
    pub remarks: &'a [Remark],
    /// True to write all events without a limit.
    pub all_events: bool,
}

impl<'a> RunRecord<'a> {
    fn flow_names(&self) -> FlowNames<'a> {
        let readings = self.recordings.iter().flat_map(|recording| &recording.last);
        let flows = readings.flat_map(|reading| &reading.flows);
        FlowNames::new(self.fabric, flows.map(|flow| flow.flow))
    }
}

/// An event of the laboratory, not of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// When, in fabric time.
    pub at: Instant,
    /// What.
    pub kind: RemarkKind,
}

/// The kind of a laboratory event, as `events.jsonl` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ev", rename_all = "kebab-case")]
pub enum RemarkKind {
    /// A phase of the scenario begins.
    Phase {
        /// Its place among the phases, from 0.
        index: usize,
        /// Its name.
        name: String,
    },
    /// A measure has no value.
    Null {
        /// The measure.
        measure: String,
        /// Why.
        why: String,
    },
    /// Outputs wait for each other in a circle.
    Deadlock {
        /// On which lane or priority.
        tc: u8,
        /// The outputs by name: each waits for the next, and the last for the first.
        circle: Vec<String>,
    },
    /// One of them moved again.
    DeadlockOver {
        /// On which lane or priority.
        tc: u8,
    },
    /// A worker's departures missed their bound.
    Late {
        /// Which worker.
        worker: u32,
        /// By how much at worst, fabric picoseconds.
        by_ps: u64,
        /// How many frames.
        frames: u64,
    },
}

/// A file of a run directory cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}")]
pub struct WriteError {
    /// Which.
    pub file: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Writes tables, events and topology into `folder`, which must be there; files of an earlier run are
/// replaced. Returns a summary of each file, for `run.json`.
///
/// Nothing is compressed, whatever its size.
///
/// # Errors
/// If a file cannot be written.
pub fn write(
    folder: &Path,
    record: &RunRecord<'_>,
) -> Result<BTreeMap<String, FileSummary>, WriteError> {
    type Writer = fn(&RunRecord<'_>, &mut Sealed) -> io::Result<u64>;
    let files: [(&str, Writer); 8] = [
        ("ports.csv", tables::ports),
        ("queues.csv", tables::queues),
        ("rates.csv", tables::rates),
        ("flows.csv", tables::flows),
        ("counters.csv", tables::counters),
        ("fidelity.csv", tables::fidelity),
        ("events.jsonl", events::write),
        ("topology.json", topology::write),
    ];
    let mut written = BTreeMap::new();
    for (name, writer) in files {
        let file = folder.join(name);
        let summary = Sealed::create(&file).and_then(|mut sealed| {
            writer(record, &mut sealed).and_then(|rows| sealed.finish(rows))
        });
        let summary = summary.map_err(|source| WriteError { file, source })?;
        written.insert(name.to_owned(), summary);
    }
    Ok(written)
}

#[cfg(test)]
mod tests;
