//! A running host of any kind, as the process that started it holds it.

use crate::HostError;
use crate::container::ContainerHost;
use crate::namespace::NamespaceHost;
use crate::vm::Vm;
use std::time::Duration;

/// A running host. It ends when this value is dropped, and with this process.
#[derive(Debug)]
pub enum Running {
    /// A virtual machine.
    Vm(Vm),
    /// A namespace for programs.
    Namespace(NamespaceHost),
    /// A container.
    Container(ContainerHost),
}

impl Running {
    /// The id of its process on this machine: QEMU, or the first process of the host.
    pub fn pid(&self) -> u32 {
        match self {
            Running::Vm(vm) => vm.pid(),
            Running::Namespace(namespace) => namespace.pid(),
            Running::Container(container) => container.pid(),
        }
    }

    /// Waits at most `limit` for the host to take commands. Returns whether it does.
    ///
    /// # Errors
    /// If it cannot be prepared, or has ended.
    pub fn is_ready(&mut self, limit: Duration) -> Result<bool, HostError> {
        match self {
            Running::Vm(vm) => vm.is_ready(limit),
            Running::Namespace(_) | Running::Container(_) => Ok(true),
        }
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        match self {
            Running::Vm(vm) => vm.is_alive(),
            Running::Namespace(namespace) => namespace.is_alive(),
            Running::Container(container) => container.is_alive(),
        }
    }

    /// Why it has ended.
    pub fn obituary(&mut self) -> String {
        match self {
            Running::Vm(vm) => vm.obituary(),
            Running::Namespace(_) => "its first process has ended".to_owned(),
            Running::Container(_) => "the container has ended".to_owned(),
        }
    }

    /// Asks a machine to end, which takes a moment; other hosts end when the value is dropped. Returns whether it was
    /// asked.
    pub fn power_off(&mut self) -> bool {
        if let Running::Vm(vm) = self {
            vm.power_off();
        }
        matches!(self, Running::Vm(_))
    }
}
