//! Containers of Docker or Podman with one interface on the fabric.
//!
//! ```text
//!   owner ──▶ docker run --interactive … cat ──▶ engine ──▶ container: cat, and what exec starts
//! ```
//!
//! The container has no network of the engine. Its first process, `cat`, ends with its input: when the owner ends, the
//! kernel kills the engine's client, the engine closes the input, and removes the container. A client that is killed
//! before it has attached leaves a container behind; its label names the owner, and [`remove_leftovers`] finds it.

mod engine;

use crate::HostError;
use crate::image::check_private;
use crate::interface::{self, Interface, LabEnd, check_name};
use crate::process::{end, pause, spawn, tie};
use crate::streams::Streams;
use crate::text::escaped;
use emulation::cable::namespace::Namespace;
use emulation::clock::Stopwatch;
use engine::Engine;
use guest::protocol::ExecRequest;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Time for the engine to start a container whose image is there.
const START: Duration = Duration::from_secs(60);
/// The interval at which the start is polled.
const POLL: Duration = Duration::from_millis(50);
/// Octets of the engine's messages that an error shows.
const LOG_TAIL: usize = 1_500;
/// The label that names the owner of a container.
pub const OWNER_LABEL: &str = "pausebed.launcher";
/// The variable by which the processes of one command are known.
const COMMAND: &str = "PAUSEBED_COMMAND";

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSpec {
    /// Letters, digits, `-` and `_`, at most 32; it names the host and its files.
    pub name: String,
    /// Its interface.
    pub interface: Interface,
    /// The image. It has to be there, and to have the program `cat`.
    pub image: String,
    /// Limit of its memory in MiB.
    pub memory_mib: Option<u32>,
    /// The value of [`OWNER_LABEL`], for [`remove_leftovers`].
    pub owner: String,
    /// Folder of the run with mode 0700, for `NAME.container` and the log `NAME.engine.log`.
    pub folder: PathBuf,
}

/// A running container. It ends with this process, and when this value is dropped.
#[derive(Debug)]
pub struct ContainerHost {
    engine: Engine,
    client: Child,
    /// None until the engine has made it.
    id: Option<String>,
    pid: u32,
    inside: Option<Namespace>,
    file: PathBuf,
}

impl ContainerHost {
    /// Starts a container and gives it its interface.
    ///
    /// # Errors
    /// If the specification is not valid, no engine answers, there is no such image, or the system refuses something:
    /// `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` are needed in the engine's network namespaces.
    pub fn start(spec: &ContainerSpec, lab: LabEnd<'_>) -> Result<ContainerHost, HostError> {
        let Interface { mac, addresses, mtu } = &spec.interface;
        interface::check(&spec.name, *mac, *mtu, addresses)?;
        check_private(&spec.folder)?;
        let engine = Engine::find()?;
        engine.require_image(&spec.image)?;
        let file = file_of(&spec.folder, &spec.name);
        remove_file(&file)?;
        let log = spec.folder.join(format!("{}.engine.log", spec.name));
        let errors = File::create(&log).map_err(HostError::io(log.display()))?;
        let mut command = engine.command(&words(spec, &file));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(errors);
        tie(&mut command);
        let client = spawn(command).map_err(HostError::io(engine.program()))?;
        let mut host = ContainerHost { engine, client, id: None, pid: 0, inside: None, file };
        host.wait_running(&spec.name, &log)?;
        let refused = |what: &str| HostError::io(format!("host {}: {what}", spec.name));
        let path = PathBuf::from(format!("/proc/{}/ns/net", host.pid));
        let inside = Namespace::open(&path).map_err(refused("cannot enter its network"))?;
        let made = spec.interface.make(&inside, lab);
        host.inside = Some(inside);
        made.map_err(refused("cannot make its interface"))?;
        Ok(host)
    }

    /// Waits until the first process of the container runs.
    fn wait_running(&mut self, name: &str, log: &Path) -> Result<(), HostError> {
        let watch = Stopwatch::start();
        loop {
            if let Ok(id) = read_id(&self.file) {
                // An engine that has just written the file may not answer for the container yet.
                self.pid = self.engine.pid_of(&id).unwrap_or(0);
                self.id = Some(id);
            }
            if self.pid > 0 {
                return Ok(());
            }
            if !self.is_alive() {
                let text = fs::read(log).unwrap_or_default();
                let text = escaped(&text[text.len().saturating_sub(LOG_TAIL)..]);
                let text = format!("host {name}: the container has ended\n{}", text.trim());
                return Err(HostError::Failed(text));
            }
            if watch.seconds() > START.as_secs_f64() {
                let what = format!("the start of host {name}");
                return Err(HostError::Late { what, limit: START });
            }
            pause(POLL);
        }
    }

    /// Process id of the first process of the container: its network is `/proc/PID/ns/net`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the container still runs; its client ends with it.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.client.try_wait(), Ok(None))
    }

    /// Kills all programs of the container and removes it.
    pub fn stop(self) {}
}

impl Drop for ContainerHost {
    fn drop(&mut self) {
        end(&mut self.client);
        if let Some(inside) = &self.inside {
            interface::remove(inside);
        }
        // The engine may have made the container after the last look at the file.
        let id = self.id.take().or_else(|| read_id(&self.file).ok());
        if let Some(id) = id {
            self.engine.remove(&id);
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// Arguments of the engine that start a container. It may change its interface, which is all that its network has.
fn words(spec: &ContainerSpec, file: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        ["run", "--interactive", "--rm", "--pull", "never", "--network", "none"]
            .map(OsString::from)
            .into();
    let mut add = |word: &str, value: &OsStr| words.extend([word.into(), value.to_owned()]);
    add("--cap-add", "NET_ADMIN".as_ref());
    add("--hostname", spec.name.replace('_', "-").as_ref());
    add("--label", format!("{OWNER_LABEL}={}", spec.owner).as_ref());
    add("--cidfile", file.as_os_str());
    if let Some(memory) = spec.memory_mib {
        add("--memory", format!("{memory}m").as_ref());
    }
    add("--entrypoint", "cat".as_ref());
    words.extend(["--".into(), spec.image.clone().into()]);
    words
}

/// The file with the identifier of a container.
fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.container"))
}

fn read_id(file: &Path) -> io::Result<String> {
    let text = fs::read_to_string(file)?;
    let id = text.trim();
    let is_whole = !id.is_empty() && id.bytes().all(|octet| octet.is_ascii_hexdigit());
    if is_whole { Ok(id.to_owned()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// The engine refuses a file that exists.
fn remove_file(file: &Path) -> Result<(), HostError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(HostError::io(file.display())(error))
        }
        _ => Ok(()),
    }
}

/// Removes the containers whose owner, the value of [`OWNER_LABEL`], has ended.
///
/// # Errors
/// If there is no engine, or it does not answer.
pub fn remove_leftovers(has_ended: impl Fn(&str) -> bool) -> Result<(), HostError> {
    let engine = Engine::find()?;
    for (id, owner) in engine.labelled(OWNER_LABEL)? {
        if has_ended(&owner) {
            engine.remove(&id);
        }
    }
    Ok(())
}

/// Runs a command in the container of the host `name` whose file is in `folder`, and returns its exit code: that of the
/// command, 128 and the number of the signal that ended it, 126 or 127 if it cannot be executed.
///
/// The command has the environment and the working directory of the image. Its processes end when the limit passes;
/// when this process is killed, they run on until the host ends. A thread reads `stdin` in pieces; it may outlive the
/// command, until its read returns.
///
/// # Errors
/// If there is no such container, the command is not valid, a stream fails, or the limit passes.
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
    let gone = |_| HostError::Invalid(format!("host {name} does not run"));
    let id = read_id(&file_of(folder, name)).map_err(gone)?;
    let engine = Engine::find()?;
    let mark = format!("{COMMAND}={}", crate::exec::random()?);
    let mut words: Vec<OsString> = ["exec", "--interactive", "--env"].map(OsString::from).into();
    words.push(mark.clone().into());
    for (key, value) in &command.environment {
        words.extend(["--env".into(), format!("{key}={value}").into()]);
    }
    words.push(id.into());
    words.extend(command.argv.iter().map(OsString::from));
    let mut program = engine.command(&words);
    tie(&mut program);
    Streams { name, stdout, stderr, limit }.run(program, spawn, stdin, |client| {
        end(client);
        kill_marked(&mark);
    })
}

/// Kills every process with this variable: the engine leaves a command alone when its client ends.
fn kill_marked(mark: &str) {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let number = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number) = number else { continue };
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        if environment.split(|octet| *octet == 0).any(|variable| variable == mark.as_bytes()) {
            // It may have ended since.
            let _ = kill(Pid::from_raw(number), Signal::SIGKILL);
        }
    }
}
