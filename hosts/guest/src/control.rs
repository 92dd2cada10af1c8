//! The part `serve`: the control port, and a thread for each port of commands.

use crate::port::{Arrival, Port};
use crate::{exec, identity};
use guest::protocol::{CONTROL_PORT, Control, EXEC_PORT, EXEC_PORTS, Status, VERSION};
use nix::sys::reboot::{RebootMode, reboot};
use std::io;

/// Serves all ports.
///
/// # Errors
/// If a port is missing.
pub fn serve() -> io::Result<()> {
    crate::boot::permit_locked_memory()?;
    for number in 0..EXEC_PORTS {
        let port = Port::open(&format!("{EXEC_PORT}{number}"))?;
        std::thread::Builder::new()
            .name(format!("exec{number}"))
            .spawn(move || exec::serve(port))?;
    }
    control(Port::open(CONTROL_PORT)?)
}

fn control(mut port: Port) -> io::Result<()> {
    let mut status = Status::Waiting { version: VERSION, kernel: kernel_release() };
    loop {
        if port.read() != Arrival::Octets {
            port.wait_edge();
        }
        while let Some(message) = port.lines.next_message() {
            match message {
                Control::Hello => {}
                Control::Identity(identity) if matches!(status, Status::Waiting { .. }) => {
                    status =
                        identity::apply(&identity).map_or_else(Status::Failed, |()| Status::Ready);
                }
                // A machine keeps its first identity.
                Control::Identity(_) => {}
                Control::PowerOff => {
                    reboot(RebootMode::RB_POWER_OFF)?;
                }
            }
            port.queue(&status);
            port.flush_all();
        }
    }
}

fn kernel_release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}
