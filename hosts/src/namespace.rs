//! Programs of this system with a network of their own: a network namespace whose only interface is on the fabric.
//!
//! ```text
//!   owner ──▶ cat, the first process of a pid namespace ◀── exec enters its namespaces, from any process
//!      a pipe, and the signal of the owner's death
//! ```
//!
//! When the owner ends, `cat` does: the kernel signals it, and its input ends. With the first process the kernel kills
//! every program of the host, and removes its namespaces and interfaces.

mod enter;

use crate::HostError;
use crate::image::check_private;
use crate::interface::{self, Interface, LabEnd};
use crate::process::{end, spawn_first};
use emulation::cable::namespace::Namespace;
pub use enter::exec;
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{sethostname, setsid};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A network namespace for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSpec {
    /// Letters, digits, `-` and `_`, at most 32; it names the host and its file.
    pub name: String,
    /// Its interface.
    pub interface: Interface,
    /// Folder of the run with mode 0700, for `NAME.namespace`.
    pub folder: PathBuf,
}

/// Programs have this network as long as the value exists, and this process.
#[derive(Debug)]
pub struct NamespaceHost {
    /// The first process of the host. It ends with its standard input.
    first: Child,
    inside: Namespace,
    file: PathBuf,
    /// Also held by the first process. Dropping this value releases it for both.
    lock: Flock<File>,
}

impl NamespaceHost {
    /// Makes the namespace, its interface and its first process.
    ///
    /// # Errors
    /// If the specification is not valid, a host of this name runs in the folder, or the system refuses something:
    /// `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` are needed, if only in a user namespace of this process.
    pub fn start(spec: &NamespaceSpec, lab: LabEnd<'_>) -> Result<NamespaceHost, HostError> {
        let Interface { mac, addresses, mtu } = &spec.interface;
        interface::check(&spec.name, *mac, *mtu, addresses)?;
        check_private(&spec.folder)?;
        let refused = |what: &str| HostError::io(format!("host {}: {what}", spec.name));
        let made = Namespace::make(1).map(|mut made| made.pop());
        let made = made.and_then(|made| made.ok_or_else(|| io::ErrorKind::NotFound.into()));
        let inside = made.map_err(refused("cannot make a network namespace"))?;
        let file = file_of(&spec.folder, &spec.name);
        let lock = lock(&file, &spec.name)?;
        let first = first_process(&spec.name, &inside, &lock)
            .inspect_err(|_| drop(fs::remove_file(&file)))
            .map_err(refused("cannot make namespaces with /proc and /sys"))?;
        let host = NamespaceHost { first, inside, file, lock };
        let made = spec.interface.make(&host.inside, lab);
        made.map_err(refused("cannot make its interface"))?;
        let written = writeln!(&*host.lock, "{}", host.pid());
        written.map_err(HostError::io(host.file.display()))?;
        Ok(host)
    }

    /// Process id of the first process of the host: its namespaces are those in `/proc/PID/ns`.
    pub fn pid(&self) -> u32 {
        self.first.id()
    }

    /// Whether the host still is there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.first.try_wait(), Ok(None))
    }

    /// Kills all programs of the host and removes its interface.
    pub fn stop(self) {}
}

impl Drop for NamespaceHost {
    fn drop(&mut self) {
        end(&mut self.first);
        interface::remove(&self.inside);
        // A file without a lock is of a host that has ended.
        let _ = fs::remove_file(&self.file);
    }
}

/// The file with the process id of a host. The first process of the host holds a lock on it.
fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.namespace"))
}

fn lock(file: &Path, name: &str) -> Result<Flock<File>, HostError> {
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(false).open(file);
    let opened = opened.map_err(HostError::io(file.display()))?;
    let lock = Flock::lock(opened, FlockArg::LockExclusiveNonblock);
    let lock = lock.map_err(|_| HostError::Failed(format!("host {name} runs already")))?;
    lock.set_len(0).map_err(HostError::io(file.display()))?;
    Ok(lock)
}

/// Starts `cat` in new namespaces and in the network namespace `inside`.
#[expect(clippy::disallowed_methods, reason = "only this folder starts the programs of hosts")]
fn first_process(name: &str, inside: &Namespace, lock: &File) -> io::Result<Child> {
    let network = inside.as_fd().try_clone_to_owned()?;
    // The lock belongs to the open file, which the process keeps.
    let lock: OwnedFd = lock.try_clone()?.into();
    let name = name.replace('_', "-");
    let mut command = Command::new("cat");
    // The variable shows in `ps e` which host a process belongs to.
    command.env_clear().env("PAUSEBED_HOST", &name).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: only system calls between fork and exec. Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
    unsafe {
        command.pre_exec(move || {
            setns(&network, CloneFlags::CLONE_NEWNET)?;
            let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC;
            unshare(own)?;
            mount_own()?;
            sethostname(&name)?;
            // The kernel collects orphans for a process that ignores their ends.
            signal(Signal::SIGCHLD, SigHandler::SigIgn)?;
            setsid()?;
            fcntl(&lock, FcntlArg::F_SETFD(FdFlag::empty()))?;
            Ok(())
        })
    };
    spawn_first(command)
}

/// Mounts the views that belong to the namespaces of the calling process; mounts of others do not change.
fn mount_own() -> io::Result<()> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none)?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), flags, none)?;
    Ok(())
}
