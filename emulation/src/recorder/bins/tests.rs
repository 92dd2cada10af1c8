//! Grids stay complete and bounded, and merging loses nothing.

use super::*;
use crate::recorder::ledger::Ledger;
use proptest::prelude::*;

/// Records a bin of the only series of `ledger`.
fn record<B: Bin>(ledger: &mut Ledger<B>, closed: &Closed, bin: B) {
    ledger.turn(closed);
    ledger.enter(0, bin);
}

/// The only series of `ledger`.
fn only<B: Bin>(ledger: &Ledger<B>) -> Series<B> {
    Series(ledger.iter().map(|(place, _, bin)| (place, bin.clone())).collect())
}

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

#[test]
fn a_bin_that_closes_late_is_longer_and_the_next_one_shorter() {
    let mut grid = Grid::new(Duration::from_ps(10));
    assert_eq!(grid.next_edge(), at(10));
    grid.close(at(10));
    grid.close(at(23));
    assert_eq!(grid.next_edge(), at(30));
    grid.close(at(30));
    let slots: Vec<_> =
        grid.slots.iter().map(|s| (s.number, s.begin.as_ps(), s.length().as_ps())).collect();
    assert_eq!(slots, [(0, 0, 10), (1, 10, 13), (2, 23, 7)]);
    assert_eq!(grid.close(at(30)), None, "no time has passed");
}

#[test]
fn a_run_that_ends_between_edges_has_a_short_last_bin() {
    let mut grid = Grid::new(Duration::from_ps(10));
    grid.close(at(10));
    grid.close(at(14));
    assert_eq!(grid.slots.last().map(|s| (s.number, s.length().as_ps())), Some((1, 4)));
}

#[test]
fn the_1025th_bin_doubles_the_width_for_all() {
    let mut grid = Grid::new(Duration::from_ps(10));
    let mut series: Ledger<u64> = Ledger::new();
    for edge in 1..=1024u64 {
        record(&mut series, &grid.close(at(edge * 10)).expect("time has passed"), edge);
    }
    assert_eq!((grid.slots.len(), grid.width), (1024, Duration::from_ps(10)));
    record(&mut series, &grid.close(at(10_250)).expect("time has passed"), 1025);
    assert_eq!((grid.slots.len(), grid.width), (513, Duration::from_ps(20)));
    assert_eq!(only(&series).get(0), 1 + 2);
    assert_eq!(only(&series).get(511), 1023 + 1024);
    assert_eq!(only(&series).get(512), 1025);
    assert_eq!(grid.next_edge(), at(10_260), "the open bin fills its doubled interval");
    let closed = grid.close(at(10_260)).expect("time has passed");
    assert!(closed.grew);
    record(&mut series, &closed, 1026);
    assert_eq!(only(&series).get(512), 1025 + 1026);
}

#[test]
fn an_idle_bin_merges_as_zero_not_as_nothing() {
    let busy = PortBin {
        counts: [1; 12],
        out: Span { min: 5, max: 7, integral: 60 },
        ..PortBin::default()
    };
    let mut series = Ledger::new();
    let closed = |place, regroupings| Closed { regroupings, place, grew: false };
    record(&mut series, &closed(0, vec![]), PortBin::default());
    record(&mut series, &closed(1, vec![]), busy);
    series.turn(&closed(1, vec![vec![0, 0]]));
    let merged = only(&series).get(0);
    assert_eq!((merged.out.min, merged.out.max, merged.out.mean(20)), (0, 7, 3));
}

/// One interval: its length, and its constant level.
fn steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((1u64..400, 0u64..1_000), 1..400)
}

proptest! {
    #[test]
    fn merging_keeps_sums_and_envelopes_and_leaves_no_gap(steps in steps(), width in 1u64..5) {
        let mut grid = Grid::new(Duration::from_ps(width));
        let mut series: Ledger<PortBin> = Ledger::new();
        let mut flows: Ledger<FlowBin> = Ledger::new();
        let mut now = 0;
        let (mut octets, mut integral) = (0, 0u128);
        for (length, level) in &steps {
            now += length;
            let held = Span { min: *level, max: *level, integral: u128::from(level * length) };
            let closed = grid.close(at(now)).expect("time has passed");
            let counts = [*level; 12];
            record(&mut series, &closed, PortBin { counts, out: held, ..PortBin::default() });
            let flow = FlowBin { tx_bytes: *level, weight_ps: *length, rate: held, ..FlowBin::default() };
            record(&mut flows, &closed, flow);
            octets += level;
            integral += held.integral;
        }
        let (series, flows) = (only(&series), only(&flows));
        prop_assert!(grid.slots.len() <= BINS_MAX as usize);
        prop_assert_eq!(grid.slots[0].begin, Instant::ZERO);
        prop_assert_eq!(grid.begin(), at(now));
        for pair in grid.slots.windows(2) {
            prop_assert_eq!(pair[0].end, pair[1].begin);
            prop_assert!(pair[0].number < pair[1].number);
        }
        prop_assert_eq!(series.iter().map(|(_, bin)| bin.counts[11]).sum::<u64>(), octets);
        prop_assert_eq!(series.iter().map(|(_, bin)| bin.out.integral).sum::<u128>(), integral);
        prop_assert_eq!(flows.iter().map(|(_, bin)| bin.weight_ps).sum::<u64>(), now);
        for (place, bin) in series.iter() {
            let slot = grid.slots[place as usize];
            let exact = bin.out.integral as f64 / slot.length().as_ps() as f64;
            prop_assert!(bin.out.min as f64 <= exact && exact <= bin.out.max as f64);
            let mean = bin.out.mean(slot.length().as_ps());
            prop_assert!((mean as f64 - exact).abs() <= 0.5);
        }
    }
}
