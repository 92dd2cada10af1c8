//! A calendar clock that steps, for single programs.
//!
//! Stepping the host's clock would harm everybody else on it, and a time namespace cannot hold CLOCK_REALTIME. So
//! programs alone are deceived, by a library that is compiled here and stands between them and the C library.

use crate::case::{Failure, Result};
use launch::programs;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIBRARY: &str = include_str!("stepped_clock.c");

/// The library, and the file in which it counts.
pub struct SteppedClock {
    library: PathBuf,
    log: PathBuf,
}

impl SteppedClock {
    /// Compiles the library in `folder`.
    ///
    /// # Errors
    /// Inconclusive without a C compiler.
    pub fn compile(folder: &Path) -> Result<SteppedClock> {
        let [source, library, log] =
            ["stepped_clock.c", "stepped_clock.so", "readings"].map(|name| folder.join(name));
        std::fs::write(&source, LIBRARY).map_err(Failure::of_host)?;
        let words = ["-shared", "-fPIC", "-o"].map(OsStr::new);
        let arguments = [&words[..], &[library.as_os_str(), source.as_os_str()]].concat();
        match programs::run("cc", &arguments).map_err(Failure::of_host)? {
            (true, _) => Ok(SteppedClock { library, log }),
            (false, reason) => Err(Failure::Inconclusive(format!("cc: {reason}"))),
        }
    }

    /// The environment of programs whose clock is off by each of these nanoseconds in turn, for `each` long. Only those
    /// with the word `only` in their command line are deceived, if it is given.
    pub fn environment(
        &self,
        each: Duration,
        offsets_ns: &[i64],
        only: Option<&str>,
    ) -> Vec<(String, String)> {
        let steps: Vec<String> = offsets_ns.iter().map(i64::to_string).collect();
        let variables = [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("PAUSEBED_STEP_LOG", self.log.display().to_string()),
            ("PAUSEBED_STEPS", format!("{} {}", each.as_nanos(), steps.join(" "))),
        ];
        let only = only.map(|word| ("PAUSEBED_STEP_ONLY", word.to_owned()));
        variables.into_iter().chain(only).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// How many programs have loaded the library, and how often they have read the clock.
    pub fn readings(&self) -> (usize, usize) {
        let octets = std::fs::read(&self.log).unwrap_or_default();
        let loaded = octets.iter().filter(|octet| **octet == b'l').count();
        (loaded, octets.len() - loaded)
    }
}
