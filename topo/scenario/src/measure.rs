//! The measures and expectations of a scenario: measures over exact windows, then verdicts.

pub mod output;
pub mod quantities;
pub mod value;
pub mod windows;

use crate::repeat::Repeat;
use emulation::wiring::End;
use proto::events::Direction;
use proto::params::{FromValue, Value};
use proto::units::{Bytes, Duration, Instant};

/// One number, or one order of nodes, to take from a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Its name in results.
    pub name: String,
    /// Of what.
    pub of: Quantity,
    /// Where.
    pub at: At,
    /// The same as the scenario names it.
    pub named: Vec<String>,
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
    /// Octets of data frames sent, as a share of what the receiver's line could carry (flows).
    Share,
    /// Of the frames that could be marked and met a queue in that band, the share that was (ports).
    Marked(Marked),
    /// The most congestion notifications about one flow that its receiver sent within any interval of
    /// the measure's bin (flows).
    Notices,
    /// How often a queue rose above half of `per` after 5 ms below a quarter, by its levels in bins (one
    /// port).
    Spikes,
    /// The times from one such rise to the next (one port).
    SpikeInterval,
    /// The time a trace took, as a multiple of the least it can take (flows).
    OverIdeal,
    /// A number in what the command of a host prints (one host).
    Output,
    /// Nodes by their first pause, or by the first end of one: names, no number (nodes).
    Order(First),
}

impl Quantity {
    /// How the operators' names of the counters end that it is computed from.
    pub fn named(self) -> &'static [&'static str] {
        match self {
            Quantity::Count(counter) => counter.named(),
            Quantity::Marked(band) => band.named(),
            _ => &[],
        }
    }
}

impl Counter {
    fn named(self) -> &'static [&'static str] {
        match self {
            Counter::Pauses => &["tx_pfc", "tx_global_pause"],
            Counter::Storms => &["_deadlock_detected"],
            Counter::StormsOver => &["_deadlock_restored"],
            Counter::StormDrops => &["_deadlock_dropped_packets"],
            Counter::SequenceGaps => &["rx_sequence_gaps"],
            Counter::SequenceTimeouts => &["rx_sequence_timeouts"],
            Counter::SequenceDepth => &["rx_sequence_depth"],
            _ => &[],
        }
    }
}

impl Marked {
    /// Frames, and those of them that were marked.
    fn named(self) -> &'static [&'static str] {
        match self {
            Marked::BetweenK => &["_ecn_between_k_packets", "_ecn_between_k_marked"],
            Marked::AboveKmax => &["_ecn_above_kmax_packets", "_ecn_above_kmax_marked"],
        }
    }
}

/// Where in the marking curve of a congestion point a queue was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// Above Kmin, up to Kmax.
    BetweenK,
    /// Above Kmax.
    AboveKmax,
}

proto::words! {
    /// Counters a scenario may ask for.
    pub enum Counter {
        /// Frames lost, whatever the reason.
        Drops = "drops",
        /// Frames marked.
        Marks = "marks",
        /// Notifications received.
        Notes = "notes",
        /// Time held for want of credit, in picoseconds.
        Hold = "hold",
        /// Link watchdogs.
        Watchdogs = "watchdogs",
        /// Frames of lossless lanes that were lost for want of room.
        LosslessDrops = "lossless-drops",
        /// PAUSE and PFC frames sent, those that end a pause or repeat one included.
        Pauses = "pauses",
        /// Storms that the PFC watchdog found.
        Storms = "storms",
        /// Storms that it found to be over.
        StormsOver = "storms-over",
        /// Frames that it dropped.
        StormDrops = "storm-drops",
        /// Frames that a receiver which keeps order has given up waiting for.
        SequenceGaps = "sequence-gaps",
        /// Times it has given up.
        SequenceTimeouts = "sequence-timeouts",
        /// The most frames of one flow that have waited there for their turn, at the end of a window that
        /// begins with the run.
        SequenceDepth = "sequence-depth",
    }
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
    /// What the command of a host prints: the host's index, and the expression with the number.
    Output(usize, String),
}

proto::words! {
    /// How several values become one.
    pub enum Reduce {
        /// Arithmetic mean.
        Mean = "mean",
        /// Least.
        Min = "min",
        /// Greatest.
        Max = "max",
        /// Median.
        P50 = "p50",
        /// 99th percentile.
        P99 = "p99",
        /// Sum.
        Sum = "sum",
        /// Standard deviation, over places and over time.
        Sd = "sd",
    }
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
    /// Ratio to so many octets (sizes).
    Size(Bytes),
}

impl Per {
    /// The word of a scenario; that of a ratio to a size is "base".
    pub fn word(self) -> &'static str {
        match self {
            Per::One | Per::Size(_) => "base",
            Per::Line => "line",
            Per::Mtu => "mtu",
        }
    }
}

impl FromValue for Per {
    fn from_value(value: &Value) -> Option<Per> {
        match value {
            Value::Size(size) => Some(Per::Size(*size)),
            Value::Text(word) => {
                [Per::One, Per::Line, Per::Mtu].into_iter().find(|per| per.word() == word)
            }
            _ => None,
        }
    }
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
    /// The value that theory predicts.
    pub theory: Option<f64>,
    /// These nodes in this order, those of a group in any.
    pub order: Option<Vec<Vec<String>>>,
    /// Why, with the source.
    pub why: String,
    /// Its line in the scenario file, for messages.
    pub line: usize,
}

/// Which pause of a node an order of nodes goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The first XOFF.
    Xoff,
    /// The first XON after it.
    Xon,
}
