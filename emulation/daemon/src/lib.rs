//! The shell of `switchd` and `nicd`: hosts devices for a launcher that talks to it through pipes.
//!
//! ```text
//!  launcher ── stdin ──▶ reader thread ──┐
//!                                        ├─▶ main thread ── stdout ──▶ launcher
//!            data-plane thread (Worker) ─┘        (talk goes to stderr)
//! ```
//!
//! 1. The daemon reads its configuration, makes its devices, opens its sockets (one at an address the
//!    kernel chooses, or one on the interface of each port), gives up its rights, and says `hello`.
//! 2. The launcher collects all addresses and answers `start`; a worker begins at the origin.
//! 3. `beat` several times a second; `report` when the plan is done or after `stop`.
//!
//! The data plane never waits for this shell: it looks at a flag and offers its beats to a bounded
//! channel. When stdin ends the launcher is gone, and so is the daemon. Where a launcher cannot start
//! its daemons they come to it, and a TCP connection takes the place of both pipes ([`join`]).

pub mod admin;
pub mod config;
pub mod feed;
pub mod join;
pub mod privileges;
pub mod protocol;
mod session;
mod sockets;
pub mod token;

pub use config::{AdminConfig, DaemonConfig, PortInterface, TcpConfig};
pub use session::{Ending, serve};

use emulation::cable::shim;
use emulation::wiring::NodeKind;
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::{SigHandler, Signal, signal};
use proto::device::Device;
use std::io::{BufRead, Write};
use std::process::ExitCode;

/// Good.
const DONE: u8 = 0;
/// Bad usage or a bad file.
const BAD_INPUT: u8 = 2;
/// The daemon failed.
const DIED: u8 = 5;
/// The launcher went away.
const INTERRUPTED: u8 = 130;

/// Runs a daemon of `kind`, which turns each entry of `devices` into a device with `make`.
///
/// `args` are the arguments without the program's name.
pub fn main(
    kind: NodeKind,
    args: impl Iterator<Item = String>,
    make: impl Fn(toml::Table) -> Result<Box<dyn Device>, String>,
) -> ExitCode {
    let (name, process_name) = match kind {
        NodeKind::Switch => ("switchd", c"switchd"),
        NodeKind::Nic => ("nicd", c"nicd"),
    };
    // What `ps` and `top` show, whichever program plays the part. A name that cannot be had does no harm.
    let _ = set_name(process_name);
    let code = match parse(args) {
        Ok(Wish::Help) => {
            println!("{}", usage(name));
            DONE
        }
        Ok(Wish::Version) => {
            println!("{name} {} (shim {})", env!("CARGO_PKG_VERSION"), shim::VERSION);
            DONE
        }
        Ok(Wish::Run(file)) => match DaemonConfig::load(&file) {
            Ok(config) => {
                attach_to_launcher();
                let commands = std::io::BufReader::new(std::io::stdin());
                play(kind, name, config, make, commands, std::io::stdout())
            }
            Err(reason) => refuse(name, &format!("{file}: {reason}")),
        },
        Ok(Wish::Join { address, process, admin }) => {
            let token = std::env::var(join::TOKEN_VARIABLE).unwrap_or_default();
            match join::join(&address, process, token, admin) {
                Ok(joined) => {
                    play(kind, name, joined.config, make, joined.commands, joined.replies)
                }
                Err(reason) => {
                    eprintln!("{name}: {reason}");
                    DIED
                }
            }
        }
        Err(reason) => {
            eprintln!("{name}: {reason}\n{}", usage(name));
            BAD_INPUT
        }
    };
    ExitCode::from(code)
}

enum Wish {
    Help,
    Version,
    Run(String),
    Join { address: String, process: usize, admin: Option<(String, u16)> },
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Wish, String> {
    let request = match args.next().as_deref() {
        Some("--help" | "-h") => Wish::Help,
        Some("--version" | "-V") => Wish::Version,
        Some("--config") => Wish::Run(args.next().ok_or("--config needs a file")?),
        Some("--join") => {
            let address = args.next().ok_or("--join needs the launcher's HOST:PORT")?;
            let process = match (args.next().as_deref(), args.next()) {
                (Some("--process"), Some(number)) => number.parse().map_err(|_| number),
                _ => return Err("--join HOST:PORT needs --process NUMBER".to_owned()),
            };
            let process = process.map_err(|number| format!("{number:?} is no process number"))?;
            let admin = match args.next().as_deref() {
                None => None,
                Some("--admin") => Some(name_and_port(args.next().unwrap_or_default())?),
                Some(extra) => return Err(format!("unexpected argument {extra:?}")),
            };
            Wish::Join { address, process, admin }
        }
        Some(other) => match other.strip_prefix("--config=") {
            Some(file) => Wish::Run(file.to_owned()),
            None => return Err(format!("unknown argument {other:?}")),
        },
        None => return Err("--config FILE or --join HOST:PORT is missing".to_owned()),
    };
    match args.next() {
        Some(extra) => Err(format!("unexpected argument {extra:?}")),
        None => Ok(request),
    }
}

fn name_and_port(text: String) -> Result<(String, u16), String> {
    let parts = text.rsplit_once(':').filter(|(name, _)| !name.is_empty());
    let parsed = parts.and_then(|(name, port)| Some((name.to_owned(), port.parse().ok()?)));
    parsed.ok_or_else(|| format!("--admin needs NAME:PORT, not {text:?}"))
}

fn usage(name: &str) -> String {
    format!(
        "usage: {name} --config FILE | --join HOST:PORT --process NUMBER [--admin NAME:PORT] |\n       \
         --version | --help\n\
         Started by pausebed, which speaks to it through standard input and output; or by somebody\n\
         else, and then it joins the launcher at HOST:PORT with the token in {}. Who has that token\n\
         and calls this host NAME is answered at PORT while the run lasts, as by daemons of labs.",
        join::TOKEN_VARIABLE
    )
}

fn refuse(name: &str, reason: &str) -> u8 {
    eprintln!("{name}: {reason}");
    BAD_INPUT
}

/// Makes what `config` wants and serves the launcher to the end.
fn play(
    kind: NodeKind,
    name: &str,
    config: DaemonConfig,
    make: impl Fn(toml::Table) -> Result<Box<dyn Device>, String>,
    commands: impl BufRead + Send + 'static,
    replies: impl Write,
) -> u8 {
    let made = config
        .make_devices(kind, make)
        .and_then(|devices| config.make_recorder().map(|recorder| (devices, recorder)));
    let (devices, mut recorder) = match made {
        Ok(made) => made,
        Err(reason) => return refuse(name, &reason),
    };
    let snapshots = recorder.listen();
    match serve(config, devices, (recorder, snapshots), commands, replies) {
        Ending::Reported => DONE,
        Ending::LauncherGone => INTERRUPTED,
        Ending::Failed(reason) => {
            eprintln!("{name}: {reason}");
            DIED
        }
    }
}

/// Lives and dies with the launcher: Ctrl-C is its to answer, and its death is ours.
fn attach_to_launcher() {
    // SAFETY: ignoring a signal installs no handler of ours.
    let ignored = unsafe { signal(Signal::SIGINT, SigHandler::SigIgn) };
    if let Err(error) = ignored.and_then(|_| set_pdeathsig(Signal::SIGKILL)) {
        eprintln!("signals stay as they were: {error}");
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "../../src/driver/toy.rs"]
mod toy;
