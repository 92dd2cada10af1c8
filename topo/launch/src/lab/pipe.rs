//! Named pipes into which daemons write captures.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a named pipe, and opens the end for reading. The daemon finds a reader, so that it need not wait.
///
/// # Errors
/// If the pipe cannot be made.
pub fn make(file: &Path) -> io::Result<File> {
    nix::unistd::mkfifo(file, Mode::S_IRUSR | Mode::S_IWUSR)?;
    // Opening one end waits for the other, unless it is non-blocking.
    File::options().read(true).custom_flags(libc::O_NONBLOCK).open(file)
}

/// Opens the end for writing; none while the pipe has no reader.
///
/// # Errors
/// If the pipe cannot be opened.
pub fn open_for_writing(file: &Path) -> io::Result<Option<File>> {
    match File::options().write(true).custom_flags(libc::O_NONBLOCK).open(file) {
        Ok(file) => set_blocking(&file).map(|()| Some(file)),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes reads and writes wait.
///
/// # Errors
/// If the system refuses.
pub fn set_blocking(file: &File) -> io::Result<()> {
    fcntl(file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(())
}
