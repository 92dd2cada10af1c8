//! Child processes: they end when this process ends, in whatever way.

use crate::HostError;
use emulation::clock::{Stopwatch, monotonic_ns};
use emulation::timer;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getpid, getppid};
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

/// Starts QEMU.
pub fn start(launch: Launch) -> Result<Child, HostError> {
    let Launch { mut command, inherited, limits_files } = launch;
    tie(&mut command);
    // SAFETY: only system calls without allocation between fork and exec.
    // Test: two_machines_ping_each_other_by_ip_and_by_verbs.
    unsafe {
        command.pre_exec(move || {
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
    spawn(command).map_err(HostError::io("cannot start QEMU"))
}

/// The kernel kills the program when the thread that starts it ends, see [`spawn`].
pub fn tie(command: &mut Command) {
    let parent = getpid();
    // SAFETY: only system calls without allocation between fork and exec.
    // Test: two_machines_ping_each_other_by_ip_and_by_verbs.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(Signal::SIGKILL)?;
            let is_orphan = getppid() != parent;
            if is_orphan { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
        })
    };
}

/// Starts a program from the thread that ends with this process.
pub fn spawn(command: Command) -> io::Result<Child> {
    let (answer, child) = channel();
    let sent = STARTER.lock().is_ok_and(|starter| starter.send((command, answer)).is_ok());
    let child = sent.then(|| child.recv().ok()).flatten();
    child.unwrap_or_else(|| Err(io::Error::other("the thread for child processes has ended")))
}

/// Starts a program as the first process of a new pid namespace: when it ends, or this process does, the kernel kills
/// all other processes there.
///
/// # Errors
/// Those of the system; EPERM without `CAP_SYS_ADMIN`.
pub fn spawn_first(mut command: Command) -> io::Result<Child> {
    // SAFETY: only a system call between fork and exec. The parent is in another pid namespace and has no number here.
    // Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
    unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
    let (answer, child) = channel();
    std::thread::Builder::new().name("namespace".to_owned()).spawn(move || {
        // Further children of this thread would be in the new namespace as well, so it makes no other.
        let child = unshare(CloneFlags::CLONE_NEWPID).map_err(io::Error::from);
        let child = child.and_then(|()| command.spawn());
        let number = child.as_ref().map(|child| Pid::from_raw(child.id() as i32));
        let number = number.ok();
        let sent = answer.send(child);
        if let (Some(number), Ok(())) = (number, sent) {
            // The program would end with this thread. An error means that it has been waited for.
            let _ = waitid(Id::Pid(number), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        }
    })?;
    child.recv().unwrap_or_else(|_| Err(io::Error::other("the thread of the namespace has ended")))
}

/// A write beyond the limit fails, and QEMU goes on.
fn limit_files() -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: FILE_LIMIT, rlim_max: FILE_LIMIT };
    // SAFETY: `limit` outlives the call, which only reads it; the signal is ignored, and no handler is involved.
    // Test: two_machines_ping_each_other_by_ip_and_by_verbs.
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

/// Waits for some time.
pub fn pause(time: Duration) {
    timer::wait(None, monotonic_ns() + time.as_nanos() as u64);
}

/// Kills a process and waits for its end.
pub fn end(child: &mut Child) {
    // An error means that it has ended.
    let _ = child.kill();
    let _ = child.wait();
}
