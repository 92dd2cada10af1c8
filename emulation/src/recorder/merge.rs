//! Recordings of workers with exact pace, merged into the one that a single worker would have made.
//!
//! All workers have the same grid and the same edges, since each took its samples at the planned instants. Bounds that a
//! recorder applies to the whole fabric, on events and on flows with a series of their own, are applied again.

use super::event_log::{LINES_MAX, RecordedEvents};
use super::{EdgeReading, FLOWS_MAX, FlowSeries, PoolSeries, Recording};
use crate::recorder::bins::{FlowBin, Series};
use crate::recorder::holds::Holds;
use proto::counters::DeviceReading;
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Recording {
    /// Merges the recordings of all workers of a run with exact pace. `all_events` is that of the plan. The capture is left
    /// to the caller.
    ///
    /// # Panics
    /// If there are no workers.
    pub fn merge(mut workers: Vec<Recording>, all_events: bool) -> Recording {
        let logs = workers.iter_mut().map(|worker| std::mem::take(&mut worker.events)).collect();
        let holds = workers.iter_mut().map(|worker| std::mem::take(&mut worker.holds)).collect();
        let mut flows: Vec<FlowSeries> =
            workers.iter_mut().flat_map(|worker| std::mem::take(&mut worker.flows)).collect();
        let mut pools = workers.iter_mut().flat_map(|worker| std::mem::take(&mut worker.pools));
        let pools = pool(&mut flows, &mut pools);
        let mut ports: Vec<_> =
            workers.iter_mut().flat_map(|worker| std::mem::take(&mut worker.ports)).collect();
        ports.sort_by_key(|series| (series.at, series.tc));
        let nodes: Vec<Vec<usize>> = workers.iter().map(|worker| worker.nodes.clone()).collect();
        let last = workers.iter_mut().map(|worker| std::mem::take(&mut worker.last)).collect();
        let count = workers.iter().map(|worker| worker.edges.len()).min().unwrap_or(0);
        let edges = (0..count).map(|edge| {
            let take = |worker: &mut Recording| std::mem::take(&mut worker.edges[edge].devices);
            let devices = by_node(&nodes, workers.iter_mut().map(take).collect());
            let EdgeReading { edge, taken, .. } = workers[0].edges[edge];
            EdgeReading { edge, taken, devices }
        });
        let edges = edges.collect();
        let mut all: Vec<usize> = nodes.iter().flatten().copied().collect();
        all.sort_unstable();
        let lines_max = if all_events { usize::MAX } else { LINES_MAX };
        let first = workers.into_iter().next().expect("a run has workers");
        Recording {
            nodes: all,
            stopped: first.stopped,
            edges,
            last: by_node(&nodes, last),
            events: RecordedEvents::merge(logs, &first.grid, lines_max),
            grid: first.grid,
            ports,
            flows,
            pools,
            holds: merge_holds(holds),
            capture: None,
        }
    }
}

/// The readings of all workers in the order of nodes.
fn by_node(nodes: &[Vec<usize>], readings: Vec<Vec<DeviceReading>>) -> Vec<DeviceReading> {
    let named = nodes.iter().flatten().zip(readings.into_iter().flatten());
    let mut all: Vec<(usize, DeviceReading)> =
        named.map(|(node, reading)| (*node, reading)).collect();
    all.sort_by_key(|(node, _)| *node);
    all.into_iter().map(|(_, reading)| reading).collect()
}

/// Keeps the [`FLOWS_MAX`] most reduced flows, and pools the others with what is pooled already.
fn pool(
    flows: &mut Vec<FlowSeries>,
    pools: &mut dyn Iterator<Item = PoolSeries>,
) -> Vec<PoolSeries> {
    let mut sums: Vec<BTreeMap<u32, FlowBin>> = Vec::new();
    let mut add = |class: u8, bins: &Series<FlowBin>| {
        let class = usize::from(class);
        sums.resize(sums.len().max(class + 1), BTreeMap::new());
        bins.iter().for_each(|(place, bin)| sums[class].entry(place).or_default().pool(bin));
    };
    pools.for_each(|pool| add(pool.class, &pool.bins));
    if flows.len() > FLOWS_MAX {
        flows.sort_by_cached_key(|series| (Reverse(series.bins.rate_reduction()), series.flow));
        let others = flows.split_off(FLOWS_MAX);
        others.iter().for_each(|series| add(series.flow.class, &series.bins));
    }
    let series = |bins: BTreeMap<u32, FlowBin>| {
        let mut series = Series::with_room(bins.len());
        bins.into_iter().for_each(|(place, bin)| series.push(place, bin));
        series
    };
    (0..).zip(sums).map(|(class, bins)| PoolSeries { class, bins: series(bins) }).collect()
}

fn merge_holds(workers: Vec<Holds>) -> Holds {
    let mut merged = Holds::default();
    for Holds { edges, long } in workers {
        merged.edges = edges;
        merged.long.extend(long);
    }
    merged.long.sort_by_key(|hold| (hold.to.is_none(), hold.to, hold.at, hold.tc));
    merged
}
