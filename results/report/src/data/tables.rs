//! Reads the tables of a run directory into series by bin.

use super::{Envelope, ReportError, Run, Throttle, content, open};
use results::run_directory::FidelityBin;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;

/// A row of `ports.csv`, as far as it is used: one lane of a port in one bin.
#[derive(Debug, Deserialize)]
pub struct PortRow {
    /// Begin of the bin, fabric picoseconds.
    pub t_ps: u64,
    /// Its length.
    pub dt_ps: u64,
    /// `node:port`.
    pub port: String,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// Octets of data frames received.
    pub rx_bytes: u64,
    tx_frames: u64,
    hold_ps: u64,
    pause_ps: u64,
    marks: u64,
    notes_rx: u64,
    drops: u64,
}

/// A row of `queues.csv`: one queue or buffer of a lane in one bin.
#[derive(Debug, Deserialize)]
pub struct QueueRow {
    /// Begin of the bin, fabric picoseconds.
    pub t_ps: u64,
    dt_ps: u64,
    /// `node:port`.
    pub port: String,
    /// `out` for the queue of the output, `in` for the input buffer.
    pub what: String,
    bytes_min: u64,
    /// Mean fill over the bin, octets.
    pub bytes_mean: u64,
    /// Greatest fill in the bin, octets.
    pub bytes_max: u64,
}

/// A row of `rates.csv`: the reaction point of one flow in one bin.
#[derive(Debug, Deserialize)]
pub struct RateRow {
    /// Begin of the bin, fabric picoseconds.
    pub t_ps: u64,
    /// Its length.
    pub dt_ps: u64,
    /// `src>dst`.
    pub flow: String,
    /// Mean rate that is allowed, bit/s.
    pub rate_mean: u64,
    /// Mean gap after a full frame, picoseconds.
    pub gap_ps_mean: u64,
}

/// `ports.csv`: shares of time and of the line rate, and totals.
pub fn ports(run: &mut Run, file: &Path) -> Result<(), ReportError> {
    let places = run.graph.ports();
    let mut lines: Vec<f64> = vec![0.0; run.graph.nodes.len()];
    for (output, rate) in run.graph.outputs.iter().zip(&run.graph.rates) {
        lines[output.from] += *rate as f64;
    }
    each(file, |row: PortRow| {
        let (output, bin) = (known(&places, &row.port)?, run.bin_at(row.t_ps + row.dt_ps / 2));
        let length = row.dt_ps.max(1) as f64;
        let share = |bytes: u64, line: f64| bytes as f64 * 8e12 / length / line.max(1.0);
        let series = &mut run.series[output];
        add(&mut series.sent[bin], share(row.tx_bytes, run.graph.rates[output] as f64));
        most(&mut series.hold[bin], row.hold_ps as f64 / length);
        most(&mut series.pause[bin], row.pause_ps as f64 / length);
        let totals = &mut series.totals;
        totals.frames += row.tx_frames;
        totals.hold_ps += row.hold_ps;
        totals.marks += row.marks;
        totals.notes_rx += row.notes_rx;
        totals.drops += row.drops;
        run.signals.marks[bin] += row.marks as f64;
        run.signals.notes[bin] += row.notes_rx as f64;
        run.signals.drops[bin] += row.drops as f64;
        let node = run.graph.outputs[output].from;
        add(&mut run.received[node][bin], share(row.rx_bytes, lines[node]));
        Ok(())
    })
}

/// `queues.csv`: output queues and input buffers.
pub fn queues(run: &mut Run, file: &Path) -> Result<(), ReportError> {
    let places = run.graph.ports();
    each(file, |row: QueueRow| {
        let (output, bin) = (known(&places, &row.port)?, run.bin_at(row.t_ps + row.dt_ps / 2));
        let series = &mut run.series[output];
        let (levels, enter): (&mut Envelope, fn(&mut f64, f64)) = match row.what.as_str() {
            "out" => (&mut series.queue, add),
            "in" => (&mut series.input, most),
            _ => return Ok(()),
        };
        enter(&mut levels.min[bin], row.bytes_min as f64);
        enter(&mut levels.mean[bin], row.bytes_mean as f64);
        enter(&mut levels.max[bin], row.bytes_max as f64);
        Ok(())
    })
}

/// `rates.csv`: limits of the reaction points.
pub fn rates(run: &mut Run, file: &Path) -> Result<(), ReportError> {
    let (bins, tau) = (run.bins, run.tau_ps());
    let line = run.graph.rates.first().copied().unwrap_or(1).max(1) as f64;
    each(file, |row: RateRow| {
        let bin = run.bin_at(row.t_ps + row.dt_ps / 2);
        let blank = || Throttle { gap: vec![0.0; bins], rate: vec![f64::NAN; bins] };
        let throttle = run.throttles.entry(row.flow).or_insert_with(blank);
        throttle.gap[bin] = row.gap_ps_mean as f64 / tau;
        throttle.rate[bin] = row.rate_mean as f64 / line;
        Ok(())
    })
}

/// `fidelity.csv`: lateness of the worst worker; it has no rows on the virtual clock.
pub fn lateness(run: &mut Run, file: &Path) -> Result<(), ReportError> {
    each(file, |row: FidelityBin| {
        run.lateness.resize(run.bins, f64::NAN);
        let bin = run.bin_at(row.t_ps + row.dt_ps / 2);
        let late = run.in_tau(row.late_ps_p99);
        most(&mut run.lateness[bin], late);
        Ok(())
    })
}

fn known(places: &BTreeMap<String, usize>, port: &str) -> Result<usize, String> {
    places.get(port).copied().ok_or_else(|| format!("topology.json has no port {port}"))
}

/// Adds the value of a lane; the first replaces NaN.
fn add(sum: &mut f64, value: f64) {
    *sum = if sum.is_finite() { *sum + value } else { value };
}

/// Takes the greatest value of several lanes; the first replaces NaN.
fn most(most: &mut f64, value: f64) {
    *most = most.max(value);
}

/// Calls `row` with each row of a table; columns are found by their names.
pub fn each<T: DeserializeOwned>(
    file: &Path,
    mut row: impl FnMut(T) -> Result<(), String>,
) -> Result<(), ReportError> {
    let rows = csv::Reader::from_reader(open(file)?).into_deserialize();
    for (place, read) in rows.enumerate() {
        row(read.map_err(|error| content(file, error))?)
            .map_err(|why| content(file, format_args!("line {}: {why}", place + 2)))?;
    }
    Ok(())
}

/// All rows of a small table.
pub fn all<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, ReportError> {
    let mut rows = Vec::new();
    each(file, |row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}
