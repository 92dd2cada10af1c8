//! Commands: one port runs one command at a time, for the client that is connected to it.
//!
//! Output waits in the pipes of the command while the client does not read. Input is bounded by the window of the
//! protocol. A client that disappears ends its command.

use crate::boot::PATH;
use crate::port::{Arrival, Port};
use guest::protocol::{CHUNK, ExecRequest, FromGuest, InSession, Octets, STDIN_WINDOW, ToGuest};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, setsid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

/// Octets that a pipe holds. As much is read after the end of a command, since it may have been written before.
const PIPE: usize = 64 * 1024;

/// Serves a port for ever.
pub fn serve(mut port: Port) {
    let mut running: Option<Running> = None;
    loop {
        if running.is_none() && !port.has_output() {
            if port.read() != Arrival::Octets {
                port.wait_edge();
            }
        } else if !turn(&mut port, &mut running) {
            running = None;
        }
        while let Some(InSession { session, message }) = port.lines.next_message() {
            accept(&mut port, &mut running, session, message);
        }
    }
}

/// Handles one message of a client.
fn accept(port: &mut Port, running: &mut Option<Running>, session: u64, message: ToGuest) {
    match (message, running.as_mut().filter(|running| running.session == session)) {
        (ToGuest::Start(request), _) => {
            // A command of an earlier client ends here, when the value is dropped.
            *running = None;
            port.separate();
            let mut answer = |message| port.queue(&InSession { session, message });
            if let Err(reason) = request.check() {
                return answer(FromGuest::Refused(reason));
            }
            match Running::start(session, &request) {
                Ok(started) => *running = Some(started),
                Err(error) => {
                    let missing = error.kind() == io::ErrorKind::NotFound;
                    let text = format!("{}: {error}\n", request.argv[0]);
                    answer(FromGuest::Stderr(Octets(text.into_bytes())));
                    answer(FromGuest::Exit(if missing { 127 } else { 126 }));
                }
            }
        }
        (ToGuest::Stdin(octets), Some(command)) => {
            if command.input.len() + octets.0.len() > STDIN_WINDOW {
                port.queue(
                    &command.message(FromGuest::Refused("input exceeds its window".to_owned())),
                );
                *running = None;
            } else {
                command.input.extend_from_slice(&octets.0);
            }
        }
        (ToGuest::StdinEnd, Some(command)) => {
            command.is_input_complete = true;
            // No event follows if the command has taken all input already.
            command.end_input();
        }
        // From a client that has gone.
        (_, None) => {}
    }
}

/// Waits for an event of the command or of the port, and handles it. Returns false when the command is over.
fn turn(port: &mut Port, running: &mut Option<Running>) -> bool {
    let Some(events) = wait(port, running.as_ref()) else { return true };
    if events.port.contains(PollFlags::POLLHUP) {
        // Forgets what this client has sent half of and should have got.
        port.read();
        return false;
    }
    if events.port.contains(PollFlags::POLLIN) {
        port.read();
    }
    let mut goes_on = true;
    if let Some(command) = running {
        command.feed(port);
        command.collect(port, CHUNK);
        if !events.end.is_empty() && port.has_room() {
            command.collect(port, PIPE);
            let code = command.exit_code();
            port.queue(&command.message(FromGuest::Exit(code)));
            command.is_over = true;
            goes_on = false;
        }
    }
    port.flush();
    goes_on
}

struct Events {
    port: PollFlags,
    end: PollFlags,
}

/// Waits until the port, a pipe or the process can be served. `None` after a signal.
fn wait(port: &Port, running: Option<&Running>) -> Option<Events> {
    let output = if port.has_output() { PollFlags::POLLOUT } else { PollFlags::empty() };
    let mut set = vec![PollFd::new(port.descriptor(), PollFlags::POLLIN | output)];
    if let Some(command) = running {
        // Without room the end of the command waits as well, behind its output.
        let wanted = if port.has_room() { PollFlags::POLLIN } else { PollFlags::empty() };
        set.push(PollFd::new(command.end.as_fd(), wanted));
        if port.has_room() {
            let pipes = [&command.stdout, &command.stderr].into_iter().flatten();
            set.extend(pipes.map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        }
        if let Some(stdin) = command.stdin.as_ref().filter(|_| !command.input.is_empty()) {
            set.push(PollFd::new(stdin.as_fd(), PollFlags::POLLOUT));
        }
    }
    if let Err(Errno::EINTR) = poll(&mut set, PollTimeout::NONE) {
        return None;
    }
    let found = |at: usize| set.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
    Some(Events {
        port: found(0),
        end: if running.is_some() { found(1) } else { PollFlags::empty() },
    })
}

/// A command. Its process group is killed when this value is dropped before it is over.
struct Running {
    session: u64,
    child: Child,
    end: OwnedFd,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
    input: Vec<u8>,
    is_input_complete: bool,
    is_over: bool,
}

impl Running {
    fn start(session: u64, request: &ExecRequest) -> io::Result<Running> {
        let mut command = Command::new(&request.argv[0]);
        command.args(&request.argv[1..]).current_dir("/root").env_clear();
        command.env("PATH", PATH).env("HOME", "/root").env("TERM", "dumb");
        command.env("HOSTNAME", nix::unistd::gethostname()?).envs(&request.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: `setsid` may be called between fork and exec. It makes the process group that is killed at the end.
        // Test: two_machines_ping_each_other_by_ip_and_by_verbs.
        unsafe { command.pre_exec(|| setsid().map(drop).map_err(io::Error::from)) };
        let mut child = command.spawn()?;
        let end = process_descriptor(child.id())?;
        let stdin = child.stdin.take().map(|pipe| without_blocking(pipe.into()));
        let stdout = child.stdout.take().map(|pipe| without_blocking(pipe.into()));
        let stderr = child.stderr.take().map(|pipe| without_blocking(pipe.into()));
        Ok(Running {
            session,
            child,
            end,
            stdin: stdin.transpose()?,
            stdout: stdout.transpose()?,
            stderr: stderr.transpose()?,
            input: Vec::new(),
            is_input_complete: false,
            is_over: false,
        })
    }

    fn message(&self, message: FromGuest) -> InSession<FromGuest> {
        InSession { session: self.session, message }
    }

    /// Writes input to the command, and reports how much of it left the window.
    fn feed(&mut self, port: &mut Port) {
        if !self.input.is_empty() {
            let taken = match self.stdin.as_mut().map(|stdin| stdin.write(&self.input)) {
                Some(Ok(length)) => length,
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => 0,
                // The command has closed its input, and the rest of it goes nowhere.
                _ => {
                    self.stdin = None;
                    self.input.len()
                }
            };
            self.input.drain(..taken);
            if taken > 0 {
                port.queue(&self.message(FromGuest::Taken(taken)));
            }
        }
        self.end_input();
    }

    /// Closes the input of the command after its last octet.
    fn end_input(&mut self) {
        if self.input.is_empty() && self.is_input_complete {
            self.stdin = None;
        }
    }

    /// Takes up to `limit` octets from each pipe.
    fn collect(&mut self, port: &mut Port, limit: usize) {
        let session = self.session;
        let kinds: [fn(Octets) -> FromGuest; 2] = [FromGuest::Stdout, FromGuest::Stderr];
        for (pipe, kind) in [&mut self.stdout, &mut self.stderr].into_iter().zip(kinds) {
            let mut left = limit;
            let mut buffer = [0; CHUNK];
            while let Some(open) = pipe
                && left > 0
                && (limit > CHUNK || port.has_room())
            {
                match open.read(&mut buffer) {
                    Ok(0) => *pipe = None,
                    Ok(length) => {
                        left = left.saturating_sub(length);
                        let message = kind(Octets(buffer[..length].to_vec()));
                        port.queue(&InSession { session, message });
                    }
                    // Nothing there; other errors do not occur with pipes.
                    Err(_) => break,
                }
            }
        }
    }

    /// The exit code of a process that has ended; 128 and the number of a signal.
    fn exit_code(&mut self) -> i32 {
        const UNKNOWN: i32 = 255;
        let status = self.child.wait().ok();
        status
            .and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)))
            .unwrap_or(UNKNOWN)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            // The group is gone if all its processes have ended.
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

fn without_blocking(pipe: OwnedFd) -> io::Result<File> {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(File::from(pipe))
}

/// A descriptor that can be read once the process has ended.
fn process_descriptor(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed. Test: two_machines_ping_each_other_by_ip_and_by_verbs.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and sets close-on-exec.
    // Test: two_machines_ping_each_other_by_ip_and_by_verbs.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
