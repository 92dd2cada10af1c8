//! A running host of any kind, as the process that started it holds it.

use crate::HostError;
use crate::vm::Vm;
use std::time::Duration;

/// A running host. It ends when this value is dropped, and with this process.
#[derive(Debug)]
pub enum Running {
    /// A virtual machine.
    Vm(Vm),
}

impl Running {
    /// The id of its process on this machine.
    pub fn pid(&self) -> u32 {
        match self {
            Running::Vm(vm) => vm.pid(),
        }
    }

    /// Waits at most `limit` for the host to take commands. Returns whether it does.
    ///
    /// # Errors
    /// If it cannot be prepared, or has ended.
    pub fn is_ready(&mut self, limit: Duration) -> Result<bool, HostError> {
        match self {
            Running::Vm(vm) => vm.is_ready(limit),
        }
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        match self {
            Running::Vm(vm) => vm.is_alive(),
        }
    }

    /// Why it has ended.
    pub fn obituary(&mut self) -> String {
        match self {
            Running::Vm(vm) => vm.obituary(),
        }
    }

    /// Asks it to end, which takes a moment.
    pub fn power_off(&mut self) {
        match self {
            Running::Vm(vm) => vm.power_off(),
        }
    }
}
