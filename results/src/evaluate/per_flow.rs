//! Measures of flows: rates and gaps, completion, congestion found by receivers, notifications, fairness.

use super::{RunData, flows, number_in, over, rate_in, reduce, time_in};
use crate::fairness::jain;
use emulation::wiring::End;
use proto::counters::{FlowReading, Level};
use proto::ids::PortNumber;
use proto::units::Instant;
use scenario::measure::windows::{Interval, parts, samples};
use scenario::measure::{Measure, Quantity, Reduce};
use std::collections::BTreeMap;

/// The flows from one node to another at an edge, and the instant of the reading.
pub(super) fn flows_at<'a>(
    run: &RunData<'a>,
    (from, to): (usize, usize),
    edge: Instant,
) -> Result<(Vec<&'a FlowReading>, Instant), String> {
    let (reading, taken) = run.at(from, edge)?;
    let address = run.address(to);
    let flows = reading.flows.iter().filter(|flow| flow.flow.destination == address);
    Ok((flows.collect(), taken))
}

/// The growth of a level over the intervals of a sample: integral, integral of the square, picoseconds.
#[derive(Clone, Copy, Default)]
struct Held {
    integral: f64,
    square: f64,
    ps: f64,
}

pub(super) fn over_flows(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let samples = samples(measure);
    let (mut means, mut pooled) = (Vec::new(), Held::default());
    for pair in flows(measure)? {
        for sample in &samples {
            for held in flow_held(measure, run, *pair, sample)? {
                means.push(held.integral / over(held.ps)?);
                pooled.integral += held.integral;
                pooled.square += held.square;
                pooled.ps += held.ps;
            }
        }
    }
    if means.is_empty() {
        return Err("none of these flows ever sent".to_owned());
    }
    let value = match measure.reduce {
        Reduce::Sd => {
            let mean = pooled.integral / pooled.ps;
            (pooled.square / pooled.ps - mean * mean).max(0.0).sqrt()
        }
        other => reduce(means, other)?,
    };
    if measure.of == Quantity::Ipd {
        return time_in(measure.per, value, run);
    }
    let sender = flows(measure)?[0].0;
    let port = End { node: sender, port: PortNumber::from_index(0) };
    rate_in(measure.per, value, run, port)
}

/// The growth of the level of each flow of a pair. A gap that did not exist yet was zero; a rate that
/// did not exist yet is unknown.
fn flow_held(
    measure: &Measure,
    run: &RunData<'_>,
    pair: (usize, usize),
    sample: &[Interval],
) -> Result<Vec<Held>, String> {
    let level = |flow: &FlowReading| -> Level {
        if measure.of == Quantity::Ipd { flow.gap } else { flow.rate }
    };
    let mut held: BTreeMap<u8, Held> = BTreeMap::new();
    for (from, to) in sample {
        let (first, began) = flows_at(run, pair, *from)?;
        let (last, ended) = flows_at(run, pair, *to)?;
        for flow in last {
            let earlier = first.iter().find(|earlier| earlier.flow == flow.flow);
            if earlier.is_none() && measure.of == Quantity::Rate {
                let (from, to) = (run.fabric.node_name(pair.0), run.fabric.node_name(pair.1));
                return Err(format!("the flow {from}>{to} began inside the window"));
            }
            let (before, after) = (earlier.map(|f| level(f)).unwrap_or_default(), level(flow));
            let sum = held.entry(flow.flow.class).or_default();
            sum.integral += after.integral.saturating_sub(before.integral) as f64;
            sum.square += after.square_integral.saturating_sub(before.square_integral) as f64;
            sum.ps += ended.since(began).as_ps() as f64;
        }
    }
    Ok(held.into_values().collect())
}

/// The time from `from` until the last reaction point became neutral.
pub(super) fn release(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let mut latest = measure.from;
    for pair in flows(measure)? {
        for flow in flows_at(run, *pair, measure.to)?.0 {
            let (from, to) = (run.fabric.node_name(pair.0), run.fabric.node_name(pair.1));
            let since =
                flow.neutral_since.ok_or_else(|| format!("{from}>{to} is still held back"))?;
            latest = latest.max(since);
        }
    }
    time_in(measure.per, latest.since(measure.from).as_ps() as f64, run)
}

/// Messages completed up to the window's end as a share of those posted up to then, by pair.
pub(super) fn completion(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let mut shares = Vec::new();
    for pair in flows(measure)? {
        let (flows, _) = flows_at(run, *pair, measure.to)?;
        let posted: u64 = flows.iter().map(|flow| flow.messages).sum();
        let completed: u64 = flows.iter().map(|flow| flow.completed).sum();
        if posted > 0 {
            shares.push(completed as f64 / posted as f64);
        }
    }
    if shares.is_empty() {
        return Err("nothing was posted".to_owned());
    }
    number_in(measure.per, reduce(shares, measure.reduce)?)
}

/// The growth of counters over the parts of the measure's window; `read` reads them at an edge.
pub(super) fn grown<const N: usize>(
    measure: &Measure,
    read: impl Fn(Instant) -> Result<[u64; N], String>,
) -> Result<[u64; N], String> {
    let mut grown = [0; N];
    for (from, to) in parts(measure) {
        let (before, after) = (read(from)?, read(to)?);
        for (sum, (before, after)) in grown.iter_mut().zip(before.into_iter().zip(after)) {
            *sum += after - before;
        }
    }
    Ok(grown)
}

/// The share of the receivers' periods in which they judged the flows to cause congestion.
pub(super) fn congested(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let (mut judged, mut found) = (0, 0);
    for (from, to) in flows(measure)? {
        let source = run.address(*from);
        let [one, other] = grown(measure, |edge| {
            let receptions = run.at(*to, edge)?.0.receptions.iter();
            let flows = receptions.filter(|reception| reception.flow.source == source);
            let periods = flows.map(|flow| [flow.periods.judged, flow.periods.congested]);
            Ok(periods.fold([0; 2], |[a, b], [c, d]| [a + c, b + d]))
        })?;
        (judged, found) = (judged + one, found + other);
    }
    if judged == 0 {
        return Err("no period of these flows was judged: does the scheme judge any?".to_owned());
    }
    number_in(measure.per, found as f64 / judged as f64)
}

/// A notification on the wire, octets: LRH, BTH, sixteen reserved octets, ICRC and VCRC.
const NOTIFICATION: u64 = 8 + 12 + 16 + 4 + 2;

/// Octets of notifications as a share of the octets of data that they are about.
pub(super) fn overhead(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let (mut notes, mut octets) = (0, 0);
    for pair in flows(measure)? {
        let [one, other] = grown(measure, |edge| {
            let counts = flows_at(run, *pair, edge)?.0.into_iter().map(|f| [f.notes, f.tx_bytes]);
            Ok(counts.fold([0; 2], |[a, b], [c, d]| [a + c, b + d]))
        })?;
        (notes, octets) = (notes + one, octets + other);
    }
    if octets == 0 {
        return Err("none of these flows sent".to_owned());
    }
    number_in(measure.per, (notes * NOTIFICATION) as f64 / octets as f64)
}

/// The octets of data frames that a pair sent inside the measure's window.
pub(super) fn sent(
    measure: &Measure,
    run: &RunData<'_>,
    pair: (usize, usize),
) -> Result<u64, String> {
    let sum = |flows: &[&FlowReading]| flows.iter().map(|flow| flow.tx_bytes).sum();
    let [octets] = grown(measure, |edge| Ok([sum(&flows_at(run, pair, edge)?.0)]))?;
    Ok(octets)
}

/// Jain's fairness index of the octets that the flows sent, one flow for each pair of nodes.
pub(super) fn fairness(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let sent = flows(measure)?.iter().map(|pair| Ok(sent(measure, run, *pair)? as f64));
    let sent = sent.collect::<Result<Vec<f64>, String>>()?;
    number_in(measure.per, jain(&sent).ok_or("none of these flows sent")?)
}
