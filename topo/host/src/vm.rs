//! Virtual machines.

use crate::HostError;
use crate::image::Image;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmSpec {
    /// Letters, digits and hyphens, at most 32; it names the host and its files.
    pub name: String,
    /// MAC address of its interface.
    pub mac: [u8; 6],
    /// Addresses of its interface with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU of its interface in octets, 68 to 9000.
    pub mtu: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// The machine's end of the Unix datagram cable.
    pub local: PathBuf,
    /// The other end of the cable.
    pub remote: PathBuf,
    /// Folder of the run, for the sockets and the log of the console; of this user alone.
    pub folder: PathBuf,
}

/// A running machine.
#[derive(Debug)]
pub struct Vm {}

impl Vm {
    /// Starts a machine; it is not ready yet.
    ///
    /// # Errors
    /// If the specification is not valid or QEMU cannot be started.
    pub fn start(_image: &Image, _spec: &VmSpec) -> Result<Vm, HostError> {
        Err(HostError::NoImage("there is no image".to_owned()))
    }

    /// Waits until the machine has its identity and executes commands.
    ///
    /// # Errors
    /// If it fails or the limit passes.
    pub fn wait_ready(&mut self, _limit: Duration) -> Result<(), HostError> {
        Ok(())
    }

    /// Process id of QEMU.
    pub fn pid(&self) -> u32 {
        0
    }

    /// Ends the machine.
    pub fn stop(self) {}
}
