//! Reads the tables of a run directory into series by bin.

use super::{Envelope, ReportError, Run, Signals, Throttle, content};
use csv::StringRecord;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;

/// `ports.csv`: shares of time and of the line rate, and totals.
pub fn ports(run: &mut Run, file: &Path) -> Result<(), ReportError> {
    let places = places(run);
    let mut lines: Vec<f64> = vec![0.0; run.nodes.len()];
    for (output, rate) in run.outputs.all.iter().zip(&run.rates) {
        lines[output.from] += *rate as f64;
    }
    run.signals = Signals::blank(run.bins);
    let columns = "t_ps dt_ps tx_frames tx_bytes rx_frames rx_bytes hold_ps pause_ps marks notes_tx notes_rx drops";
    let columns: [&str; 12] = array(columns.split(' '));
    each(file, "port", columns, |port, numbers| {
        let [t, dt, tx_frames, tx_bytes, rx_frames, rx_bytes, hold, pause, ..] = numbers;
        let [.., marks, sent, notes, drops] = numbers;
        let (output, bin) = (known(&places, port)?, run.bin_at(t + dt / 2));
        if bin >= run.bins {
            return Ok(());
        }
        let length = dt.max(1) as f64;
        let share = |bytes: u64, line: f64| bytes as f64 * 8e12 / length / line.max(1.0);
        let series = &mut run.series[output];
        add(&mut series.sent[bin], share(tx_bytes, run.rates[output] as f64));
        most(&mut series.hold[bin], hold as f64 / length);
        most(&mut series.pause[bin], pause as f64 / length);
        let totals = &mut series.totals;
        totals.frames += tx_frames;
        totals.received += rx_frames;
        totals.hold_ps += hold;
        totals.marks += marks;
        totals.notes_tx += sent;
        totals.notes_rx += notes;
        totals.drops += drops;
        run.signals.marks[bin] += marks as f64;
        run.signals.notes[bin] += notes as f64;
        run.signals.drops[bin] += drops as f64;
        let node = run.outputs.all[output].from;
        add(&mut run.received[node][bin], share(rx_bytes, lines[node]));
        Ok(())
    })
}

/// `queues.csv`: output queues and input buffers.
pub fn queues(run: &mut Run, file: &Path) -> Result<(), ReportError> {
    let places = places(run);
    let columns = ["t_ps", "dt_ps", "bytes_min", "bytes_mean", "bytes_max"];
    each_of(file, ["port", "what"], columns, |[port, what], [t, dt, min, mean, max]| {
        let (output, bin) = (known(&places, port)?, run.bin_at(t + dt / 2));
        if bin >= run.bins {
            return Ok(());
        }
        let series = &mut run.series[output];
        let (levels, enter): (&mut Envelope, fn(&mut f64, f64)) = match what {
            "out" => (&mut series.queue, add),
            "in" => (&mut series.input, most),
            _ => return Ok(()),
        };
        enter(&mut levels.min[bin], min as f64);
        enter(&mut levels.mean[bin], mean as f64);
        enter(&mut levels.max[bin], max as f64);
        Ok(())
    })
}

/// `rates.csv`: limits of the reaction points.
pub fn rates(run: &mut Run, file: &Path) -> Result<(), ReportError> {
    let (bins, tau) = (run.bins, run.tau_ps());
    let line = run.rates.first().copied().unwrap_or(1).max(1) as f64;
    let mut throttles: BTreeMap<String, Throttle> = BTreeMap::new();
    let columns = ["t_ps", "dt_ps", "rate_mean", "gap_ps_mean"];
    each(file, "flow", columns, |flow, [t, dt, rate, gap]| {
        if !throttles.contains_key(flow) {
            let blank = Throttle { gap: vec![0.0; bins], rate: vec![f64::NAN; bins] };
            throttles.insert(flow.to_owned(), blank);
        }
        let bin = run.bin_at(t + dt / 2);
        if let Some(throttle) = throttles.get_mut(flow).filter(|_| bin < bins) {
            throttle.gap[bin] = gap as f64 / tau;
            throttle.rate[bin] = rate as f64 / line;
        }
        Ok(())
    })?;
    run.throttles = throttles;
    Ok(())
}

/// All rows of a small table.
pub fn all<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, ReportError> {
    let rows = csv::Reader::from_path(file).map_err(|error| opened(file, error))?;
    rows.into_deserialize().collect::<Result<Vec<T>, _>>().map_err(|error| content(file, error))
}

fn places(run: &Run) -> BTreeMap<String, usize> {
    let named = run.outputs.all.iter().enumerate();
    named.map(|(place, output)| (output.name.clone(), place)).collect()
}

fn known(places: &BTreeMap<String, usize>, port: &str) -> Result<usize, String> {
    places.get(port).copied().ok_or_else(|| format!("topology.json has no port {port}"))
}

/// Adds the value of a lane; the first replaces NaN.
fn add(sum: &mut f64, value: f64) {
    *sum = if sum.is_finite() { *sum + value } else { value };
}

/// Takes the greatest value of several lanes.
fn most(most: &mut f64, value: f64) {
    *most = if most.is_finite() { most.max(value) } else { value };
}

/// Calls `row` with the text column and the number columns of each row, without allocating.
pub fn each<const N: usize>(
    file: &Path,
    text: &str,
    numbers: [&str; N],
    mut row: impl FnMut(&str, [u64; N]) -> Result<(), String>,
) -> Result<(), ReportError> {
    each_of(file, [text], numbers, |[text], numbers| row(text, numbers))
}

/// The same with several text columns.
pub fn each_of<const T: usize, const N: usize>(
    file: &Path,
    texts: [&str; T],
    numbers: [&str; N],
    mut row: impl FnMut([&str; T], [u64; N]) -> Result<(), String>,
) -> Result<(), ReportError> {
    let mut reader = csv::Reader::from_path(file).map_err(|error| opened(file, error))?;
    let header = reader.headers().map_err(|error| content(file, error))?.clone();
    let place = |name: &str| {
        let found = header.iter().position(|column| column == name);
        found.ok_or_else(|| content(file, format_args!("it has no column {name}")))
    };
    let all: Vec<usize> = texts.into_iter().chain(numbers).map(place).collect::<Result<_, _>>()?;
    let text_at: [usize; T] = array(all.iter().copied());
    let number_at: [usize; N] = array(all[T..].iter().copied());
    let mut record = StringRecord::new();
    let mut line = 1;
    while reader.read_record(&mut record).map_err(|error| content(file, error))? {
        line += 1;
        let mut values = [0; N];
        for (value, at) in values.iter_mut().zip(number_at) {
            let text = &record[at];
            let wrong = |_| content(file, format_args!("line {line}: {text:?} is no whole number"));
            *value = text.parse().map_err(wrong)?;
        }
        row(text_at.map(|at| &record[at]), values)
            .map_err(|why| content(file, format_args!("line {line}: {why}")))?;
    }
    Ok(())
}

fn opened(file: &Path, error: csv::Error) -> ReportError {
    let why = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => ReportError::Read { file: file.to_owned(), source },
        _ => content(file, why),
    }
}

/// The first `N` of some things.
///
/// # Panics
/// If there are fewer.
fn array<T, const N: usize>(mut of: impl Iterator<Item = T>) -> [T; N] {
    std::array::from_fn(|_| of.next().expect("enough for the array"))
}
