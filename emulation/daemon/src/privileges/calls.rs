//! System calls that a daemon does not need once its sockets are open: a seccomp filter refuses them from then on.
//!
//! The list names what is refused, not what is permitted, so that another way of waiting or allocating in a new
//! version of a library does not end a run.

use libc::c_long;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use std::env::consts::ARCH;

/// Other programs, other processes, other namespaces, the kernel itself, and further ways to the network.
const REFUSED: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
];

/// Makes the kernel refuse [`REFUSED`] to the calling thread and to the threads that it starts. Does nothing on a
/// processor or kernel without seccomp filters.
///
/// # Errors
/// If the kernel has filters and refuses this one.
pub fn refuse() -> Result<(), seccompiler::Error> {
    let Ok(processor) = TargetArch::try_from(ARCH) else { return Ok(()) };
    let rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let no = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, no, processor);
    let program = filter.and_then(BpfProgram::try_from)?;
    match apply_filter(&program) {
        Err(seccompiler::Error::Seccomp(error)) if is_unknown(&error) => Ok(()),
        applied => applied,
    }
}

/// Whether the kernel has no seccomp filters. Source: seccomp(2), errors.
fn is_unknown(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL))
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
            refuse().expect("filters or none");
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
}
