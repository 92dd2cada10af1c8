//! Bins of many series, stored by interval: the bins of one interval lie side by side, so that a bin edge
//! writes to memory that was written last. A vector for each series would mean hundreds of cold places at each
//! bin edge. Readers get series at the end ([`Ledger::into_series`]).

use crate::recorder::bins::{Bin, Closed, Series};

/// Bins of series that are identified by number, in the order in which they started.
pub(super) struct Ledger<B> {
    /// By index on the grid: series and bin, without idle bins.
    rows: Vec<Vec<(u32, B)>>,
    /// Number of series started.
    begun: u32,
    /// The last row existed before the grid closed its interval again.
    has_grown: bool,
    /// Index in the last row of the series found before: series come in the same order in each interval.
    found: usize,
}

impl<B: Bin> Ledger<B> {
    /// A ledger without series.
    pub(super) const fn new() -> Ledger<B> {
        Ledger { rows: Vec::new(), begun: 0, has_grown: false, found: 0 }
    }

    /// Starts a series and returns its number.
    pub(super) fn begin_series(&mut self) -> u32 {
        self.begun += 1;
        self.begun - 1
    }

    /// Bins entered from now on belong to the interval that the grid has just closed.
    pub(super) fn turn(&mut self, closed: &Closed) {
        for places in &closed.regroupings {
            self.regroup(places);
        }
        while self.rows.len() <= closed.place as usize {
            let room = self.rows.last().map_or(0, Vec::len);
            self.rows.push(Vec::with_capacity(room + room / 8));
        }
        (self.has_grown, self.found) = (closed.grew, 0);
    }

    /// Enters a bin of a series, which may be new.
    pub(super) fn enter(&mut self, series: u32, bin: B) {
        self.begun = self.begun.max(series + 1);
        let Some(row) = self.rows.last_mut() else { return };
        if self.has_grown {
            entry(row, series, &mut self.found).absorb(&bin);
        } else if bin != B::default() {
            row.push((series, bin));
        }
    }

    /// The bin of `series`, which may be new, in the interval with index `place`, for changing.
    pub(super) fn at(&mut self, place: u32, series: u32) -> &mut B {
        self.begun = self.begun.max(series + 1);
        entry(&mut self.rows[place as usize], series, &mut 0)
    }

    /// The bins of the interval closed last.
    pub(super) fn last(&self) -> &[(u32, B)] {
        self.rows.last().map_or(&[], Vec::as_slice)
    }

    /// All bins, with their indexes on the grid and the numbers of their series.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, &B)> {
        let rows = (0..).zip(&self.rows);
        rows.flat_map(|(place, row)| row.iter().map(move |(series, bin)| (place, *series, bin)))
    }

    /// Removes and returns all bins of the series that `is_taken` selects.
    pub(super) fn take_out(&mut self, is_taken: impl Fn(u32) -> bool) -> Vec<(u32, u32, B)> {
        let mut taken = Vec::new();
        for (place, row) in (0..).zip(&mut self.rows) {
            let out = row.extract_if(.., |(series, _)| is_taken(*series));
            taken.extend(out.map(|(series, bin)| (place, series, bin)));
        }
        taken
    }

    /// All series, by number.
    pub(super) fn into_series(self) -> Vec<Series<B>> {
        let mut sizes = vec![0; self.begun as usize];
        self.iter().for_each(|(_, series, _)| sizes[series as usize] += 1);
        let mut all: Vec<Series<B>> = sizes.into_iter().map(Series::with_room).collect();
        for (place, row) in (0..).zip(self.rows) {
            row.into_iter().for_each(|(series, bin)| all[series as usize].push(place, bin));
        }
        all
    }

    /// Merges rows like the grid merges intervals: the row at `i` moves to `places[i]`. A series in only one of
    /// two rows was idle in the other.
    fn regroup(&mut self, places: &[u32]) {
        let mut merged: Vec<Vec<(u32, B)>> = Vec::with_capacity(places.len() / 2 + 1);
        for (row, place) in std::mem::take(&mut self.rows).into_iter().zip(places) {
            match merged.get_mut(*place as usize) {
                Some(earlier) => join(earlier, row),
                None => merged.push(row),
            }
        }
        self.rows = merged;
    }
}

/// The bin of a series in a row, inserted if it was idle. The search starts at `found`.
fn entry<'r, B: Bin>(row: &'r mut Vec<(u32, B)>, series: u32, found: &mut usize) -> &'r mut B {
    let after = row.iter().skip(*found).position(|(there, _)| *there == series);
    let place = match after {
        Some(after) => *found + after,
        None => row.iter().position(|(there, _)| *there == series).unwrap_or_else(|| {
            row.push((series, B::default()));
            row.len() - 1
        }),
    };
    *found = place;
    &mut row[place].1
}

/// Merges a row with the row that follows.
fn join<B: Bin>(earlier: &mut Vec<(u32, B)>, later: Vec<(u32, B)>) {
    let (before, mut found) = (earlier.len(), 0);
    let mut is_met = vec![false; before];
    for (series, bin) in &later {
        entry(earlier, *series, &mut found).absorb(bin);
        if let Some(met) = is_met.get_mut(found) {
            *met = true;
        }
    }
    let alone = earlier.iter_mut().zip(is_met).filter(|(_, is_met)| !is_met);
    alone.for_each(|((_, bin), _)| bin.absorb(&B::default()));
    earlier.retain(|(_, bin)| *bin != B::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::bins::{BINS_MAX, Grid, PortBin, Span};
    use proto::units::{Duration, Instant};

    /// A series by itself, the reference.
    #[derive(Default)]
    struct Alone(Vec<(u32, PortBin)>);

    impl Alone {
        fn record(&mut self, closed: &Closed, bin: PortBin) {
            closed.regroupings.iter().for_each(|places| self.regroup(places));
            match self.0.last_mut() {
                Some((place, last)) if *place == closed.place => last.absorb(&bin),
                _ if closed.grew => {
                    let mut whole = PortBin::default();
                    whole.absorb(&bin);
                    self.0.push((closed.place, whole));
                }
                _ if bin != PortBin::default() => self.0.push((closed.place, bin)),
                _ => {}
            }
        }

        /// Merges bins like the grid: the bin at `i` moves to `places[i]`.
        fn regroup(&mut self, places: &[u32]) {
            let mut old = std::mem::take(&mut self.0).into_iter().peekable();
            for (index, place) in places.iter().enumerate() {
                let bin = old.next_if(|(at, _)| *at as usize == index).map(|(_, bin)| bin);
                match self.0.last_mut() {
                    Some((last, merged)) if last == place => {
                        merged.absorb(&bin.unwrap_or_default())
                    }
                    _ => self.0.push((*place, bin.unwrap_or_default())),
                }
            }
            self.0.retain(|(_, bin)| *bin != PortBin::default());
        }
    }

    fn bin(sent: u64, queue: u64) -> PortBin {
        let mut bin = PortBin { out: Span::steady(queue, 10), ..PortBin::default() };
        bin.counts[1] = sent;
        bin
    }

    /// Over twice as many bins as a series holds, with a last one that is closed twice, series in a ledger
    /// equal those kept one by one.
    #[test]
    fn bins_kept_side_by_side_are_those_of_each_series_by_itself() {
        let (mut ledger, mut grid) = (Ledger::new(), Grid::new(Duration::from_ps(10)));
        let mut alone: Vec<Alone> = Vec::new();
        let mut ends: Vec<u64> = (1..=u64::from(2 * BINS_MAX) + 3).map(|n| n * 10).collect();
        let last = ends[ends.len() - 1];
        ends.extend([last + 3, last + 5]);
        for (number, end) in (0_u64..).zip(ends) {
            let closed = grid.close(Instant::from_ps(end)).expect("time has passed");
            if number % 500 == 0 {
                assert_eq!(ledger.begin_series() as usize, alone.len());
                alone.push(Alone::default());
            }
            ledger.turn(&closed);
            for (series, by_itself) in (0..).zip(&mut alone) {
                // Each is idle in some bins; some are idle in most.
                let is_idle = number % (u64::from(series) + 2) == 0;
                let bin = if is_idle { PortBin::default() } else { bin(number, 7 + number % 5) };
                ledger.enter(series, bin);
                by_itself.record(&closed, bin);
            }
        }
        assert!(alone.len() == 5 && grid.slots.len() < 1024);
        let count: usize = alone.iter().map(|series| series.0.len()).sum();
        assert_eq!(ledger.iter().count(), count);
        for (series, alone) in ledger.into_series().iter().zip(&alone) {
            assert!(series.iter().eq(alone.0.iter().map(|(place, bin)| (*place, bin))));
        }
    }

    #[test]
    fn what_is_taken_out_is_all_of_a_series_and_of_no_other() {
        let (mut ledger, mut grid) = (Ledger::new(), Grid::new(Duration::from_ps(10)));
        let series = [ledger.begin_series(), ledger.begin_series()];
        for number in 1..=3 {
            ledger.turn(&grid.close(Instant::from_ps(number * 10)).expect("time has passed"));
            series.iter().for_each(|series| ledger.enter(*series, number + u64::from(*series)));
        }
        assert_eq!(ledger.last(), [(0, 3), (1, 4)]);
        assert_eq!(ledger.take_out(|series| series == 0), [(0, 0, 1), (1, 0, 2), (2, 0, 3)]);
        let left = ledger.into_series();
        assert_eq!(left[0].iter().count(), 0);
        assert!(left[1].iter().eq([(0, &2), (1, &3), (2, &4)]));
    }
}
