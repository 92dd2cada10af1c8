//! The command line of QEMU. Paths and names are never part of an option without being escaped.

use super::qemu::{Accelerator, Qemu};
use super::ticks;
use crate::HostError;
use crate::image::{INITRAMFS, Image, KERNEL};
use crate::process::Launch;
use guest::protocol::{CONTROL_PORT, EXEC_PORT, EXEC_PORTS, VERBS_PORT};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Stdio;

/// For a short start without surprises: no probing of absent hardware, no tests of algorithms, a stable clock. The
/// initial file system is unpacked into one without a limit.
const KERNEL_LINE: &str = "console=ttyS0 quiet loglevel=4 panic=-1 reboot=t tsc=reliable no_timer_check \
    random.trust_cpu=on mitigations=off cryptomgr.notests lsm=capability apparmor=0 audit=0 i8042.noaux i8042.nokbd \
    initcall_blacklist=crypto_kdf108_init,init_kprobe_trace rootfstype=ramfs";
/// Frames have complete checksums and are no longer than the MTU.
const NO_OFFLOADS: &str = "csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,\
    host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off";
/// MiB of translated code that TCG keeps for a machine.
const TRANSLATED_MIB: u32 = 64;

/// What a machine starts from.
#[derive(Debug)]
pub enum Boot<'a> {
    /// The kernel; the machine has a monitor, and its cable and ports lead nowhere.
    Cold {
        /// The machine's end of the cable.
        cable: OwnedFd,
    },
    /// A saved state.
    Restored {
        /// The open file.
        state: File,
        /// Where its sockets and logs are.
        folder: &'a Path,
        /// The machine's end of the cable.
        local: &'a Path,
        /// The other end.
        remote: &'a Path,
    },
}

/// A machine to be started. Machines that share a saved state have the same devices.
#[derive(Debug)]
pub struct Machine<'a> {
    /// Kernel and initial file system.
    pub image: &'a Image,
    /// How QEMU executes the machine.
    pub accelerator: Accelerator,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// A checked name.
    pub name: &'a str,
    /// What it starts from.
    pub boot: Boot<'a>,
}

impl Machine<'_> {
    /// The command. QEMU gets the descriptors of its control line and of its monitor.
    pub fn command(
        self,
        qemu: &Qemu,
        control: OwnedFd,
        monitor: Option<OwnedFd>,
        errors: OwnedFd,
    ) -> Result<Launch, HostError> {
        let mut command = qemu.command();
        command.args(self.fixed()).args(self.network());
        command.arg("-chardev").arg(format!("socket,id=control,fd={}", control.as_raw_fd()));
        let mut inherited = vec![control];
        if let Some(monitor) = monitor {
            command.arg("-chardev").arg(format!("socket,id=monitor,fd={}", monitor.as_raw_fd()));
            command.args(["-mon", "chardev=monitor,mode=control"]);
            inherited.push(monitor);
        }
        command.args(self.streams());
        let limits_files = matches!(self.boot, Boot::Restored { .. });
        match self.boot {
            Boot::Restored { state, .. } => {
                let state = OwnedFd::from(state);
                command.arg("-incoming").arg(format!("fd:{}", state.as_raw_fd()));
                inherited.push(state);
            }
            Boot::Cold { cable } => inherited.push(cable),
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).current_dir("/");
        Ok(Launch { command, inherited, limits_files })
    }

    /// What is the same for the machine that saves its state and for those that start from it.
    fn fixed(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: OsString| line.extend([option.into(), value]);
        add("-name", self.name.into());
        add(
            "-sandbox",
            "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny".into(),
        );
        add("-machine", "pc,hpet=off,smbus=off,usb=off,vmport=off".into());
        add(
            "-accel",
            match self.accelerator {
                Accelerator::Kvm => "kvm".into(),
                Accelerator::Tcg => format!("tcg,tb-size={TRANSLATED_MIB}").into(),
            },
        );
        add(
            "-cpu",
            match self.accelerator {
                Accelerator::Kvm => "host".into(),
                Accelerator::Tcg => "Nehalem-v1".into(),
            },
        );
        add("-smp", "1".into());
        add("-m", self.memory_mib.to_string().into());
        add("-vga", "none".into());
        add("-display", "none".into());
        add("-kernel", self.image.folder.join(KERNEL).into());
        add("-initrd", self.image.folder.join(INITRAMFS).into());
        add("-append", kernel_line(self.accelerator).into());
        line.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(OsString::from));
        line
    }

    fn network(&self) -> [OsString; 4] {
        let mut dgram = OsString::from("dgram,id=net");
        match &self.boot {
            Boot::Cold { cable } => {
                dgram.push(format!(",local.type=fd,local.str={}", cable.as_raw_fd()));
            }
            Boot::Restored { local, remote, .. } => {
                for (end, path) in [("local", local), ("remote", remote)] {
                    dgram.push(format!(",{end}.type=unix,{end}.path="));
                    dgram.push(value(path.as_os_str()));
                }
            }
        }
        // The guest sets its own MAC address when it gets its identity.
        let device = format!(
            "virtio-net-pci,netdev=net,mac=02:00:00:00:00:00,romfile=,host_mtu=9500,guest_announce=off,ctrl_vlan=off,\
             {NO_OFFLOADS}"
        );
        ["-netdev".into(), dgram, "-device".into(), device.into()]
    }

    /// The serial line and the virtio-serial ports.
    fn streams(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> =
            vec!["-chardev".into(), self.stream("console", "console", true)];
        let mut add = |words: &[&str]| line.extend(words.iter().map(OsString::from));
        add(&["-serial", "chardev:console", "-device", "virtio-serial-pci,max_ports=16"]);
        let mut port = |number: usize, id: &str, name: &str| {
            let device = format!("virtserialport,nr={number},chardev={id},name={name}");
            add(&["-device", &device]);
        };
        port(1, "control", CONTROL_PORT);
        port(2, "verbs", VERBS_PORT);
        for number in 0..EXEC_PORTS {
            port(3 + number, &format!("exec{number}"), &format!("{EXEC_PORT}{number}"));
        }
        let mut chardevs: Vec<OsString> = Vec::new();
        let names =
            (0..EXEC_PORTS).map(|number| format!("exec{number}")).chain(["verbs".to_owned()]);
        for name in names {
            chardevs.extend(["-chardev".into(), self.stream(&name, &name, false)]);
        }
        chardevs.extend(line);
        chardevs
    }

    /// A character device: a socket that clients connect to, or nothing while the state is made.
    fn stream(&self, id: &str, part: &str, is_logged: bool) -> OsString {
        let Boot::Restored { folder, .. } = &self.boot else {
            return format!("null,id={id}").into();
        };
        let mut text = OsString::from(format!("socket,id={id},server=on,wait=off,path="));
        text.push(value(super::socket(folder, self.name, part).as_os_str()));
        if is_logged {
            text.push(",logappend=off,logfile=");
            text.push(value(super::socket(folder, self.name, &format!("{part}.log")).as_os_str()));
        }
        text
    }
}

/// The command line of the kernel.
pub fn kernel_line(accelerator: Accelerator) -> String {
    match ticks::khz().filter(|_| accelerator == Accelerator::Tcg) {
        Some(khz) => format!("{KERNEL_LINE} tsc_early_khz={khz}"),
        None => KERNEL_LINE.to_owned(),
    }
}

/// A value of an option of QEMU: a comma would begin the next option, and is doubled.
fn value(text: &OsStr) -> OsString {
    let doubled = text.as_bytes().iter().flat_map(|octet| {
        let times = if *octet == b',' { 2 } else { 1 };
        std::iter::repeat_n(*octet, times)
    });
    OsString::from_vec(doubled.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_comma_in_a_path_begins_no_option() {
        assert_eq!(value(OsStr::new("/a,id=x,,b")), OsStr::new("/a,,id=x,,,,b"));
        let folder = tempfile::Builder::new().prefix("a,fd=3").tempdir().unwrap();
        for name in [KERNEL, INITRAMFS] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let packages = Vec::new();
        Image::describe(folder.path(), "6.1".into(), String::new(), packages).unwrap();
        let image = Image::open(folder.path().into()).unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let machine = Machine {
            image: &image,
            accelerator: Accelerator::Tcg,
            memory_mib: 192,
            name: "v1",
            boot: Boot::Restored {
                state: File::open("/dev/null").unwrap(),
                folder: folder.path(),
                local: Path::new("/run/x,ctrl=on"),
                remote: Path::new("/run/y"),
            },
        };
        let qemu = Qemu { version: String::new() };
        let launch = machine
            .command(&qemu, theirs.into(), None, File::open("/dev/null").unwrap().into())
            .unwrap();
        let words: Vec<String> =
            launch.command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let network = words.iter().find(|word| word.starts_with("dgram,")).unwrap();
        assert_eq!(
            network,
            "dgram,id=net,local.type=unix,local.path=/run/x,,ctrl=on,remote.type=unix,remote.path=/run/y"
        );
        let console = words.iter().find(|word| word.starts_with("socket,id=console,")).unwrap();
        assert_eq!(console.matches("a,,fd=3").count(), 2, "{console}");
        assert_eq!(words.iter().filter(|word| word.starts_with("virtserialport,")).count(), 10);
        assert!(words.iter().any(|word| word.starts_with("on,") && word.contains("spawn=deny")));
        assert!(launch.limits_files);
        drop(ours);
    }
}
