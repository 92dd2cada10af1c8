//! The shell of `switchd` and `nicd`: hosts devices for a launcher that controls it through pipes.
//!
//! ```text
//!  launcher ── stdin ──▶ reader thread ──┐
//!                                        ├─▶ main thread ── stdout ──▶ launcher
//!            data-plane thread (Worker) ─┘        (diagnostics go to stderr)
//! ```
//!
//! 1. The daemon reads its configuration, makes its devices, opens its sockets (one at an address that the kernel
//!    chooses, or one on the interface of each port), gives up its rights, and sends `hello`.
//! 2. The launcher collects all addresses and answers `start`; a worker begins at the origin.
//! 3. `beat` several times a second; `report` when the plan is done or after `stop`.
//!
//! The data plane never waits for this shell: it checks a flag, and it offers its beats to a bounded channel. When
//! stdin ends, the launcher is gone and the daemon exits. Where a launcher cannot start its daemons, they connect to
//! it, and a TCP connection replaces both pipes ([`join`]).

pub mod admin;
mod arguments;
pub mod config;
mod error;
pub mod feed;
pub mod join;
pub mod privileges;
pub mod protocol;
mod session;
mod sockets;
pub mod token;

pub use config::{AdminConfig, DaemonConfig, PortInterface, TcpConfig};
pub use error::{BoxedError, DaemonError, with_sources};

use arguments::Arguments;
use emulation::wiring::NodeKind;
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::{SigHandler, Signal, signal};
use proto::device::Device;
use session::{Ending, serve};
use std::io::{BufRead, BufReader, Write};
use std::process::ExitCode;

/// Success.
const DONE: u8 = 0;
/// Bad arguments or a bad configuration.
const BAD_INPUT: u8 = 2;
/// The daemon failed.
const DIED: u8 = 5;
/// The launcher went away.
const INTERRUPTED: u8 = 130;

/// Runs a daemon of `kind`, which turns each entry of `devices` into a device with `make`.
///
/// `arguments` do not contain the program's name. The exit code is 0 after a report, 2 for bad input, 5 after a failure
/// and 130 if the launcher went away.
pub fn main<E: Into<BoxedError>>(
    kind: NodeKind,
    arguments: impl Iterator<Item = String>,
    make: impl Fn(toml::Table) -> Result<Box<dyn Device>, E>,
) -> ExitCode {
    let (name, process_name) = match kind {
        NodeKind::Switch => ("switchd", c"switchd"),
        NodeKind::Nic => ("nicd", c"nicd"),
    };
    // The name that `ps` and `top` show. If it cannot be set, they show the program's.
    let _ = set_name(process_name);
    ExitCode::from(match Arguments::parse(name, arguments) {
        Ok(arguments) => start(kind, name, arguments, make),
        Err(error) => {
            // Without a standard output there is no reader either.
            let _ = error.print();
            error.exit_code() as u8
        }
    })
}

fn start<E: Into<BoxedError>>(
    kind: NodeKind,
    name: &str,
    arguments: Arguments,
    make: impl Fn(toml::Table) -> Result<Box<dyn Device>, E>,
) -> u8 {
    if let Some(address) = arguments.join {
        let token = std::env::var(join::TOKEN_VARIABLE).unwrap_or_default();
        let process = arguments.process.unwrap_or_default();
        return match join::join(&address, process, token, arguments.admin) {
            Ok(joined) => play(kind, name, joined.config, make, joined.commands, joined.replies),
            Err(error) => fail(name, &error, DIED),
        };
    }
    let file = arguments.config.unwrap_or_default();
    match DaemonConfig::load(&file) {
        Ok(config) => {
            attach_to_launcher();
            let commands = BufReader::new(std::io::stdin());
            play(kind, name, config, make, commands, std::io::stdout())
        }
        Err(error) => fail(&format!("{name}: {file}"), &error, BAD_INPUT),
    }
}

/// Prints `error` and returns `code`.
fn fail(name: &str, error: &DaemonError, code: u8) -> u8 {
    eprintln!("{name}: {}", with_sources(error));
    code
}

/// Makes the devices of `config` and serves the launcher until the end.
fn play<E: Into<BoxedError>>(
    kind: NodeKind,
    name: &str,
    config: DaemonConfig,
    make: impl Fn(toml::Table) -> Result<Box<dyn Device>, E>,
    commands: impl BufRead + Send + 'static,
    replies: impl Write,
) -> u8 {
    let made = config
        .make_devices(kind, make)
        .and_then(|devices| config.make_recorder().map(|recorder| (devices, recorder)));
    let (devices, mut recorder) = match made {
        Ok(made) => made,
        Err(error) => return fail(name, &error, BAD_INPUT),
    };
    let snapshots = recorder.listen();
    match serve(config, devices, (recorder, snapshots), commands, replies) {
        Ending::Reported => DONE,
        Ending::LauncherGone => INTERRUPTED,
        Ending::Failed(error) => fail(name, &error, DIED),
    }
}

/// Ties this process to the launcher: the launcher handles Ctrl-C, and the kernel kills this process when the launcher
/// dies.
fn attach_to_launcher() {
    // SAFETY: ignoring a signal installs no handler of ours.
    let ignored = unsafe { signal(Signal::SIGINT, SigHandler::SigIgn) };
    if let Err(error) = ignored.and_then(|_| set_pdeathsig(Signal::SIGKILL)) {
        eprintln!("cannot set signal handling: {error}");
    }
}

#[cfg(test)]
mod tests;
