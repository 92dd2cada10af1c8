//! A shell on the serial line.

use nix::unistd::setsid;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

nix::ioctl_write_int_bad!(take_terminal, libc::TIOCSCTTY);

/// Becomes a shell on the serial line. Returns only if that fails.
pub fn shell() -> io::Error {
    let terminal = || {
        setsid()?;
        let line = File::options().read(true).write(true).open("/dev/ttyS0")?;
        // SAFETY: the descriptor is open, and 0 does not take the terminal away from another session.
        // Test: an_image_is_built_from_packages.
        unsafe { take_terminal(std::os::fd::AsRawFd::as_raw_fd(&line), 0) }?;
        io::Result::Ok((line.try_clone()?, line.try_clone()?, line))
    };
    match terminal() {
        Ok((input, output, errors)) => {
            let mut shell = Command::new("/usr/bin/busybox");
            shell.arg0("sh").current_dir("/root");
            shell.env("HOME", "/root").env("TERM", "vt100").env("PS1", "\\h:\\w# ");
            shell.stdin(input).stdout(output).stderr(errors).exec()
        }
        Err(error) => error,
    }
}
