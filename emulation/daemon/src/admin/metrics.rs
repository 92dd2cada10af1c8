//! Metrics in the text format of Prometheus: one prefix, base units, few labels.
//!
//! Lanes are labelled `vl` or `priority`, as operators of the technology call them. Counters start with the run
//! and ignore clearing, since a scraper takes a counter that falls for a restart.

use super::ProcessInfo;
use super::families::{self, Family, NAMED};
use super::view::{Counters, LaneCounters, PortCounters, Status};
use prometheus::core::{Atomic, AtomicF64, AtomicU64, GenericCounterVec, GenericGaugeVec};
use prometheus::{Opts, Registry, TextEncoder};
use proto::technology::Technology;

const PS_PER_S: f64 = 1e12;
const PER_MILLE: f64 = 1e3;

/// A metric of a lane: its family, and its value.
type LaneMetric<N> = (Family, fn(&LaneCounters) -> N);

const LANE_TOTALS: &[LaneMetric<u64>] = &[
    (families::TRANSMITTED_BYTES, |lane| lane.tx_bytes),
    (families::TRANSMITTED_PACKETS, |lane| lane.tx_frames),
    (families::RECEIVED_BYTES, |lane| lane.rx_bytes),
    (families::RECEIVED_PACKETS, |lane| lane.rx_frames),
    (families::NO_ROOM_PACKETS, |lane| lane.no_room),
    (families::MARKED_PACKETS, |lane| lane.marks),
    (families::NOTIFICATIONS_SENT, |lane| lane.notes_tx),
    (families::NOTIFICATIONS_RECEIVED, |lane| lane.notes_rx),
];

const LANE_TIMES: &[LaneMetric<u64>] = &[
    (families::TRANSMIT_WAIT_SECONDS, |lane| lane.wait_ps),
    (families::PAUSED_SECONDS, |lane| lane.pause_ps),
];

const LANE_LEVELS: &[LaneMetric<u64>] = &[
    (families::QUEUE_DEPTH_BYTES, |lane| lane.out_queue.now),
    (families::QUEUE_WATERMARK_BYTES, |lane| lane.out_queue.most),
    (families::BUFFER_DEPTH_BYTES, |lane| lane.in_queue.now),
];

/// Number of PFC priorities.
const PRIORITIES: u8 = 8;

/// The metrics of one daemon.
pub fn text(info: &ProcessInfo, counters: &Counters, status: &Status) -> String {
    let page = Page(Registry::new());
    page.of_run(info, status);
    page.of_lanes(info.technology, counters);
    page.of_ports(counters);
    if info.technology == Technology::Ethernet {
        page.of_pfc(counters);
    }
    // Names and labels are constants of this file, and a test reads every line.
    TextEncoder::new().encode_to_string(&page.0.gather()).unwrap_or_default()
}

struct Page(Registry);

impl Page {
    fn of_run(&self, info: &ProcessInfo, status: &Status) {
        let lab = [
            info.lab.clone(),
            info.seed.to_string(),
            status.dilation.to_string(),
            status.version.clone(),
        ];
        let labels = ["name", "seed", "dilate", "version"];
        self.levels::<AtomicU64>(families::RUN_INFO, &labels, [(lab.to_vec(), 1)]);
        let process = vec![status.process.to_string()];
        let one = |family, value: f64| {
            self.levels::<AtomicF64>(family, &["process"], [(process.clone(), value)]);
        };
        one(families::FABRIC_TIME_SECONDS, status.at_ps as f64 / PS_PER_S);
        one(families::LATENESS_P99_FRAMES, status.late_p99_thousandths as f64 / PER_MILLE);
        let lost = [(process.clone(), status.lost)];
        self.totals::<AtomicU64>(families::LOST_FRAMES, &["process"], lost);
    }

    fn of_lanes(&self, technology: Technology, counters: &Counters) {
        let lane = match technology {
            Technology::Infiniband => "vl",
            Technology::Ethernet => "priority",
        };
        let labels = ["node", "port", lane];
        for (family, value) in LANE_TOTALS {
            self.totals::<AtomicU64>(*family, &labels, lanes(counters, *value));
        }
        for (family, value) in LANE_TIMES {
            let rows = lanes(counters, *value);
            let seconds = rows.into_iter().map(|(at, ps)| (at, ps as f64 / PS_PER_S));
            self.totals::<AtomicF64>(*family, &labels, seconds);
        }
        for (family, value) in LANE_LEVELS {
            self.levels::<AtomicU64>(*family, &labels, lanes(counters, *value));
        }
    }

    fn of_ports(&self, counters: &Counters) {
        let labels = ["node", "port"];
        for (operators, family) in NAMED {
            let rows = ports(counters).filter_map(|(at, port)| {
                port.named.get(*operators).map(|total| (at.to_vec(), *total))
            });
            self.totals::<AtomicU64>(*family, &labels, rows);
        }
        let watchdogs = ports(counters).map(|(at, port)| (at.to_vec(), port.watchdogs));
        self.totals::<AtomicU64>(families::LINK_WATCHDOGS, &labels, watchdogs);
        let discards = ports(counters).flat_map(|(at, port)| {
            let row = move |(reason, count): (&String, &u64)| {
                ([&at[..], std::slice::from_ref(reason)].concat(), *count)
            };
            port.drops.iter().map(row)
        });
        let labels = ["node", "port", "reason"];
        self.totals::<AtomicU64>(families::DISCARDS, &labels, discards);
    }

    fn of_pfc(&self, counters: &Counters) {
        let mut rows = Vec::new();
        for (at, port) in ports(counters) {
            for (direction, letter) in [("received", "rx"), ("sent", "tx")] {
                for priority in 0..PRIORITIES {
                    let name = format!("{letter}_prio{priority}_pause");
                    let total = port.named.get(&name).copied().unwrap_or(0);
                    let further = [direction.to_owned(), priority.to_string()];
                    rows.push(([&at[..], &further].concat(), total));
                }
            }
        }
        let labels = ["node", "port", "direction", "priority"];
        self.totals::<AtomicU64>(families::PFC_FRAMES, &labels, rows);
    }

    fn totals<N: Atomic + 'static>(
        &self,
        family: Family,
        labels: &[&str],
        rows: impl IntoIterator<Item = (Vec<String>, N::T)>,
    ) {
        let opts = Opts::new(family.full_name(), family.help);
        let Ok(family) = GenericCounterVec::<N>::new(opts, labels) else { return };
        for (values, total) in rows {
            family.with_label_values(&values).inc_by(total);
        }
        // Every name is registered once.
        let _ = self.0.register(Box::new(family));
    }

    fn levels<N: Atomic + 'static>(
        &self,
        family: Family,
        labels: &[&str],
        rows: impl IntoIterator<Item = (Vec<String>, N::T)>,
    ) {
        let opts = Opts::new(family.full_name(), family.help);
        let Ok(family) = GenericGaugeVec::<N>::new(opts, labels) else { return };
        for (values, level) in rows {
            family.with_label_values(&values).set(level);
        }
        let _ = self.0.register(Box::new(family));
    }
}

/// Ports with a cable, and their labels: the node's name and the port's number.
fn ports(counters: &Counters) -> impl Iterator<Item = ([String; 2], &PortCounters)> {
    counters.nodes.iter().flat_map(|node| {
        node.ports.iter().filter(|port| port.cabled).map(move |port| {
            let number = port.port.rsplit(':').next().unwrap_or_default();
            ([node.node.clone(), number.to_owned()], port)
        })
    })
}

fn lanes(counters: &Counters, value: fn(&LaneCounters) -> u64) -> Vec<(Vec<String>, u64)> {
    let rows = ports(counters).flat_map(|(at, port)| {
        let row =
            move |lane: &LaneCounters| ([&at[..], &[lane.lane.to_string()]].concat(), value(lane));
        port.lanes.iter().map(row)
    });
    rows.collect()
}
