//! The program `switchd`: hosts switches for a launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args().skip(1);
    daemon::main(emulation::wiring::NodeKind::Switch, args, switchd::switch::Switch::new)
}
