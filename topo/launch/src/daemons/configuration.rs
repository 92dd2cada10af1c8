//! The configuration of each daemon of a run, and its files.

use super::Cabling;
use crate::attached;
use crate::error::OrHost;
use crate::placement::Hosting;
use crate::{Job, LaunchError, write_file};
use capture::CapturePlan;
use daemon::{ClientsConfig, DaemonConfig, PortInterface, feed};
use emulation::wiring::End;
use scenario::run::{Cables, Pace};
use std::path::{Path, PathBuf};

/// The configuration of one process.
pub(crate) fn daemon_config(
    job: &Job<'_>,
    hosting: &Hosting,
    cabling: &Cabling,
    process: usize,
    feed: Option<&Path>,
) -> Result<DaemonConfig, LaunchError> {
    let lab = job.lab;
    let adapters = lab.nics.len();
    let table = |node: usize| match node.checked_sub(adapters) {
        None => toml::Table::try_from(&lab.nics[node]),
        Some(switch) => toml::Table::try_from(&lab.switches[switch]),
    };
    let devices = hosting.nodes(process).map(table).collect::<Result<Vec<_>, _>>();
    Ok(DaemonConfig {
        lab: job.name.to_owned(),
        process,
        processes: hosting.kinds.len(),
        seed: job.run.seed,
        technology: lab.fabric.technology,
        hosts: hosting.hosts.clone(),
        carrier: cabling.carrier,
        bare: cabling.bare,
        interfaces: interfaces_of(job, hosting, cabling, process),
        local: job.run.cables == Cables::Local,
        exact: job.run.pace == Pace::Exact,
        bind: std::net::Ipv4Addr::LOCALHOST.into(),
        socket_dir: Some(job.scratch.to_owned()),
        datagram_max: emulation::cable::exchange::DATAGRAM_MAX,
        receive_buffer: None,
        realtime: job.run.realtime,
        capture: job.capture.as_ref().and_then(|plan| {
            let whole = (job.run.pace == Pace::Exact).then(|| capture_part(job, process));
            part_of(plan, hosting, process, whole)
        }),
        feed: feed.map(Path::to_owned),
        admin: None,
        clients: clients(job, process),
        plan: lab.plan.clone(),
        wiring: attached::resolved(&lab.fabric.wiring, job.scratch),
        devices: devices.map_err(not_toml())?,
    })
}

/// Wall time before a request of a program beside a device is sent again: a base, and full frames on the line; more of
/// them on QP1, where a request waits as data do.
const RETRY_MS: u64 = 200;
const RETRY_FRAMES: u64 = 200;
const GENERAL_RETRY_FRAMES: u64 = 4_000;

/// Where programs that manage the fabric find a process, if they are to manage it.
fn clients(job: &Job<'_>, process: usize) -> Option<ClientsConfig> {
    let frames = job.lab.fabric.wiring.links.iter().map(|link| link.frame_time.as_ps());
    let frame_ps = u128::from(frames.max().unwrap_or_default()) * u128::from(job.dilation);
    let retry_ms = |frames: u64| {
        let more = frame_ps.saturating_mul(frames.into()) / 1_000_000_000;
        RETRY_MS.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    };
    clients_socket(job, process).map(|socket| ClientsConfig {
        socket,
        retry_ms: retry_ms(RETRY_FRAMES),
        general_retry_ms: retry_ms(GENERAL_RETRY_FRAMES),
    })
}

/// The socket for the administration of a process.
pub(crate) fn admin_socket(job: &Job<'_>, process: usize) -> PathBuf {
    job.scratch.join(format!("process-{process}.sock"))
}

/// What the names of the sockets for programs begin with, in a managed fabric.
pub(crate) fn clients_socket(job: &Job<'_>, process: usize) -> Option<String> {
    let name = || format!("pausebed-{}-{}-{process}", job.name, std::process::id());
    job.lab.is_managed().then(name)
}

pub(crate) fn not_toml() -> impl FnOnce(toml::ser::Error) -> LaunchError {
    LaunchError::config("a configuration cannot be written as TOML").caused()
}

/// The interfaces at the ports of one process, except those with a cable in memory.
fn interfaces_of(
    job: &Job<'_>,
    hosting: &Hosting,
    cabling: &Cabling,
    process: usize,
) -> Vec<PortInterface> {
    let wiring = &job.lab.fabric.wiring;
    let is_here = |end: End| hosting.hosts[end.node] == process;
    let in_memory = |end: End| {
        job.run.cables == Cables::Local && wiring.peer(end).is_some_and(|(_, far)| is_here(far))
    };
    let own = cabling.interfaces.iter().filter(|face| is_here(face.at) && !in_memory(face.at));
    own.cloned().collect()
}

/// The file of what one process captures with exact pace.
pub(crate) fn capture_part(job: &Job<'_>, process: usize) -> PathBuf {
    job.scratch.join(format!("capture-{process}.part"))
}

/// Writes the configuration of a process and returns the path of the file.
pub(crate) fn write_config(job: &Job<'_>, config: &DaemonConfig) -> Result<PathBuf, LaunchError> {
    let text = toml::to_string(config).map_err(not_toml())?;
    let file = job.scratch.join(format!("process-{}.toml", config.process));
    write_file(&file, text)?;
    Ok(file)
}

/// Writes the frames that daemons inject, and returns the path of the file, if there are any.
pub(crate) fn write_feed(job: &Job<'_>) -> Result<Option<PathBuf>, LaunchError> {
    if job.injections.is_empty() {
        return Ok(None);
    }
    let file = job.scratch.join("feed.pcapng");
    feed::write(&file, &job.lab.fabric.wiring, &job.injections)
        .or_host(format!("cannot write {}", file.display()))?;
    Ok(Some(file))
}

/// The captured ports of one process, with a file of its own unless it hosts all of them.
///
/// With exact pace the file is `whole`, from which the launcher makes the capture.
fn part_of(
    plan: &CapturePlan,
    hosting: &Hosting,
    process: usize,
    whole: Option<PathBuf>,
) -> Option<CapturePlan> {
    let mut part = plan.clone();
    part.ports.retain(|port| hosting.hosts[port.at.node] == process);
    if let Some(file) = whole {
        part.file = file;
    } else if part.ports.len() < plan.ports.len() {
        let stem = plan.file.file_stem().unwrap_or_default().to_string_lossy();
        part.file = plan.file.with_file_name(format!("{stem}-{process}.pcapng"));
    }
    (!part.ports.is_empty()).then_some(part)
}
