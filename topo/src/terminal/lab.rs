//! Tables of labs and of the counters of their devices.

use super::table::table;
use clap::ValueEnum;
use daemon::admin::view::{
    AttachedStatus, CaptureStatus, Counters, FlowCounters, LaneCounters, PortCounters,
};
use launch::lab::LabRecord;
use launch::lab::folder::{DaemonRecord, HostRecord};
use launch::lab::rights::ThreadRights;
use scenario::host::HostKind;
use serde::Serialize;
use std::collections::BTreeMap;

const PS_PER_US: u64 = 1_000_000;

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

/// The subject of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// Pauses by port and priority
    Pfc,
    /// Marks and notifications by port and lane
    Ecn,
    /// Flow control of InfiniBand by port and lane
    Credits,
    /// Reaction points by flow
    Cc,
    /// Octets waiting by port and lane
    Queues,
    /// Frames, octets and losses by port
    Links,
    /// Messages and octets by flow
    Flows,
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

/// A table of counters.
#[derive(Clone, Copy, Debug)]
pub struct Show<'a> {
    /// The subject.
    pub subject: Subject,
    /// Leave out rows with only zeros.
    pub nonzero: bool,
    /// The lab.
    pub record: &'a LabRecord,
}

/// A column of numbers about lanes: its title, and the value of a lane of a port.
type LaneColumn = (&'static str, fn(&PortCounters, &LaneCounters) -> u64);
/// A column of numbers about flows.
type FlowColumn = (&'static str, fn(&FlowCounters) -> u64);
/// A column of numbers about ports.
type PortColumn = (&'static str, fn(&PortCounters) -> u64);

/// PAUSE stops the whole link, so every priority shows its frames.
const PFC: &[LaneColumn] = &[
    ("rx frames", |port, lane| named(port, format!("rx_prio{}_pause", lane.lane))),
    ("tx frames", |port, lane| named(port, format!("tx_prio{}_pause", lane.lane))),
    ("rx PAUSE", |port, _| named(port, "rx_global_pause".to_owned())),
    ("tx PAUSE", |port, _| named(port, "tx_global_pause".to_owned())),
    ("paused us", |_, lane| lane.pause_ps / PS_PER_US),
    ("asked us", |port, lane| {
        named(port, format!("tx_prio{}_pause_duration", lane.lane))
            + named(port, "tx_global_pause_duration".to_owned())
    }),
];
const ECN: &[LaneColumn] = &[
    ("tx frames", |_, lane| lane.tx_frames),
    ("marked", |_, lane| lane.marks),
    ("notes tx", |_, lane| lane.notes_tx),
    ("notes rx", |_, lane| lane.notes_rx),
];
const CREDITS: &[LaneColumn] = &[
    ("control tx", |_, lane| lane.tx_control),
    ("control rx", |_, lane| lane.rx_control),
    ("wait us", |_, lane| lane.wait_ps / PS_PER_US),
    ("no room", |_, lane| lane.no_room),
    ("watchdogs", |port, _| port.watchdogs),
];
const QUEUES: &[LaneColumn] = &[
    ("out now", |_, lane| lane.out_queue.now),
    ("out most", |_, lane| lane.out_queue.most),
    ("in now", |_, lane| lane.in_queue.now),
    ("in most", |_, lane| lane.in_queue.most),
    ("source now", |_, lane| lane.source_queue.now),
];
const CC: &[FlowColumn] = &[
    ("rate Mbit/s", |flow| flow.rate / 1_000_000),
    ("gap ns", |flow| flow.gap_ps / 1_000),
    ("state", |flow| flow.state),
    ("held back", |flow| u64::from(flow.held_back)),
    ("notes", |flow| flow.notes),
];
const FLOWS: &[FlowColumn] = &[
    ("class", |flow| u64::from(flow.class)),
    ("messages", |flow| flow.messages),
    ("completed", |flow| flow.completed),
    ("tx bytes", |flow| flow.tx_bytes),
    ("notes", |flow| flow.notes),
];
const LINKS: &[PortColumn] = &[
    ("tx frames", |port| port.lanes.iter().map(|lane| lane.tx_frames).sum()),
    ("tx bytes", |port| port.lanes.iter().map(|lane| lane.tx_bytes).sum()),
    ("rx frames", |port| port.lanes.iter().map(|lane| lane.rx_frames).sum()),
    ("rx bytes", |port| port.lanes.iter().map(|lane| lane.rx_bytes).sum()),
    ("control tx", |port| port.lanes.iter().map(|lane| lane.tx_control).sum()),
    ("control rx", |port| port.lanes.iter().map(|lane| lane.rx_control).sum()),
    ("drops", |port| port.drops.values().sum()),
    ("faults", |port| {
        let hits = &port.injected;
        hits.lost + hits.corrupted + hits.duplicated + hits.delayed
    }),
    ("watchdogs", |port| port.watchdogs),
];

/// A counter of a port by its operators' name; 0 if the port does not have it.
fn named(port: &PortCounters, name: String) -> u64 {
    port.named.get(&name).copied().unwrap_or(0)
}

impl Show<'_> {
    /// The table.
    pub fn text(&self, counters: &[Counters]) -> String {
        match self.subject {
            Subject::Pfc => self.lanes(counters, PFC),
            Subject::Ecn => self.lanes(counters, ECN),
            Subject::Credits => self.lanes(counters, CREDITS),
            Subject::Queues => self.lanes(counters, QUEUES),
            Subject::Cc => self.flows(counters, CC),
            Subject::Flows => self.flows(counters, FLOWS),
            Subject::Links => {
                let rows = ports(counters).map(|port| {
                    let interface =
                        || Some(self.record.attached_at(&port.port)?.interface.as_str());
                    let peer = self.record.peer(&port.port).or_else(interface);
                    let peer = peer.unwrap_or("outside").to_owned();
                    let values = LINKS.iter().map(|(_, value)| value(port)).collect();
                    ([port.port.clone(), peer], values)
                });
                self.table(["port", "to"], LINKS.iter().map(|(title, _)| *title), rows)
            }
        }
    }

    fn lanes(&self, counters: &[Counters], columns: &[LaneColumn]) -> String {
        let rows = ports(counters).flat_map(|port| {
            port.lanes.iter().map(move |lane| {
                let values = columns.iter().map(|(_, value)| value(port, lane)).collect();
                ([port.port.clone(), lane.lane.to_string()], values)
            })
        });
        self.table(["port", "lane"], columns.iter().map(|(title, _)| *title), rows)
    }

    fn flows(&self, counters: &[Counters], columns: &[FlowColumn]) -> String {
        let name = |address: u64| self.record.addresses.get(&address).cloned();
        let name = |address: u64| name(address).unwrap_or_else(|| format!("{address:#x}"));
        let flows = counters.iter().flat_map(|daemon| &daemon.nodes).flat_map(|node| &node.flows);
        let rows = flows.map(|flow| {
            let values = columns.iter().map(|(_, value)| value(flow)).collect();
            ([name(flow.source), name(flow.destination)], values)
        });
        self.table(["from", "to"], columns.iter().map(|(title, _)| *title), rows)
    }

    /// A table of names and numbers, without rows of zeros if they are not wanted.
    fn table(
        &self,
        names: [&'static str; 2],
        columns: impl Iterator<Item = &'static str>,
        rows: impl Iterator<Item = ([String; 2], Vec<u64>)>,
    ) -> String {
        let header: Vec<&str> = names.into_iter().chain(columns).collect();
        let rows =
            rows.filter(|(_, values)| !self.nonzero || values.iter().any(|value| *value > 0));
        let cells = rows.map(|(names, values)| {
            names.into_iter().chain(values.into_iter().map(|value| value.to_string()))
        });
        // A lane is a number too.
        table(&header, usize::from(names[1] != "lane") + 1..header.len(), cells)
    }
}

/// All ports with a cable.
fn ports(counters: &[Counters]) -> impl Iterator<Item = &PortCounters> {
    let nodes = counters.iter().flat_map(|daemon| &daemon.nodes);
    nodes.flat_map(|node| node.ports.iter().filter(|port| port.cabled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::admin::view::{InjectedCounters, NodeCounters};
    use emulation::wiring::NodeKind;
    use launch::lab::Stage;
    use launch::lab::folder::LinkRecord;
    use launch::owner::ProcessIdentity;
    use proto::technology::Technology;

    #[test]
    fn a_table_shows_the_counters_and_can_leave_out_rows_of_zeros() {
        let link = |a: &str, b: &str| LinkRecord {
            a: a.into(),
            b: b.into(),
            rate: proto::units::BitRate::gbps(1),
        };
        let record = LabRecord {
            lab: "x".into(),
            owner: ProcessIdentity { process: 1, began: 1 },
            starter: ProcessIdentity { process: 1, began: 1 },
            stage: Stage::Up,
            sets: Vec::new(),
            backend: "udp".into(),
            tcp: false,
            dilation: 1,
            technology: Technology::Ethernet,
            daemons: Vec::new(),
            addresses: BTreeMap::new(),
            links: vec![link("h0:1", "s0:1"), link("h1:1", "s0:2")],
            attached: Vec::new(),
            hosts: Vec::new(),
        };
        let port = |name: &str, tx_frames| PortCounters {
            port: name.into(),
            cabled: true,
            lanes: vec![LaneCounters {
                lane: 3,
                tx_frames,
                tx_bytes: 17,
                tx_control: tx_frames.min(11),
                rx_control: tx_frames.min(2),
                ..Default::default()
            }],
            injected: InjectedCounters { lost: tx_frames.min(5), ..Default::default() },
            ..PortCounters::default()
        };
        let unused = PortCounters { port: "s0:3".into(), ..PortCounters::default() };
        let mut silent = port("s0:2", 0);
        silent.lanes[0].tx_bytes = 0;
        let nodes = vec![NodeCounters {
            node: "s0".into(),
            kind: NodeKind::Switch,
            ports: vec![port("s0:1", 4711), silent, unused],
            flows: Vec::new(),
        }];
        let counters = [Counters { nodes, ..Counters::default() }];
        let show = Show { subject: Subject::Links, nonzero: false, record: &record };
        let words = |text: &str| -> Vec<Vec<String>> {
            let row = |line: &str| line.split_whitespace().map(str::to_owned).collect();
            text.lines().skip(1).map(row).collect()
        };
        let all = words(&show.text(&counters));
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], ["s0:1", "h0:1", "4711", "17", "0", "0", "11", "2", "0", "5", "0"]);
        assert_eq!(all[1][..2], ["s0:2", "h1:1"]);
        let show = Show { nonzero: true, ..show };
        assert_eq!(words(&show.text(&counters)), all[..1]);
        let show = Show { subject: Subject::Ecn, ..show };
        assert_eq!(words(&show.text(&counters)), [["s0:1", "3", "4711", "0", "0", "0"]]);
    }
}
