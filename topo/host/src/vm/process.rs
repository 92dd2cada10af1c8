//! Processes of QEMU: they end when this process ends, in whatever way.

use super::pause;
use crate::HostError;
use emulation::clock::Stopwatch;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// Most octets of a file that QEMU writes; the logs hold the first of what a machine prints.
const FILE_LIMIT: u64 = 1 << 20;
/// The interval at which the end of a process is polled.
const POLL: Duration = Duration::from_millis(10);

type Job = (Command, Sender<io::Result<Child>>);

/// The kernel sends the signal of the parent's death when the thread that made the child ends, so one thread, which
/// ends with the process, makes them all.
static STARTER: LazyLock<Mutex<Sender<Job>>> = LazyLock::new(|| {
    let (sender, jobs) = channel::<Job>();
    std::thread::spawn(move || {
        for (mut command, answer) in jobs {
            // The answer stays unread if the thread that asked has ended; its child is killed here.
            if let Err(unread) = answer.send(command.spawn())
                && let Ok(mut child) = unread.0
            {
                end(&mut child);
            }
        }
    });
    Mutex::new(sender)
});

/// A command with the descriptors that it inherits.
#[derive(Debug)]
pub struct Launch {
    /// Program, arguments, standard streams.
    pub command: Command,
    /// Stay open in the child under their numbers.
    pub inherited: Vec<OwnedFd>,
    /// Whether files are limited to 1 MiB.
    pub limits_files: bool,
}

/// Starts a program.
pub fn start(launch: Launch) -> Result<Child, HostError> {
    let Launch { mut command, inherited, limits_files } = launch;
    let parent = nix::unistd::getpid();
    // SAFETY: only system calls without allocation between fork and exec.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(Signal::SIGKILL)?;
            if nix::unistd::getppid() != parent {
                return Err(io::ErrorKind::NotFound.into());
            }
            if limits_files {
                limit_files()?;
            }
            for descriptor in &inherited {
                if libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        })
    };
    let (answer, child) = channel();
    let sent = STARTER.lock().is_ok_and(|starter| starter.send((command, answer)).is_ok());
    let child = sent.then(|| child.recv().ok()).flatten();
    let child =
        child.unwrap_or_else(|| Err(io::Error::other("the thread for child processes has ended")));
    child.map_err(HostError::io("cannot start QEMU"))
}

/// A write beyond the limit fails, and QEMU goes on.
fn limit_files() -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: FILE_LIMIT, rlim_max: FILE_LIMIT };
    // SAFETY: `limit` outlives the call, which only reads it; the signal is ignored, and no handler is involved.
    unsafe {
        if libc::setrlimit(libc::RLIMIT_FSIZE, &limit) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    Ok(())
}

/// Waits for the end of a process, at most `limit`. Returns whether it has ended.
pub fn wait(child: &mut Child, limit: Duration) -> bool {
    let watch = Stopwatch::start();
    loop {
        match child.try_wait() {
            Ok(None) if watch.seconds() < limit.as_secs_f64() => pause(POLL),
            Ok(None) => return false,
            _ => return true,
        }
    }
}

/// Kills a process and waits for its end.
pub fn end(child: &mut Child) {
    // An error means that it has ended.
    let _ = child.kill();
    let _ = child.wait();
}
