//! Bins: one time grid for all samples of a worker, and series on it that merge together.
//!
//! A bin is a sum and an envelope over an interval, never a point. The grid starts with the planned width. When
//! a bin 1025 would begin, the width doubles and neighbours merge in every series at once, so that all keep one
//! grid (docs/spec/seeing.md, 3.3). Merging loses no sum and no extreme.

use proto::counters::LaneCounters;
pub use proto::counters::Span;
use proto::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Bins of a series at most.
pub const BINS_MAX: u32 = 1024;

/// The time of one bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Index of the nominal interval in which it ends, from 0.
    pub number: u32,
    /// Its start, which is the end of the bin before it.
    pub begin: Instant,
    /// Its real end; later than planned if a live worker was late.
    pub end: Instant,
}

impl Slot {
    /// Its real length.
    pub fn length(&self) -> Duration {
        self.end.since(self.begin)
    }
}

/// The times of all bins of one worker, without gap or overlap from the start of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// The current nominal width.
    pub width: Duration,
    /// The bins closed so far, in order.
    pub slots: Vec<Slot>,
}

/// How closing a bin changed the grid.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed {
    /// For each doubling of the width: the new index of every bin.
    pub regroupings: Vec<Vec<u32>>,
    /// The index of the bin just closed.
    pub place: u32,
    /// The bin existed before and only grew.
    pub grew: bool,
}

impl Grid {
    /// An empty grid of bins of `width` (at least one picosecond).
    pub fn new(width: Duration) -> Grid {
        Grid { width: width.max(Duration::from_ps(1)), slots: Vec::new() }
    }

    /// Start of the open bin.
    pub fn begin(&self) -> Instant {
        self.slots.last().map_or(Instant::ZERO, |slot| slot.end)
    }

    /// Planned end of the open bin: the next multiple of the width.
    pub(crate) fn next_edge(&self) -> Instant {
        let width = self.width.as_ps();
        Instant::from_ps((self.begin().as_ps() / width + 1).saturating_mul(width))
    }

    /// The index of the nominal interval that contains `at`.
    pub fn number_at(&self, at: Instant) -> u32 {
        u32::try_from(at.as_ps() / self.width.as_ps()).unwrap_or(u32::MAX)
    }

    /// Ends the open bin at `now`. `None` if no time has passed since its start.
    pub fn close(&mut self, now: Instant) -> Option<Closed> {
        let begin = self.begin();
        if now <= begin {
            return None;
        }
        let mut regroupings = Vec::new();
        while self.number_closing_at(now) >= BINS_MAX {
            regroupings.push(self.double());
        }
        let number = self.number_closing_at(now);
        let grew = self.slots.last().is_some_and(|last| last.number >= number);
        match self.slots.last_mut() {
            Some(last) if grew => last.end = now,
            _ => self.slots.push(Slot { number, begin, end: now }),
        }
        let place = self.slots.len() as u32 - 1;
        Some(Closed { regroupings, place, grew })
    }

    /// A bin that ends at an edge, or a little after it, belongs to the interval before the edge. A bin that
    /// ends before its edge (the last of a run) belongs to the interval that contains its end.
    fn number_closing_at(&self, now: Instant) -> u32 {
        let reached = self.number_at(now);
        if now >= self.next_edge() { reached - 1 } else { reached }
    }

    fn double(&mut self) -> Vec<u32> {
        self.width = self.width * 2;
        let mut merged: Vec<Slot> = Vec::with_capacity(self.slots.len() / 2 + 1);
        let mut places = Vec::with_capacity(self.slots.len());
        for slot in self.slots.drain(..) {
            let number = slot.number / 2;
            match merged.last_mut() {
                Some(last) if last.number == number => last.end = slot.end,
                _ => merged.push(Slot { number, ..slot }),
            }
            places.push(merged.len() as u32 - 1);
        }
        self.slots = merged;
        places
    }
}

/// The content of one bin of a series.
pub trait Bin: Clone + Default + PartialEq {
    /// Becomes the bin of both intervals; `later` follows immediately.
    fn absorb(&mut self, later: &Self);
}

impl Bin for u64 {
    fn absorb(&mut self, later: &u64) {
        *self += later;
    }
}

/// Bins of one kind, by their index on the grid, without idle bins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series<B>(Vec<(u32, B)>);

impl<B: Bin> Series<B> {
    /// An empty series with room for `bins` bins.
    pub(super) fn with_room(bins: usize) -> Series<B> {
        Series(Vec::with_capacity(bins))
    }

    /// Appends `bin` at index `place`, which must be beyond the last.
    pub(super) fn push(&mut self, place: u32, bin: B) {
        self.0.push((place, bin));
    }

    /// The bins that are not idle with their indexes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &B)> {
        self.0.iter().map(|(place, bin)| (*place, bin))
    }

    /// The bin at `place`; the default if it is idle.
    pub fn get(&self, place: u32) -> B {
        let found = self.0.binary_search_by_key(&place, |(at, _)| *at);
        found.map(|index| self.0[index].1.clone()).unwrap_or_default()
    }
}

/// Defines the columns of a port's bins: the named counters of a lane, then the drops of its port.
macro_rules! port_columns {
    ($($counter:ident)*) => {
        /// The columns of [`PortBin::counts`], with their names in `ports.csv`.
        pub const PORT_COLUMNS: [&str; 12] = [$(stringify!($counter),)* "drops"];

        /// The totals of a lane in the order of [`PORT_COLUMNS`]. `drops` are those of the port, counted on
        /// its first lane.
        pub(crate) fn port_totals(lane: &LaneCounters, drops: u64) -> [u64; 12] {
            [$(lane.$counter,)* drops]
        }
    };
}

port_columns! {
    tx_frames tx_bytes rx_frames rx_bytes hold_ps pause_ps marks notes_tx notes_rx ctl_tx ctl_rx
}

/// One lane of one port over one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "PortBinTuple")]
pub struct PortBin {
    /// Increase of the totals, in the order of [`PORT_COLUMNS`].
    pub counts: [u64; 12],
    /// Octets waiting for transmission.
    pub out: Span,
    /// Octets in the input buffer.
    pub input: Span,
    /// Octets posted and not sent.
    pub source: Span,
}

impl PortBin {
    /// Octets of data frames sent.
    pub const fn tx_bytes(&self) -> u64 {
        self.counts[1]
    }

    /// Octets of data frames received.
    pub const fn rx_bytes(&self) -> u64 {
        self.counts[3]
    }
}

/// A bin in JSON: the values of its fields, in their order.
type PortBinTuple = ([u64; 12], Span, Span, Span);

impl From<PortBin> for PortBinTuple {
    fn from(bin: PortBin) -> PortBinTuple {
        (bin.counts, bin.out, bin.input, bin.source)
    }
}

impl Bin for PortBin {
    fn absorb(&mut self, later: &PortBin) {
        for (mine, theirs) in self.counts.iter_mut().zip(later.counts) {
            *mine += theirs;
        }
        self.out.absorb(&later.out);
        self.input.absorb(&later.input);
        self.source.absorb(&later.source);
    }
}

/// One flow, or a pool of flows, over one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "FlowBinTuple")]
pub struct FlowBin {
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// The time that the integrals cover, in picoseconds, summed over the flows of a pool.
    pub weight_ps: u64,
    /// The permitted rate, in bit/s.
    pub rate: Span,
    /// The required gap between frames, in picoseconds.
    pub gap: Span,
    /// The scheme's own state at the end; the maximum in a pool. Zero is neutral.
    pub scalar: u64,
}

type FlowBinTuple = (u64, u64, Span, Span, u64);

impl From<FlowBin> for FlowBinTuple {
    fn from(bin: FlowBin) -> FlowBinTuple {
        (bin.tx_bytes, bin.weight_ps, bin.rate, bin.gap, bin.scalar)
    }
}

impl FlowBin {
    /// Whether nothing was sent and the scheme's state is neutral.
    pub const fn is_idle(&self) -> bool {
        self.tx_bytes == 0 && self.gap.max == 0 && self.scalar == 0
    }

    /// Adds another flow's bin of the same interval to the pool.
    pub fn pool(&mut self, other: &FlowBin) {
        let scalar = self.scalar.max(other.scalar);
        self.absorb(other);
        self.scalar = scalar;
    }
}

impl Series<FlowBin> {
    /// The largest reduction of the rate, in bit/s; zero if it was never reduced.
    pub fn rate_reduction(&self) -> u64 {
        let most = self.0.iter().map(|(_, bin)| bin.rate.max).max().unwrap_or(0);
        let least = self.0.iter().map(|(_, bin)| bin.rate.min).min().unwrap_or(0);
        most.saturating_sub(least)
    }
}

impl Bin for FlowBin {
    fn absorb(&mut self, later: &FlowBin) {
        if later.weight_ps == 0 {
            return;
        }
        if self.weight_ps == 0 {
            *self = *later;
            return;
        }
        self.tx_bytes += later.tx_bytes;
        self.weight_ps = self.weight_ps.saturating_add(later.weight_ps);
        self.rate.absorb(&later.rate);
        self.gap.absorb(&later.gap);
        self.scalar = later.scalar;
    }
}

#[cfg(test)]
mod tests;
