//! The first process: mounts, modules, supervision of the parts, reaping.

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollTimeout, poll};
use nix::sys::resource::{RLIM_INFINITY, Resource, setrlimit};
use nix::sys::wait::{WaitStatus, wait};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

/// Directories of programs; applets of busybox come last.
pub const PATH: &str = "/usr/local/bin:/usr/sbin:/usr/bin:/opt/busybox";
/// Paths of modules, one a line, in the order of loading.
const MODULES: &str = "/etc/pausebed/modules";
/// The parts of this program that run as processes of their own.
const PARTS: [&str; 3] = ["serve", "verbs", "console"];
/// Time to wait for devices, in steps of [`STEP_MS`].
const STEPS: usize = 500;
const STEP_MS: u16 = 20;
/// Pause before a part starts again, in milliseconds.
const RESTART_MS: u16 = 500;

/// Waits for some milliseconds.
pub fn pause(ms: u16) {
    // An error is a signal, which shortens the wait.
    let _ = poll(&mut [], PollTimeout::from(ms));
}

/// Memory regions of verbs are locked in memory.
///
/// # Errors
/// Those of the system.
pub fn permit_locked_memory() -> io::Result<()> {
    Ok(setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY)?)
}

/// A step of the start.
type Step = fn() -> io::Result<()>;

/// Runs the machine until it is powered off.
pub fn init() -> ! {
    let steps: [(&str, Step); 5] = [
        ("mount", mounts),
        ("console", console),
        ("modules", modules),
        ("busybox", applets),
        ("scheduling", softirq_first),
    ];
    for (what, step) in steps {
        if let Err(error) = step() {
            eprintln!("guestd: {what}: {error}");
        }
    }
    wait_for(Path::new("/sys/class/net/eth0"));
    supervise();
}

fn mounts() -> io::Result<()> {
    let tables = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("devpts", "/dev/pts"),
        ("tmpfs", "/dev/shm"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("configfs", "/sys/kernel/config"),
    ];
    for (kind, place) in tables {
        // `/sys` has its folders already, others may be absent.
        let _ = fs::create_dir_all(place);
        match mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>) {
            // A module may provide the file system, and the kernel may have mounted it.
            Ok(()) | Err(Errno::ENODEV | Errno::EBUSY) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for (link, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let target = format!("/proc/self/fd{target}");
        std::os::unix::fs::symlink(target, Path::new("/dev").join(link))?;
    }
    Ok(())
}

/// Standard input and output become the console of the new `/dev`.
fn console() -> io::Result<()> {
    let console = File::options().read(true).write(true).open("/dev/console")?;
    for descriptor in 0..3 {
        // SAFETY: both are descriptors of this process, which has one thread; 0 to 2 belong to no object.
        // Test: an_image_is_built_from_packages.
        if unsafe { libc::dup2(console.as_raw_fd(), descriptor) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn modules() -> io::Result<()> {
    for path in fs::read_to_string(MODULES)?.lines() {
        let loaded = File::open(path)
            .map_err(|_| Errno::ENOENT)
            .and_then(|file| finit_module(&file, &CString::default(), ModuleInitFlags::empty()));
        // A processor may lack what a faster variant of a checksum needs.
        if let Err(error) = loaded
            && ![Errno::EEXIST, Errno::ENODEV].contains(&error)
        {
            eprintln!("guestd: {path}: {error}");
        }
    }
    // The kernel file system of targets may have come with a module.
    let config = "/sys/kernel/config";
    let _ = mount(Some("configfs"), config, Some("configfs"), MsFlags::empty(), None::<&str>);
    Ok(())
}

fn applets() -> io::Result<()> {
    fs::create_dir_all("/opt/busybox")?;
    Command::new("/usr/bin/busybox").args(["--install", "-s", "/opt/busybox"]).status()?;
    Ok(())
}

/// Gives the threads of soft interrupts real-time priority. Otherwise a program that polls its completion queue keeps
/// the only processor for a whole time slice while packets wait.
fn softirq_first() -> io::Result<()> {
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        let id = path.file_name().and_then(|id| id.to_str()?.parse::<libc::pid_t>().ok());
        if let (Some(id), true) = (id, name.starts_with("ksoftirqd/")) {
            let parameters = libc::sched_param { sched_priority: 1 };
            // SAFETY: `parameters` outlives the call, which only reads it. Test: an_image_is_built_from_packages.
            if unsafe { libc::sched_setscheduler(id, libc::SCHED_FIFO, &parameters) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Waits until `path` exists, at most ten seconds.
fn wait_for(path: &Path) {
    for _ in 0..STEPS {
        if path.exists() {
            return;
        }
        pause(STEP_MS);
    }
    eprintln!("guestd: there is no {}", path.display());
}

/// Starts each part, and starts it again when it ends. Reaps processes whose parents have ended.
fn supervise() -> ! {
    let mut running = [None; PARTS.len()];
    loop {
        for (part, id) in PARTS.iter().zip(&mut running) {
            if id.is_none() {
                match Command::new("/proc/self/exe").arg(part).env("PATH", PATH).spawn() {
                    Ok(child) => *id = Some(child.id()),
                    Err(error) => eprintln!("guestd: {part}: {error}"),
                }
            }
        }
        let ended = match wait() {
            Ok(WaitStatus::Exited(id, _) | WaitStatus::Signaled(id, ..)) => Some(id.as_raw()),
            _ => None,
        };
        let part = running.iter_mut().find(|id| id.map(|id| id as i32) == ended && id.is_some());
        if let Some(id) = part {
            *id = None;
            pause(RESTART_MS);
        } else if ended.is_none() {
            pause(RESTART_MS);
        }
    }
}
