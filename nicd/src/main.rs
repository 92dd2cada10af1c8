//! The program `nicd`: hosts NICs for a launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args().skip(1);
    daemon::main(emulation::wiring::NodeKind::Nic, args, nicd::nic::Nic::new)
}
