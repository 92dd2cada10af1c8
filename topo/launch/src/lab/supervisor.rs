//! The supervisor of a lab: the process that holds its daemons and namespaces after `up` has ended.

use super::balance::Balance;
use super::beside;
use super::folder::{
    AttachedRecord, LabRecord, LinkRecord, READ_TOKEN, RUN, SCENARIO, Stage, TOKEN,
};
use crate::daemons::Cabling;
use crate::daemons::persistent::{DaemonRecord, LabEvent, run_until_stopped};
use crate::error::OrHost;
use crate::hosts::Hosts;
use crate::owner::{ProcessIdentity, private};
use crate::{Job, LaunchError, interrupt, netns, refuse_interfaces, with_sources};
use daemon::privileges::{self, FOR_THE_DATA_PLANE};
use daemon::protocol::write_line;
use daemon::token::Token;
use emulation::cable::namespace::Namespace;
use emulation::clock::Stopwatch;
use proto::units::{Duration, Instant};
use scenario::Scenario;
use scenario::render::{Lab, render};
use scenario::run::Backend;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Messages that a queue pair of a lab takes before they are complete. A lab has no end: without a limit an overload
/// that lasts would fill the memory of its host.
const SEND_QUEUE_MAX: u32 = 1024;

/// The interval at which a supervisor looks whether it still owns its lab, in seconds.
const LOOK_S: f64 = 1.0;

/// A message of the supervisor to its starter, in one line. The last is not about the progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StartMessage {
    /// What it does.
    Progress(String),
    /// The lab runs.
    Up,
    /// It does not run, for this reason.
    Failed(String),
}

/// Runs the lab in `folder` until it is stopped.
///
/// # Errors
/// The reason, which is in the journal too.
pub fn run(folder: &Path) -> Result<(), LaunchError> {
    // The terminal of `up` may close. A process that leads a group already fails here, which does no harm.
    let _ = nix::unistd::setsid();
    interrupt::install_handlers();
    let mut record = LabRecord::read(folder).or_host("cannot read the journal")?;
    record.owner = ProcessIdentity::this().or_host("cannot read /proc")?;
    let ended = record
        .write(folder)
        .or_host("cannot write the journal")
        .and_then(|()| run_lab(folder, &mut record));
    let reason = ended.as_ref().map_or_else(|error| with_sources(error), |()| "stopped".to_owned());
    record.stage = Stage::Ended(reason.clone());
    // The user may have removed the folder.
    let _ = record.write(folder);
    if ended.is_err() {
        // The process that started the lab ends once the lab is up.
        let _ = write_line(std::io::stdout(), &StartMessage::Failed(reason));
    }
    ended
}

/// Starts the lab and runs it to its end.
fn run_lab(folder: &Path, record: &mut LabRecord) -> Result<(), LaunchError> {
    let text = std::fs::read_to_string(folder.join(SCENARIO))
        .or_host(format!("cannot read {SCENARIO}"))?;
    let mut scenario = Scenario::parse(&text, &record.sets)
        .map_err(|faults| LaunchError::config(faults.in_file(SCENARIO)))?;
    // A lab may run for days: the cores of its host must be able to idle.
    scenario.run.awake = Some(false);
    let lab = without_end(&mut scenario);
    record.addresses = addresses(&lab);
    record.links = links(&lab);
    record.attached = attached(&lab);
    let name = record.lab.clone();
    let scratch = folder.join(RUN);
    private(&scratch).or_host("no folder for the run")?;
    if lab.is_managed() {
        crate::write_file(&folder.join(beside::PLANNED_LIDS), beside::planned_lids(&lab))?;
    }
    let token = record.tcp.then(|| make_token(folder)).transpose();
    let token = token.or_host("cannot write the token")?;
    let job = Job { name: &name, dilation: record.dilation, ..Job::new(&scenario, &lab, &scratch) };
    let (network, cabling) = if scenario.run.backend == Backend::Netns {
        let (network, cabling) = netns::LabNetwork::make(&job)?;
        (Some(network), cabling)
    } else {
        refuse_interfaces(&job)?;
        (None, Cabling::on_loopback(&job))
    };
    let namespaces = network.as_ref().map_or(&[][..], netns::LabNetwork::namespaces);
    let mut hosts = start_hosts(&job, namespaces, folder, record)?;
    if lab.fabric.hosts.is_empty() {
        give_up_rights(folder, record)?;
    }
    let mut looked = Stopwatch::start();
    let ended = run_until_stopped(&job, cabling, token, |event| {
        match event {
            LabEvent::Begun(daemons) => {
                record.daemons = daemons;
                record.stage = Stage::Up;
                record.write(folder).or_host("cannot write the journal")?;
                tell(&StartMessage::Up)?;
            }
            LabEvent::Ended(process, how, new) => note_replaced(process, &how, new, folder, record),
            LabEvent::Turn { silent } => {
                check_owner(&mut looked, folder, record)?;
                note_silent(&silent, folder, record);
                note_ended(&mut hosts, folder, record);
            }
        }
        Ok(())
    });
    hosts.stop();
    record.balance = ended?.as_deref().map(|reports| Balance::of_reports(reports, &job));
    Ok(())
}

/// Keeps only the rights that daemons need which take the place of others, and those to the lab's folder. Hosts may need any.
fn give_up_rights(folder: &Path, record: &LabRecord) -> Result<(), LaunchError> {
    let kept = [&FOR_THE_DATA_PLANE[..], &netns::RIGHTS].concat();
    privileges::narrow(&kept, || record.is_named_in(folder)).or_host("the keeper keeps its rights")
}

/// Sends a message to the starter. An error means that it was killed; then the lab ends, too.
fn tell(message: &StartMessage) -> Result<(), LaunchError> {
    write_line(std::io::stdout(), message).or_host("the process that starts the lab has ended")
}

/// Starts the hosts of a lab, and waits until they take commands.
fn start_hosts(
    job: &Job<'_>,
    namespaces: &[Namespace],
    folder: &Path,
    record: &mut LabRecord,
) -> Result<Hosts, LaunchError> {
    let report = &mut |line| tell(&StartMessage::Progress(line));
    let mut hosts = Hosts::start(job, namespaces, report)?;
    record.hosts = hosts.records(job.lab)?;
    record.write(folder).or_host("cannot write the journal")?;
    hosts.wait_ready(job.lab, report)?;
    Ok(hosts)
}

/// Ends a lab without an owner: its starter has ended and it is tied to it, or its journal is gone or names another.
fn check_owner(
    looked: &mut Stopwatch,
    folder: &Path,
    record: &LabRecord,
) -> Result<(), LaunchError> {
    if looked.seconds() < LOOK_S {
        return Ok(());
    }
    *looked = Stopwatch::start();
    if record.is_tied && !record.starter.is_alive() {
        return Err(LaunchError::host("the process that started the lab has ended"));
    }
    if !record.is_named_in(folder) {
        return Err(LaunchError::host("the journal of the lab is gone or names another owner"));
    }
    Ok(())
}

/// Notes in the log and in the journal which daemons are silent, or answer again.
fn note_silent(silent: &[usize], folder: &Path, record: &mut LabRecord) {
    let mut has_changed = false;
    for (process, daemon) in record.daemons.iter_mut().enumerate() {
        let is_silent = silent.contains(&process);
        if daemon.is_silent != is_silent {
            let what = if is_silent { "is silent" } else { "answers again" };
            eprintln!("process {process} ({}) {what}", daemon.nodes.join(", "));
            (daemon.is_silent, has_changed) = (is_silent, true);
        }
    }
    if has_changed {
        // The user may have removed the folder.
        let _ = record.write(folder);
    }
}

/// Notes in the log and in the journal that a daemon has ended, and which has taken its place.
fn note_replaced(
    process: usize,
    how: &str,
    new: Option<DaemonRecord>,
    folder: &Path,
    record: &mut LabRecord,
) {
    let daemon = &mut record.daemons[process];
    let nodes = daemon.nodes.join(", ");
    match new {
        Some(new) => {
            eprintln!("{how}; process {process} is {} now ({nodes})", new.pid);
            *daemon = DaemonRecord { restarts: daemon.restarts + 1, ..new };
        }
        None => {
            eprintln!("{how}; process {process} ended too often and stays away ({nodes})");
            daemon.is_given_up = true;
        }
    }
    // The user may have removed the folder.
    let _ = record.write(folder);
}

/// Notes in the log and in the journal which hosts have ended.
fn note_ended(hosts: &mut Hosts, folder: &Path, record: &mut LabRecord) {
    for (index, why) in hosts.take_ended() {
        let host = &mut record.hosts[index];
        eprintln!("host {} has ended: {why}", host.name);
        host.ended = Some(why.lines().next().unwrap_or_default().to_owned());
        // The user may have removed the folder.
        let _ = record.write(folder);
    }
}

/// Makes a token and writes it into the lab's folder, and the one that only reads.
fn make_token(folder: &Path) -> std::io::Result<Token> {
    let token = Token::make()?;
    token.write(&folder.join(TOKEN))?;
    token.read_only().write(&folder.join(READ_TOKEN))?;
    Ok(token)
}

/// Renders a scenario without an end: traffic up to the end does not stop, and nothing is measured, because there
/// is not a last instant. One bin, because nothing reads the series of a lab and those of large fabrics take gigabytes.
fn without_end(scenario: &mut Scenario) -> Lab {
    let end = scenario.run.end();
    for item in scenario.traffic.items.iter_mut().filter(|item| item.stop >= end) {
        item.stop = Instant::NEVER;
    }
    let mut lab = render(scenario);
    lab.plan.stop = Instant::NEVER;
    lab.plan.bin = Duration::from_ps(u64::MAX);
    lab.plan.edges.clear();
    lab.plan.measured.clear();
    lab.plan.named.clear();
    lab.plan.all_events = false;
    lab.nics.iter_mut().for_each(|nic| nic.send_queue_max = Some(SEND_QUEUE_MAX));
    lab
}

fn addresses(lab: &Lab) -> std::collections::BTreeMap<u64, String> {
    let nodes = lab.fabric.wiring.nodes.iter().zip(&lab.fabric.addresses);
    let adapters = nodes.take(lab.nics.len());
    let adapters = adapters.map(|(node, address)| (*address, node.name.clone()));
    let groups = lab.nics.iter().flat_map(|nic| &nic.groups);
    adapters.chain(groups.map(|group| (group.lid.get().into(), group.name.clone()))).collect()
}

fn links(lab: &Lab) -> Vec<LinkRecord> {
    let wiring = &lab.fabric.wiring;
    let links = wiring.links.iter().zip(&lab.fabric.rates).map(|(link, rate)| LinkRecord {
        a: wiring.end_name(link.a),
        b: wiring.end_name(link.b),
        rate: *rate,
    });
    links.collect()
}

fn attached(lab: &Lab) -> Vec<AttachedRecord> {
    let port = |(at, interface, rate): (_, &str, _)| {
        let (port, interface) = (lab.fabric.wiring.end_name(at), interface.to_owned());
        AttachedRecord { port, interface, rate }
    };
    lab.fabric.attached().map(port).collect()
}
