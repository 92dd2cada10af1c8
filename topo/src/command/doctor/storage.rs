//! The folders for files of runs, and the calibration of this host.

use super::Check;
use launch::calibration::Calibration;
use nix::sys::statvfs::statvfs;
use std::io;
use std::path::Path;

/// More than a run directory with captures of a few ports needs, in octets.
const ROOM_WANTED: u64 = 256 << 20;

pub fn calibration() -> Check {
    const WHAT: &str = "calibration";
    let host = Calibration::load();
    let found = format!("{:.0} frame-hops/s", host.frame_hops_per_s);
    if host.measured {
        Check::good(WHAT, found)
    } else {
        Check::optional(WHAT, format!("{found}, the default"), "measure it: pausebed calibrate")
    }
}

pub fn temporary_folder() -> Check {
    const WHAT: &str = "temporary folder";
    let folder = std::env::temp_dir();
    match room(&folder) {
        Ok(free) => enough(WHAT, &folder, free),
        Err(error) => Check::bad(
            WHAT,
            format!("{}: {error}", folder.display()),
            "runs keep configurations there: set TMPDIR to a writable folder",
        ),
    }
}

pub fn current_folder() -> Check {
    const WHAT: &str = "current folder";
    let folder = Path::new(".");
    match room(folder) {
        Ok(free) => enough(WHAT, &std::env::current_dir().unwrap_or_default(), free),
        Err(error) => Check::optional(
            WHAT,
            error.to_string(),
            "run directories cannot be written here: use --out DIR with a writable folder",
        ),
    }
}

/// Writes into a folder, and returns its free octets.
fn room(folder: &Path) -> io::Result<u64> {
    tempfile::tempfile_in(folder)
        .and_then(|mut file| io::Write::write_all(&mut file, b"pausebed"))?;
    let state = statvfs(folder)?;
    Ok(state.blocks_available() as u64 * state.fragment_size() as u64)
}

fn enough(what: &'static str, folder: &Path, free: u64) -> Check {
    let found = format!("{}, {:.1} GiB free", folder.display(), free as f64 / f64::from(1 << 30));
    if free >= ROOM_WANTED {
        Check::good(what, found)
    } else {
        Check::optional(what, found, "captures of a long run may not fit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::doctor::State;

    #[test]
    fn a_missing_folder_is_an_error_and_little_space_is_reported() {
        assert!(room(Path::new("/no/such/folder")).is_err());
        let little = enough("x", Path::new("/x"), 1 << 20);
        assert_eq!(little.state, State::Optional);
        assert_eq!(enough("x", Path::new("/x"), 1 << 30).state, State::Good);
    }
}
