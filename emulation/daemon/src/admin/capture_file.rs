//! The file of a capture that a client asks for: a new file or a pipe of the client, in the folder of the daemon's socket
//! and nowhere else. A client of the administration may not be the user of this process.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens `wanted`, which names a file in `folder`, by its name alone or by its whole path.
///
/// # Errors
/// If there is no folder, the file is elsewhere, or something other than a pipe has its name.
pub(super) fn open_in(folder: Option<&Path>, wanted: &Path) -> io::Result<File> {
    let refused = |reason: String| io::Error::new(io::ErrorKind::PermissionDenied, reason);
    let folder = folder.ok_or_else(|| refused("this daemon writes no files".to_owned()))?;
    let parent = wanted.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = wanted.file_name().filter(|_| parent.is_none_or(|parent| parent == folder));
    let name = name
        .ok_or_else(|| refused(format!("captures are written into {} only", folder.display())))?;
    let base = OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let place = open(folder, base | OFlag::O_DIRECTORY, Mode::empty())?;
    let new = base | OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
    match openat(&place, name, new, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(file) => return Ok(file.into()),
        Err(Errno::EEXIST) => {}
        Err(error) => return Err(error.into()),
    }
    // Opening a pipe without a reader fails and does not wait.
    let pipe = base | OFlag::O_WRONLY | OFlag::O_NONBLOCK;
    let pipe = openat(&place, name, pipe, Mode::empty())?;
    if fstat(&pipe)?.st_mode & SFlag::S_IFMT.bits() != SFlag::S_IFIFO.bits() {
        return Err(refused("the file exists: a capture replaces none".to_owned()));
    }
    // The writer thread may wait.
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(pipe.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};

    #[test]
    fn a_capture_makes_a_new_file_in_its_folder_or_writes_into_a_pipe_there() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("lab");
        fs::create_dir(&folder).expect("there is none");
        let try_open = |name: &Path| open_in(Some(&folder), name).map_err(|error| error.kind());
        open_in(Some(&folder), Path::new("a.pcapng")).expect("a new file");
        assert_eq!(
            fs::metadata(folder.join("a.pcapng")).expect("it is there").mode() & 0o777,
            0o600
        );
        open_in(Some(&folder), &folder.join("b.pcapng")).expect("by its whole path");
        let outside = place.path().join("mine");
        fs::write(&outside, "precious").expect("a file");
        symlink(&outside, folder.join("link")).expect("a link");
        symlink(place.path(), folder.join("up")).expect("a link");
        fs::write(folder.join("file"), "precious").expect("a file");
        for name in [&outside, Path::new("../mine"), Path::new("up/mine"), Path::new("file")] {
            assert_eq!(try_open(name).err(), Some(io::ErrorKind::PermissionDenied), "{name:?}");
        }
        assert!(try_open(Path::new("link")).is_err(), "no link is followed");
        for name in [&outside, &folder.join("file")] {
            assert_eq!(fs::read_to_string(name).expect("it is there"), "precious");
        }
        let pipe = folder.join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe");
        assert!(try_open(&pipe).is_err(), "nothing reads it");
        let flags = libc::O_NONBLOCK;
        let _reader = File::options().read(true).custom_flags(flags).open(&pipe).expect("a pipe");
        try_open(&pipe).expect("it has a reader").write_all(b"x").expect("room");
        assert!(open_in(None, Path::new("a")).is_err(), "a daemon that has joined writes nothing");
    }
}
