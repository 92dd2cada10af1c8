//! Computes measures from counter readings taken exactly at their windows' edges, never from bins.

use crate::fairness::jain;
use crate::latencies::Latencies;
use emulation::recorder::Recording;
use emulation::wiring::End;
use proto::counters::{DeviceReading, FlowReading, Gauge, LatencyReading, PortReading};
use proto::events::Direction;
use proto::units::Instant;
use scenario::inventory::Fabric;
use scenario::measure::value::Value;
use scenario::measure::windows::{Interval, parts, samples};
use scenario::measure::{At, Counter, Measure, Per, Quantity, Reduce};
use std::collections::BTreeMap;

mod flow_shares;
pub mod order;
mod replays;
mod spikes;

const PS_PER_S: f64 = 1e12;

/// A run's readings by node and edge, whoever recorded them.
#[derive(Debug)]
pub struct RunData<'a> {
    fabric: &'a Fabric,
    recordings: &'a [Recording],
    places: BTreeMap<usize, (usize, usize)>,
}

/// A device's reading and when it was really taken.
type Taken<'a> = (&'a DeviceReading, Instant);

impl<'a> RunData<'a> {
    /// The readings of `recordings`, one recording a worker.
    pub fn new(fabric: &'a Fabric, recordings: &'a [Recording]) -> RunData<'a> {
        let places = recordings.iter().enumerate().flat_map(|(worker, recording)| {
            let nodes = recording.nodes.iter().enumerate();
            nodes.map(move |(place, node)| (*node, (worker, place)))
        });
        RunData { fabric, recordings, places: places.collect() }
    }

    /// The reading of `node` at a planned edge.
    fn at(&self, node: usize, edge: Instant) -> Result<Taken<'a>, String> {
        let name = self.fabric.node_name(node);
        let (worker, place) =
            self.places.get(&node).ok_or_else(|| format!("nobody recorded {name}"))?;
        let edges = &self.recordings[*worker].edges;
        let found = edges.binary_search_by_key(&edge, |reading| reading.edge);
        let reading = found.ok().map(|index| &edges[index]);
        reading
            .and_then(|reading| Some((reading.devices.get(*place)?, reading.taken)))
            .ok_or_else(|| format!("no reading of {name} at {edge}: the run ended before"))
    }

    /// A port's reading at an edge, and when it was taken.
    fn port_at(&self, end: End, edge: Instant) -> Result<(&'a PortReading, Instant), String> {
        let (reading, taken) = self.at(end.node, edge)?;
        let port = reading.ports.get(end.port.index());
        let name = || format!("{} has no counters", self.fabric.wiring.end_name(end));
        Ok((port.ok_or_else(name)?, taken))
    }
}

/// The value of `measure`.
///
/// # Errors
/// Why there is none, in words for the user.
pub fn evaluate(measure: &Measure, run: &RunData<'_>) -> Result<Value, String> {
    match measure.of {
        Quantity::Order(first) => order::order(measure, first, run).map(Value::Names),
        _ => number(measure, run).map(Value::Number),
    }
}

fn number(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    if parts(measure).is_empty() {
        return Err("its window is empty".to_owned());
    }
    match measure.of {
        Quantity::Share => flow_shares::share(measure, run),
        Quantity::Marked(band) => flow_shares::marked(measure, band, run),
        Quantity::Notices => flow_shares::notices(measure, run),
        Quantity::OverIdeal => replays::over_ideal(measure, run),
        Quantity::Spikes => spikes::count(measure, run),
        Quantity::SpikeInterval => spikes::interval(measure, run),
        Quantity::Order(_) => Err("it is no number".to_owned()),
        Quantity::Throughput | Quantity::Queue | Quantity::Count(_) => over_ports(measure, run),
        Quantity::Latency => latency(measure, run),
        Quantity::Rate | Quantity::Ipd => over_flows(measure, run),
        Quantity::Recovery => recovery(measure, run),
        Quantity::Release => release(measure, run),
        Quantity::Completion => completion(measure, run),
        Quantity::Congested => congested(measure, run),
        Quantity::Overhead => overhead(measure, run),
        Quantity::Fairness => fairness(measure, run),
    }
}

fn ports(measure: &Measure) -> Result<&[(End, Direction)], String> {
    match &measure.at {
        At::Ports(ports) if !ports.is_empty() => Ok(ports),
        _ => Err("it is taken at ports, and none is named".to_owned()),
    }
}

fn flows(measure: &Measure) -> Result<&[(usize, usize)], String> {
    match &measure.at {
        At::Flows(flows) if !flows.is_empty() => Ok(flows),
        _ => Err("it is taken of flows, and none is named".to_owned()),
    }
}

fn over_ports(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let samples = samples(measure);
    let mut values = Vec::new();
    for (end, direction) in ports(measure)? {
        for sample in &samples {
            values.push(port_value(measure, run, (*end, *direction), sample)?);
        }
    }
    reduce(values, measure.reduce)
}

/// One port's value over the intervals of one sample.
fn port_value(
    measure: &Measure,
    run: &RunData<'_>,
    (end, direction): (End, Direction),
    sample: &[Interval],
) -> Result<f64, String> {
    let total = |reading: &PortReading| -> u128 {
        let lanes = reading.lanes.iter().map(|lane| &lane.counters);
        match (measure.of, direction) {
            (Quantity::Throughput, Direction::Tx) => lanes.map(|l| u128::from(l.tx_bytes)).sum(),
            (Quantity::Throughput, Direction::Rx) => lanes.map(|l| u128::from(l.rx_bytes)).sum(),
            (Quantity::Count(counter), _) => count(counter, run.fabric, reading).into(),
            _ => lanes.map(|l| l.out_queue.integral).sum(),
        }
    };
    let (grown, ps) = growth(run, end, sample, total)?;
    match measure.of {
        Quantity::Throughput => {
            let rate = grown * 8.0 / over(ps)? * PS_PER_S;
            rate_in(measure.per, rate, || run.fabric.line_rate(end))
        }
        Quantity::Queue => size_in(measure.per, grown / over(ps)?, run),
        Quantity::Count(Counter::Hold) => time_in(measure.per, grown, run),
        _ => number_in(measure.per, grown),
    }
}

fn count(counter: Counter, fabric: &Fabric, reading: &PortReading) -> u64 {
    let lanes = reading.lanes.iter().map(|lane| &lane.counters);
    match counter {
        Counter::LosslessDrops => {
            let lossless = reading.lanes.iter().filter(|lane| fabric.is_lossless(lane.tc));
            lossless.map(|lane| lane.counters.no_room).sum()
        }
        Counter::Pauses
        | Counter::Storms
        | Counter::StormsOver
        | Counter::StormDrops
        | Counter::SequenceGaps
        | Counter::SequenceTimeouts
        | Counter::SequenceDepth => named(reading, Quantity::Count(counter).named()),
        Counter::Drops => reading.drops.total(),
        Counter::Marks => lanes.map(|lane| lane.marks).sum(),
        Counter::Notes => lanes.map(|lane| lane.notes_rx).sum(),
        Counter::Hold => lanes.map(|lane| lane.hold_ps).sum(),
        Counter::Watchdogs => reading.watchdogs,
    }
}

/// The sum of the counters whose operators' names end like that: before it stands a queue's number.
fn named(reading: &PortReading, endings: &[&str]) -> u64 {
    let wanted = |name: &str| endings.iter().any(|ending| name.ends_with(ending));
    reading.named.iter().filter(|(name, _)| wanted(name)).map(|(_, count)| count).sum()
}

/// How much a total of a port grew over the intervals, and in how many picoseconds of true time.
fn growth(
    run: &RunData<'_>,
    end: End,
    sample: &[Interval],
    total: impl Fn(&PortReading) -> u128,
) -> Result<(f64, f64), String> {
    let (mut grown, mut ps) = (0, 0);
    for (from, to) in sample {
        let (first, began) = run.port_at(end, *from)?;
        let (last, ended) = run.port_at(end, *to)?;
        grown += total(last).saturating_sub(total(first));
        ps += ended.since(began).as_ps();
    }
    Ok((grown as f64, ps as f64))
}

fn over(ps: f64) -> Result<f64, String> {
    if ps > 0.0 { Ok(ps) } else { Err("its edges were taken at one instant".to_owned()) }
}

fn latency(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let At::Nodes(nodes) = &measure.at else {
        return Err("it is taken at nodes that receive, and none is named".to_owned());
    };
    let mut latencies = Latencies::default();
    for node in nodes {
        for (from, to) in parts(measure) {
            let wanted = |reading: &&LatencyReading| {
                measure.items.is_empty() || measure.items.contains(&reading.item)
            };
            let (after, before) = (run.at(*node, to)?.0, run.at(*node, from)?.0);
            after.latencies.iter().filter(wanted).for_each(|reading| latencies.add(reading));
            before.latencies.iter().filter(wanted).for_each(|reading| latencies.subtract(reading));
        }
    }
    let none = || "no message arrived".to_owned();
    let messages = Some(latencies.messages()).filter(|n| *n > 0).ok_or_else(none)?;
    let ns = match measure.reduce {
        Reduce::Mean => Some(latencies.sum_ns() / messages as f64),
        Reduce::Sum => Some(latencies.sum_ns()),
        Reduce::Min => latencies.min_ns(),
        Reduce::Max => latencies.max_ns(),
        Reduce::P50 => latencies.quantile_ns(50, 100),
        Reduce::P99 => latencies.quantile_ns(99, 100),
        Reduce::Sd => latencies.deviation_ns(),
    };
    time_in(measure.per, ns.ok_or_else(none)? * 1_000.0, run)
}

/// The flows from one node to another at an edge, and when it was taken.
fn flows_at<'a>(
    run: &RunData<'a>,
    (from, to): (usize, usize),
    edge: Instant,
) -> Result<(Vec<&'a FlowReading>, Instant), String> {
    let (reading, taken) = run.at(from, edge)?;
    let address = run.fabric.addresses.get(to).copied().unwrap_or(0);
    let flows = reading.flows.iter().filter(|flow| flow.flow.destination == address);
    Ok((flows.collect(), taken))
}

/// A gauge's growth over the intervals of a sample: integral, square integral, picoseconds.
#[derive(Clone, Copy, Default)]
struct Held {
    integral: f64,
    square: f64,
    ps: f64,
}

fn over_flows(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
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
    let port = End { node: sender, port: proto::ids::PortNumber::from_index(0) };
    rate_in(measure.per, value, || run.fabric.line_rate(port))
}

/// What each flow of a pair held over a sample. A gap that was not there yet was zero; a rate that
/// was not there yet is unknown.
fn flow_held(
    measure: &Measure,
    run: &RunData<'_>,
    pair: (usize, usize),
    sample: &[Interval],
) -> Result<Vec<Held>, String> {
    let gauge = |flow: &FlowReading| -> Gauge {
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
            let (before, after) = (earlier.map(|f| gauge(f)).unwrap_or_default(), gauge(flow));
            let sum = held.entry(flow.flow.class).or_default();
            sum.integral += after.integral.saturating_sub(before.integral) as f64;
            sum.square += after.square_integral.saturating_sub(before.square_integral) as f64;
            sum.ps += ended.since(began).as_ps() as f64;
        }
    }
    Ok(held.into_values().collect())
}

/// The time from `from` after which the mean over the ports, bin by bin, stays at its level.
fn recovery(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let before = measure.before.ok_or("it needs the window before to compare with")?;
    let width = measure.bin.ok_or("it needs a bin")?;
    let mean = |interval: Interval| -> Result<f64, String> {
        let throughput = Measure { of: Quantity::Throughput, per: Per::Line, ..measure.clone() };
        let values =
            ports(measure)?.iter().map(|at| port_value(&throughput, run, *at, &[interval]));
        reduce(values.collect::<Result<Vec<f64>, String>>()?, Reduce::Mean)
    };
    let level = mean(before)? * f64::from(measure.level_permille) / 1_000.0;
    let bins: Vec<Interval> = samples(measure).into_iter().flatten().collect();
    let mut below = None;
    for (index, bin) in bins.iter().enumerate() {
        if mean(*bin)? < level {
            below = Some(index);
        }
    }
    let recovered = below.map_or(0, |last| last + 1);
    if recovered == bins.len() {
        return Err(format!("the mean throughput never came back to {level:.3} of line rate"));
    }
    time_in(measure.per, (width * recovered as u64).as_ps() as f64, run)
}

/// The time from `from` until the last reaction point became neutral.
fn release(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
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
fn completion(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
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

/// The share of the receivers' periods in which they found the flows a cause of congestion.
fn congested(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let (mut judged, mut found) = (0, 0);
    for (from, to) in flows(measure)? {
        let source = run.fabric.addresses.get(*from).copied().unwrap_or(0);
        let periods = |edge: Instant| -> Result<(u64, u64), String> {
            let receptions = &run.at(*to, edge)?.0.receptions;
            let flows = receptions.iter().filter(|reception| reception.flow.source == source);
            Ok(flows.fold((0, 0), |(judged, found), flow| {
                (judged + flow.periods.judged, found + flow.periods.congested)
            }))
        };
        for (begin, end) in parts(measure) {
            let (before, after) = (periods(begin)?, periods(end)?);
            judged += after.0 - before.0;
            found += after.1 - before.1;
        }
    }
    if judged == 0 {
        return Err("no period of these flows was judged: does the scheme judge any?".to_owned());
    }
    number_in(measure.per, found as f64 / judged as f64)
}

/// LRH, BTH, the sixteen reserved octets, ICRC and VCRC: a notification on the wire.
const NOTIFICATION: u64 = 8 + 12 + 16 + 4 + 2;

/// Octets of notifications as a share of the octets of data they are about.
fn overhead(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let (mut notes, mut octets) = (0, 0);
    for pair in flows(measure)? {
        let sums = |edge: Instant| -> Result<(u64, u64), String> {
            let flows = flows_at(run, *pair, edge)?.0;
            Ok(flows.iter().fold((0, 0), |sum, flow| (sum.0 + flow.notes, sum.1 + flow.tx_bytes)))
        };
        for (from, to) in parts(measure) {
            let (before, after) = (sums(from)?, sums(to)?);
            notes += after.0 - before.0;
            octets += after.1 - before.1;
        }
    }
    if octets == 0 {
        return Err("none of these flows sent".to_owned());
    }
    number_in(measure.per, (notes * NOTIFICATION) as f64 / octets as f64)
}

/// How evenly the flows, one a pair of nodes, shared what they sent.
fn fairness(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let mut sent = Vec::new();
    for pair in flows(measure)? {
        let octets = |edge: Instant| -> Result<u64, String> {
            Ok(flows_at(run, *pair, edge)?.0.iter().map(|flow| flow.tx_bytes).sum())
        };
        let mut sum = 0;
        for (from, to) in parts(measure) {
            sum += octets(to)? - octets(from)?;
        }
        sent.push(sum as f64);
    }
    number_in(measure.per, jain(&sent).ok_or("none of these flows sent")?)
}

fn reduce(mut values: Vec<f64>, how: Reduce) -> Result<f64, String> {
    if values.is_empty() {
        return Err("no whole bin fits its window".to_owned());
    }
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let rank = |share: f64| values[((n * share).ceil() as usize).clamp(1, values.len()) - 1];
    let mean = values.iter().sum::<f64>() / n;
    Ok(match how {
        Reduce::Mean => mean,
        Reduce::Min => values[0],
        Reduce::Max => values[values.len() - 1],
        Reduce::P50 => rank(0.50),
        Reduce::P99 => rank(0.99),
        Reduce::Sum => values.iter().sum(),
        Reduce::Sd => (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt(),
    })
}

fn rate_in(
    per: Per,
    bits_per_s: f64,
    line: impl Fn() -> Result<proto::units::BitRate, String>,
) -> Result<f64, String> {
    match per {
        Per::One => Ok(bits_per_s),
        Per::Line => Ok(bits_per_s / line()?.get() as f64),
        Per::Mtu | Per::Size(_) => Err("a rate is given per \"line\" or in bit/s".to_owned()),
    }
}

fn size_in(per: Per, octets: f64, run: &RunData<'_>) -> Result<f64, String> {
    match per {
        Per::One => Ok(octets),
        Per::Mtu => Ok(octets / run.fabric.full_frame.get() as f64),
        Per::Size(size) => Ok(octets / size.get() as f64),
        Per::Line => Err("a size is given per \"mtu\" or in octets".to_owned()),
    }
}

fn time_in(per: Per, ps: f64, run: &RunData<'_>) -> Result<f64, String> {
    match per {
        Per::One => Ok(ps / PS_PER_S),
        Per::Mtu => Ok(ps / run.fabric.tau.as_ps() as f64),
        Per::Line | Per::Size(_) => Err("a time is given per \"mtu\" or in seconds".to_owned()),
    }
}

fn number_in(per: Per, number: f64) -> Result<f64, String> {
    if per == Per::One { Ok(number) } else { Err("a count has no unit".to_owned()) }
}

#[cfg(test)]
mod tests;
