//! What a scenario wants to know and what it expects: measures over exact windows, then verdicts.

pub mod evaluate;
pub mod fairness;
pub mod latencies;
pub mod verdict;
pub mod windows;

use crate::scenario::repeat::Repeat;
use emulation::wiring::End;
use proto::events::Direction;
use proto::units::{Duration, Instant};

/// One number to take from a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Its name in results.
    pub name: String,
    /// Of what.
    pub of: Quantity,
    /// Where.
    pub at: At,
    /// Start of the window.
    pub from: Instant,
    /// End of the window.
    pub to: Instant,
    /// For latencies: only of these traffic items, by number; of all if none is named.
    pub items: Vec<u16>,
    /// The window comes again; all of them together are measured.
    pub repeat: Option<Repeat>,
    /// Parts of the window left out.
    pub except: Vec<(Instant, Instant)>,
    /// Take one value a bin of this width, and reduce over bins as well as places.
    pub bin: Option<Duration>,
    /// For `recovery`: the window whose mean is the level to come back to.
    pub before: Option<(Instant, Instant)>,
    /// For `recovery`: the share of that level that counts as recovered, in thousandths.
    pub level_permille: u32,
    /// How several values become one.
    pub reduce: Reduce,
    /// In what unit the number is given.
    pub per: Per,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Octets of data frames a second (ports).
    Throughput,
    /// Octets standing in an output queue, mean over time (ports).
    Queue,
    /// Time from posting to the last octet's delivery (nodes that receive).
    Latency,
    /// The rate the reaction point allows, mean over time (flows).
    Rate,
    /// The gap the reaction point asks for, mean over time (flows).
    Ipd,
    /// A counter's growth in the window; `counter` names it (ports).
    Count(Counter),
    /// Time until throughput is back at its level, for good (ports).
    Recovery,
    /// Time until every reaction point is neutral (flows).
    Release,
    /// Messages completed, as a share of those posted (flows).
    Completion,
    /// Periods in which the receiver found the flow a cause of congestion, as a share of those it
    /// judged (flows).
    Congested,
    /// Octets of notifications received for flows, as a share of the octets of data they sent
    /// (flows).
    Overhead,
    /// Jain's index of the octets that flows sent: 1 if all sent the same, 1/n if one sent all
    /// (flows).
    Fairness,
}

/// Counters a scenario may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Frames lost, whatever the reason.
    Drops,
    /// Frames marked.
    Marks,
    /// Notifications received.
    Notes,
    /// Time held for want of credit, in picoseconds.
    Hold,
    /// Link watchdogs.
    Watchdogs,
}

/// Where a measure is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Ports and a direction each.
    Ports(Vec<(End, Direction)>),
    /// Flows as (sending node, receiving node).
    Flows(Vec<(usize, usize)>),
    /// Nodes.
    Nodes(Vec<usize>),
}

/// How several values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Arithmetic mean.
    Mean,
    /// Least.
    Min,
    /// Greatest.
    Max,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Sum.
    Sum,
    /// Standard deviation, over places and over time.
    Sd,
}

/// In what unit a number is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Base units: bit/s, octets, seconds, counts.
    One,
    /// Ratio to the port's line rate.
    Line,
    /// MTU times of the default link (times), or full frames as buffered (sizes).
    Mtu,
}

/// A bound on a measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The measure's name.
    pub measure: String,
    /// At least this.
    pub min: Option<f64>,
    /// At most this.
    pub max: Option<f64>,
    /// Why, with the source.
    pub why: String,
    /// Its line in the scenario file, for messages.
    pub line: usize,
}
