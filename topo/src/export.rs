//! Finished runs in formats of other programs, made from the files of a run directory alone.
//!
//! A format is a file in `export/` and a row in [`FORMATS`].

use crate::report::ReportError;
use std::path::Path;

pub mod perfetto;
mod protobuf;

/// A format: its name after `--to`, the file it becomes beside the others, and who makes it.
pub struct Format {
    /// As in `--to`.
    pub name: &'static str,
    /// Its name in a run directory.
    pub file: &'static str,
    /// Makes it from a run directory.
    pub make: fn(&Path) -> Result<Vec<u8>, ReportError>,
}

/// Every format.
pub const FORMATS: &[Format] =
    &[Format { name: "perfetto", file: "run.pftrace", make: perfetto::trace }];

/// The format of that name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
