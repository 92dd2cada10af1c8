//! Which instants and intervals a measure is taken at.

use crate::measure::quantities::Bin;
use crate::measure::{Measure, Quantity};
use emulation::recorder::Edge;
use proto::device::Depth;
use proto::units::{Duration, Instant};
use std::collections::BTreeMap;

/// From an instant up to another.
pub type Interval = (Instant, Instant);

/// Every instant at which a reading must be kept for these measures, ascending, and how deep it must be.
pub fn edges_of(measures: &[Measure]) -> Vec<Edge> {
    let mut edges: BTreeMap<Instant, Depth> = BTreeMap::new();
    for measure in measures {
        let depth = measure.of.depth();
        for (from, to) in samples(measure).into_iter().flatten().chain(measure.before) {
            for at in [from, to] {
                let known = edges.entry(at).or_insert(depth);
                *known = depth.max(*known);
            }
        }
    }
    edges.into_iter().map(|(at, depth)| Edge { at, depth }).collect()
}

/// The intervals that are measured by any of them: ascending, disjoint, not touching.
pub fn windows_of(measures: &[Measure]) -> Vec<Interval> {
    let mut intervals: Vec<Interval> = measures
        .iter()
        .flat_map(|measure| parts(measure).into_iter().chain(measure.before))
        .collect();
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::new();
    for (from, to) in intervals {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// The window as often as it comes.
fn windows(measure: &Measure) -> impl Iterator<Item = Interval> {
    let (times, every) = measure.repeat.map_or((1, Duration::ZERO), |r| (r.times, r.every));
    let (from, to) = (measure.from, measure.to);
    (0..u64::from(times)).map(move |n| (from + every * n, to + every * n))
}

/// The windows without their exceptions, ascending; none of a measure that reads no device.
pub fn parts(measure: &Measure) -> Vec<Interval> {
    if measure.of == Quantity::Output {
        return Vec::new();
    }
    let mut left: Vec<Interval> = windows(measure).collect();
    for (out_from, out_to) in &measure.except {
        left = left
            .into_iter()
            .flat_map(|(from, to)| [(from, to.min(*out_from)), (from.max(*out_to), to)])
            .collect();
    }
    left.retain(|(from, to)| from < to);
    left
}

/// The intervals behind each value of a measure: one value over all parts, or with `bin` one for
/// each whole bin of each part.
pub fn samples(measure: &Measure) -> Vec<Vec<Interval>> {
    let bins_of_values = matches!(measure.of.row().bin, Bin::Optional | Bin::Required(_));
    match measure.bin.filter(|width| bins_of_values && *width > Duration::ZERO) {
        None => vec![parts(measure)],
        Some(width) => {
            let bins = parts(measure).into_iter().flat_map(|part| bins(part, width));
            bins.map(|bin| vec![bin]).collect()
        }
    }
}

/// The whole bins of `width` that fit into an interval, from its beginning.
fn bins((from, to): Interval, width: Duration) -> impl Iterator<Item = Interval> {
    let edge = move |n: u64| from + width * n;
    (0..).map(move |n| (edge(n), edge(n + 1))).take_while(move |(_, end)| *end <= to)
}
