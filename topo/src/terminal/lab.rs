//! Tables of labs and of the counters of their devices.

use super::table::table;
use clap::ValueEnum;
use daemon::admin::view::{Counters, FlowCounters, LaneCounters, PortCounters};
use launch::lab::LabRecord;
use launch::lab::folder::DaemonRecord;
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
    pub keeper: u32,
    /// Fabric time.
    pub at_ps: Option<u64>,
    /// p99 of lateness, in thousandths of a frame time.
    pub late_p99_thousandths: Option<u64>,
    /// Frames lost by sockets.
    pub lost: u64,
    /// Frames lost by injected faults.
    pub injected_lost: u64,
    /// Its daemons.
    pub processes: Vec<DaemonRecord>,
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
    let header =
        ["lab", "state", "backend", "slowed", "devices", "fabric time", "late p99", "lost"];
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
        ]
    });
    table(&header, 3..header.len(), rows)
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

impl Show<'_> {
    /// The table.
    pub fn text(&self, counters: &[Counters]) -> String {
        match self.subject {
            Subject::Links => self.links(counters),
            Subject::Cc => self.flows(
                counters,
                &["rate Mbit/s", "gap ns", "state", "held back", "notes"],
                |flow| {
                    [flow.rate / 1_000_000, flow.gap_ps / 1_000, flow.state]
                        .into_iter()
                        .chain([u64::from(flow.held_back), flow.notes])
                        .collect()
                },
            ),
            Subject::Flows => self.flows(
                counters,
                &["class", "messages", "completed", "tx bytes", "notes"],
                |flow| {
                    let class = u64::from(flow.class);
                    vec![class, flow.messages, flow.completed, flow.tx_bytes, flow.notes]
                },
            ),
            Subject::Pfc => self.lanes(
                counters,
                &["rx frames", "tx frames", "paused us", "asked us"],
                |port, lane| {
                    let named = |name: String| port.named.get(&name).copied().unwrap_or(0);
                    vec![
                        named(format!("rx_prio{}_pause", lane.lane)),
                        named(format!("tx_prio{}_pause", lane.lane)),
                        lane.pause_ps / PS_PER_US,
                        named(format!("tx_prio{}_pause_duration", lane.lane)),
                    ]
                },
            ),
            Subject::Ecn => {
                self.lanes(counters, &["tx frames", "marked", "notes tx", "notes rx"], |_, lane| {
                    vec![lane.tx_frames, lane.marks, lane.notes_tx, lane.notes_rx]
                })
            }
            Subject::Credits => self.lanes(
                counters,
                &["control tx", "control rx", "wait us", "no room", "watchdogs"],
                |port, lane| {
                    let wait = lane.wait_ps / PS_PER_US;
                    vec![lane.tx_control, lane.rx_control, wait, lane.no_room, port.watchdogs]
                },
            ),
            Subject::Queues => self.lanes(
                counters,
                &["out now", "out most", "in now", "in most", "source now"],
                |_, lane| {
                    let LaneCounters { out_queue, in_queue, source_queue, .. } = lane;
                    let [out, input] = [out_queue, in_queue].map(|level| [level.now, level.most]);
                    [&out[..], &input, &[source_queue.now]].concat()
                },
            ),
        }
    }

    fn links(&self, counters: &[Counters]) -> String {
        let header =
            ["port", "to", "tx frames", "tx bytes", "rx frames", "rx bytes", "drops", "watchdogs"];
        let rows = ports(counters).filter_map(|port| {
            let sum = |of: fn(&LaneCounters) -> u64| port.lanes.iter().map(of).sum::<u64>();
            let values = [
                sum(|lane| lane.tx_frames),
                sum(|lane| lane.tx_bytes),
                sum(|lane| lane.rx_frames),
                sum(|lane| lane.rx_bytes),
                port.drops.values().sum(),
                port.watchdogs,
            ];
            let peer = self.record.peer(&port.port).unwrap_or("outside").to_owned();
            self.row(vec![port.port.clone(), peer], &values)
        });
        table(&header, 2..header.len(), rows)
    }

    fn lanes(
        &self,
        counters: &[Counters],
        header: &[&'static str],
        values: impl Fn(&PortCounters, &LaneCounters) -> Vec<u64>,
    ) -> String {
        let header = [&["port", "lane"], header].concat();
        let values = &values;
        let rows = ports(counters).flat_map(|port| {
            port.lanes.iter().filter_map(move |lane| {
                let names = vec![port.port.clone(), lane.lane.to_string()];
                self.row(names, &values(port, lane))
            })
        });
        table(&header, 1..header.len(), rows)
    }

    fn flows(
        &self,
        counters: &[Counters],
        header: &[&'static str],
        values: impl Fn(&FlowCounters) -> Vec<u64>,
    ) -> String {
        let header = [&["from", "to"], header].concat();
        let name = |address: u64| self.record.addresses.get(&address).cloned();
        let name = |address: u64| name(address).unwrap_or_else(|| format!("{address:#x}"));
        let flows = counters.iter().flat_map(|daemon| &daemon.nodes).flat_map(|node| &node.flows);
        let rows = flows.filter_map(|flow| {
            self.row(vec![name(flow.source), name(flow.destination)], &values(flow))
        });
        table(&header, 2..header.len(), rows)
    }

    /// A row, unless it has only zeros and such rows are left out.
    fn row(&self, mut names: Vec<String>, values: &[u64]) -> Option<Vec<String>> {
        if self.nonzero && values.iter().all(|value| *value == 0) {
            return None;
        }
        names.extend(values.iter().map(u64::to_string));
        Some(names)
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
    use daemon::admin::view::NodeCounters;
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
        };
        let port = |name: &str, tx_frames| PortCounters {
            port: name.into(),
            cabled: true,
            lanes: vec![LaneCounters { lane: 3, tx_frames, tx_bytes: 17, ..Default::default() }],
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
        assert_eq!(all[0], ["s0:1", "h0:1", "4711", "17", "0", "0", "0", "0"]);
        assert_eq!(all[1][..2], ["s0:2", "h1:1"]);
        let show = Show { nonzero: true, ..show };
        assert_eq!(words(&show.text(&counters)), all[..1]);
        let show = Show { subject: Subject::Ecn, ..show };
        assert_eq!(words(&show.text(&counters)), [["s0:1", "3", "4711", "0", "0", "0"]]);
    }
}
