//! The configuration of a daemon: one TOML file a process.

use crate::error::{BoxedError, Context, DaemonError};
use crate::token::Token;
use capture::part::Part;
use capture::{Capture, CapturePlan};
use emulation::cable::Carrier;
use emulation::cable::datagram::DATAGRAM_LIMIT;
use emulation::cable::exchange::DATAGRAM_MAX;
use emulation::cable::lines::Lines;
use emulation::recorder::{Recorder, RecordingPlan};
use emulation::wiring::{End, NodeKind, SocketPair, Wiring};
use proto::device::Device;
use proto::technology::Technology;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// An interface of this host that is the end of a port's cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortInterface {
    /// The port.
    pub at: End,
    /// File of the interface's network namespace; that of the process if `None`.
    pub namespace: Option<PathBuf>,
    /// The interface's name there.
    pub name: String,
}

/// Where a daemon accepts administration requests while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdminConfig {
    /// Path of the Unix socket to listen at.
    pub socket: Option<PathBuf>,
    /// Access by TCP; none if `None`.
    pub tcp: Option<TcpConfig>,
}

/// Administration by TCP, at the address where UDP sockets are bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpConfig {
    /// The port; the kernel chooses one if this is 0.
    #[serde(default)]
    pub port: u16,
    /// The name by which clients call this host, in addition to its address.
    pub name: Option<String>,
    /// The token that clients must show.
    pub token: Token,
}

/// Where programs that manage the fabric find a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientsConfig {
    /// What the abstract names of its sockets begin with: IBSIM_SOCKNAME of clients.
    pub socket: String,
    /// Wall time in milliseconds after which a request on VL15 without an answer is sent again; it is sent three times.
    pub retry_ms: u64,
    /// The same of a request on QP1, which waits for credits as data do.
    pub general_retry_ms: u64,
}

/// One daemon process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonConfig {
    /// The lab's name, for log lines and captures.
    pub lab: String,
    /// The number of this process.
    pub process: usize,
    /// How many processes there are.
    pub processes: usize,
    /// The scenario's seed.
    pub seed: u64,
    /// The technology of the fabric, which decides how lanes are called.
    pub technology: Technology,
    /// By node: the number of its process.
    pub hosts: Vec<usize>,
    /// The sockets that carry frames between processes.
    #[serde(default)]
    pub carrier: Carrier,
    /// Join devices of one process by memory instead of the socket.
    #[serde(default)]
    pub local: bool,
    /// Address at which UDP sockets are bound; the kernel chooses the port.
    #[serde(default = "loopback")]
    pub bind: IpAddr,
    /// Directory for Unix sockets.
    pub socket_dir: Option<PathBuf>,
    /// With packet sockets: the interface of each of this process's ports that has a cable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<PortInterface>,
    /// With packet sockets: send Ethernet frames without shim.
    #[serde(default)]
    pub bare: bool,
    /// Advance as far as the neighbours have promised, and not by the wall clock ([`emulation::exact`]).
    #[serde(default)]
    pub exact: bool,
    /// Octets of the largest datagram; must be below the path's MTU where fragments would hurt.
    #[serde(default = "datagram_max")]
    pub datagram_max: usize,
    /// Octets of receive buffer to request; the host's maximum if `None`.
    pub receive_buffer: Option<usize>,
    /// Request SCHED_FIFO for the data plane.
    #[serde(default)]
    pub realtime: bool,
    /// The ports to capture; those of other processes are ignored.
    pub capture: Option<CapturePlan>,
    /// A capture whose frames are fed to this process's ports, see [`crate::feed`].
    pub feed: Option<PathBuf>,
    /// Where to accept administration requests, see [`crate::admin`].
    pub admin: Option<AdminConfig>,
    /// Where programs that manage the fabric find this process, see [`crate::clients`].
    pub clients: Option<ClientsConfig>,
    /// When to stop and what to record.
    pub plan: RecordingPlan,
    /// The whole fabric.
    pub wiring: Wiring,
    /// This process's devices, in the order of their nodes.
    pub devices: Vec<toml::Table>,
}

const fn loopback() -> IpAddr {
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

const fn datagram_max() -> usize {
    DATAGRAM_MAX
}

/// Makes a device from an entry of `devices`.
pub(crate) type Make<'a> = &'a dyn Fn(toml::Table) -> Result<Box<dyn Device>, BoxedError>;

impl DaemonConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// If it cannot be read or parsed, or contradicts itself.
    pub fn load(file: &str) -> Result<DaemonConfig, DaemonError> {
        let text = std::fs::read_to_string(file).context("cannot read it")?;
        DaemonConfig::parse(&text)
    }

    /// Parses and checks the text of a configuration.
    ///
    /// # Errors
    /// If it cannot be parsed or contradicts itself.
    pub fn parse(text: &str) -> Result<DaemonConfig, DaemonError> {
        let config: DaemonConfig =
            toml::from_str(text).context("the configuration cannot be parsed")?;
        config.check()?;
        Ok(config)
    }

    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), DaemonError> {
        let own: Vec<usize> = self.own_nodes().collect();
        let beyond = self.hosts.iter().find(|host| **host >= self.processes);
        let has_interface = self.wiring.attached.iter().any(|attached| attached.socket.is_none());
        let foreign = self.interfaces.iter().find(|face| !own.contains(&face.at.node));
        let wrong = if self.process >= self.processes {
            format!("process {} of {}", self.process, self.processes)
        } else if let Some(beyond) = beyond {
            format!("hosts names process {beyond} of {}", self.processes)
        } else if own.len() != self.devices.len() {
            let (own, given) = (own.len(), self.devices.len());
            format!("hosts gives this process {own} nodes, devices has {given}")
        } else if self.datagram_max > DATAGRAM_LIMIT {
            format!("datagram_max is above {DATAGRAM_LIMIT}")
        } else if self.carrier == Carrier::Unix && self.socket_dir.is_none() {
            "carrier \"unix\" needs socket_dir".to_owned()
        } else if self.exact && !self.wiring.attached.is_empty() {
            "exact pace and attached ports exclude each other".to_owned()
        } else if self.exact && self.clients.is_some() {
            "exact pace and programs that manage the fabric exclude each other".to_owned()
        } else if self.carrier != Carrier::Packet && has_interface {
            "interfaces can be attached with carrier \"packet\" only".to_owned()
        } else if let Some(face) = foreign {
            format!("interface {} is at a port of another process", face.name)
        } else {
            return self.lines().map(|_| ());
        };
        Err(DaemonError::Fault(wrong))
    }

    /// Refuses what names a file or an interface of this host, for a configuration that came by the network.
    ///
    /// # Errors
    /// The first such key.
    pub(crate) fn refuse_local(&self) -> Result<(), DaemonError> {
        let keys = [
            ("capture", self.capture.is_some()),
            ("feed", self.feed.is_some()),
            ("socket_dir", self.socket_dir.is_some()),
            ("interfaces", !self.interfaces.is_empty()),
            ("wiring.attached", !self.wiring.attached.is_empty()),
            ("admin", self.admin.is_some()),
            ("clients", self.clients.is_some()),
            ("carrier", self.carrier != Carrier::Udp),
        ];
        let Some((key, _)) = keys.into_iter().find(|(_, is_there)| *is_there) else {
            return Ok(());
        };
        let reason = format!("the launcher may not set {key} of a daemon that joins");
        Err(DaemonError::Fault(reason))
    }

    /// The nodes of this process, ascending. A device's index is its place here.
    pub(crate) fn own_nodes(&self) -> impl Iterator<Item = usize> + '_ {
        let own = |(node, host): (usize, &usize)| (*host == self.process).then_some(node);
        self.hosts.iter().enumerate().filter_map(own)
    }

    /// This process's ends of the cables.
    ///
    /// # Errors
    /// If the wiring contradicts itself.
    pub fn lines(&self) -> Result<Lines, DaemonError> {
        Ok(Lines::new(&self.wiring, &self.hosts, self.process, self.local)?)
    }

    /// Makes the devices, each of which must be of `kind`.
    ///
    /// # Errors
    /// The first device that cannot be made, by name.
    pub(crate) fn make_devices(
        &self,
        kind: NodeKind,
        make: Make<'_>,
    ) -> Result<Vec<Box<dyn Device>>, DaemonError> {
        let build = |(node, table): (usize, &toml::Table)| {
            let node = &self.wiring.nodes[node];
            if node.kind != kind {
                let reason = format!("{} is not of this daemon's kind", node.name);
                return Err(DaemonError::Fault(reason));
            }
            make(table.clone()).context(&node.name)
        };
        self.own_nodes().zip(&self.devices).map(build).collect()
    }

    /// The folders in which this process makes or removes files after its start.
    pub(crate) fn folders(&self) -> Vec<&Path> {
        let own: Vec<usize> = self.own_nodes().collect();
        let attached =
            self.wiring.attached.iter().filter(|attached| own.contains(&attached.at.node));
        let bound = attached.filter_map(|attached| match &attached.socket {
            Some(SocketPair::Unix { local, .. }) => local.parent(),
            _ => None,
        });
        let socket = self.admin.as_ref().and_then(|admin| admin.socket.as_deref()?.parent());
        let capture = self.capture.as_ref().and_then(|plan| plan.file.parent());
        let folders = bound.chain(socket).chain(capture).chain(self.socket_dir.as_deref());
        // The parent of a bare name is empty: it is the current folder.
        folders
            .map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
            .collect()
    }

    /// The recorder of this process's devices.
    ///
    /// # Errors
    /// If a capture cannot begin.
    pub(crate) fn make_recorder(&self) -> Result<Recorder, DaemonError> {
        let nodes: Vec<_> = self.own_nodes().collect();
        let recorder = Recorder::new(self.plan.clone(), &self.wiring, nodes.clone());
        let Some(plan) = &self.capture else { return Ok(recorder) };
        if self.exact {
            return Ok(recorder.with_tap(Part::create(plan, &self.wiring, &nodes)?));
        }
        Ok(recorder.with_tap(Capture::create(plan, &self.wiring, &nodes)?))
    }
}
