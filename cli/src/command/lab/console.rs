//! `pausebed console HOST`: the console of a virtual machine on this terminal.

use super::{Choice, running_host};
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use crate::terminal::keys::RawTerminal;
use launch::interrupt;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use scenario::host::HostKind;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Ctrl-]: ends the console.
const ESCAPE: u8 = 0x1d;
/// The interval in milliseconds at which an interrupt is noticed.
const TURN_MS: u16 = 200;
/// Longest wait for a console that takes no input.
const SEND: Duration = Duration::from_secs(5);

/// Options of `console`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Options {
    /// The host, a virtual machine
    #[arg(value_name = "HOST", add = completion::hosts())]
    host: String,
    #[command(flatten)]
    choice: Choice,
}

/// Runs the command until Ctrl-], the end of standard input, or the end of the host.
pub(in super::super) fn run(options: &Options) -> Outcome {
    let (folder, host) = running_host(&options.choice, &options.host)?;
    if host.kind != HostKind::Vm {
        let (name, kind) = (&host.name, host.kind.word());
        let message =
            format!("host {name} is a {kind}, which has no console: pausebed exec {name} -- sh");
        return Err(Failure::usage(message));
    }
    let path = folder.join(format!("{}.console", host.name));
    let _lock = lock(&path, &host.name)?;
    let failed = |error: io::Error| Failure::host(format!("console of {}: {error}", host.name));
    let stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_write_timeout(Some(SEND)).map_err(failed)?;
    interrupt::install_handlers();
    if io::stdin().is_terminal() {
        eprintln!("console of {}; Ctrl-] ends it", host.name);
    }
    let raw = RawTerminal::enter();
    let ended = relay(&stream);
    drop(raw);
    match ended.map_err(failed)? {
        End::Input => {
            eprintln!();
            Ok(Exit::Good)
        }
        End::Host => Err(Failure::new(Exit::Died, format!("host {} has ended", host.name))),
    }
}

/// QEMU serves one client at a time, and others would wait without a word.
fn lock(path: &Path, name: &str) -> Result<Flock<File>, Failure> {
    let file = path.with_extension("console.lock");
    let opened = File::create(&file).map_err(Failure::cannot_write(&file))?;
    Flock::lock(opened, FlockArg::LockExclusiveNonblock)
        .map_err(|_| Failure::host(format!("the console of {name} is open elsewhere")))
}

/// Why a console has ended.
enum End {
    /// The user ended it.
    Input,
    /// The host has closed it.
    Host,
}

/// Passes octets in both directions.
fn relay(mut stream: &UnixStream) -> io::Result<End> {
    let (stdin, mut stdout) = (io::stdin(), io::stdout());
    let mut buffer = [0; 4096];
    loop {
        let mut set = [
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
            PollFd::new(stream.as_fd(), PollFlags::POLLIN),
        ];
        // After a signal both are looked at again.
        let _ = poll(&mut set, PollTimeout::from(TURN_MS));
        let [typed, printed] = set.map(|one| one.any() == Some(true));
        if interrupt::requested() {
            return Ok(End::Input);
        }
        if printed {
            match stream.read(&mut buffer)? {
                0 => return Ok(End::Host),
                length => stdout.write_all(&buffer[..length]).and_then(|()| stdout.flush())?,
            }
        }
        if typed {
            let length = stdin.lock().read(&mut buffer)?;
            let end = buffer[..length].iter().position(|octet| *octet == ESCAPE);
            stream.write_all(&buffer[..end.unwrap_or(length)])?;
            if length == 0 || end.is_some() {
                return Ok(End::Input);
            }
        }
    }
}
