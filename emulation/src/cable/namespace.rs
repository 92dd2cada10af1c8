//! Network namespaces without a name, held by a descriptor.
//!
//! The kernel removes a namespace that is not referenced any more, with all interfaces in it, so a killed
//! process leaves nothing behind. Threads enter namespaces, not processes: a socket is opened by a thread that
//! has entered, and stays in that namespace when the thread has ended.

use super::interface::Interfaces;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::thread;

/// The calling thread's own namespace.
const OWN: &str = "/proc/thread-self/ns/net";
/// Settings that keep IPv6 from sending frames of its own on interfaces created later.
const QUIET: [&str; 2] =
    ["/proc/sys/net/ipv6/conf/all/disable_ipv6", "/proc/sys/net/ipv6/conf/default/disable_ipv6"];

/// A namespace and a netlink socket in it.
#[derive(Debug)]
pub struct Namespace {
    handle: OwnedFd,
    /// Creates and configures its interfaces.
    pub interfaces: Interfaces,
}

impl Namespace {
    /// Creates `count` namespaces in which the kernel sends no frames by itself.
    ///
    /// # Errors
    /// Those of the system; EPERM without `CAP_SYS_ADMIN`.
    pub fn make(count: usize) -> io::Result<Vec<Namespace>> {
        aside(|| (0..count).map(|_| Namespace::make_here()).collect::<io::Result<_>>())?
    }

    /// Creates one, and leaves the calling thread in it.
    fn make_here() -> io::Result<Namespace> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        for file in QUIET {
            match std::fs::write(file, "1") {
                // A kernel without IPv6 needs no settings.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(Namespace { handle: File::open(OWN)?.into(), interfaces: Interfaces::here()? })
    }

    /// The namespace of a file such as `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// If there is no such namespace, or it may not be entered.
    pub fn open(path: &Path) -> io::Result<Namespace> {
        let handle = File::open(path)?;
        let interfaces = entered(handle.as_fd(), Interfaces::here)?;
        Ok(Namespace { handle: handle.into(), interfaces })
    }

    /// Runs `work` in it, on a thread of its own.
    ///
    /// # Errors
    /// If it may not be entered, or those of `work`.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        entered(self.as_fd(), work)
    }

    /// Its descriptor in this process, for `/proc/PID/fd/N`.
    pub fn descriptor(&self) -> RawFd {
        self.handle.as_raw_fd()
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Runs `work` in the namespace of the file `namespace`, or in that of this process.
///
/// # Errors
/// If there is no such namespace, or it may not be entered.
pub fn within<T: Send>(
    namespace: Option<&Path>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(path) = namespace else { return work() };
    entered(File::open(path)?.as_fd(), work)
}

/// Runs `work` on a thread that has entered the namespace of this descriptor.
fn entered<T: Send>(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    aside(|| {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        work()
    })?
}

/// Runs `work` on a thread of its own.
fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("namespace".to_owned());
        let thread = thread.spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the thread for a namespace panicked"))
    })
}

/// Makes this process the owner of a new user namespace, in which it may create network namespaces without
/// being root. Its identity outside and the ownership of its files do not change.
///
/// # Errors
/// If the host does not permit that, or this process has more than one thread.
pub fn become_owner() -> io::Result<()> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}
