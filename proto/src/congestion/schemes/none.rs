//! No control: the network is lossless and nobody slows down. The baseline of every experiment.

use super::{Scheme, params};
use crate::congestion::{CongestionPoint, NotificationPoint, ReactionPoint, ReactionState, Scope};
use crate::units::{BitRate, Duration};

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "none",
    source: "link-level flow control alone",
    check: |table| params::check(table, &[]),
    scope: |_| Scope::QueuePair,
    reaction_points: |_| usize::MAX,
    congestion_point: |_| Box::new(Silent),
    notification_point: |_| Box::new(Silent),
    reaction_point: |place| Box::new(Unhurt::new(place.line_rate)),
};

/// A point that never says anything.
#[derive(Debug)]
pub struct Silent;

impl CongestionPoint for Silent {}
impl NotificationPoint for Silent {}

/// A reaction point that never holds anything back.
#[derive(Debug)]
pub struct Unhurt {
    rate: BitRate,
}

impl Unhurt {
    /// One on a line of `rate`.
    pub const fn new(rate: BitRate) -> Unhurt {
        Unhurt { rate }
    }
}

impl ReactionPoint for Unhurt {
    fn state(&self) -> ReactionState {
        ReactionState { gap: Duration::ZERO, rate: self.rate, scalar: 0 }
    }
}
