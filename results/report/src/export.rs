//! Exports for other programs: finished runs, made from the files of a run directory alone, and a dashboard
//! for labs.
//!
//! A format is a file in `export/` and a row in [`FORMATS`].

use crate::ReportError;
use std::path::Path;

pub mod grafana;
pub mod perfetto;
mod protobuf;

/// The input of a format.
#[derive(Clone, Copy)]
pub enum Make {
    /// A run directory.
    Run(fn(&Path) -> Result<Vec<u8>, ReportError>),
    /// A fixed file.
    Alone(&'static [u8]),
}

/// A format: its name, its file, and its writer.
pub struct Format {
    /// As in `--to`.
    pub name: &'static str,
    /// Its name in a run directory.
    pub file: &'static str,
    /// Its writer.
    pub make: Make,
}

/// All formats.
pub const FORMATS: &[Format] = &[
    Format { name: "perfetto", file: "run.pftrace", make: Make::Run(perfetto::trace) },
    Format { name: "grafana", file: "pausebed.json", make: Make::Alone(grafana::DASHBOARD) },
];

/// The format of that name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
