//! The table of quantities: their words, where each is taken, how deep devices are read for it, whether
//! it has bins, and in which units it may be given.

use crate::measure::{Counter, First, Marked, Per, Quantity};
use proto::device::Depth;
use proto::units::Bytes;

/// One quantity.
#[derive(Debug)]
pub struct Row {
    /// Its word in `[[measure]] of`.
    pub word: &'static str,
    /// The quantity; a count stands for all counters.
    pub of: Quantity,
    /// Where it is taken.
    pub at: Taken,
    /// How much of devices is read for it.
    pub depth: Depth,
    /// Whether it takes `bin`.
    pub bin: Bin,
    /// In which units it may be given.
    pub units: &'static [Unit],
}

/// Where a quantity is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// At ports.
    Ports,
    /// Of flows.
    Flows,
    /// At nodes.
    Nodes,
    /// At NICs.
    Adapters,
    /// On one host.
    Host,
}

/// The meaning of `bin` for a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bin {
    /// None.
    Never,
    /// The width of bins with a value each, if it is written.
    Optional,
    /// The width of bins with a value each; an example.
    Required(&'static str),
    /// The length of an interval; an example.
    Interval(&'static str),
}

/// A unit, by the kind of [`Per`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// [`Per::One`].
    Base,
    /// [`Per::Line`].
    Line,
    /// [`Per::Mtu`].
    Mtu,
    /// [`Per::Size`].
    Size,
}

use Bin::{Interval, Never, Optional, Required};
use Taken::{Adapters, Flows, Host, Nodes, Ports};
use Unit::{Base, Line, Mtu, Size};

/// Every quantity.
pub static QUANTITIES: [Row; 22] = [
    row("throughput", Quantity::Throughput, Ports, Depth::Ports, Optional, &[Base, Line]),
    row("queue", Quantity::Queue, Ports, Depth::Ports, Optional, &[Base, Mtu, Size]),
    row("latency", Quantity::Latency, Adapters, Depth::Received, Never, &[Base, Mtu]),
    row("rate", Quantity::Rate, Flows, Depth::All, Optional, &[Base, Line]),
    row("ipd", Quantity::Ipd, Flows, Depth::All, Optional, &[Base, Mtu]),
    row("count", Quantity::Count(Counter::Drops), Ports, Depth::Received, Optional, &[Base]),
    row("recovery", Quantity::Recovery, Ports, Depth::Ports, Required("200 mtu"), &[Base, Mtu]),
    row("release", Quantity::Release, Flows, Depth::All, Never, &[Base, Mtu]),
    row("completion", Quantity::Completion, Flows, Depth::All, Never, &[Base]),
    row("congested", Quantity::Congested, Flows, Depth::Received, Never, &[Base]),
    row("overhead", Quantity::Overhead, Flows, Depth::Begun, Never, &[Base]),
    row("fairness", Quantity::Fairness, Flows, Depth::Begun, Never, &[Base]),
    row("share", Quantity::Share, Flows, Depth::Begun, Never, &[Base]),
    row("ce-between-k", Quantity::Marked(Marked::BetweenK), Ports, Depth::Received, Never, &[Base]),
    row(
        "ce-above-kmax",
        Quantity::Marked(Marked::AboveKmax),
        Ports,
        Depth::Received,
        Never,
        &[Base],
    ),
    row("notices", Quantity::Notices, Flows, Depth::All, Interval("50 us"), &[Base]),
    row("over-ideal", Quantity::OverIdeal, Flows, Depth::Received, Never, &[Base]),
    row("output", Quantity::Output, Host, Depth::Ports, Never, &[Base]),
    row("spikes", Quantity::Spikes, Ports, Depth::Ports, Required("0.25 ms"), &[Size]),
    row(
        "spike-interval",
        Quantity::SpikeInterval,
        Ports,
        Depth::Ports,
        Required("0.25 ms"),
        &[Size],
    ),
    row("xoff-order", Quantity::Order(First::Xoff), Nodes, Depth::All, Never, &[Base]),
    row("xon-order", Quantity::Order(First::Xon), Nodes, Depth::All, Never, &[Base]),
];

const fn row(
    word: &'static str,
    of: Quantity,
    at: Taken,
    depth: Depth,
    bin: Bin,
    units: &'static [Unit],
) -> Row {
    Row { word, of, at, depth, bin, units }
}

impl Quantity {
    /// Its row of the table.
    pub fn row(self) -> &'static Row {
        let is_it = |row: &&Row| match self {
            Quantity::Count(_) => matches!(row.of, Quantity::Count(_)),
            _ => row.of == self,
        };
        QUANTITIES.iter().find(is_it).expect("every quantity has a row")
    }

    /// The word that scenarios have for it; a counter's own where it is one.
    pub fn word(self) -> &'static str {
        match self {
            Quantity::Count(counter) => counter.word(),
            _ => self.row().word,
        }
    }

    /// How much of devices must be read for it.
    pub fn depth(self) -> Depth {
        match self {
            Quantity::Count(counter) if counter.named().is_empty() => Depth::Ports,
            _ => self.row().depth,
        }
    }

    /// Whether it can be given in a unit; a ratio needs a size above zero.
    pub fn is_given(self, per: Per) -> bool {
        let unit = match per {
            Per::One => Base,
            Per::Line => Line,
            Per::Mtu => Mtu,
            Per::Size(Bytes::ZERO) => return false,
            Per::Size(_) => Size,
        };
        self.row().units.contains(&unit) || (self == Quantity::Count(Counter::Hold) && unit == Mtu)
    }
}
