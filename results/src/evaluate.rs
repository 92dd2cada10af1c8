//! Computes measures from counter readings taken exactly at their windows' edges, never from bins.

use crate::latencies::Latencies;
use emulation::recorder::Recording;
use emulation::wiring::End;
use proto::counters::{DeviceReading, LatencyReading, PortReading};
use proto::events::Direction;
use proto::units::Instant;
use scenario::inventory::Fabric;
use scenario::measure::value::Value;
use scenario::measure::windows::{Interval, parts, samples};
use scenario::measure::{At, Counter, Measure, Per, Quantity, Reduce};
use std::collections::BTreeMap;

mod flow_shares;
mod order;
mod per_flow;
mod replays;
mod spikes;

const PS_PER_S: f64 = 1e12;

/// The readings of a run by node and edge, of all workers.
#[derive(Debug)]
pub struct RunData<'a> {
    fabric: &'a Fabric,
    recordings: &'a [Recording],
    places: BTreeMap<usize, (usize, usize)>,
    /// What the commands of hosts printed, by host; none of one that was not started.
    outputs: &'a [Option<String>],
}

/// A device's reading, and the instant at which it was taken.
type Taken<'a> = (&'a DeviceReading, Instant);

impl<'a> RunData<'a> {
    /// The readings of `recordings`, one for each worker.
    pub fn new(fabric: &'a Fabric, recordings: &'a [Recording]) -> RunData<'a> {
        let places = recordings.iter().enumerate().flat_map(|(worker, recording)| {
            let nodes = recording.nodes.iter().enumerate();
            nodes.map(move |(place, node)| (*node, (worker, place)))
        });
        RunData { fabric, recordings, places: places.collect(), outputs: &[] }
    }

    /// The same with what the commands of hosts printed, by host.
    pub fn with_outputs(self, outputs: &'a [Option<String>]) -> RunData<'a> {
        RunData { outputs, ..self }
    }

    /// The address of `node` in flows; 0 if it has none.
    fn address(&self, node: usize) -> u64 {
        self.fabric.addresses.get(node).copied().unwrap_or(0)
    }

    /// The reading of `node` at a planned edge.
    fn at(&self, node: usize, edge: Instant) -> Result<Taken<'a>, String> {
        let name = self.fabric.node_name(node);
        let (worker, place) =
            self.places.get(&node).ok_or_else(|| format!("no worker recorded {name}"))?;
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
/// Why it has none, as a message for the user.
pub fn evaluate(measure: &Measure, run: &RunData<'_>) -> Result<Value, String> {
    if let Quantity::Order(first) = measure.of {
        return order::order(measure, first, run).map(Value::Names);
    }
    if measure.of != Quantity::Output && parts(measure).is_empty() {
        return Err("its window is empty".to_owned());
    }
    let number = match measure.of {
        Quantity::Share => flow_shares::share(measure, run),
        Quantity::Marked(band) => flow_shares::marked(measure, band, run),
        Quantity::Notices => flow_shares::notices(measure, run),
        Quantity::OverIdeal => replays::over_ideal(measure, run),
        Quantity::Spikes => spikes::count(measure, run),
        Quantity::SpikeInterval => spikes::interval(measure, run),
        Quantity::Order(_) => Err("it is not a number".to_owned()),
        Quantity::Output => output(measure, run),
        Quantity::Throughput | Quantity::Queue | Quantity::Count(_) => over_ports(measure, run),
        Quantity::Latency => latency(measure, run),
        Quantity::Rate | Quantity::Ipd => per_flow::over_flows(measure, run),
        Quantity::Recovery => recovery(measure, run),
        Quantity::Release => per_flow::release(measure, run),
        Quantity::Completion => per_flow::completion(measure, run),
        Quantity::Congested => per_flow::congested(measure, run),
        Quantity::Overhead => per_flow::overhead(measure, run),
        Quantity::Fairness => per_flow::fairness(measure, run),
    };
    number.map(Value::Number)
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

/// A number in what the command of a host printed.
fn output(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let At::Output(host, pattern) = &measure.at else {
        return Err("it is taken on a host, and none is named".to_owned());
    };
    let printed = run.outputs.get(*host).and_then(Option::as_ref);
    let printed = printed.ok_or_else(|| format!("{} ran nothing", measure.named.join(", ")))?;
    scenario::measure::output::number(pattern, printed)
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

/// The value of one port over the intervals of one sample.
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
            rate_in(measure.per, rate, run, end)
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
        Counter::Drops => reading.drops.total(),
        Counter::Marks => lanes.map(|lane| lane.marks).sum(),
        Counter::Notes => lanes.map(|lane| lane.notes_rx).sum(),
        Counter::Hold => lanes.map(|lane| lane.hold_ps).sum(),
        Counter::Watchdogs => reading.watchdogs,
        // All others are counters with a name.
        _ => named(reading, Quantity::Count(counter).named()),
    }
}

/// The sum of the counters whose operator names end with one of `endings`; a queue number precedes the ending.
fn named(reading: &PortReading, endings: &[&str]) -> u64 {
    let wanted = |name: &str| endings.iter().any(|ending| name.ends_with(ending));
    reading.named.iter().filter(|(name, _)| wanted(name)).map(|(_, count)| count).sum()
}

/// The growth of a port's total over the intervals, and the time between the readings in picoseconds.
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
            after.latencies.iter().filter(wanted).for_each(|reading| latencies.add(reading, 1));
            before.latencies.iter().filter(wanted).for_each(|reading| latencies.add(reading, -1));
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

fn rate_in(per: Per, bits_per_s: f64, run: &RunData<'_>, end: End) -> Result<f64, String> {
    match per {
        Per::One => Ok(bits_per_s),
        Per::Line => Ok(bits_per_s / run.fabric.line_rate(end)?.get() as f64),
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
