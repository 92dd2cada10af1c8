//! Commands in the namespaces of a host, from any process of its user.
//!
//! ```text
//!   caller ──▶ guard, in the caller's pid namespace ──▶ command, first of its session, in that of the host
//! ```
//!
//! A process cannot move to another pid namespace, only its children can. So the process that the caller starts enters
//! the namespaces, makes a copy of itself, which becomes the command, and waits. It kills the group of the command when
//! the caller disappears or asks for that.

use super::file_of;
use crate::HostError;
use crate::interface::check_name;
use crate::process::spawn;
use crate::streams::{Streams, process_descriptor};
use guest::protocol::ExecRequest;
use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, chdir, fork, getpid, getppid, setsid};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs a command on the host `name` whose file is in `folder`, and returns its exit code: that of the command, 128
/// and the number of the signal that ended it, 127 if there is no such program.
///
/// The command has the environment and the working directory of this process. Its process group ends when this process
/// disappears or the limit passes. Octets pass unchanged in all three streams. A thread reads `stdin` in pieces; it may
/// outlive the command, until its read returns.
///
/// # Errors
/// If there is no such host, its namespaces may not be entered, the command is not valid, a stream fails, or the limit
/// passes.
pub fn exec(
    folder: &Path,
    name: &str,
    command: &ExecRequest,
    stdin: impl Read + Send + 'static,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
    limit: Option<Duration>,
) -> Result<i32, HostError> {
    check_name(name)?;
    command.check().map_err(HostError::Invalid)?;
    let entry = Entry::of(folder, name)?;
    let program = program(command, name, entry);
    let streams = Streams { name, stdout, stderr, limit };
    streams.run(program, spawn, stdin, |guard| {
        // The guard kills the command and ends.
        let _ = kill(Pid::from_raw(guard.id() as i32), Signal::SIGTERM);
    })
}

#[expect(clippy::disallowed_methods, reason = "only this folder starts the programs of hosts")]
fn program(request: &ExecRequest, name: &str, entry: Entry) -> Command {
    let mut program = Command::new(&request.argv[0]);
    program.args(&request.argv[1..]).env("HOSTNAME", name).envs(&request.environment);
    // SAFETY: only system calls between fork and exec. Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
    unsafe { program.pre_exec(move || entry.enter()) };
    program
}

/// What a new process needs to enter a host.
struct Entry {
    /// The first process of the host.
    first: OwnedFd,
    /// The kinds of namespaces in which it differs from this process.
    kinds: CloneFlags,
    /// The working directory; entering mounts changes it to the root.
    place: CString,
    parent: Pid,
}

impl Entry {
    fn of(folder: &Path, name: &str) -> Result<Entry, HostError> {
        let file = file_of(folder, name);
        let gone = || HostError::Invalid(format!("host {name} does not run"));
        let first = number(&file).ok_or_else(gone)?;
        let failed = || HostError::io(format!("host {name}"));
        let descriptor = process_descriptor(first).map_err(failed())?;
        // The number is that of the host if its process lives now, after the descriptor was made.
        if number(&file) != Some(first) {
            return Err(gone());
        }
        let user = |process: &str| fs::metadata(format!("/proc/{process}/ns/user"));
        let (own, his) = (user("self"), user(&first.to_string()));
        let (own, his) = (own.map_err(failed())?.ino(), his.map_err(failed())?.ino());
        let mut kinds = CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWNET
            | CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC;
        // The kernel refuses to enter the user namespace in which a process is.
        if own != his {
            kinds |= CloneFlags::CLONE_NEWUSER;
        }
        let place = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let place = CString::new(place.into_os_string().into_vec()).unwrap_or_default();
        Ok(Entry { first: descriptor, kinds, place, parent: getpid() })
    }

    /// Enters the host; returns in the process that becomes the command.
    fn enter(&self) -> io::Result<()> {
        setns(&self.first, self.kinds)?;
        chdir(self.place.as_c_str()).or_else(|_| chdir("/"))?;
        // Nothing may end this process but its own decision.
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
        // SAFETY: this process has one thread. Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => guard(child, self.parent),
            ForkResult::Child => {
                setsid()?;
                set_pdeathsig(Signal::SIGKILL)?;
                sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
                Ok(())
            }
        }
    }
}

/// The number in the file of a host whose process lives, and so holds the lock.
fn number(file: &Path) -> Option<u32> {
    let opened = File::open(file).ok()?;
    match Flock::lock(opened, FlockArg::LockSharedNonblock) {
        Ok(_) => None,
        Err((opened, _)) => io::read_to_string(opened).ok()?.trim().parse().ok(),
    }
}

/// Waits for the end of the command and passes its exit code on. All signals are blocked.
fn guard(command: Pid, caller: Pid) -> ! {
    // Its pipes belong to the command alone, and so does the one that reports a failed start.
    // SAFETY: no memory is passed, and nothing here uses a descriptor any more.
    // Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    // Entering a user namespace has cleared this, so it is set here.
    let tied = set_pdeathsig(Signal::SIGTERM);
    let mut ends = tied.is_err() || getppid() != caller;
    loop {
        if ends {
            // The group has ended if there is none.
            let _ = killpg(command, Signal::SIGKILL).or_else(|_| kill(command, Signal::SIGKILL));
        }
        let code = match waitpid(command, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => None,
            Ok(WaitStatus::Exited(_, code)) => Some(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(128 + signal as i32),
            _ => Some(255),
        };
        if let Some(code) = code {
            // SAFETY: the call does not return, and runs nothing of this program.
            // Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
            unsafe { libc::_exit(code) };
        }
        let wanted = SigSet::all();
        ends |= matches!(
            wanted.wait(),
            Ok(Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT)
        );
    }
}
