//! The tables: bins of ports, queues and rates, totals of flows, lateness of workers.

use crate::run_directory::RunRecord;
use emulation::recorder::bins::{FlowBin, Grid, PORT_COLUMNS, Slot, Span};
use emulation::recorder::{FLOWS_MAX, FlowSeries, PortSeries};
use emulation::wiring::{End, NodeKind};
use proto::counters::{FlowId, FlowReading, ReceptionReading};
use proto::ids::PortNumber;
use std::collections::BTreeMap;
use std::io;

/// Writes a header and rows; lines end with LF.
struct Table<W: io::Write> {
    csv: csv::Writer<W>,
    rows: u64,
}

impl<W: io::Write> Table<W> {
    fn new<'c>(out: W, columns: impl Iterator<Item = &'c str>) -> io::Result<Table<W>> {
        let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        csv.write_record(columns)?;
        Ok(Table { csv, rows: 0 })
    }

    fn row(&mut self, row: impl serde::Serialize) -> io::Result<()> {
        self.rows += 1;
        self.csv.serialize(row).map_err(io::Error::from)
    }

    fn finish(mut self) -> io::Result<u64> {
        self.csv.flush()?;
        Ok(self.rows)
    }
}

/// One bin of one lane of a port.
struct PortRow<'a> {
    slot: Slot,
    name: &'a str,
    series: &'a PortSeries,
    place: u32,
}

/// All bins of all lanes, idle ones included, in the order of the tables.
fn port_rows<'a>(record: &'a RunRecord<'_>, names: &'a [Vec<String>]) -> Vec<PortRow<'a>> {
    let mut rows = Vec::new();
    for (recording, names) in record.recordings.iter().zip(names) {
        for (place, slot) in recording.grid.slots.iter().enumerate() {
            rows.extend(recording.ports.iter().zip(names).map(|(series, name)| PortRow {
                slot: *slot,
                name,
                series,
                place: place as u32,
            }));
        }
    }
    rows.sort_by_key(|row| (row.slot.begin, row.name, row.series.tc));
    rows
}

fn port_names(record: &RunRecord<'_>) -> Vec<Vec<String>> {
    let name = |series: &PortSeries| record.fabric.wiring.end_name(series.at);
    record.recordings.iter().map(|recording| recording.ports.iter().map(name).collect()).collect()
}

/// `ports.csv`.
pub(super) fn ports(record: &RunRecord<'_>, out: &mut super::Sealed) -> io::Result<u64> {
    let columns = ["t_ps", "dt_ps", "port", "tc"].into_iter().chain(PORT_COLUMNS);
    let mut table = Table::new(out, columns)?;
    let names = port_names(record);
    for row in port_rows(record, &names) {
        let (begin, length) = (row.slot.begin.as_ps(), row.slot.length().as_ps());
        let counts = row.series.bins.get(row.place).counts;
        table.row((begin, length, row.name, row.series.tc, counts))?;
    }
    table.finish()
}

/// `queues.csv`; only adapters have a source queue.
pub(super) fn queues(record: &RunRecord<'_>, out: &mut super::Sealed) -> io::Result<u64> {
    let columns = "t_ps dt_ps port tc what bytes_min bytes_mean bytes_max";
    let mut table = Table::new(out, columns.split(' '))?;
    let names = port_names(record);
    for row in port_rows(record, &names) {
        let (begin, length) = (row.slot.begin.as_ps(), row.slot.length().as_ps());
        let bin = row.series.bins.get(row.place);
        let adapter = record.fabric.wiring.nodes[row.series.at.node].kind == NodeKind::Nic;
        let source = adapter.then_some(("source", bin.source));
        for (what, span) in [("out", bin.out), ("in", bin.input)].into_iter().chain(source) {
            let levels = levels(&span, length);
            table.row((begin, length, row.name, row.series.tc, what, levels))?;
        }
    }
    table.finish()
}

fn levels(span: &Span, weight_ps: u64) -> [u64; 3] {
    [span.min, span.mean(weight_ps), span.max]
}

/// Bins of flows by (begin, name, lane), each with its end.
type RateRows = BTreeMap<(u64, String, u8), (u64, FlowBin)>;

/// `rates.csv`: the flows that were reduced most, and the rest of each class as one row named
/// `rest`. Flows that neither sent nor were held back have no row: zero means neutral.
pub(super) fn rates(record: &RunRecord<'_>, out: &mut super::Sealed) -> io::Result<u64> {
    let columns = "t_ps dt_ps flow tc tx_bytes rate_min rate_mean rate_max gap_ps_min gap_ps_mean gap_ps_max scalar";
    let mut table = Table::new(out, columns.split(' '))?;
    for ((begin, name, tc), (end, bin)) in rate_rows(record) {
        if bin.is_idle() {
            continue;
        }
        let (rate, gap) = (levels(&bin.rate, bin.weight_ps), levels(&bin.gap, bin.weight_ps));
        table.row((begin, end - begin, name, tc, bin.tx_bytes, rate, gap, bin.scalar))?;
    }
    table.finish()
}

fn rate_rows(record: &RunRecord<'_>) -> RateRows {
    let names = record.flow_names();
    let mut series: Vec<(String, &FlowSeries, &Grid)> = Vec::new();
    let mut rows = RateRows::new();
    let mut rest: BTreeMap<(u64, u32, u8), (Slot, FlowBin)> = BTreeMap::new();
    let mut pool = |grid: &Grid, place: u32, class: u8, bin: &FlowBin| {
        let slot = grid.slots[place as usize];
        let key = (grid.width.as_ps(), slot.number, record.fabric.lane(class));
        let (whole, pooled) = rest.entry(key).or_insert((slot, FlowBin::default()));
        whole.begin = whole.begin.min(slot.begin);
        whole.end = whole.end.max(slot.end);
        pooled.pool(bin);
    };
    for recording in record.recordings {
        let grid = &recording.grid;
        let named = recording.flows.iter().map(|flow| (names.name(flow.flow), flow, grid));
        series.extend(named);
        for of_class in &recording.pools {
            of_class.bins.iter().for_each(|(place, bin)| pool(grid, place, of_class.class, bin));
        }
    }
    series.sort_by_key(|(name, flow, _)| {
        (std::cmp::Reverse(flow.bins.rate_reduction()), name.clone())
    });
    for (rank, (name, flow, grid)) in series.into_iter().enumerate() {
        for (place, bin) in flow.bins.iter() {
            if rank < FLOWS_MAX {
                let slot = grid.slots[place as usize];
                let tc = record.fabric.lane(flow.flow.class);
                let key = (slot.begin.as_ps(), name.clone(), tc);
                rows.insert(key, (slot.end.as_ps(), *bin));
            } else {
                pool(grid, place, flow.flow.class, bin);
            }
        }
    }
    for ((_, _, tc), (slot, bin)) in rest {
        rows.insert((slot.begin.as_ps(), "rest".to_owned(), tc), (slot.end.as_ps(), bin));
    }
    rows
}

/// `flows.csv`: both ends' totals at the stop. Completion times are counted by receiver and traffic
/// item, not by flow, so their columns stay empty.
pub(super) fn flows(record: &RunRecord<'_>, out: &mut super::Sealed) -> io::Result<u64> {
    let columns = "flow src dst class first_ps last_ps offered_bytes delivered_bytes messages unfinished fct_ps_p50 fct_ps_p99 fct_ps_max marked notes reordered";
    let mut table = Table::new(out, columns.split(' '))?;
    let names = record.flow_names();
    let last = || record.recordings.iter().flat_map(|recording| &recording.last);
    let receptions: BTreeMap<FlowId, &ReceptionReading> =
        last().flat_map(|reading| &reading.receptions).map(|r| (r.flow, r)).collect();
    let mut sent: Vec<(String, &FlowReading)> =
        last().flat_map(|reading| &reading.flows).map(|f| (names.name(f.flow), f)).collect();
    sent.sort_by(|a, b| a.0.cmp(&b.0));
    const UNKNOWN: [&str; 3] = [""; 3];
    for (name, flow) in sent {
        let (source, destination) = (flow.flow.source, flow.flow.destination);
        let node = record.fabric.node_at(source);
        let class = node.map_or(String::new(), |n| record.fabric.class_name(n, &flow.items));
        let received = receptions.get(&flow.flow);
        let unfinished = flow.messages.saturating_sub(flow.completed + flow.withdrawn);
        table.row((
            (&name, names.end(source), names.end(destination), class),
            (flow.first.map(|at| at.as_ps()), flow.last.map(|at| at.as_ps())),
            (flow.offered_bytes, received.map_or(0, |r| r.delivered_bytes)),
            (flow.messages, unfinished, UNKNOWN),
            (received.map_or(0, |r| r.marked), flow.notes, received.map_or(0, |r| r.reordered)),
        ))?;
    }
    table.finish()
}

/// `counters.csv`: totals at the stop by port, under the names that operators know; zeros are left
/// out.
pub(super) fn counters(record: &RunRecord<'_>, out: &mut super::Sealed) -> io::Result<u64> {
    let mut table = Table::new(out, ["port", "counter", "value"].into_iter())?;
    let mut rows: Vec<(String, String, u64)> = Vec::new();
    for recording in record.recordings {
        for (node, reading) in recording.nodes.iter().zip(&recording.last) {
            for (index, port) in reading.ports.iter().enumerate() {
                let end = End { node: *node, port: PortNumber::from_index(index) };
                let name = record.fabric.wiring.end_name(end);
                let dropped = port.drops.iter();
                let dropped = dropped.map(|(reason, n)| (format!("drop_{}", reason.name()), n));
                let named = port.named.iter().cloned();
                let watchdogs = std::iter::once(("link_watchdogs".to_owned(), port.watchdogs));
                let all = named.chain(watchdogs).chain(dropped).filter(|(_, n)| *n > 0);
                rows.extend(all.map(|(counter, n)| (name.clone(), counter, n)));
            }
        }
    }
    rows.sort();
    for row in rows {
        table.row(row)?;
    }
    table.finish()
}

/// `fidelity.csv`.
pub(super) fn fidelity(record: &RunRecord<'_>, out: &mut super::Sealed) -> io::Result<u64> {
    let columns = "t_ps dt_ps worker wall_ns departures late_ps_p50 late_ps_p99 late_ps_max lost cpu_permille dilation";
    let mut table = Table::new(out, columns.split(' '))?;
    let mut rows: Vec<_> = record.fidelity.iter().collect();
    rows.sort_by_key(|row| (row.t_ps, row.worker));
    for row in rows {
        table.row(row)?;
    }
    table.finish()
}
