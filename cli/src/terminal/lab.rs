//! Tables of labs: their state, ports, hosts, captures and rights.

use super::table::table;
use daemon::admin::view::{AttachedStatus, CaptureStatus};
use launch::lab::balance::Balance;
use launch::lab::folder::{DaemonRecord, HostRecord};
use launch::lab::rights::ThreadRights;
use results::run_directory::result::Conservation;
use results::wording::reasons;
use scenario::host::HostKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// The state of one lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabLine {
    /// "up", or why it is not.
    pub state: String,
    /// The name of its substrate.
    pub backend: String,
    /// Wall time over fabric time.
    pub dilation: u64,
    /// The number of its devices.
    pub nodes: usize,
    /// The process id of its supervisor.
    #[serde(rename = "keeper")]
    pub supervisor: u32,
    /// Fabric time.
    pub at_ps: Option<u64>,
    /// p99 of lateness, in thousandths of a frame time.
    pub late_p99_thousandths: Option<u64>,
    /// Frames lost by sockets.
    pub lost: u64,
    /// Frames given up, because a socket did not take them.
    pub unsent: u64,
    /// Datagrams that are not of this lab, or not whole.
    pub refused: u64,
    /// Frames lost by injected faults.
    pub injected_lost: u64,
    /// The ports attached to interfaces of the host.
    pub attached: Vec<AttachedStatus>,
    /// Its hosts.
    pub hosts: Vec<HostLine>,
    /// The captures that are under way.
    pub captures: Vec<CaptureStatus>,
    /// Its daemons.
    pub processes: Vec<DaemonRecord>,
}

/// The balance of a lab, one line and one for what sockets refused.
pub fn balance(balance: &Balance) -> String {
    let Conservation { injected, delivered, buffered, ref dropped, .. } = balance.frames;
    let sum: u64 = dropped.values().sum();
    let dropped = if sum > 0 { format!(" ({})", reasons(dropped)) } else { String::new() };
    let missing = i128::from(injected) - i128::from(delivered + buffered + sum);
    let missing = match missing {
        0 => String::new(),
        missing => format!("   ✕ {missing} UNACCOUNTED FOR"),
    };
    let refused = match reasons(&balance.refused).as_str() {
        "" => String::new(),
        reasons => format!("  refused {reasons}\n"),
    };
    let kept_up = balance.kept_up.unwrap_or(true);
    let lost = balance.lossless_drops.as_ref().map(|drops| format!("  {}\n", drops.line(kept_up)));
    let lost = lost.unwrap_or_default();
    let broken = balance.violations.as_ref().map(|broken| format!("  ✕ {broken}\n"));
    let broken = broken.unwrap_or_default();
    format!(
        "  frames  {injected} sent = {delivered} delivered + {buffered} under way + {sum} dropped{dropped}\
         {missing}\n{refused}{lost}{broken}"
    )
}

/// The state of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostLine {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: HostKind,
    /// Its port.
    pub port: String,
    /// The MAC address of its interface.
    pub mac: String,
    /// The addresses of its interface.
    pub addresses: Vec<String>,
    /// The id of its process.
    pub pid: u32,
    /// "up", or why it is not.
    pub state: String,
}

impl HostLine {
    /// A host of a lab that runs, or does not.
    pub fn of(host: &HostRecord, lab_runs: bool) -> HostLine {
        let state = match &host.ended {
            Some(why) => format!("ended: {why}"),
            None if lab_runs && host.process.is_alive() => "up".to_owned(),
            None => "ended".to_owned(),
        };
        HostLine {
            name: host.name.clone(),
            kind: host.kind,
            port: host.port.clone(),
            mac: host.mac.clone(),
            addresses: host.addresses.clone(),
            pid: host.process.process,
            state,
        }
    }
}

/// A table of labs.
pub fn labs(lines: &BTreeMap<String, LabLine>) -> String {
    let header = [
        "lab",
        "state",
        "backend",
        "slowed",
        "devices",
        "fabric time",
        "late p99",
        "lost",
        "unsent",
        "refused",
        "faults",
    ];
    let rows = lines.iter().map(|(name, line)| {
        let at = line.at_ps.map_or("–".to_owned(), |ps| format!("{:.3} ms", ps as f64 / 1e9));
        let late = line.late_p99_thousandths;
        let late = late.map_or("–".to_owned(), |late| format!("{:.3}", late as f64 / 1e3));
        vec![
            name.clone(),
            line.state.clone(),
            line.backend.clone(),
            format!("{}×", line.dilation),
            line.nodes.to_string(),
            at,
            late,
            line.lost.to_string(),
            line.unsent.to_string(),
            line.refused.to_string(),
            line.injected_lost.to_string(),
        ]
    });
    let labs = table(&header, 3..header.len(), rows);
    let tables = [labs, attached(lines), hosts(lines), captures(lines)];
    tables.into_iter().filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A table of hosts; empty without hosts.
fn hosts(lines: &BTreeMap<String, LabLine>) -> String {
    let hosts: Vec<_> =
        lines.iter().flat_map(|(lab, line)| line.hosts.iter().map(move |one| (lab, one))).collect();
    if hosts.is_empty() {
        return String::new();
    }
    let header = ["lab", "host", "kind", "port", "state", "addresses", "pid"];
    let rows = hosts.into_iter().map(|(lab, one)| {
        vec![
            lab.clone(),
            one.name.clone(),
            one.kind.word().to_owned(),
            one.port.clone(),
            one.state.clone(),
            one.addresses.join(" "),
            one.pid.to_string(),
        ]
    });
    table(&header, 6..header.len(), rows)
}

/// A table of captures; empty without any.
fn captures(lines: &BTreeMap<String, LabLine>) -> String {
    let all = lines.iter().flat_map(|(lab, line)| line.captures.iter().map(move |one| (lab, one)));
    let rows: Vec<_> = all
        .map(|(lab, one)| {
            let file = one.file.display().to_string();
            let error = one.error.clone().unwrap_or_default();
            [lab.clone(), file, one.seen.to_string(), one.dropped.to_string(), error]
        })
        .collect();
    let header = ["lab", "capture", "frames", "lost", ""];
    if rows.is_empty() { String::new() } else { table(&header, [2, 3], rows) }
}

/// A table of attached ports; empty without such ports.
fn attached(lines: &BTreeMap<String, LabLine>) -> String {
    let ports: Vec<_> = lines
        .iter()
        .flat_map(|(lab, line)| line.attached.iter().map(move |one| (lab, one)))
        .collect();
    if ports.is_empty() {
        return String::new();
    }
    let header = ["lab", "port", "interface", "state", "MTU", "dropped: away", "too long"];
    let rows = ports.into_iter().map(|(lab, one)| {
        vec![
            lab.clone(),
            one.port.clone(),
            one.interface.clone(),
            one.state.clone(),
            one.mtu.map_or("–".to_owned(), |mtu| mtu.to_string()),
            one.interface_down.to_string(),
            one.interface_mtu.to_string(),
        ]
    });
    table(&header, 4..header.len(), rows)
}

/// A table of what threads may do.
pub fn rights(labs: &BTreeMap<String, Vec<ThreadRights>>) -> String {
    let header = [
        "lab",
        "process",
        "pid",
        "thread",
        "user",
        "capabilities",
        "may gain more",
        "system calls",
    ];
    let all = labs.iter().flat_map(|(lab, threads)| threads.iter().map(move |one| (lab, one)));
    let rows = all.map(|(lab, one)| {
        let capabilities = match one.capabilities.len() {
            0 => "none".to_owned(),
            1..=4 => one.capabilities.join(" "),
            count => format!("{count} capabilities"),
        };
        let calls = if one.is_filtered { "filtered" } else { "any" };
        let gains = if one.may_gain { "yes" } else { "no" };
        [
            lab.clone(),
            one.process.clone(),
            one.pid.to_string(),
            one.thread.clone(),
            one.user.to_string(),
            capabilities,
            gains.to_owned(),
            calls.to_owned(),
        ]
    });
    table(&header, [2, 4], rows)
}
