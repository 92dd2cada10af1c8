//! System calls that a daemon does not need once its sockets are open: a seccomp filter refuses them from then on.
//!
//! The list names what is refused, not what is permitted, so that another way of waiting or allocating in a new
//! version of a library does not end a run.

use libc::*;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::env::consts::ARCH;
use std::io::Error;
use std::os::fd::RawFd;

/// By subject, the calls that are refused.
const REFUSED: &[&[c_long]] = &[
    // Other programs.
    &[SYS_execve, SYS_execveat],
    // Other processes.
    &[SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp],
    // Other namespaces and file systems.
    &[SYS_setns, SYS_unshare, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount],
    &[SYS_open_tree, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_mount_setattr],
    &[SYS_open_by_handle_at],
    // The kernel itself.
    &[SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_bpf],
    &[SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup],
    &[SYS_add_key, SYS_request_key, SYS_keyctl],
    // The host as a whole.
    &[SYS_reboot, SYS_swapon, SYS_swapoff, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex],
    &[SYS_sethostname],
    // Further ways to the network.
    &[SYS_socket, SYS_connect, SYS_listen],
];

/// Makes the kernel refuse [`REFUSED`] to the calling thread and to the threads that it starts, and `bind` except for
/// the sockets `rebound`. Does nothing on a processor or kernel without seccomp filters.
///
/// # Errors
/// If the kernel has filters and refuses this one.
pub fn refuse(rebound: &[RawFd]) -> Result<(), seccompiler::Error> {
    let Ok(processor) = TargetArch::try_from(ARCH) else { return Ok(()) };
    let refused = REFUSED.iter().copied().flatten().map(|call| (*call, Vec::new()));
    let rules = refused.chain([(SYS_bind, other_sockets(rebound)?)]).collect();
    let no = SeccompAction::Errno(EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, no, processor);
    let program = filter.and_then(BpfProgram::try_from)?;
    // A kernel without seccomp filters. Source: seccomp(2), errors.
    let is_unknown = |error: &Error| matches!(error.raw_os_error(), Some(ENOSYS | EINVAL));
    match apply_filter(&program) {
        Err(seccompiler::Error::Seccomp(error)) if is_unknown(&error) => Ok(()),
        applied => applied,
    }
}

/// The rule that a call is about a socket other than `rebound`; no rule means any call.
fn other_sockets(rebound: &[RawFd]) -> Result<Vec<SeccompRule>, BackendError> {
    let is_other = |socket: &RawFd| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *socket as u64)
    };
    let conditions = rebound.iter().map(is_other).collect::<Result<Vec<_>, _>>()?;
    (!conditions.is_empty()).then(|| SeccompRule::new(conditions)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::sched::{CloneFlags, unshare};

    /// None of these calls needs a right, so without the filter they would succeed or fail in another way.
    #[test]
    fn a_thread_starts_no_program_enters_no_namespace_and_opens_no_socket() {
        let try_all = || {
            let program = nix::unistd::execve(c"/no/such/program", &[c"x"], &[c"x"]);
            let apart = unshare(CloneFlags::CLONE_FS);
            let socket = std::net::TcpListener::bind("127.0.0.1:0").map(|_| ());
            let files = std::fs::metadata("/").is_ok();
            let threads = std::thread::spawn(|| 7).join().is_ok();
            (program.err(), apart, socket.map_err(|error| error.kind()), files && threads)
        };
        let inside = move || {
            let before = try_all();
            nix::sys::prctl::set_no_new_privs().expect("every kernel has it");
            refuse(&[]).expect("filters or none");
            (before, try_all())
        };
        let (before, after) = std::thread::spawn(inside).join().expect("no panic");
        assert_eq!(before, (Some(Errno::ENOENT), Ok(()), Ok(()), true));
        if std::fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("Seccomp:"))
        {
            let denied = Err(std::io::ErrorKind::PermissionDenied);
            assert_eq!(after, (Some(Errno::EPERM), Err(Errno::EPERM), denied, true));
        } else {
            eprintln!("SKIPPED: this kernel has no filters of system calls");
        }
    }

    /// Binding a bound socket of the Internet is an invalid argument, which shows that the kernel has tried.
    #[test]
    fn only_the_sockets_of_attached_ports_can_be_bound_again() {
        use nix::sys::socket::{SockaddrIn, bind};
        use std::os::fd::AsRawFd;
        let inside = || {
            let sockets =
                ["127.0.0.1:0"; 2].map(|at| std::net::TcpListener::bind(at).expect("one"));
            let [first, second] = sockets.each_ref().map(AsRawFd::as_raw_fd);
            nix::sys::prctl::set_no_new_privs().expect("every kernel has it");
            refuse(&[first]).expect("filters or none");
            [first, second].map(|socket| bind(socket, &SockaddrIn::new(127, 0, 0, 1, 0)).err())
        };
        let [first, second] = std::thread::spawn(inside).join().expect("no panic");
        assert_eq!(first, Some(Errno::EINVAL));
        if std::fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("Seccomp:"))
        {
            assert_eq!(second, Some(Errno::EPERM));
        }
    }
}
