//! Counters: what the tables of a run directory hold by bin. A value stands until the next, so only
//! changes are written.

use super::trace::{Trace, Track, Unit};
use super::tracks::Tracks;
use crate::ReportError;
use crate::data::{Run, tables};
use results::run_directory::FidelityRow;
use std::collections::BTreeMap;
use std::path::Path;

const RATE: Unit = Unit::Named("bit/s");

/// Bits a second of so many octets in so many picoseconds.
fn bits(octets: u64, ps: u64) -> u64 {
    (u128::from(octets) * 8_000_000_000_000 / u128::from(ps.max(1))) as u64
}

/// A number of several columns by begin and port, lanes added up.
type ByPort<const N: usize> = BTreeMap<(String, u64), [u64; N]>;

fn add<const N: usize>(sums: &mut ByPort<N>, port: &str, t: u64, values: [u64; N]) {
    let sum = sums.entry((port.to_owned(), t)).or_insert([0; N]);
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// The counters of one port, and what each of them was last.
struct Counters<'a, const N: usize> {
    port: &'a str,
    tracks: [Track; N],
    before: [Option<u64>; N],
}

/// Writes a counter a column below each port, changes only.
fn write<const N: usize>(
    sums: &ByPort<N>,
    tracks: &Tracks<'_>,
    trace: &mut Trace,
    columns: [(&str, Unit); N],
    value: impl Fn(u64, u64) -> u64,
) {
    let mut counters: Option<Counters<'_, N>> = None;
    for ((port, t), values) in sums {
        if counters.as_ref().is_none_or(|known| known.port != port) {
            let parent = tracks.port(port);
            let made = columns.each_ref().map(|(name, unit)| trace.counter(parent, name, unit));
            counters = Some(Counters { port, tracks: made, before: [None; N] });
        }
        let Some(Counters { tracks: made, before, .. }) = &mut counters else { continue };
        for (column, number) in values.iter().enumerate() {
            if before[column].replace(*number) == Some(*number) {
                continue;
            }
            trace.count(made[column], *t, value(*t, *number) as i64);
        }
    }
}

/// `ports.csv`: what each port sent.
pub fn ports(
    run: &Run,
    folder: &Path,
    tracks: &Tracks<'_>,
    trace: &mut Trace,
) -> Result<(), ReportError> {
    let mut sums = ByPort::new();
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    let columns = ["t_ps", "dt_ps", "tx_bytes"];
    tables::each(&folder.join("ports.csv"), "port", columns, |port, [t, dt, bytes]| {
        lengths.insert(t, dt);
        add(&mut sums, port, t, [bytes]);
        Ok(())
    })?;
    let bin = run.result.grid.dt_ps;
    write(&sums, tracks, trace, [("rate", RATE)], |t, octets| {
        bits(octets, lengths.get(&t).copied().unwrap_or(bin))
    });
    Ok(())
}

/// `queues.csv`: what waits, and what input buffers hold.
pub fn queues(folder: &Path, tracks: &Tracks<'_>, trace: &mut Trace) -> Result<(), ReportError> {
    let (mut out, mut input) = (ByPort::new(), ByPort::new());
    let columns = ["t_ps", "bytes_mean", "bytes_max"];
    let file = folder.join("queues.csv");
    tables::each_of(&file, ["port", "what"], columns, |[port, what], [t, mean, max]| {
        match what {
            "out" => add(&mut out, port, t, [mean, max]),
            "in" => add(&mut input, port, t, [max]),
            _ => {}
        }
        Ok(())
    })?;
    let queue = [("queue, mean", Unit::Octets), ("queue, most", Unit::Octets)];
    let as_it_is = |_, octets| octets;
    write(&out, tracks, trace, queue, as_it_is);
    write(&input, tracks, trace, [("input buffer, most", Unit::Octets)], as_it_is);
    Ok(())
}

/// `rates.csv`: what reaction points allow. A bin without a row is one without a limit.
pub fn rates(folder: &Path, tracks: &mut Tracks<'_>, trace: &mut Trace) -> Result<(), ReportError> {
    let mut flows: BTreeMap<String, BTreeMap<u64, [u64; 3]>> = BTreeMap::new();
    let columns = ["t_ps", "dt_ps", "rate_mean", "gap_ps_mean"];
    tables::each(&folder.join("rates.csv"), "flow", columns, |flow, [t, dt, rate, gap]| {
        flows.entry(flow.to_owned()).or_default().insert(t, [dt, rate, gap]);
        Ok(())
    })?;
    for (name, rows) in &flows {
        let flow = tracks.flow(name, trace);
        let rate = trace.counter(flow, "rate", &RATE);
        let gap = trace.counter(flow, "gap", &Unit::Nanoseconds);
        for (t, [dt, bits, ps]) in rows {
            trace.count(rate, *t, *bits as i64);
            trace.count(gap, *t, (*ps / 1_000) as i64);
            if !rows.contains_key(&(t + dt)) {
                trace.count(gap, t + dt, 0);
            }
        }
    }
    Ok(())
}

/// `fidelity.csv`: how late workers were, in fabric time.
pub fn lateness(
    folder: &Path,
    tracks: &mut Tracks<'_>,
    trace: &mut Trace,
) -> Result<(), ReportError> {
    let rows: Vec<FidelityRow> = tables::all(&folder.join("fidelity.csv"))?;
    let mut counters: BTreeMap<u32, [Track; 2]> = BTreeMap::new();
    for row in rows {
        let [late, lost] = *counters.entry(row.worker).or_insert_with(|| {
            let worker = tracks.worker(u64::from(row.worker), trace);
            let late = trace.counter(worker, "lateness, p99", &Unit::Nanoseconds);
            [late, trace.counter(worker, "frames lost", &Unit::Count)]
        });
        trace.count(late, row.t_ps, (row.late_ps_p99 / 1_000) as i64);
        trace.count(lost, row.t_ps, row.lost as i64);
    }
    Ok(())
}
