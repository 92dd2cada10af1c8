//! Starts a device under test, or finds it, and ends what was started.

use super::agent::Agent;
use super::change::Target;
use super::file::{DutFile, DutKind, Reach};
use super::line::{Line, Socket};
use emulation::cable::interface::{PairEnd, address_of};
use emulation::cable::namespace::Namespace;
use emulation::cable::packet_socket::PacketSocket;
use emulation::cable::peer_socket::PeerSocket;
use emulation::cable::shim::SendingEnd;
use emulation::wiring::SocketPair;
use host::image::Image;
use host::vm::{Vm, VmSpec};
use launch::lab::folder::LabStore;
use launch::lab::{LabRecord, lifecycle};
use launch::owner::ProcessIdentity;
use launch::{scratch, with_sources};
use proto::wire::ethernet::MacAddress;
use scenario::render::render;
use std::fmt::Display;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The name of the lab, and of the machine.
const NAME: &str = "dut";
/// Time for a machine to start on a busy host.
const START: Duration = Duration::from_secs(120);
/// The MTU of the tester's ends of veth pairs: longer frames than the device takes can be sent.
const TESTER_MTU: u32 = 16_000;
/// The MAC address of a machine that is a switch.
const MACHINE: MacAddress = MacAddress::from_number(0x0200_0000_00c8);
/// The name of the bridge in its namespace.
const BRIDGE: &str = "br0";

/// What has been started for a device.
#[derive(Debug)]
enum Holder {
    Lab {
        labs: LabStore,
        record: Box<LabRecord>,
    },
    /// Bridge and tester each in a namespace of its own, which the kernel removes with this process.
    Bridge {
        _namespaces: Vec<Namespace>,
    },
    Vm(Option<Vm>),
    Nothing,
}

/// A device under test.
#[derive(Debug)]
pub struct Device {
    /// Frames in and out of it.
    pub line: Line,
    /// The agent of a NIC.
    pub agent: Option<Agent>,
    /// What was found about it, for the statement.
    pub build: String,
    holder: Holder,
    folder: TempDir,
}

impl Device {
    /// Starts or finds the device. `report` gets a line about each step.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub fn start(file: &DutFile, report: &mut dyn FnMut(&str)) -> Result<Device, String> {
        scratch::remove_leftovers();
        let scratch = scratch::make().map_err(said("cannot make a folder"))?;
        let place = scratch.path();
        let (sockets, holder, build) = match file.device.reach {
            Reach::Lab => start_lab(file, place, report)?,
            Reach::Bridge => make_bridge(file)?,
            Reach::Vm => start_vm(file, place)?,
            Reach::Interfaces => {
                let open = |name: &String| open_interface(name);
                let sockets = file.device.ports.iter().map(open).collect::<Result<_, _>>()?;
                (sockets, Holder::Nothing, "found at interfaces of this host".to_owned())
            }
            Reach::Sockets => {
                let open = |pair: &String| open_pair(pair);
                let sockets = file.device.ports.iter().map(open).collect::<Result<_, _>>()?;
                (sockets, Holder::Nothing, "found at sockets".to_owned())
            }
        };
        let limit = file.tolerance.case;
        let line = match (file.dut.kind, file.device.reach, sockets) {
            (DutKind::Switch, Reach::Vm, mut sockets) => {
                Line::trunk(sockets.swap_remove(0), file.device.ports.len() as u8, limit)
            }
            (_, _, sockets) => Line::new(sockets, limit),
        };
        let mut device = Device { line, agent: None, build, holder, folder: scratch };
        if file.dut.kind == DutKind::Nic {
            device.agent = Some(device.find_agent(file)?);
        }
        Ok(device)
    }

    fn find_agent(&self, file: &DutFile) -> Result<Agent, String> {
        if let Holder::Vm(_) = &self.holder {
            return Agent::at(&self.folder.path().join(format!("{NAME}.verbs")));
        }
        let address = file.device.agent.as_deref().unwrap_or_default();
        match (address.strip_prefix("node:"), address.strip_prefix("unix:"), &self.holder) {
            (Some(node), _, Holder::Lab { record, .. }) => Agent::of_node((**record).clone(), node),
            (_, Some(path), _) => Agent::at(Path::new(path)),
            _ => Err(format!("{address:?} is not an agent: node:NAME with a lab, or unix:PATH")),
        }
    }

    /// What the device is, with its agent.
    pub fn described(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{}; agent {}", self.build, agent.name),
            None => self.build.clone(),
        }
    }

    /// Where hooks run, if it was started.
    pub fn target(&self) -> Target {
        match &self.holder {
            Holder::Vm(_) => Target::Machine(self.folder.path().to_owned(), NAME.to_owned()),
            Holder::Lab { record, .. } => Target::Lab(record.clone()),
            Holder::Bridge { .. } | Holder::Nothing => Target::None,
        }
    }

    /// Whether what was started still runs.
    ///
    /// # Errors
    /// Why it has ended.
    pub fn is_alive(&mut self) -> Result<(), String> {
        match &mut self.holder {
            Holder::Lab { record, .. } => {
                let dead = |daemon: &&launch::lab::folder::DaemonRecord| {
                    ProcessIdentity::of(daemon.pid).is_none()
                };
                match record.daemons.iter().find(dead) {
                    Some(daemon) => Err(format!("its process {} has ended", daemon.pid)),
                    None => Ok(()),
                }
            }
            Holder::Vm(Some(vm)) => match vm.is_alive() {
                true => Ok(()),
                false => Err(vm.obituary()),
            },
            Holder::Vm(None) | Holder::Bridge { .. } | Holder::Nothing => Ok(()),
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        match &mut self.holder {
            Holder::Lab { labs, record } => {
                // The next lab of this user's removes what stays.
                let _ = lifecycle::end(labs, record);
            }
            Holder::Vm(vm) => vm.take().into_iter().for_each(Vm::stop),
            Holder::Bridge { .. } | Holder::Nothing => {}
        }
    }
}

type Started = Result<(Vec<Socket>, Holder, String), String>;

fn said<E: Display>(what: impl Display) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

fn open_interface(name: &str) -> Result<Socket, String> {
    let socket = PacketSocket::open(name).map_err(|error| with_sources(&error))?;
    Ok(Socket::Interface(Box::new(socket)))
}

fn open_pair(text: &str) -> Result<Socket, String> {
    let (local, remote) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not a pair LOCAL=REMOTE of paths"))?;
    peer(PathBuf::from(local), PathBuf::from(remote))
}

fn peer(local: PathBuf, remote: PathBuf) -> Result<Socket, String> {
    let shown = local.display().to_string();
    let socket = PeerSocket::open(&SocketPair::Unix { local, remote }, false);
    socket.map(|socket| Socket::Peer(Box::new(socket))).map_err(said(shown))
}

/// A lab of its own store, which ends with this process.
fn start_lab(file: &DutFile, folder: &Path, report: &mut dyn FnMut(&str)) -> Started {
    let scenario = file.folder.join(file.device.file.as_deref().unwrap_or_default());
    let parsed = scenario::files::load(&scenario, &[])?.scenario;
    let record = LabRecord::starting(NAME, &parsed, &render(&parsed), Vec::new(), 1);
    let record = record.map_err(|error| with_sources(&error))?;
    let record = LabRecord { is_tied: true, ..record };
    let labs = LabStore::open(Some(&folder.join("labs"))).map_err(said("no folder for a lab"))?;
    let place = labs.create(&record, &parsed.text).map_err(|error| with_sources(&error))?;
    let report = std::cell::RefCell::new(report);
    let started = lifecycle::start(&place, |line| (report.borrow_mut())(line));
    let record = LabRecord::read(&place).map_err(said("the journal of the lab"))?;
    if let Err(error) = started {
        let _ = lifecycle::end(&labs, &record);
        return Err(with_sources(&error));
    }
    let holder = Holder::Lab { labs, record: Box::new(record) };
    let run = place.join("run");
    let open =
        |name: &String| peer(run.join(format!("{name}.peer")), run.join(format!("{name}.lab")));
    let sockets = file.device.ports.iter().map(open).collect::<Result<_, _>>()?;
    Ok((sockets, holder, format!("pausebed {}", env!("CARGO_PKG_VERSION"))))
}

/// A bridge in one namespace, and the tester's ends of its veth pairs in another.
fn make_bridge(file: &DutFile) -> Started {
    let hint = "making network namespaces takes CAP_SYS_ADMIN: run it as root";
    let made = Namespace::make(2).map_err(|error| format!("{error}; {hint}"))?;
    let [device, tester] = &made[..] else { return Err("no namespaces".to_owned()) };
    let failed = |what: &str| said(format!("the bridge: {what}"));
    device.interfaces.make_bridge(BRIDGE).map_err(failed("cannot be made"))?;
    let mtu = file.device.mtu.get() as u32;
    for (number, name) in (0..).zip(&file.device.ports) {
        let end = |namespace, end| PairEnd { name, address: address_of(number, end), namespace };
        let near = end(tester.as_fd(), SendingEnd::A);
        let far = end(device.as_fd(), SendingEnd::B);
        tester.interfaces.make_pair(near, far, TESTER_MTU).map_err(failed(name))?;
        device.interfaces.set_mtu(name, mtu).map_err(failed(name))?;
        device
            .enter(|| {
                nix_index(BRIDGE).and_then(|bridge| device.interfaces.set_controller(name, bridge))
            })
            .map_err(failed(name))?;
        tester.interfaces.switch_on(name, "the tester's end").map_err(failed(name))?;
        device
            .interfaces
            .switch_on(name, "a port of the device under test")
            .map_err(failed(name))?;
    }
    if let Some(ageing) = file.tolerance.ageing {
        device
            .interfaces
            .set_ageing(BRIDGE, ageing.as_ps() / 10_000_000_000)
            .map_err(failed("ageing"))?;
    }
    device.interfaces.switch_on(BRIDGE, "a device under test").map_err(failed("on"))?;
    let open = |name: &String| {
        let socket = tester.enter(|| PacketSocket::open(name)).map_err(failed(name))?;
        Ok(Socket::Interface(Box::new(socket)))
    };
    let sockets = file.device.ports.iter().map(open).collect::<Result<_, String>>()?;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let build = format!("Linux {}", release.trim());
    Ok((sockets, Holder::Bridge { _namespaces: made }, build))
}

fn nix_index(name: &str) -> std::io::Result<u32> {
    Ok(nix::net::if_::if_nametoindex(name)?)
}

fn start_vm(file: &DutFile, folder: &Path) -> Started {
    let image = Image::find(file.device.kernel.as_deref()).map_err(|error| with_sources(&error))?;
    let is_switch = file.dut.kind == DutKind::Switch;
    let (mac, addresses) = match file.station {
        Some((mac, address)) => (mac, vec![(address.into(), 16)]),
        None => (MACHINE, Vec::new()),
    };
    // Tags of ports and of cases, and frames that are too long for the ports.
    let tags = if is_switch { 300 } else { 0 };
    let (local, remote) = (folder.join("port.vm"), folder.join("port.tester"));
    let spec = VmSpec {
        name: NAME.to_owned(),
        mac: mac.octets(),
        addresses,
        mtu: file.device.mtu.get() as u32 + tags,
        memory_mib: image.memory_mib().map_err(|error| with_sources(&error))?,
        local: local.clone(),
        remote: remote.clone(),
        folder: folder.to_owned(),
    };
    let socket = peer(remote, local)?;
    let mut vm = Vm::start(&image, &spec).map_err(|error| with_sources(&error))?;
    vm.wait_ready(START).map_err(|error| with_sources(&error))?;
    let (kernel, count) = (&image.manifest.kernel, file.device.ports.len());
    let build = match is_switch {
        true => {
            format!("Linux {kernel} in a virtual machine, {count} ports as S-tags on one cable")
        }
        false => format!("soft-RoCE of Linux {kernel} in a virtual machine"),
    };
    Ok((vec![socket], Holder::Vm(Some(vm)), build))
}
