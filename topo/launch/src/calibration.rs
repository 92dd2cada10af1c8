//! The capacity of this host, as `pausebed calibrate` measured it or as a cautious default.

use crate::owner::write_json;
use emulation::timer::{Priority, permitted_priority};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Frames of any kind that two workers carry over UDP in a second, each across one link, on a host
/// without a calibration.
const GUESS_FRAME_HOPS_PER_S: f64 = 90_000.0;

/// The capacity of a host for live runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Frames of any kind in a second, each across one link, at which lateness stays small.
    pub frame_hops_per_s: f64,
    /// Real-time priority is granted.
    pub realtime: bool,
    /// Measured, not the default.
    pub measured: bool,
}

impl Calibration {
    /// A host without a calibration and without real-time priority.
    pub const GUESS: Calibration =
        Calibration { frame_hops_per_s: GUESS_FRAME_HOPS_PER_S, realtime: false, measured: false };

    /// The stored calibration, or else the default.
    pub fn load() -> Calibration {
        let stored = file().and_then(|file| std::fs::read_to_string(file).ok());
        let stored = stored.and_then(|text| serde_json::from_str::<Calibration>(&text).ok());
        let realtime = permitted_priority(true) == Priority::Fifo;
        match stored {
            Some(calibration) => Calibration { realtime, ..calibration },
            None => Calibration { realtime, ..Calibration::GUESS },
        }
    }

    /// Stores the calibration and returns the path of its file.
    ///
    /// # Errors
    /// If neither XDG_CACHE_HOME nor HOME is set, or the file cannot be written.
    pub fn store(&self) -> std::io::Result<PathBuf> {
        let file = file()
            .ok_or_else(|| std::io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_json(&file, self)?;
        Ok(file)
    }
}

fn file() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    Some(cache.or_else(home)?.join("pausebed").join("calibration.json"))
}
