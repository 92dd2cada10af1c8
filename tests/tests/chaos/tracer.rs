//! Commands under ptrace(2): one of their processes is killed at its Nth step, which is a system call that changes something
//! outside of the process. So crashes are injected at every step, in the program that users have.
//!
//! The process is stopped at the entry of the system call and killed there, so the call has no effect. Daemons are not
//! traced, and no process is slowed once the commands have ended and their lab is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::Sender;

/// The processes that are traced: the commands, and the keeper that the first leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Up,
    Keep,
    Down,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Up, Role::Keep, Role::Down];

    pub const fn name(self) -> &'static str {
        match self {
            Role::Up => "up",
            Role::Keep => "keep",
            Role::Down => "down",
        }
    }
}

/// What the tracer did.
#[derive(Debug, Default)]
pub struct Traced {
    /// The steps of each role, as far as they were made.
    pub steps: BTreeMap<Role, usize>,
    /// The system call at which a process was killed.
    pub struck: Option<String>,
    /// The wait statuses of the commands.
    pub ended: Vec<i32>,
}

/// System calls that change something, and the argument that is a path.
const CALLS: &[(libc::c_long, &str, Option<usize>)] = &[
    (libc::SYS_bind, "bind", None),
    (libc::SYS_clone, "clone", None),
    (libc::SYS_clone3, "clone3", None),
    (libc::SYS_connect, "connect", None),
    (libc::SYS_execve, "execve", Some(0)),
    (libc::SYS_exit_group, "exit_group", None),
    (libc::SYS_fchmod, "fchmod", None),
    (libc::SYS_flock, "flock", None),
    (libc::SYS_ftruncate, "ftruncate", None),
    (libc::SYS_kill, "kill", None),
    (libc::SYS_linkat, "linkat", Some(3)),
    (libc::SYS_listen, "listen", None),
    (libc::SYS_mkdirat, "mkdirat", Some(1)),
    (libc::SYS_mknodat, "mknodat", Some(1)),
    (libc::SYS_mount, "mount", Some(1)),
    (libc::SYS_renameat, "renameat", Some(3)),
    (libc::SYS_renameat2, "renameat2", Some(3)),
    (libc::SYS_setns, "setns", None),
    (libc::SYS_setsid, "setsid", None),
    (libc::SYS_symlinkat, "symlinkat", Some(2)),
    (libc::SYS_unlinkat, "unlinkat", Some(1)),
    (libc::SYS_unshare, "unshare", None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, "chmod", Some(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_fork, "fork", None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir", Some(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, "mknod", Some(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename", Some(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir", Some(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink", Some(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_vfork, "vfork", None),
];

/// System calls that change what their first argument, a descriptor, leads to.
const WRITES: &[libc::c_long] = &[
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];

/// Runs `commands` one after another, and kills the process with this role at this step, counted from 1. Tells `done`
/// once the commands have ended, and returns when all processes that they left behind have ended.
pub fn run(commands: Vec<Command>, role: Role, step: usize, done: &Sender<()>) -> Traced {
    let mut tracer = Tracer { plan: (role, step), ..Tracer::default() };
    for command in commands {
        if tracer.traced.struck.is_some() {
            break;
        }
        let root = spawn(command).expect("the program starts");
        let ended = tracer.pump(Some(root)).expect("the command ends");
        tracer.traced.ended.push(ended);
    }
    done.send(()).expect("the test waits");
    tracer.pump(None);
    tracer.traced
}

/// Starts a command whose tracer is this thread.
fn spawn(mut command: Command) -> io::Result<i32> {
    let trace_me = || {
        // SAFETY: one system call without memory, in the child between fork and exec.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call and does not allocate.
    unsafe { command.pre_exec(trace_me) };
    // The tracer waits for it, as for every process that it traces.
    Ok(command.spawn()?.id() as i32)
}

struct Tracer {
    plan: (Role, usize),
    /// Roles by process.
    roles: BTreeMap<i32, Role>,
    /// Processes by thread, as far as they were looked up.
    processes: BTreeMap<i32, i32>,
    /// Threads that have stopped before.
    known: BTreeSet<i32>,
    traced: Traced,
}

impl Default for Tracer {
    fn default() -> Tracer {
        let (roles, processes, known, traced) = Default::default();
        Tracer { plan: (Role::Up, 0), roles, processes, known, traced }
    }
}

impl Tracer {
    /// Follows all traced processes until `until` has ended, or until none is left. Returns its wait status.
    fn pump(&mut self, until: Option<i32>) -> Option<i32> {
        loop {
            let mut status = 0;
            // Other tests of this program wait for children of their threads.
            let flags = libc::__WALL | libc::__WNOTHREAD;
            // SAFETY: the pointer is to a local variable.
            let thread = unsafe { libc::waitpid(-1, &mut status, flags) };
            if thread < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::ECHILD) => return None,
                    _ => panic!("waitpid: {error}"),
                }
            }
            if libc::WIFSTOPPED(status) {
                self.stopped(thread, status);
                continue;
            }
            self.known.remove(&thread);
            self.processes.remove(&thread);
            if until == Some(thread) {
                return Some(status);
            }
        }
    }

    fn stopped(&mut self, thread: i32, status: i32) {
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let is_new = self.known.insert(thread);
        let mut deliver = 0;
        if is_new && event == 0 && [libc::SIGTRAP, libc::SIGSTOP].contains(&signal) {
            // The first stop of a command, or of a thread or child of a traced process.
            let options = libc::PTRACE_O_TRACESYSGOOD
                | libc::PTRACE_O_TRACEFORK
                | libc::PTRACE_O_TRACEVFORK
                | libc::PTRACE_O_TRACECLONE
                | libc::PTRACE_O_TRACEEXEC
                | libc::PTRACE_O_EXITKILL;
            request(libc::PTRACE_SETOPTIONS, thread, options as usize);
            if signal == libc::SIGTRAP {
                self.identify(thread);
            }
        } else if event == libc::PTRACE_EVENT_EXEC {
            if !self.identify(thread) {
                self.known.remove(&thread);
                request(libc::PTRACE_DETACH, thread, 0);
                return;
            }
        } else if signal == libc::SIGTRAP | 0x80 {
            if self.strikes(thread) {
                return;
            }
        } else if event == 0 {
            deliver = signal as usize;
        }
        request(libc::PTRACE_SYSCALL, thread, deliver);
    }

    /// Gives a process that has just begun a program its role. Returns whether it is to be traced.
    fn identify(&mut self, process: i32) -> bool {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let mut words = line.split(|octet| *octet == 0);
        let (program, word) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        self.processes.insert(process, process);
        let is_role = |role: &Role| role.name().as_bytes() == word;
        match Role::ALL.into_iter().find(is_role) {
            Some(role) if program.ends_with(b"pausebed") => {
                self.roles.insert(process, role);
                true
            }
            _ => {
                self.roles.remove(&process);
                // It enters a namespace and becomes the command.
                program.ends_with(b"nsenter")
            }
        }
    }

    /// Counts a step, and kills the process if it is the one of the plan.
    fn strikes(&mut self, thread: i32) -> bool {
        let process = *self.processes.entry(thread).or_insert_with(|| process_of(thread));
        let Some(role) = self.roles.get(&process).copied() else { return false };
        let Some(what) = step(thread) else { return false };
        let steps = self.traced.steps.entry(role).or_default();
        *steps += 1;
        if (role, *steps) != self.plan || self.traced.struck.is_some() {
            return false;
        }
        self.traced.struck = Some(what);
        // SAFETY: a system call without memory; the process is stopped here, so its number is not another's.
        unsafe { libc::kill(process, libc::SIGKILL) };
        true
    }
}

/// The process of a thread.
fn process_of(thread: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(thread)
}

/// A request of ptrace(2) with a number as data. A thread that was killed meanwhile refuses, which does no harm.
fn request(request: libc::c_uint, thread: i32, data: usize) {
    // SAFETY: these requests take a number and no pointer.
    unsafe { libc::ptrace(request, thread, 0, data) };
}

/// The system call that a thread is about to make, if it is a step.
fn step(thread: i32) -> Option<String> {
    // SAFETY: all members are numbers, for which zero is valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    let place = std::ptr::from_mut(&mut info);
    // SAFETY: the kernel writes at most `size` octets into the structure.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, place) };
    if got < 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: the kernel has filled this member, as the kind of stop says.
    let entry = unsafe { info.u.entry };
    let (number, arguments) = (entry.nr as libc::c_long, entry.args);
    if WRITES.contains(&number) {
        let link = fs::read_link(format!("/proc/{thread}/fd/{}", arguments[0])).ok()?;
        let link = link.display().to_string();
        // Event descriptors wake threads of the same process.
        return (!link.starts_with("anon_inode:")).then(|| format!("write to {}", last(&link)));
    }
    let opens = match number {
        libc::SYS_openat => Some((arguments[1], arguments[2])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some((arguments[0], arguments[1])),
        _ => None,
    };
    if let Some((path, flags)) = opens {
        let is_making = flags as i32 & (libc::O_CREAT | libc::O_TRUNC) != 0;
        return is_making.then(|| format!("open of {}", last(&text(thread, path))));
    }
    let (_, name, path) = CALLS.iter().find(|(call, ..)| *call == number)?;
    let path = path.map(|argument| last(&text(thread, arguments[argument])).to_owned());
    Some(path.map_or((*name).to_owned(), |path| format!("{name} of {path}")))
}

/// The last two parts of a path.
fn last(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at + 1);
    slashes.nth(1).map_or(path, |at| &path[at..])
}

/// A text in the memory of a stopped thread.
fn text(thread: i32, address: u64) -> String {
    let mut octets = [0; 256];
    let memory = File::open(format!("/proc/{thread}/mem"));
    let read = memory.and_then(|memory| memory.read_at(&mut octets, address)).unwrap_or(0);
    let end = octets[..read].iter().position(|octet| *octet == 0).unwrap_or(read);
    String::from_utf8_lossy(&octets[..end]).into_owned()
}
