//! Hosts at ports of switches: those that a lab starts, and those that others have attached.

use emulation::wiring::End;
use proto::ids::Lid;
use proto::params::{FromValue, Value};
use proto::units::{Bytes, Instant};
use proto::wire::ethernet::MacAddress;
use std::net::IpAddr;
use std::path::PathBuf;

proto::words! {
    /// What a host is.
    pub enum HostKind {
        /// Linux with soft-RoCE in a virtual machine of QEMU.
        Vm = "vm",
        /// Programs of this system in a network namespace.
        Netns = "netns",
        /// A container of Docker or Podman.
        Container = "container",
    }
}

/// The exit code that a command must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedExit {
    /// Any, and the command need not end.
    Any,
    /// This one.
    Code(u8),
}

impl FromValue for ExpectedExit {
    fn from_value(value: &Value) -> Option<ExpectedExit> {
        Some(u8::from_value(value).map_or(ExpectedExit::Any, ExpectedExit::Code))
    }
}

/// A host at a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its port.
    pub at: End,
    /// What it is.
    pub kind: HostKind,
    /// Addresses of its interface with the lengths of their prefixes; at least one.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The MAC address of its interface.
    pub mac: MacAddress,
    /// The MTU of its interface.
    pub mtu: Bytes,
    /// Memory of a virtual machine, if not what its image needs, or the limit of a container.
    pub memory: Option<Bytes>,
    /// The kernel of a virtual machine.
    pub kernel: Option<PathBuf>,
    /// The image of a container.
    pub image: Option<String>,
    /// What a run starts on it.
    pub command: Option<Command>,
}

/// What a run starts on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; at least one word.
    pub words: Vec<String>,
    /// When it is started.
    pub start: Instant,
    /// The exit code that it must have.
    pub exit: ExpectedExit,
    /// Line of the host in the scenario file.
    pub line: usize,
}

impl Host {
    /// Whether its interface has this address.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|(own, _)| *own == address)
    }
}

/// A host at an attached port that traffic can be sent to, see `[[foreign]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignHost {
    /// Its name.
    pub name: String,
    /// The number of its address.
    pub number: Lid,
    /// The largest payload of a packet to it.
    pub path_mtu: Bytes,
}
