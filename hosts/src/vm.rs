//! Virtual machines: QEMU as this user, without a network of its own, started from a saved state.

use crate::HostError;
use crate::image::{Image, check_private};
use crate::interface;
use crate::process;
use crate::text::escaped;
use command::{Boot, Machine};
use control::ControlLine;
use emulation::clock::{Stopwatch, realtime_ns};
use guest::protocol::{Control, EXEC_PORTS, Identity, Octets, Status};
use std::fs::{self, File};
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

mod accelerator;
mod command;
mod control;
mod monitor;
mod qemu;
mod state;
mod ticks;

pub use qemu::{Accelerator, Qemu};

/// Longest path of a Unix socket in octets (unix(7), `sun_path` without its end).
const SOCKET_PATH: usize = 107;
/// Range of memory in MiB.
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 128..=65_536;
/// Time for a machine to power off, after which QEMU is killed.
const STOP: Duration = Duration::from_secs(2);
/// Octets of random numbers that a machine gets.
const SEED: usize = 64;
/// Octets of a log that an error shows.
const LOG_TAIL: usize = 1_500;

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmSpec {
    /// Letters, digits, `-` and `_`, at most 32; it names the host and its files.
    pub name: String,
    /// MAC address of its interface.
    pub mac: [u8; 6],
    /// Addresses of its interface with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU of its interface in octets, 68 to 9500.
    pub mtu: u32,
    /// Memory in MiB, 128 to 65536.
    pub memory_mib: u32,
    /// The machine's end of the Unix datagram cable.
    pub local: PathBuf,
    /// The other end of the cable.
    pub remote: PathBuf,
    /// Folder of the run with mode 0700, for `NAME.exec0` to `7`, `NAME.verbs`, `NAME.console` and the logs
    /// `NAME.console.log` and `NAME.qemu.log`.
    pub folder: PathBuf,
}

impl VmSpec {
    fn check(&self) -> Result<(), HostError> {
        let bad = |why: String| Err(HostError::Invalid(format!("host {:?}: {why}", self.name)));
        interface::check(&self.name, self.mac, self.mtu, &self.addresses)?;
        if !MEMORY_MIB.contains(&self.memory_mib) {
            return bad(format!("{} MiB of memory are outside {MEMORY_MIB:?}", self.memory_mib));
        }
        check_private(&self.folder)?;
        let verbs = socket(&self.folder, &self.name, "console");
        for path in [&self.local, &self.remote, &verbs] {
            if path.as_os_str().len() > SOCKET_PATH {
                return bad(format!("{} has more than {SOCKET_PATH} octets", path.display()));
            }
        }
        Ok(())
    }
}

/// A file of a machine in the folder of its run.
pub(crate) fn socket(folder: &Path, name: &str, part: &str) -> PathBuf {
    folder.join(format!("{name}.{part}"))
}

/// A running machine. QEMU ends with this process, and when this value is dropped.
#[derive(Debug)]
pub struct Vm {
    name: String,
    child: Child,
    control: ControlLine,
    leftovers: Vec<PathBuf>,
    logs: [PathBuf; 2],
}

impl Vm {
    /// Starts a machine and sends its identity. The machine is not ready yet. Without a saved state for this amount
    /// of memory one is made first, which takes as long as two cold starts.
    ///
    /// # Errors
    /// If the specification is not valid, or QEMU is missing or cannot be started.
    pub fn start(image: &Image, spec: &VmSpec) -> Result<Vm, HostError> {
        spec.check()?;
        let qemu = Qemu::find()?;
        let accelerator = accelerator::of(&qemu, image)?;
        let state = state::find_or_save(&qemu, image, accelerator, spec.memory_mib, &mut |_| {})?;
        let file = |part: &str| socket(&spec.folder, &spec.name, part);
        let mut leftovers: Vec<PathBuf> =
            (0..EXEC_PORTS).map(|port| file(&format!("exec{port}"))).collect();
        leftovers.extend([file("verbs"), file("console"), spec.local.clone()]);
        let (control, theirs) = ControlLine::pair()?;
        let machine = Machine {
            image,
            accelerator,
            memory_mib: spec.memory_mib,
            name: &spec.name,
            boot: Boot::Restored {
                state,
                folder: &spec.folder,
                local: &spec.local,
                remote: &spec.remote,
            },
        };
        let log = file("qemu.log");
        let errors = File::create(&log).map_err(HostError::io(log.display()))?;
        let child = process::start(machine.command(&qemu, theirs, None, errors.into())?)?;
        let logs = [log, file("console.log")];
        let mut vm = Vm { name: spec.name.clone(), child, control, leftovers, logs };
        vm.control.send(&Control::Identity(identity(spec)?))?;
        Ok(vm)
    }

    /// Waits at most `limit` for the machine to have its identity and to execute commands. Returns whether it does.
    ///
    /// # Errors
    /// If it cannot set its identity, or ends; with the end of its logs.
    pub fn is_ready(&mut self, limit: Duration) -> Result<bool, HostError> {
        match self.control.receive(limit) {
            Ok(Some(Status::Ready)) => Ok(true),
            Ok(Some(Status::Failed(why))) => {
                Err(HostError::Failed(format!("host {}: {why}", self.name)))
            }
            Ok(Some(Status::Waiting { .. }) | None) => Ok(false),
            Err(_) => {
                let why = self.obituary();
                Err(HostError::Failed(format!("host {}: {why}", self.name)))
            }
        }
    }

    /// Waits until the machine has its identity and executes commands.
    ///
    /// # Errors
    /// As [`Vm::is_ready`], or the limit passes.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<(), HostError> {
        let watch = Stopwatch::start();
        while !self.is_ready(Duration::from_millis(100))? {
            if watch.seconds() > limit.as_secs_f64() {
                let what = format!("the start of host {}", self.name);
                return Err(HostError::Late { what, limit });
            }
        }
        Ok(())
    }

    /// Process id of QEMU.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether QEMU still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks the machine to power itself off, which takes a moment.
    pub fn power_off(&mut self) {
        // An error means that it has ended.
        let _ = self.control.send(&Control::PowerOff);
    }

    /// Powers the machine off; after two seconds QEMU is killed.
    pub fn stop(mut self) {
        self.power_off();
        process::wait(&mut self.child, STOP);
    }

    /// Why the machine has ended, with the end of its logs.
    pub fn obituary(&mut self) -> String {
        process::wait(&mut self.child, Duration::from_millis(500));
        let how = match self.child.try_wait() {
            Ok(Some(status)) => format!("QEMU ended: {status}"),
            _ => "QEMU closed its control line".to_owned(),
        };
        let tails = self.logs.iter().map(|log| {
            let text = fs::read(log).unwrap_or_default();
            escaped(&text[text.len().saturating_sub(LOG_TAIL)..])
        });
        let tails =
            tails.filter(|text| !text.trim().is_empty()).map(|text| format!("\n{}", text.trim()));
        format!("{how}{}", tails.collect::<String>())
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        process::end(&mut self.child);
        for path in &self.leftovers {
            // QEMU removes its sockets when it ends by itself.
            let _ = fs::remove_file(path);
        }
    }
}

/// Finds the accelerator for an image, and saves the state of a started machine with this amount of memory, unless both
/// are cached. `progress` gets a line before a state is saved, which takes as long as a cold start.
///
/// # Errors
/// If QEMU is missing, the image needs more memory, or a machine does not start.
pub fn prepare(
    image: &Image,
    memory_mib: u32,
    progress: &mut dyn FnMut(&str),
) -> Result<Accelerator, HostError> {
    let least = image.memory_mib()?;
    if memory_mib < least {
        let text = format!("the image needs more memory: memory = \"{least} MiB\"");
        return Err(HostError::Invalid(text));
    }
    let qemu = Qemu::find()?;
    let accelerator = accelerator::of(&qemu, image)?;
    state::find_or_save(&qemu, image, accelerator, memory_mib, progress)?;
    Ok(accelerator)
}

fn identity(spec: &VmSpec) -> Result<Identity, HostError> {
    let mut seed = vec![0; SEED];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut seed));
    read.map_err(HostError::io("/dev/urandom"))?;
    Ok(Identity {
        name: spec.name.replace('_', "-"),
        mac: spec.mac,
        addresses: spec.addresses.clone(),
        mtu: spec.mtu,
        time_ns: realtime_ns(),
        seed: Octets(seed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(folder: &Path) -> VmSpec {
        VmSpec {
            name: "v1".to_owned(),
            mac: [2, 0, 0, 0, 0, 1],
            addresses: vec![("198.18.0.1".parse().unwrap(), 16)],
            mtu: 1500,
            memory_mib: 192,
            local: folder.join("a"),
            remote: folder.join("b"),
            folder: folder.to_owned(),
        }
    }

    #[test]
    fn improper_machines_are_refused() {
        let folder = crate::image::temporary_folder(None).unwrap();
        let good = spec(folder.path());
        assert!(good.check().is_ok());
        let change = |change: fn(&mut VmSpec)| {
            let mut spec = good.clone();
            change(&mut spec);
            assert!(spec.check().is_err(), "{spec:?}");
        };
        for name in ["", "a,b", "a/b", "..", "-a", "a b", "a\nb", &"a".repeat(33)] {
            assert!(VmSpec { name: name.to_owned(), ..good.clone() }.check().is_err(), "{name}");
        }
        change(|spec| spec.mac[0] = 1);
        change(|spec| spec.mtu = 67);
        change(|spec| spec.memory_mib = 64);
        change(|spec| spec.addresses[0].1 = 33);
        change(|spec| spec.local = PathBuf::from("x".repeat(108)));
        change(|spec| spec.folder = PathBuf::from("/"));
    }
}
