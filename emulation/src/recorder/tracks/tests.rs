//! However many flows react, a bounded number keep series, and no octet is lost.

use super::*;
use crate::recorder::bins::{Grid, Series};
use proto::counters::{LaneCounters, LaneReading, PortTotals};
use proto::units::Instant;

/// Records bin number `bin`, from 1, of ten picoseconds of the only device.
fn enter(tracks: &mut Tracks, grid: &mut Grid, bin: u64, reading: &BinReading) {
    let end = Instant::from_ps(bin * 10);
    let closed = grid.close(end).expect("time has passed");
    tracks.begin(&closed);
    tracks.take(0, reading, Duration::from_ps(10));
    tracks.end();
}

/// A flow that has sent `sent` octets in a bin and was limited to `rate`.
fn flow(destination: u64, sent: u64, rate: u64) -> MovedFlow {
    MovedFlow {
        flow: FlowId { source: 1, destination, class: 0 },
        ever_reacted: true,
        tx_bytes: sent,
        rate: Span { min: rate, max: 10_000, integral: 0 },
        gap: Span::default(),
        scalar: 1,
    }
}

/// Records `bins` bins of a device with `flows` flows; flow n is limited to a rate of n.
fn run(flows: u64, bins: u64) -> (Vec<FlowSeries>, Vec<PoolSeries>) {
    let mut tracks = Tracks::new([(0, 1)].into_iter());
    let mut grid = Grid::new(Duration::from_ps(10));
    for bin in 1..=bins {
        let moved = (1..=flows).map(|n| flow(n, n, n)).collect();
        enter(&mut tracks, &mut grid, bin, &BinReading { moved, ..BinReading::default() });
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
        let ports = vec![PortTotals { lanes, drops: 0 }];
        enter(&mut tracks, &mut grid, bin, &BinReading { ports, ..BinReading::default() });
    }
    let (ports, _, _) = tracks.finish();
    let sums: Vec<(u8, u64)> = ports
        .iter()
        .map(|lane| (lane.tc, lane.bins.iter().map(|(_, bin)| bin.counts[1]).sum()))
        .collect();
    assert_eq!(sums, [(0, 14), (1, 14), (15, 14)]);
    assert_eq!(ports[1].bins.iter().next().map(|(place, _)| place), Some(1));
}

/// A flow whose reaction point changed without ever limiting it is pooled with those that never changed.
#[test]
fn flows_told_of_together_weigh_as_if_told_of_one_by_one() {
    let pools = |reading: &BinReading| {
        let mut tracks = Tracks::new([(0, 1)].into_iter());
        let mut grid = Grid::new(Duration::from_ps(10));
        (1..=3).for_each(|bin| enter(&mut tracks, &mut grid, bin, reading));
        let (_, flows, pools) = tracks.finish();
        assert!(flows.is_empty());
        pools
    };
    let one = |destination, tx_bytes| {
        let rate = Span::steady(500, 10);
        MovedFlow { ever_reacted: false, rate, ..flow(destination, tx_bytes, 500) }
    };
    let moved = vec![one(1, 70), one(2, 0), one(3, 9)];
    let unmoved = |flows, tx_bytes| {
        vec![UnmovedFlows { class: 0, flows, tx_bytes, rate: 500, gap: 0, scalar: 1 }]
    };
    let together = pools(&BinReading { unmoved: unmoved(3, 79), ..BinReading::default() });
    assert_eq!(together[0].bins.get(1).tx_bytes, 79);
    assert_eq!(together[0].bins.get(1).rate.mean(30), 500);
    assert_eq!(together, pools(&BinReading { moved, ..BinReading::default() }));
    let (moved, unmoved) = (vec![one(1, 70)], unmoved(2, 9));
    assert_eq!(together, pools(&BinReading { moved, unmoved, ..BinReading::default() }));
}
