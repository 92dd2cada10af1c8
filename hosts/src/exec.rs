//! Commands in a virtual machine, over the sockets of its ports.

use crate::HostError;
use crate::interface::check_name;
use crate::vm::socket;
use emulation::clock::Stopwatch;
pub use guest::protocol::ExecRequest;
use guest::protocol::{
    CHUNK, EXEC_PORTS, FromGuest, InSession, Octets, STDIN_WINDOW, ToGuest, line, lines,
};
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The interval at which the limit is looked at.
const TURN: Duration = Duration::from_millis(100);
/// Longest wait for room in a socket; the guest reads its port all the time.
const SEND: Duration = Duration::from_secs(30);

/// Runs a command in the machine `name` whose sockets are in `folder`, and returns its exit code: that of the command,
/// 128 and the number of the signal that ended it, 127 if there is no such program.
///
/// It takes the first free of eight ports, so commands of several processes run at once. The guest ends the command
/// when this process disappears or the limit passes. Octets pass unchanged in all three streams. A thread reads
/// `stdin` in pieces; it may outlive the command, until its read returns.
///
/// # Errors
/// If there is no such machine, all ports are taken, the command is not valid, a stream fails, or the limit passes.
pub fn exec(
    folder: &Path,
    name: &str,
    command: &ExecRequest,
    stdin: impl Read + Send + 'static,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
    limit: Option<Duration>,
) -> Result<i32, HostError> {
    check_name(name)?;
    command.check().map_err(HostError::Invalid)?;
    let slot = Slot::take(folder, name)?;
    let mut stream = &slot.stream;
    let session = random()?;
    let start = InSession { session, message: ToGuest::Start(command.clone()) };
    let failed = || HostError::io(format!("host {name}"));
    // Ends what an earlier client may have sent half of.
    stream.write_all(b"\n").and_then(|()| stream.write_all(&line(&start))).map_err(failed())?;
    let window = Arc::new(Window::default());
    let feeder = Feeder {
        stream: stream.try_clone().map_err(failed())?,
        session,
        window: Arc::clone(&window),
    };
    std::thread::spawn(move || feeder.run(stdin));
    let outcome = Receiver { name, session, window: &window, limit }.run(stream, stdout, stderr);
    window.close();
    // The feeder has a descriptor of the same socket.
    let _ = stream.shutdown(std::net::Shutdown::Both);
    outcome
}

/// A number that no earlier command had.
pub(crate) fn random() -> Result<u64, HostError> {
    let mut octets = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets));
    read.map_err(HostError::io("/dev/urandom"))?;
    Ok(u64::from_le_bytes(octets))
}

/// A port that this process has for itself.
struct Slot {
    stream: UnixStream,
    _lock: Flock<File>,
}

impl Slot {
    fn take(folder: &Path, name: &str) -> Result<Slot, HostError> {
        if !socket(folder, name, "exec0").exists() {
            return Err(HostError::Invalid(format!(
                "host {name} does not run, or has no ports for commands"
            )));
        }
        for port in 0..EXEC_PORTS {
            let path = socket(folder, name, &format!("exec{port}"));
            let lock = path.with_extension(format!("exec{port}.lock"));
            let lock = File::create(&lock).map_err(HostError::io(lock.display()))?;
            let Ok(lock) = Flock::lock(lock, FlockArg::LockExclusiveNonblock) else { continue };
            let stream = UnixStream::connect(&path).map_err(HostError::io(path.display()))?;
            let limits = stream
                .set_read_timeout(Some(TURN))
                .and_then(|()| stream.set_write_timeout(Some(SEND)));
            limits.map_err(HostError::io(path.display()))?;
            return Ok(Slot { stream, _lock: lock });
        }
        Err(HostError::Failed(format!("host {name}: {EXEC_PORTS} commands run already")))
    }
}

/// How much standard input the guest has not taken yet.
#[derive(Default)]
struct Window {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Window {
    /// Waits for room for a chunk and takes it. False when the command is over.
    fn take(&self, octets: usize) -> bool {
        let Ok(state) = self.state.lock() else { return false };
        let full = |state: &mut (usize, bool)| !state.1 && state.0 + octets > STDIN_WINDOW;
        let Ok(mut state) = self.changed.wait_while(state, full) else { return false };
        state.0 += octets;
        !state.1
    }

    fn give(&self, octets: usize) {
        if let Ok(mut state) = self.state.lock() {
            state.0 = state.0.saturating_sub(octets);
        }
        self.changed.notify_all();
    }

    fn close(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.1 = true;
        }
        self.changed.notify_all();
    }
}

/// Sends standard input.
struct Feeder {
    stream: UnixStream,
    session: u64,
    window: Arc<Window>,
}

impl Feeder {
    fn run(mut self, mut stdin: impl Read) {
        let mut buffer = [0; CHUNK];
        loop {
            let message = match stdin.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // What cannot be read ends.
                Ok(0) | Err(_) => ToGuest::StdinEnd,
                Ok(length) if self.window.take(length) => {
                    ToGuest::Stdin(Octets(buffer[..length].to_vec()))
                }
                Ok(_) => return,
            };
            let is_last = message == ToGuest::StdinEnd;
            let sent = self.stream.write_all(&line(&InSession { session: self.session, message }));
            // The receiver reports a closed socket.
            if is_last || sent.is_err() {
                return;
            }
        }
    }
}

/// Receives output until the command has ended.
struct Receiver<'a> {
    name: &'a str,
    session: u64,
    window: &'a Window,
    limit: Option<Duration>,
}

impl Receiver<'_> {
    fn run(
        &self,
        mut stream: &UnixStream,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> Result<i32, HostError> {
        let name = self.name;
        let watch = Stopwatch::start();
        let mut lines = lines();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            while let Some(InSession { session, message }) = lines.next_message() {
                if session != self.session {
                    continue;
                }
                let written = match message {
                    FromGuest::Stdout(octets) => {
                        stdout.write_all(&octets.0).and_then(|()| stdout.flush())
                    }
                    FromGuest::Stderr(octets) => {
                        stderr.write_all(&octets.0).and_then(|()| stderr.flush())
                    }
                    FromGuest::Taken(octets) => {
                        self.window.give(octets);
                        Ok(())
                    }
                    FromGuest::Exit(code) => return Ok(code),
                    FromGuest::Refused(why) => {
                        return Err(HostError::Failed(format!("host {name}: {why}")));
                    }
                };
                written.map_err(HostError::io(format!("output of host {name}")))?;
            }
            match stream.read(&mut buffer) {
                Ok(0) => return Err(HostError::Failed(format!("host {name} has ended"))),
                Ok(length) => lines.push(&buffer[..length]),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(HostError::io(format!("host {name}"))(error)),
            }
            if let Some(limit) = self.limit.filter(|limit| watch.seconds() > limit.as_secs_f64()) {
                return Err(HostError::Late { what: format!("the command on host {name}"), limit });
            }
        }
    }
}
