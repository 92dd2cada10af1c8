//! Totals and levels in the text format of Prometheus: one prefix, base units, few labels.
//!
//! Lanes are labelled `vl` or `priority`, as operators of the technology call them. Totals are from the
//! beginning of the run, whatever was cleared, since a scraper takes a total that falls for a new start.

use super::Facts;
use super::view::{Counters, LaneCounters, PortCounters, Status};
use crate::capture::Technology;
use prometheus::core::{Atomic, AtomicF64, AtomicU64, GenericCounterVec, GenericGaugeVec};
use prometheus::{Opts, Registry, TextEncoder};

const PS_PER_S: f64 = 1e12;
const PER_MILLE: f64 = 1e3;

/// A total or level of a lane: its name, what it is, and where it stands.
type LaneMetric<N> = (&'static str, &'static str, fn(&LaneCounters) -> N);

const LANE_TOTALS: &[LaneMetric<u64>] = &[
    ("port_transmit_bytes_total", "octets of data frames sent", |lane| lane.tx_bytes),
    ("port_transmit_packets_total", "data frames sent", |lane| lane.tx_frames),
    ("port_receive_bytes_total", "octets of data frames received", |lane| lane.rx_bytes),
    ("port_receive_packets_total", "data frames received", |lane| lane.rx_frames),
    ("port_no_room_packets_total", "frames lost for want of room", |lane| lane.no_room),
    ("queue_marked_packets_total", "frames marked by the congestion point", |lane| lane.marks),
    ("port_notifications_sent_total", "congestion notifications sent", |lane| lane.notes_tx),
    ("port_notifications_received_total", "congestion notifications received", |l| l.notes_rx),
];

const LANE_TIMES: &[LaneMetric<u64>] = &[
    (
        "port_transmit_wait_seconds_total",
        "fabric time in which a frame was ready and flow control forbade it (PortXmitWait)",
        |lane| lane.wait_ps,
    ),
    (
        "port_paused_seconds_total",
        "fabric time in which flow control forbade the lane, ready frame or not",
        |lane| lane.pause_ps,
    ),
];

const LANE_LEVELS: &[LaneMetric<u64>] = &[
    ("queue_depth_bytes", "octets that wait to leave", |lane| lane.out_queue.now),
    ("queue_watermark_bytes", "the most that ever waited", |lane| lane.out_queue.most),
    ("buffer_depth_bytes", "octets in the input buffer", |lane| lane.in_queue.now),
];

/// A total of a port under its operators' name.
const NAMED: &[(&str, &str, &str)] = &[
    ("np_cnp_sent", "np_cnp_sent_total", "CNPs sent"),
    ("np_ecn_marked_roce_packets", "np_ecn_marked_packets_total", "marked frames received"),
    ("np_ecn_marked_packets", "np_fecn_marked_packets_total", "packets with FECN received"),
    ("np_becn_sent", "np_becn_sent_total", "packets with BECN sent"),
    ("rp_cnp_handled", "rp_cnp_handled_total", "CNPs that slowed a flow"),
    ("rp_cnp_ignored", "rp_cnp_ignored_total", "CNPs about nothing known"),
    ("rp_becn_handled", "rp_becn_handled_total", "packets with BECN that slowed a flow"),
    ("rp_cnm_handled", "rp_cnm_handled_total", "CNMs that slowed a flow"),
    ("port_rcv_fecn", "port_fecn_received_total", "packets with FECN received"),
    ("port_rcv_becn", "port_becn_received_total", "packets with BECN received"),
    ("rx_global_pause", "pause_frames_received_total", "PAUSE frames received"),
    ("tx_global_pause", "pause_frames_sent_total", "PAUSE frames sent"),
    ("out_of_sequence", "out_of_sequence_total", "requests out of sequence"),
    ("retransmitted_packets", "retransmitted_packets_total", "packets sent again"),
];

/// Priorities of PFC.
const PRIORITIES: u8 = 8;

/// The page of one daemon.
pub fn text(facts: &Facts, counters: &Counters, status: &Status) -> String {
    let page = Page(Registry::new());
    page.of_run(facts, status);
    page.of_lanes(facts.technology, counters);
    page.of_ports(counters);
    if facts.technology == Technology::Ethernet {
        page.of_pfc(counters);
    }
    // Names and labels are constants of this file, and a test reads every line.
    TextEncoder::new().encode_to_string(&page.0.gather()).unwrap_or_default()
}

struct Page(Registry);

impl Page {
    fn of_run(&self, facts: &Facts, status: &Status) {
        let lab = [
            facts.lab.clone(),
            facts.seed.to_string(),
            status.dilation.to_string(),
            status.version.clone(),
        ];
        let labels = ["name", "seed", "dilate", "version"];
        self.levels::<AtomicU64>("run_info", "what runs", &labels, [(lab.to_vec(), 1)]);
        let process = vec![status.process.to_string()];
        let one = |name, help, value: f64| {
            self.levels::<AtomicF64>(name, help, &["process"], [(process.clone(), value)]);
        };
        let late = status.late_p99_thousandths as f64 / PER_MILLE;
        one("fabric_time_seconds", "fabric time", status.at_ps as f64 / PS_PER_S);
        one("fidelity_lateness_p99_frames", "lateness, in frame times", late);
        self.totals::<AtomicU64>(
            "fidelity_lost_frames_total",
            "frames that the sockets lost",
            &["process"],
            [(process.clone(), status.lost)],
        );
    }

    fn of_lanes(&self, technology: Technology, counters: &Counters) {
        let lane = match technology {
            Technology::Infiniband => "vl",
            Technology::Ethernet => "priority",
        };
        let labels = ["node", "port", lane];
        for (name, help, value) in LANE_TOTALS {
            self.totals::<AtomicU64>(name, help, &labels, lanes(counters, *value));
        }
        for (name, help, value) in LANE_TIMES {
            let rows = lanes(counters, *value);
            let seconds = rows.into_iter().map(|(at, ps)| (at, ps as f64 / PS_PER_S));
            self.totals::<AtomicF64>(name, help, &labels, seconds);
        }
        for (name, help, value) in LANE_LEVELS {
            self.levels::<AtomicU64>(name, help, &labels, lanes(counters, *value));
        }
    }

    fn of_ports(&self, counters: &Counters) {
        let labels = ["node", "port"];
        for (operators, name, help) in NAMED {
            let rows = ports(counters).filter_map(|(at, port)| {
                port.named.get(*operators).map(|total| (at.to_vec(), *total))
            });
            self.totals::<AtomicU64>(name, help, &labels, rows);
        }
        let watchdogs = ports(counters).map(|(at, port)| (at.to_vec(), port.watchdogs));
        self.totals::<AtomicU64>("link_watchdogs_total", "links retrained", &labels, watchdogs);
        let discards = ports(counters).flat_map(|(at, port)| {
            let row = move |(reason, count): (&String, &u64)| {
                ([&at[..], std::slice::from_ref(reason)].concat(), *count)
            };
            port.drops.iter().map(row)
        });
        let labels = ["node", "port", "reason"];
        self.totals::<AtomicU64>(
            "port_discards_total",
            "frames that ended here",
            &labels,
            discards,
        );
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
        self.totals::<AtomicU64>("pfc_frames_total", "PFC frames of a priority", &labels, rows);
    }

    fn totals<N: Atomic + 'static>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        rows: impl IntoIterator<Item = (Vec<String>, N::T)>,
    ) {
        let opts = Opts::new(format!("pausebed_{name}"), help);
        let Ok(family) = GenericCounterVec::<N>::new(opts, labels) else { return };
        for (values, total) in rows {
            family.with_label_values(&values).inc_by(total);
        }
        // No name is given twice.
        let _ = self.0.register(Box::new(family));
    }

    fn levels<N: Atomic + 'static>(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        rows: impl IntoIterator<Item = (Vec<String>, N::T)>,
    ) {
        let opts = Opts::new(format!("pausebed_{name}"), help);
        let Ok(family) = GenericGaugeVec::<N>::new(opts, labels) else { return };
        for (values, level) in rows {
            family.with_label_values(&values).set(level);
        }
        let _ = self.0.register(Box::new(family));
    }
}

/// Ports that have a cable, with their labels: the node's name and the port's number there.
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
