//! Saved states: a machine with its modules loaded that waits for its identity. Machines start from it.

use super::command::{Boot, Machine, kernel_line};
use super::control::ControlLine;
use super::monitor::Monitor;
use super::qemu::{Accelerator, Qemu};
use crate::HostError;
use crate::image::{Image, hash, hash_file};
use crate::process::{self, pause};
use crate::text::escaped;
use emulation::clock::Stopwatch;
use guest::protocol::{Control, Status, VERSION};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;
use std::time::Duration;

/// Time for a cold start; a busy host takes several times longer than an idle one.
const COLD: Duration = Duration::from_secs(120);
/// Time to write a state.
const SAVE: Duration = Duration::from_secs(120);
/// Time in which the threads of the guest reach their waits.
const SETTLE: Duration = Duration::from_millis(300);

/// Octets of QEMU's messages that an error shows.
const ERRORS: u64 = 2_000;

/// States whose hashes this process has checked.
static CHECKED: Mutex<Vec<std::path::PathBuf>> = Mutex::new(Vec::new());

/// Opens the state for this amount of memory; makes it if it is absent or has changed.
pub fn find_or_save(
    qemu: &Qemu,
    image: &Image,
    accelerator: Accelerator,
    memory_mib: u32,
    progress: &mut dyn FnMut(&str),
) -> Result<File, HostError> {
    let what = |error| HostError::io("saved state")(error);
    let lock = File::create(image.folder.join("lock")).map_err(what)?;
    let lock = Flock::lock(lock, FlockArg::LockExclusive);
    let _lock = lock.map_err(|(_, error)| HostError::io("saved state")(error))?;
    let (line, accelerated) = (kernel_line(accelerator), accelerator.to_string());
    let facts = [qemu.version.as_str(), &line, &accelerated, &processor(accelerator)];
    let key = hash(facts.join("\n").as_bytes());
    let path = image.folder.join(format!("state-{memory_mib}-{}", &key[..12]));
    if !is_intact(&path) {
        progress(&format!("saving the state of a machine with {memory_mib} MiB, once"));
        let fresh = path.with_extension("new");
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&fresh)
            .map_err(what)?;
        save(qemu, image, accelerator, memory_mib, &file)?;
        let found = hash_file(&fresh).map_err(what)?;
        fs::write(path.with_extension("sha256"), found).map_err(what)?;
        fs::rename(&fresh, &path).map_err(what)?;
        remember(&path);
    }
    File::open(&path).map_err(what)
}

/// With KVM a state belongs to the processor it was made on.
fn processor(accelerator: Accelerator) -> String {
    if accelerator == Accelerator::Tcg {
        return String::new();
    }
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let facts = text.lines().take_while(|line| !line.is_empty());
    facts.filter(|line| line.starts_with("model") || line.starts_with("flags")).collect()
}

fn is_intact(path: &Path) -> bool {
    if CHECKED.lock().is_ok_and(|checked| checked.iter().any(|known| known == path))
        && path.exists()
    {
        return true;
    }
    let stated = fs::read_to_string(path.with_extension("sha256"));
    let found = hash_file(path);
    let is_same = matches!((stated, found), (Ok(stated), Ok(found)) if stated == found);
    if is_same {
        remember(path);
    }
    is_same
}

fn remember(path: &Path) {
    if let Ok(mut checked) = CHECKED.lock() {
        checked.push(path.to_owned());
    }
}

/// Whether a machine starts within `limit`.
pub fn starts(qemu: &Qemu, image: &Image, accelerator: Accelerator, limit: Duration) -> bool {
    let memory = image.memory_mib();
    memory.and_then(|memory| started(qemu, image, accelerator, memory, limit)).is_ok()
}

fn save(
    qemu: &Qemu,
    image: &Image,
    accelerator: Accelerator,
    memory_mib: u32,
    file: &File,
) -> Result<(), HostError> {
    let mut machine = started(qemu, image, accelerator, memory_mib, COLD)?;
    pause(SETTLE);
    machine.monitor.save(file.as_fd(), SAVE)
}

/// A machine that waits for its identity.
struct Started {
    child: Child,
    monitor: Monitor,
    /// Our end of its cable.
    _cable: OwnedFd,
}

impl Drop for Started {
    fn drop(&mut self) {
        process::end(&mut self.child);
    }
}

fn started(
    qemu: &Qemu,
    image: &Image,
    accelerator: Accelerator,
    memory_mib: u32,
    limit: Duration,
) -> Result<Started, HostError> {
    let failed = |error| HostError::io("sockets of a machine")(error);
    let (mut control, theirs) = ControlLine::pair()?;
    let (monitor, monitored) = Monitor::pair()?;
    let (ours, cable) =
        socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::SOCK_CLOEXEC)
            .map_err(|error| failed(error.into()))?;
    let (mut errors, written) = io::pipe().map_err(failed)?;
    let boot = Boot::Cold { cable };
    let machine = Machine { image, accelerator, memory_mib, name: "template", boot };
    let launch = machine.command(qemu, theirs, Some(monitored), written.into())?;
    let mut machine = Started { child: process::start(launch)?, monitor, _cable: ours };
    control.send(&Control::Hello)?;
    let watch = Stopwatch::start();
    while watch.seconds() < limit.as_secs_f64() {
        match control.receive(Duration::from_millis(200)) {
            Ok(Some(Status::Waiting { version: VERSION, .. })) => return Ok(machine),
            Ok(Some(other)) => {
                return Err(HostError::Failed(format!("the machine answers {other:?}")));
            }
            Ok(None) => {}
            Err(_) => {
                process::wait(&mut machine.child, Duration::from_millis(500));
                process::end(&mut machine.child);
                let mut text = Vec::new();
                // What cannot be read is left out.
                let _ = errors.by_ref().take(ERRORS).read_to_end(&mut text);
                let text = escaped(&text);
                let text = text.trim();
                return Err(HostError::Failed(format!("QEMU ended: {text}")));
            }
        }
    }
    Err(HostError::Late { what: "the start of a machine".to_owned(), limit })
}
