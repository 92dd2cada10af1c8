//! No congestion control: link-level flow control alone. The baseline of every experiment.

use super::{ANY, Scheme, Throttling};
use crate::congestion::{CongestionPoint, NotificationPoint, ReactionPoint, ReactionState, Roles};
use crate::units::{BitRate, Duration};
use std::sync::Arc;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "none",
    about: "No congestion control: senders never slow down.",
    source: "link-level flow control alone",
    technologies: ANY,
    keys: &[],
    parse: |_| Some(Arc::new(NoControl)),
    signals: None,
    shows: Throttling::Gap,
};

/// The scheme has no parameters, and its roles do nothing.
#[derive(Debug)]
struct NoControl;

impl Roles for NoControl {}

/// A congestion or notification point that never notifies.
#[derive(Debug)]
pub struct Silent;

impl CongestionPoint for Silent {}
impl NotificationPoint for Silent {}

/// `point`, or a point that never marks.
pub fn or_silent(point: Option<impl CongestionPoint + 'static>) -> Box<dyn CongestionPoint> {
    match point {
        Some(point) => Box::new(point),
        None => Box::new(Silent),
    }
}

/// A reaction point that never limits.
#[derive(Debug)]
pub struct Unlimited {
    rate: BitRate,
}

impl Unlimited {
    /// A point on a line of this rate.
    pub const fn new(rate: BitRate) -> Unlimited {
        Unlimited { rate }
    }
}

impl ReactionPoint for Unlimited {
    fn state(&self) -> ReactionState {
        ReactionState { gap: Duration::ZERO, rate: self.rate, scalar: 0 }
    }
}
