//! However many flows react, a bounded number keep series, and no octet is lost.

use super::*;
use crate::recorder::bins::Grid;
use proto::counters::{Gauge, LaneCounters};
use proto::units::Instant;

/// The bin of ten picoseconds that ends at `end`.
fn elapsed(end: u64) -> Elapsed {
    Elapsed { length: Duration::from_ps(10), end: Instant::from_ps(end) }
}

/// A flow that has sent `sent` octets and is held to `rate`.
fn flow(destination: u64, sent: u64, rate: u64) -> FlowReading {
    FlowReading {
        flow: FlowId { source: 1, destination, class: 0 },
        items: Vec::new(),
        tx_bytes: sent,
        rate: Gauge { value: rate, min: rate, max: 10_000, ..Gauge::default() },
        gap: Gauge::default(),
        scalar: 1,
        neutral_since: None,
        ever_reacted: true,
        first: None,
        last: None,
        offered_bytes: 0,
        messages: 0,
        completed: 0,
        withdrawn: 0,
        notes: 0,
    }
}

/// Takes `bins` bins of a device with `flows` flows; the n-th is held to a rate of n.
fn run(flows: u64, bins: u64) -> (Vec<FlowSeries>, Vec<PoolSeries>) {
    let mut tracks = Tracks::new([(0, 1)].into_iter());
    let mut grid = Grid::new(Duration::from_ps(10));
    for bin in 1..=bins {
        let flows = (1..=flows).map(|n| flow(n, bin * n, n)).collect();
        let reading = DeviceReading { flows, ..DeviceReading::default() };
        let closed = grid.close(Instant::from_ps(bin * 10)).expect("time has passed");
        tracks.take(&[reading], &closed, elapsed(bin * 10));
    }
    let (_, flows, pools) = tracks.finish();
    (flows, pools)
}

fn octets<'a>(bins: impl Iterator<Item = &'a Series<FlowBin>>) -> u64 {
    bins.flat_map(|series| series.iter()).map(|(_, bin)| bin.tx_bytes).sum()
}

#[test]
fn the_least_reduced_flows_join_the_pool_with_all_their_octets() {
    for flows in [512u64, 513, 2_100] {
        let (own, pools) = run(flows, 5);
        assert_eq!(own.len(), 512);
        assert_eq!(own.last().map(|series| series.flow.destination), Some(512), "the lowest rates");
        let all = octets(own.iter().map(|s| &s.bins)) + octets(pools.iter().map(|s| &s.bins));
        assert_eq!(all, 5 * flows * (flows + 1) / 2);
        let weight: u64 =
            pools.iter().flat_map(|pool| pool.bins.iter()).map(|(_, bin)| bin.weight_ps).sum();
        assert_eq!(weight, (flows - 512) * 50, "each pooled flow weighs its time");
    }
}

#[test]
fn a_lane_that_appears_later_takes_its_place_by_number() {
    let mut tracks = Tracks::new([(3, 1)].into_iter());
    let mut grid = Grid::new(Duration::from_ps(10));
    for (bin, tcs) in [(1u64, vec![0, 15]), (2, vec![0, 1, 15])] {
        let counters = LaneCounters { tx_bytes: bin * 7, ..LaneCounters::default() };
        let lanes = tcs.into_iter().map(|tc| LaneReading { tc, counters }).collect();
        let ports = vec![PortReading { lanes, ..PortReading::default() }];
        let reading = DeviceReading { ports, ..DeviceReading::default() };
        let closed = grid.close(Instant::from_ps(bin * 10)).expect("time has passed");
        tracks.take(&[reading], &closed, elapsed(bin * 10));
    }
    let (ports, _, _) = tracks.finish();
    let sums: Vec<(u8, u64)> = ports
        .iter()
        .map(|lane| (lane.tc, lane.bins.iter().map(|(_, bin)| bin.counts[1]).sum()))
        .collect();
    assert_eq!(sums, [(0, 14), (1, 14), (15, 14)]);
    assert_eq!(ports[1].bins.iter().next().map(|(place, _)| place), Some(1));
}

#[test]
fn a_gauge_closed_before_the_bin_ended_counts_at_its_level_until_then() {
    let mut tracks = Tracks::new([(0, 1)].into_iter());
    let mut grid = Grid::new(Duration::from_ps(10));
    let stale = |sent| {
        let mut flow = flow(1, sent, 500);
        flow.ever_reacted = false;
        flow.rate = Gauge { since: Instant::from_ps(4), integral: 2_000, max: 500, ..flow.rate };
        flow
    };
    for bin in 1..=3 {
        let reading = DeviceReading { flows: vec![stale(bin * 9)], ..DeviceReading::default() };
        let closed = grid.close(Instant::from_ps(bin * 10)).expect("time has passed");
        tracks.take(&[reading], &closed, elapsed(bin * 10));
    }
    let (_, _, pools) = tracks.finish();
    let bins: Vec<(u64, u64)> =
        pools[0].bins.iter().map(|(_, bin)| (bin.tx_bytes, bin.rate.mean(bin.weight_ps))).collect();
    assert_eq!(bins, [(9, 500); 3]);
}
