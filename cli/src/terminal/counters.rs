//! Tables of the counters of a lab's devices.

use super::table::table;
use clap::ValueEnum;
use daemon::admin::view::{Counters, FlowCounters, LaneCounters, PortCounters};
use launch::lab::LabRecord;

const PS_PER_US: u64 = 1_000_000;

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
    use launch::lab::folder::LinkRecord;
    use proto::technology::Technology;

    #[test]
    fn a_table_shows_the_counters_and_can_leave_out_rows_of_zeros() {
        let link = |a: &str, b: &str| LinkRecord {
            a: a.into(),
            b: b.into(),
            rate: proto::units::BitRate::gbps(1),
        };
        let record = LabRecord::empty("x".into(), Technology::Ethernet);
        let links = vec![link("h0:1", "s0:1"), link("h1:1", "s0:2")];
        let record = LabRecord { links, ..record.expect("this process is there") };
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
