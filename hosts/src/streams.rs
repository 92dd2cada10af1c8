//! The streams of a program of this system: standard input from a reader, output to writers, and its exit code.

use crate::HostError;
use emulation::clock::Stopwatch;
use guest::protocol::CHUNK;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The interval in milliseconds at which the limit is looked at.
const TURN_MS: u16 = 100;
/// Octets that a pipe holds. As much is read after the end of a program, since it may have been written before.
const PIPE: usize = 64 * 1024;
/// What a shell answers for a program that is not found, and for one that cannot be executed.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// Where the output of a program goes, and how long it may run.
pub(crate) struct Streams<'a> {
    /// The host, for messages.
    pub name: &'a str,
    pub stdout: &'a mut dyn Write,
    pub stderr: &'a mut dyn Write,
    pub limit: Option<Duration>,
}

impl Streams<'_> {
    /// Runs a program to its end and returns its exit code: 128 and the number of the signal that ended it, 127 if
    /// there is no such program. `end` ends a program whose limit has passed or whose output cannot be written.
    pub fn run(
        self,
        mut command: Command,
        start: impl FnOnce(Command) -> io::Result<Child>,
        stdin: impl Read + Send + 'static,
        end: impl FnOnce(&mut Child),
    ) -> Result<i32, HostError> {
        let name = self.name;
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match start(command) {
            Ok(child) => child,
            Err(error) => return self.not_started(&program, &error),
        };
        let outcome = self.attend(&mut child, stdin);
        if !matches!(outcome, Ok(None)) {
            end(&mut child);
        }
        let status = child.wait().map_err(HostError::io(format!("host {name}: {program}")))?;
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        match outcome {
            Ok(None) => Ok(code.unwrap_or(NOT_EXECUTABLE)),
            Ok(Some(limit)) => {
                Err(HostError::Late { what: format!("the command on host {name}"), limit })
            }
            Err(error) => Err(HostError::io(format!("output of host {name}"))(error)),
        }
    }

    fn not_started(self, program: &str, error: &io::Error) -> Result<i32, HostError> {
        let code = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        };
        let written = writeln!(self.stderr, "{program}: {error}");
        written.map_err(HostError::io(format!("output of host {}", self.name)))?;
        Ok(code)
    }

    /// Moves octets until the program has ended. Returns the limit if it has passed before.
    fn attend(
        self,
        child: &mut Child,
        stdin: impl Read + Send + 'static,
    ) -> io::Result<Option<Duration>> {
        let watch = Stopwatch::start();
        let ended = process_descriptor(child.id())?;
        if let Some(pipe) = child.stdin.take() {
            // It may outlive the program, until its read returns. What a program does not read goes nowhere.
            std::thread::spawn(move || feed(stdin, pipe));
        }
        let mut stdout = Output::of(child.stdout.take().map(OwnedFd::from), self.stdout)?;
        let mut stderr = Output::of(child.stderr.take().map(OwnedFd::from), self.stderr)?;
        loop {
            let mut set = vec![PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
            let open = [&stdout.pipe, &stderr.pipe].into_iter().flatten();
            set.extend(open.map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
            // After a signal everything is looked at, and then waited for again.
            let _ = poll(&mut set, PollTimeout::from(TURN_MS));
            let is_over = set[0].any() == Some(true);
            let most = if is_over { PIPE } else { CHUNK };
            stdout.take(most)?;
            stderr.take(most)?;
            let late = self.limit.filter(|limit| watch.seconds() > limit.as_secs_f64());
            if is_over || late.is_some() {
                return Ok(late.filter(|_| !is_over));
            }
        }
    }
}

fn feed(mut stdin: impl Read, mut pipe: impl Write) {
    let mut buffer = [0; CHUNK];
    loop {
        match stdin.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(length) if length > 0 && pipe.write_all(&buffer[..length]).is_ok() => {}
            _ => return,
        }
    }
}

/// A pipe that a program writes to, and where its octets go.
struct Output<'a> {
    pipe: Option<File>,
    sink: &'a mut dyn Write,
}

impl<'a> Output<'a> {
    fn of(pipe: Option<OwnedFd>, sink: &'a mut dyn Write) -> io::Result<Output<'a>> {
        if let Some(pipe) = &pipe {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Output { pipe: pipe.map(File::from), sink })
    }

    /// Takes about `most` octets, or what there is.
    fn take(&mut self, most: usize) -> io::Result<()> {
        let mut buffer = [0; CHUNK];
        let mut taken = 0;
        while let Some(pipe) = &mut self.pipe
            && taken < most
        {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    taken += length;
                    self.sink.write_all(&buffer[..length])?;
                    self.sink.flush()?;
                }
                // Nothing there; other errors do not occur with pipes.
                Err(_) => break,
            }
        }
        Ok(())
    }
}

/// A descriptor of a process, readable once it has ended.
pub(crate) fn process_descriptor(number: u32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed. Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and sets close-on-exec.
    // Test: a_program_has_a_network_of_its_own_and_leaves_nothing.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
