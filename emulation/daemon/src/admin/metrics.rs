//! Metrics in the text format of Prometheus: one prefix, base units, few labels.
//!
//! Lanes are labelled `vl` or `priority`, as operators of the technology call them. Counters start with the run
//! and ignore clearing, since a scraper takes a counter that falls for a restart.

use super::families::{self, Family, NAMED};
use super::handle::ProcessInfo;
use super::view::{Counters, LaneCounters, PortCounters, Status};
use Kind::{Level, Total};
use prometheus::{CounterVec, GaugeVec, Opts, Registry, TextEncoder};
use proto::technology::Technology;

const PS_PER_S: f64 = 1e12;
const PER_MILLE: f64 = 1e3;

/// How a metric moves.
#[derive(Clone, Copy)]
enum Kind {
    /// It only grows.
    Total,
    /// It grows and falls.
    Level,
}

/// Reads one value of a lane.
type Reading = fn(&LaneCounters) -> f64;

/// The metrics of a lane: family, kind and value.
const LANES: &[(Family, Kind, Reading)] = &[
    (families::TRANSMITTED_BYTES, Total, |lane| lane.tx_bytes as f64),
    (families::TRANSMITTED_PACKETS, Total, |lane| lane.tx_frames as f64),
    (families::RECEIVED_BYTES, Total, |lane| lane.rx_bytes as f64),
    (families::RECEIVED_PACKETS, Total, |lane| lane.rx_frames as f64),
    (families::TRANSMITTED_CONTROL, Total, |lane| lane.tx_control as f64),
    (families::RECEIVED_CONTROL, Total, |lane| lane.rx_control as f64),
    (families::NO_ROOM_PACKETS, Total, |lane| lane.no_room as f64),
    (families::MARKED_PACKETS, Total, |lane| lane.marks as f64),
    (families::NOTIFICATIONS_SENT, Total, |lane| lane.notes_tx as f64),
    (families::NOTIFICATIONS_RECEIVED, Total, |lane| lane.notes_rx as f64),
    (families::TRANSMIT_WAIT_SECONDS, Total, |lane| lane.wait_ps as f64 / PS_PER_S),
    (families::PAUSED_SECONDS, Total, |lane| lane.pause_ps as f64 / PS_PER_S),
    (families::QUEUE_DEPTH_BYTES, Level, |lane| lane.out_queue.now as f64),
    (families::QUEUE_WATERMARK_BYTES, Level, |lane| lane.out_queue.most as f64),
    (families::BUFFER_DEPTH_BYTES, Level, |lane| lane.in_queue.now as f64),
];

/// Number of PFC priorities.
const PRIORITIES: u8 = 8;

/// The metrics of one daemon.
pub fn text(info: &ProcessInfo, counters: &Counters, status: &Status) -> String {
    let page = Page(Registry::new());
    page.of_run(info, status);
    page.of_lanes(info.config.technology, counters);
    page.of_ports(counters);
    if info.config.technology == Technology::Ethernet {
        page.of_pfc(counters);
    }
    // Names and labels are constants of this file, and a test reads every line.
    TextEncoder::new().encode_to_string(&page.0.gather()).unwrap_or_default()
}

struct Page(Registry);

impl Page {
    fn of_run(&self, info: &ProcessInfo, status: &Status) {
        let (seed, dilation) = (info.config.seed.to_string(), status.dilation.to_string());
        let lab = vec![info.config.lab.clone(), seed, dilation, status.version.clone()];
        let labels = ["name", "seed", "dilate", "version"];
        self.add(Level, families::RUN_INFO, &labels, [(lab, 1.0)]);
        let late_frames = status.late_p99_thousandths.map(|late| late as f64 / PER_MILLE);
        for (kind, family, value) in [
            (Level, families::FABRIC_TIME_SECONDS, Some(status.at_ps as f64 / PS_PER_S)),
            (Level, families::LATENESS_P99_FRAMES, late_frames),
            (Total, families::LOST_FRAMES, Some(status.lost as f64)),
            (Total, families::UNSENT_FRAMES, Some(status.unsent as f64)),
            (Total, families::REFUSED_DATAGRAMS, Some(status.refused as f64)),
        ] {
            let of_process = value.map(|value| (vec![status.process.to_string()], value));
            self.add(kind, family, &["process"], of_process);
        }
        if let Some(clients) = &status.clients {
            let process = [status.process.to_string()];
            let rows = clients.each().map(|(event, count)| (with(&process, event), count as f64));
            self.add(Total, families::CLIENT_EVENTS, &["process", "event"], rows);
        }
    }

    fn of_lanes(&self, technology: Technology, counters: &Counters) {
        let label = match technology {
            Technology::Infiniband => "vl",
            Technology::Ethernet => "priority",
        };
        for (family, kind, value) in LANES {
            let rows = ports(counters).flat_map(|(at, port)| {
                let lane = move |lane: &LaneCounters| (with(&at, lane.lane), value(lane));
                port.lanes.iter().map(lane)
            });
            self.add(*kind, *family, &["node", "port", label], rows);
        }
    }

    fn of_ports(&self, counters: &Counters) {
        let labels = ["node", "port"];
        for (operators, family) in NAMED {
            let rows = ports(counters).filter_map(|(at, port)| {
                port.named.get(*operators).map(|total| (at.to_vec(), *total as f64))
            });
            self.add(Total, *family, &labels, rows);
        }
        let watchdogs = ports(counters).map(|(at, port)| (at.to_vec(), port.watchdogs as f64));
        self.add(Total, families::LINK_WATCHDOGS, &labels, watchdogs);
        let discards = ports(counters).flat_map(|(at, port)| {
            let row = move |(reason, count): (&String, &u64)| (with(&at, reason), *count as f64);
            port.drops.iter().map(row)
        });
        self.add(Total, families::DISCARDS, &["node", "port", "reason"], discards);
        let injected = ports(counters).flat_map(|(at, port)| {
            let hits = &port.injected;
            let of = |(action, count): (&str, u64)| (with(&at, action), count as f64);
            [
                ("lost", hits.lost),
                ("corrupted", hits.corrupted),
                ("duplicated", hits.duplicated),
                ("delayed", hits.delayed),
            ]
            .map(of)
        });
        self.add(Total, families::INJECTED_FRAMES, &["node", "port", "action"], injected);
    }

    fn of_pfc(&self, counters: &Counters) {
        let mut rows = Vec::new();
        for (at, port) in ports(counters) {
            for (direction, letter) in [("received", "rx"), ("sent", "tx")] {
                for priority in 0..PRIORITIES {
                    let name = format!("{letter}_prio{priority}_pause");
                    let total = port.named.get(&name).copied().unwrap_or(0);
                    rows.push((with(&with(&at, direction), priority), total as f64));
                }
            }
        }
        let labels = ["node", "port", "direction", "priority"];
        self.add(Total, families::PFC_FRAMES, &labels, rows);
    }

    /// Adds a family: the values of the labels, and the value, of each sample.
    fn add(
        &self,
        kind: Kind,
        family: Family,
        labels: &[&str],
        rows: impl IntoIterator<Item = (Vec<String>, f64)>,
    ) {
        let opts = Opts::new(family.full_name(), family.help);
        let rows = rows.into_iter();
        let added = match kind {
            Total => CounterVec::new(opts, labels).and_then(|totals| {
                rows.for_each(|(values, total)| totals.with_label_values(&values).inc_by(total));
                self.0.register(Box::new(totals))
            }),
            Level => GaugeVec::new(opts, labels).and_then(|levels| {
                rows.for_each(|(values, level)| levels.with_label_values(&values).set(level));
                self.0.register(Box::new(levels))
            }),
        };
        added.expect("names and labels are valid, and each name is added once");
    }
}

/// Node and number, and the counters, of every port with a cable.
fn ports(counters: &Counters) -> impl Iterator<Item = ([String; 2], &PortCounters)> {
    counters.nodes.iter().flat_map(|node| {
        node.ports.iter().filter(|port| port.cabled).map(move |port| {
            let number = port.port.rsplit(':').next().unwrap_or_default();
            ([node.node.clone(), number.to_owned()], port)
        })
    })
}

/// The values of some labels, and that of one more.
fn with(values: &[String], value: impl ToString) -> Vec<String> {
    [values, &[value.to_string()]].concat()
}
