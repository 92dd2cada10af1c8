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
pub mod clients;
pub mod config;
mod error;
pub mod feed;
pub mod join;
mod orders;
pub mod privileges;
pub mod protocol;
pub mod runtime;
mod session;
mod sockets;
mod sync;
pub mod token;

pub use config::{AdminConfig, ClientsConfig, DaemonConfig, PortInterface, TcpConfig};
pub use error::{BoxedError, DaemonError, with_sources};

use arguments::Arguments;
use config::Make;
use emulation::wiring::NodeKind;
use error::Context;
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::{SigHandler, Signal, signal};
use privileges::Scope;
use proto::device::Device;
use serde::de::DeserializeOwned;
use session::{Ending, serve};
use std::io::{BufRead, BufReader, Write};
use std::process::ExitCode;
use token::Token;

/// Success.
const DONE: u8 = 0;
/// Bad arguments or a bad configuration.
const BAD_INPUT: u8 = 2;
/// The daemon failed.
const DIED: u8 = 5;
/// The launcher went away.
const INTERRUPTED: u8 = 130;

/// The exit code, and the error if there is one.
type Exit = Result<u8, (u8, DaemonError)>;

/// Runs a daemon of `kind`, which deserializes each entry of `devices` and makes a device of it with `new`.
///
/// `arguments` do not contain the program's name. The exit code is 0 after a report, 2 for bad input, 5 after a failure
/// and 130 if the launcher went away.
pub fn main<C: DeserializeOwned, D: Device + 'static, E: Into<BoxedError>>(
    kind: NodeKind,
    arguments: impl Iterator<Item = String>,
    new: fn(C) -> Result<D, E>,
) -> ExitCode {
    let (name, process_name) = match kind {
        NodeKind::Switch => ("switchd", c"switchd"),
        NodeKind::Nic => ("nicd", c"nicd"),
    };
    // The name that `ps` and `top` show. If it cannot be set, they show the program's.
    let _ = set_name(process_name);
    let make = |table: toml::Table| -> Result<Box<dyn Device>, BoxedError> {
        Ok(Box::new(new(table.try_into()?).map_err(Into::into)?))
    };
    let exit = match Arguments::parse(name, arguments) {
        Ok(arguments) => start(kind, arguments, &make),
        Err(error) => {
            // Without a standard output there is no reader either.
            let _ = error.print();
            Ok(error.exit_code() as u8)
        }
    };
    ExitCode::from(exit.unwrap_or_else(|(code, error)| {
        eprintln!("{name}: {}", with_sources(&error));
        code
    }))
}

fn start(kind: NodeKind, arguments: Arguments, make: Make<'_>) -> Exit {
    if let Some(address) = arguments.join {
        let token = std::env::var(join::TOKEN_VARIABLE).unwrap_or_default();
        let process = arguments.process.unwrap_or_default();
        let joined = join::join(&address, process, &Token::new(&token), arguments.admin);
        let (config, commands, replies) = joined.map_err(|error| (DIED, error))?;
        let line = replies.try_clone().context(address).map_err(|error| (DIED, error))?;
        let exit = host(kind, config, make, commands, replies);
        join::part(line);
        return exit;
    }
    let file = arguments.config.unwrap_or_default();
    let config = DaemonConfig::load(&file).context(file).map_err(|error| (BAD_INPUT, error))?;
    attach_to_launcher();
    host(kind, config, make, BufReader::new(std::io::stdin()), std::io::stdout())
}

/// Makes the devices of `config` and serves the launcher until the end.
fn host(
    kind: NodeKind,
    config: DaemonConfig,
    make: Make<'_>,
    commands: impl BufRead + Send + 'static,
    replies: impl Write,
) -> Exit {
    let bad = |error| (BAD_INPUT, error);
    let devices = config.make_devices(kind, make).map_err(bad)?;
    match serve(config, devices, Scope::Process, commands, replies) {
        Ending::Reported => Ok(DONE),
        Ending::LauncherGone => Ok(INTERRUPTED),
        Ending::Failed(error) => Err((DIED, error)),
    }
}

/// Ties this process to the launcher: the launcher handles Ctrl-C, and the kernel kills this process when the launcher
/// dies.
fn attach_to_launcher() {
    // SAFETY: ignoring a signal installs no handler of ours.
    // Test: daemon_threads_drop_all_privileges_after_opening_sockets.
    let ignored = unsafe { signal(Signal::SIGINT, SigHandler::SigIgn) };
    if let Err(error) = ignored.and_then(|_| set_pdeathsig(Signal::SIGKILL)) {
        eprintln!("cannot set signal handling: {error}");
    }
}

#[cfg(test)]
mod tests;
