//! Counters: the values of the tables of a run directory by bin. A value stands until the next, so only
//! changes are written.

use super::trace::{Track, Unit};
use super::tracks::Tracks;
use crate::ReportError;
use crate::data::tables::{self, PortRow, QueueRow, RateRow};
use results::run_directory::FidelityBin;
use std::collections::BTreeMap;
use std::path::Path;

const RATE: Unit = Unit::Named("bit/s");

/// Bits a second of so many octets in so many picoseconds.
fn bits(octets: u64, ps: u64) -> u64 {
    (u128::from(octets) * 8_000_000_000_000 / u128::from(ps.max(1))) as u64
}

/// Numbers of several columns by port and begin of the bin, lanes added up.
type ByPort<const N: usize> = BTreeMap<String, BTreeMap<u64, [u64; N]>>;

fn add<const N: usize>(sums: &mut ByPort<N>, port: String, t: u64, values: [u64; N]) {
    let sum = sums.entry(port).or_default().entry(t).or_insert([0; N]);
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Writes a counter for each column below each port.
fn write<const N: usize>(sums: &ByPort<N>, tracks: &mut Tracks<'_>, columns: [(&str, Unit); N]) {
    for (port, rows) in sums {
        let parent = tracks.port(port);
        for (column, (name, unit)) in columns.iter().enumerate() {
            let values = rows.iter().map(|(t, values)| (*t, values[column]));
            tracks.trace.counter_of(parent, name, unit, values);
        }
    }
}

/// `ports.csv`: the rate at which each port sent.
pub fn ports(folder: &Path, tracks: &mut Tracks<'_>) -> Result<(), ReportError> {
    let mut sums = ByPort::new();
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    tables::each(&folder.join("ports.csv"), |row: PortRow| {
        lengths.insert(row.t_ps, row.dt_ps);
        add(&mut sums, row.port, row.t_ps, [row.tx_bytes]);
        Ok(())
    })?;
    for (t, sent) in sums.values_mut().flatten() {
        *sent = sent.map(|octets| bits(octets, lengths[t]));
    }
    write(&sums, tracks, [("rate", RATE)]);
    Ok(())
}

/// `queues.csv`: the fill of queues and of input buffers.
pub fn queues(folder: &Path, tracks: &mut Tracks<'_>) -> Result<(), ReportError> {
    let (mut out, mut input) = (ByPort::new(), ByPort::new());
    tables::each(&folder.join("queues.csv"), |row: QueueRow| {
        match row.what.as_str() {
            "out" => add(&mut out, row.port, row.t_ps, [row.bytes_mean, row.bytes_max]),
            "in" => add(&mut input, row.port, row.t_ps, [row.bytes_max]),
            _ => {}
        }
        Ok(())
    })?;
    write(&out, tracks, [("queue, mean", Unit::Octets), ("queue, most", Unit::Octets)]);
    write(&input, tracks, [("input buffer, most", Unit::Octets)]);
    Ok(())
}

/// `rates.csv`: the limits of reaction points. A bin without a row is one without a limit.
pub fn rates(folder: &Path, tracks: &mut Tracks<'_>) -> Result<(), ReportError> {
    let mut flows: BTreeMap<String, BTreeMap<u64, RateRow>> = BTreeMap::new();
    tables::each(&folder.join("rates.csv"), |row: RateRow| {
        flows.entry(row.flow.clone()).or_default().insert(row.t_ps, row);
        Ok(())
    })?;
    for (name, rows) in &flows {
        let flow = tracks.flow(name);
        let rate = tracks.trace.counter(flow, "rate", &RATE);
        let gap = tracks.trace.counter(flow, "gap", &Unit::Nanoseconds);
        for RateRow { t_ps, dt_ps, rate_mean, gap_ps_mean, .. } in rows.values() {
            tracks.trace.count(rate, *t_ps, *rate_mean);
            tracks.trace.count(gap, *t_ps, gap_ps_mean / 1_000);
            if !rows.contains_key(&(t_ps + dt_ps)) {
                tracks.trace.count(gap, t_ps + dt_ps, 0);
            }
        }
    }
    Ok(())
}

/// `fidelity.csv`: the lateness of workers, in fabric time.
pub fn lateness(folder: &Path, tracks: &mut Tracks<'_>) -> Result<(), ReportError> {
    let mut counters: BTreeMap<u32, [Track; 2]> = BTreeMap::new();
    tables::each(&folder.join("fidelity.csv"), |row: FidelityBin| {
        let [late, lost] = *counters.entry(row.worker).or_insert_with(|| {
            let worker = tracks.worker(u64::from(row.worker));
            let late = tracks.trace.counter(worker, "lateness, p99", &Unit::Nanoseconds);
            [late, tracks.trace.counter(worker, "frames lost", &Unit::Count)]
        });
        tracks.trace.count(late, row.t_ps, row.late_ps_p99 / 1_000);
        tracks.trace.count(lost, row.t_ps, row.lost);
        Ok(())
    })
}
