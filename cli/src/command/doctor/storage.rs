//! The folders for files of runs, and the calibration of this host.

use super::Check;
use launch::calibration::Calibration;
use nix::sys::statvfs::statvfs;
use std::io;
use std::path::Path;

/// More than a run directory with captures of a few ports needs, in octets.
const ROOM_WANTED: u64 = 256 << 20;

pub fn calibration() -> Check {
    let host = Calibration::load();
    let default = if host.measured { "" } else { ", the default" };
    let found = format!("{:.0} frame-hops/s{default}", host.frame_hops_per_s);
    Check::wanted(host.measured, found, "measure it: pausebed calibrate")
}

pub fn temporary_folder() -> Check {
    let folder = std::env::temp_dir();
    let next = "runs keep configurations there: set TMPDIR to a writable folder";
    let unusable = |error: io::Error| Check::bad(format!("{}: {error}", folder.display()), next);
    room(&folder).map_or_else(unusable, |free| enough(&folder, free))
}

pub fn current_folder() -> Check {
    let next = "run directories cannot be written here: use --out DIR with a writable folder";
    let unusable = |error: io::Error| Check::optional(error.to_string(), next);
    let folder = std::env::current_dir().unwrap_or_default();
    room(Path::new(".")).map_or_else(unusable, |free| enough(&folder, free))
}

/// Writes into a folder, and returns its free octets.
fn room(folder: &Path) -> io::Result<u64> {
    tempfile::tempfile_in(folder)
        .and_then(|mut file| io::Write::write_all(&mut file, b"pausebed"))?;
    let state = statvfs(folder)?;
    Ok(state.blocks_available() as u64 * state.fragment_size() as u64)
}

fn enough(folder: &Path, free: u64) -> Check {
    let found = format!("{}, {:.1} GiB free", folder.display(), free as f64 / f64::from(1 << 30));
    Check::wanted(free >= ROOM_WANTED, found, "captures of a long run may not fit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::doctor::State;

    #[test]
    fn a_missing_folder_is_an_error_and_little_space_is_reported() {
        assert!(room(Path::new("/no/such/folder")).is_err());
        let little = enough(Path::new("/x"), 1 << 20);
        assert_eq!(little.state, State::Optional);
        assert_eq!(enough(Path::new("/x"), 1 << 30).state, State::Good);
    }
}
