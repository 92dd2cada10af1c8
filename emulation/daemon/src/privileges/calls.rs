//! System calls that a daemon needs once its sockets are open: a seccomp filter refuses all others from then on.
//!
//! Refused are, among others: other programs (`execve`) and processes (`ptrace`, `kill`), namespaces and mounts, modules and
//! `bpf`, clocks, keys, `io_uring`, new sockets but pairs, and calls of another table of the same processor (32 bits). A
//! new version of a library may need a further call; the list then grows by it.

use libc::*;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, apply_filter_all_threads,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io::Error;
use std::os::fd::RawFd;

/// By subject, the calls that are permitted with any arguments.
const PERMITTED: &[&[c_long]] = &[
    // Memory.
    &[SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_mincore],
    &[SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mlockall, SYS_membarrier],
    // Threads, their priorities and their cores.
    &[SYS_futex, SYS_futex_waitv, SYS_set_robust_list, SYS_rseq, SYS_set_tid_address],
    &[SYS_gettid, SYS_getpid, SYS_getppid, SYS_tgkill, SYS_exit, SYS_exit_group, SYS_sched_yield],
    &[SYS_sched_setscheduler, SYS_sched_getscheduler, SYS_sched_setparam, SYS_sched_getparam],
    &[SYS_sched_setattr, SYS_sched_getattr, SYS_sched_setaffinity, SYS_sched_getaffinity],
    &[SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_setpriority, SYS_getpriority],
    &[SYS_getcpu, SYS_prctl, SYS_capget, SYS_capset, SYS_getuid, SYS_geteuid, SYS_getgid],
    &[SYS_getegid, SYS_prlimit64, SYS_getrusage, SYS_uname, SYS_sysinfo, SYS_getrandom],
    // Signals.
    &[SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall],
    // Time and waiting.
    &[SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday],
    &[SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait],
    &[SYS_epoll_pwait2, SYS_eventfd2, SYS_timerfd_create, SYS_timerfd_settime, SYS_pipe2],
    // Files; the kernel confines changes to some folders (see `files`).
    &[SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek],
    &[SYS_openat, SYS_close, SYS_close_range, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs],
    &[SYS_fstatfs, SYS_fcntl, SYS_ioctl, SYS_ftruncate, SYS_fsync, SYS_fdatasync, SYS_fallocate],
    &[SYS_unlinkat, SYS_readlinkat, SYS_getcwd, SYS_faccessat, SYS_faccessat2, SYS_getdents64],
    &[SYS_dup, SYS_dup3],
    // Sockets that are open, connections that they accept, and pairs.
    &[SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_sendmmsg],
    &[SYS_getsockopt, SYS_setsockopt, SYS_getsockname, SYS_getpeername, SYS_shutdown],
    &[SYS_accept, SYS_accept4, SYS_socketpair],
];

/// Older forms of the same calls, which only some processors have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_unlink,
    SYS_poll,
    SYS_select,
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_eventfd,
    SYS_pipe,
    SYS_dup2,
    SYS_time,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Flags of `clone` that make a namespace.
const NAMESPACES: c_int = CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET;

/// The threads to which a filter applies. Threads that these start have it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All threads of this process.
    Process,
    /// The calling thread, for tests.
    Thread,
}

/// Makes the kernel refuse every call that is not permitted, `clone` except for threads, and `bind` except for the
/// sockets `rebound`. Returns false on a processor or kernel without seccomp filters.
///
/// # Errors
/// If the kernel has filters and refuses this one.
pub fn refuse(rebound: &[RawFd], scope: Scope) -> Result<bool, seccompiler::Error> {
    let Ok(processor) = TargetArch::try_from(ARCH) else { return Ok(false) };
    let no = |errno: c_int| SeccompAction::Errno(errno as u32);
    // The C library then calls `clone`, whose flags a filter can see.
    let older = BTreeMap::from([(SYS_clone3, Vec::new())]);
    let older = SeccompFilter::new(older, SeccompAction::Allow, no(ENOSYS), processor);
    let any = PERMITTED.iter().copied().flatten().chain(OLDER).chain([&SYS_clone3]);
    let mut rules: BTreeMap<_, _> = any.map(|call| (*call, Vec::new())).collect();
    rules.insert(SYS_clone, vec![threads_only()?]);
    if !rebound.is_empty() {
        rules.insert(SYS_bind, rebound.iter().map(of_socket).collect::<Result<_, _>>()?);
    }
    let only = SeccompFilter::new(rules, no(EPERM), SeccompAction::Allow, processor);
    for filter in [older, only] {
        let program = filter.and_then(BpfProgram::try_from)?;
        let applied = match scope {
            Scope::Process => apply_filter_all_threads(&program),
            Scope::Thread => apply_filter(&program),
        };
        match applied {
            // A kernel without seccomp filters. Source: seccomp(2), errors.
            Err(seccompiler::Error::Seccomp(error)) if is_unknown(&error) => return Ok(false),
            applied => applied?,
        }
    }
    Ok(true)
}

fn is_unknown(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(ENOSYS | EINVAL))
}

fn threads_only() -> Result<SeccompRule, BackendError> {
    let thread = SeccompCmpOp::MaskedEq((CLONE_THREAD | NAMESPACES) as u32 as u64);
    let flags = SeccompCondition::new(0, SeccompCmpArgLen::Qword, thread, CLONE_THREAD as u64)?;
    SeccompRule::new(vec![flags])
}

fn of_socket(socket: &RawFd) -> Result<SeccompRule, BackendError> {
    let is = SeccompCmpOp::Eq;
    SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, is, *socket as u64)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::sched::{CloneFlags, unshare};

    fn has_filters() -> bool {
        let status = std::fs::read_to_string("/proc/self/status");
        let has = status.is_ok_and(|text| text.contains("Seccomp:"));
        if !has {
            skip::because!("CONFIG_SECCOMP_FILTER: no filter of system calls");
        }
        has
    }

    /// What `work` returns on a thread before the filter and after it.
    fn around<T: Send + 'static>(
        rebound: Vec<RawFd>,
        work: impl Fn() -> T + Send + 'static,
    ) -> (T, T) {
        let inside = move || {
            let before = work();
            nix::sys::prctl::set_no_new_privs().expect("every kernel has it");
            assert_eq!(refuse(&rebound, Scope::Thread).expect("filters or none"), has_filters());
            (before, work())
        };
        std::thread::spawn(inside).join().expect("no panic")
    }

    /// None of these calls needs a right, so without the filter they would succeed or fail in another way.
    #[test]
    fn a_thread_starts_no_program_enters_no_namespace_and_opens_no_socket() {
        let (before, after) = around(Vec::new(), || {
            let program = nix::unistd::execve(c"/no/such/program", &[c"x"], &[c"x"]);
            let apart = unshare(CloneFlags::CLONE_FS);
            let socket = std::net::TcpListener::bind("127.0.0.1:0").map(|_| ());
            let files = std::fs::metadata("/").is_ok();
            let threads = std::thread::spawn(|| 7).join().is_ok();
            (program.err(), apart, socket.map_err(|error| error.kind()), files && threads)
        });
        assert_eq!(before, (Some(Errno::ENOENT), Ok(()), Ok(()), true));
        if has_filters() {
            let denied = Err(std::io::ErrorKind::PermissionDenied);
            assert_eq!(after, (Some(Errno::EPERM), Err(Errno::EPERM), denied, true));
        }
    }

    /// A process of its own, a user namespace by `clone`, and a call that the list does not name.
    #[test]
    fn what_is_not_named_is_refused() {
        fn raw(call: c_long, argument: c_int) -> Option<Errno> {
            // SAFETY: the calls here read no memory of ours, and the flags share none with a child.
            let result = unsafe { syscall(call, argument as c_long, 0, 0, 0, 0) };
            if result == 0 && call == SYS_clone {
                // SAFETY: the child of a clone that was not refused ends here.
                unsafe { _exit(0) };
            }
            (result < 0).then(Errno::last)
        }
        let (_, after) = around(Vec::new(), || {
            let child = raw(SYS_clone, SIGCHLD);
            let namespace = raw(SYS_clone, CLONE_NEWUSER | SIGCHLD);
            [child, namespace, raw(SYS_clone3, 0), raw(SYS_inotify_init1, 0)]
        });
        if has_filters() {
            assert_eq!(after, [Errno::EPERM, Errno::EPERM, Errno::ENOSYS, Errno::EPERM].map(Some));
        }
    }

    /// Binding a bound socket of the Internet is an invalid argument, which shows that the kernel has tried.
    #[test]
    fn only_the_sockets_of_attached_ports_can_be_bound_again() {
        use nix::sys::socket::{SockaddrIn, bind};
        use std::os::fd::AsRawFd;
        let sockets = ["127.0.0.1:0"; 2].map(|at| std::net::TcpListener::bind(at).expect("one"));
        let [first, second] = sockets.each_ref().map(AsRawFd::as_raw_fd);
        let (_, [first, second]) = around(vec![first], move || {
            [first, second].map(|socket| bind(socket, &SockaddrIn::new(127, 0, 0, 1, 0)).err())
        });
        assert_eq!(first, Some(Errno::EINVAL));
        if has_filters() {
            assert_eq!(second, Some(Errno::EPERM));
        }
        drop(sockets);
    }
}
