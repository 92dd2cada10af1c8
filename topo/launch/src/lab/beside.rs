//! Programs beside nodes of a managed lab, such as OpenSM: their environment, and how they are run.

use super::LabRecord;
use crate::error::OrHost;
use crate::{LaunchError, interrupt, scratch};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::ids::Lid;
use scenario::render::Lab;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use switchd::config::ManagementConfig;

/// The library that gives programs of libibumad a port of the fabric.
const LIBRARY: &str = "umad2sim/libumad2sim.so";
/// Folders of libraries. Below the first are those of one processor.
const FOLDERS: [&str; 4] = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"];
/// The variable by which the linker loads a library first.
const PRELOAD: &str = "LD_PRELOAD";
/// The longest name that the library passes on.
const NAME_MAX: usize = 31;
/// The file with the planned LIDs, as OpenSM calls it.
pub(super) const PLANNED_LIDS: &str = "guid2lid";
/// The interval at which the end of a program is polled.
const POLL_NS: u64 = 5_000_000;
/// As a shell reports a program that a signal has ended, and one that it cannot start.
const BY_SIGNAL: i32 = 128;
const NOT_FOUND: u8 = 127;

/// The library as installed on this system.
///
/// # Errors
/// If it is not.
fn library() -> Result<PathBuf, LaunchError> {
    let own = FOLDERS.iter().map(PathBuf::from);
    let below = std::fs::read_dir(FOLDERS[0]).into_iter().flatten().flatten();
    let mut files = own.chain(below.map(|entry| entry.path())).map(|folder| folder.join(LIBRARY));
    files.find(|file| file.is_file()).ok_or_else(|| {
        LaunchError::host(
            "libumad2sim.so is not installed: Debian and Ubuntu have it in the package libumad2sim0, beside opensm and \
             infiniband-diags",
        )
    })
}

/// The environment of a program beside `node`.
///
/// # Errors
/// If the lab has no such node or is not managed, or the library is not installed.
pub fn environment(
    record: &LabRecord,
    node: &str,
) -> Result<Vec<(&'static str, String)>, LaunchError> {
    let lab = &record.lab;
    // A port or nothing may follow the name.
    let name = node.split(':').next().unwrap_or_default();
    let daemon = record.daemon_of(name);
    let daemon =
        daemon.ok_or_else(|| LaunchError::config(format!("lab {lab} has no node {node:?}")))?;
    let socket = daemon.clients.clone().ok_or_else(|| {
        LaunchError::config(format!("lab {lab} has no subnet manager: pausebed up --managed"))
    })?;
    if node.len() > NAME_MAX {
        let reason = format!("{node}: libumad2sim takes names of {NAME_MAX} octets at most");
        return Err(LaunchError::config(reason));
    }
    let mut preload = library()?.display().to_string();
    if let Some(before) = std::env::var(PRELOAD).ok().filter(|before| !before.is_empty()) {
        preload = format!("{preload}:{before}");
    }
    Ok(vec![(PRELOAD, preload), ("SIM_HOST", node.to_owned()), ("IBSIM_SOCKNAME", socket)])
}

/// The LIDs of a fabric's plan, as OpenSM stores and restores those that it has assigned. NICs send to these LIDs until
/// they have path records.
pub(super) fn planned_lids(lab: &Lab) -> String {
    let ports = lab.nics.iter().map(|nic| (nic.lid, nic.management, 1));
    let ports = ports.chain(lab.switches.iter().map(|switch| (switch.lid, switch.management, 0)));
    let line = |(lid, management, port): (Lid, Option<ManagementConfig>, u64)| {
        let (guid, lid) = (management?.guid + port, lid.get());
        Some(format!("0x{guid:016x} 0x{lid:04x} 0x{lid:04x}\n\n"))
    };
    ports.filter_map(line).collect()
}

/// The output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// That of this process.
    Shown,
    /// Nowhere.
    Hidden,
}

/// Runs a program beside `node` of the lab in `lab_folder`, in a folder of its own, in which the library makes files,
/// and which is removed afterwards. OpenSM finds the planned LIDs there, and keeps its files there. Returns the exit
/// code: that of the program, 128 and the number of the signal that ended it, 127 if there is no such program.
///
/// # Errors
/// As [`environment`], and if the system does not start it.
pub fn run(
    lab_folder: &Path,
    record: &LabRecord,
    node: &str,
    words: &[String],
    variables: &[(String, String)],
    output: Output,
) -> Result<u8, LaunchError> {
    let environment = environment(record, node)?;
    let folder = scratch::make().or_host("no folder for the program")?;
    std::fs::copy(lab_folder.join(PLANNED_LIDS), folder.path().join(PLANNED_LIDS))
        .or_host("cannot copy the planned LIDs")?;
    interrupt::install_handlers();
    let Some((program, arguments)) = words.split_first() else { return Ok(NOT_FOUND) };
    let mut command = command(program);
    command.args(arguments).current_dir(folder.path());
    // Otherwise OpenSM takes the LIDs of the last fabric from files of this host.
    command.env("OSM_CACHE_DIR", folder.path()).env("OSM_TMP_DIR", folder.path());
    command.envs(environment).envs(variables.iter().cloned());
    if output == Output::Hidden {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    }
    let mut child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("{program}: not found");
            return Ok(NOT_FOUND);
        }
        spawned => spawned.or_host("cannot start the program")?,
    };
    let status = ended(&mut child).or_host("the program cannot be watched")?;
    let code = status.code().unwrap_or_else(|| BY_SIGNAL + status.signal().unwrap_or_default());
    // Exit codes have eight bits.
    Ok(code as u8)
}

/// A program that gets SIGTERM when this process ends.
#[expect(clippy::disallowed_methods, reason = "only this crate starts child processes")]
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: one system call without allocation between fork and exec.
    // Test: opensm_brings_a_lab_up_and_programs_see_its_topology.
    unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGTERM)?)) };
    command
}

/// Waits for the end of a program. Ctrl-C and SIGTERM end it.
fn ended(child: &mut Child) -> std::io::Result<ExitStatus> {
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt::requested() && !is_asked {
            is_asked = true;
            // An error means that it has just ended.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        }
        interrupt::pause(POLL_NS);
    }
}
