//! Programs in network namespaces and containers of this system.
//!
//! Skipped with a message where namespaces may not be made, or where no container engine answers.

mod programs {
    pub mod container;
    pub mod namespace;
}

use emulation::cable::interface_info::{InterfaceInfo, interface, interfaces};
use emulation::cable::namespace::Namespace;
use emulation::clock::{Stopwatch, monotonic_ns};
use host::HostError;
use host::exec::ExecRequest;
use host::interface::{Interface, LabEnd};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Time for a command on a busy system.
const COMMAND: Duration = Duration::from_secs(30);
/// Environment of the process that a test kills: its folder.
const OWNER_FOLDER: &str = "PAUSEBED_TEST_OWNER";

/// A namespace with the lab's ends of cables, and the folder of a run.
struct Lab {
    folder: TempDir,
    namespace: Namespace,
}

impl Lab {
    /// `None`, with a message, without the right to make it.
    fn new() -> Option<Lab> {
        let namespace = match Namespace::make(1) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                skip::because!("making network namespaces takes CAP_SYS_ADMIN: {error}");
                return None;
            }
            made => made.expect("a namespace").remove(0),
        };
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir();
        Some(Lab { folder: folder.expect("a folder"), namespace })
    }

    fn end<'a>(&'a self, name: &'a str) -> LabEnd<'a> {
        LabEnd { namespace: &self.namespace, name, mac: [2, 0, 0, 0, 9, 9], note: "a test" }
    }

    /// The names of the lab's ends, without the loopback interface.
    fn ends(&self) -> Vec<String> {
        let all = self.namespace.enter(interfaces).expect("a list");
        all.into_iter().filter(|face| !face.is_loopback).map(|face| face.name).collect()
    }

    /// Gives the lab's end an address, so that the kernel answers there.
    fn answer_at(&self, end: &str, address: &str, prefix: u8) {
        let index = self.namespace.enter(|| interface(end)).expect("it is there").index;
        let address = address.parse().expect("an address");
        self.namespace.interfaces.give_address(index, address, prefix).expect("an address");
    }

    /// What a command does: exit code, output, errors.
    fn exec(&self, exec: Exec, name: &str, argv: &[&str]) -> (i32, String, String) {
        outcome(exec, self.folder.path(), name, argv, io::empty(), COMMAND).expect("it runs")
    }
}

type Exec = fn(
    &Path,
    &str,
    &ExecRequest,
    Box<dyn Read + Send>,
    &mut dyn io::Write,
    &mut dyn io::Write,
    Option<Duration>,
) -> Result<i32, HostError>;

fn outcome(
    exec: Exec,
    folder: &Path,
    name: &str,
    argv: &[&str],
    stdin: impl Read + Send + 'static,
    limit: Duration,
) -> Result<(i32, String, String), HostError> {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let environment = BTreeMap::from([("X".to_owned(), "a b".to_owned())]);
    let request = ExecRequest { argv, environment };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = exec(folder, name, &request, Box::new(stdin), &mut out, &mut err, Some(limit))?;
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
    Ok((code, text(out), text(err)))
}

fn eth0() -> Interface {
    Interface {
        mac: [2, 0x68, 0, 0, 0, 1],
        addresses: vec![("198.18.0.1".parse().expect("an address"), 24)],
        mtu: 1_500,
    }
}

/// The interface `eth0` of the process `pid`, as the kernel reports it.
fn eth0_of(pid: u32) -> InterfaceInfo {
    let inside =
        Namespace::open(&PathBuf::from(format!("/proc/{pid}/ns/net"))).expect("it is there");
    inside.enter(|| interface("eth0")).expect("it has an interface")
}

/// What every kind of host does with the streams and the end of a command.
fn streams_codes_and_limits(lab: &Lab, exec: Exec, name: &str) {
    let shell = |line: &str| lab.exec(exec, name, &["sh", "-c", line]);
    let text = |code, out: &str, err: &str| (code, out.to_owned(), err.to_owned());
    assert_eq!(shell("echo out; echo \"$X\" >&2; exit 3"), text(3, "out\n", "a b\n"));
    assert_eq!(shell("kill -9 $$").0, 137);
    // Docker before 23 says 126.
    let missing = lab.exec(exec, name, &["no-such-program"]);
    assert!([126, 127].contains(&missing.0), "{missing:?}");
    // More than all pipes hold, through standard input and back.
    let line = "0123456789abcde\n";
    let input = io::Cursor::new(line.repeat(40_000).into_bytes());
    let back = outcome(exec, lab.folder.path(), name, &["cat"], input, COMMAND).expect("it runs");
    assert!(back == text(0, &line.repeat(40_000), ""), "{} octets came back", back.1.len());
    // The limit ends the command and what it has started.
    let line = ["sh", "-c", "sleep 4321.5 & sleep 4321.5"];
    let limit = Duration::from_millis(500);
    let late = outcome(exec, lab.folder.path(), name, &line, io::empty(), limit);
    assert!(matches!(late, Err(HostError::Late { .. })), "{late:?}");
    until("the sleeping programs have ended", || processes("sleep\x004321.5\0").is_empty());
    let unknown = outcome(exec, lab.folder.path(), "h9", &["true"], io::empty(), COMMAND);
    assert!(unknown.is_err_and(|error| error.to_string().contains("h9")));
}

/// Processes whose command line or environment contains these octets.
fn processes(octets: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("it is mounted").flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |number: &u32| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = fs::read(format!("/proc/{number}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(octets)
        })
    };
    numbers.filter(has).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let watch = Stopwatch::start();
    while !holds() {
        assert!(watch.seconds() < 20.0, "it does not come true that {what}");
        wait(20);
    }
}

fn wait(ms: u64) {
    emulation::timer::wait(None, monotonic_ns() + ms * 1_000_000);
}

/// Starts the ignored test `name` of this program as the owner of hosts.
#[expect(clippy::disallowed_methods, reason = "the test kills the process that owns hosts")]
fn owner(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("it has a path"));
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(OWNER_FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn kill(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
}

/// In an owner: its folder, and a lab with it.
fn owner_lab() -> Option<(PathBuf, Namespace)> {
    let folder = std::env::var_os(OWNER_FOLDER)?;
    Some((folder.into(), Namespace::make(1).expect("a namespace").remove(0)))
}
