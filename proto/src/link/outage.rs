//! Scheduled outages of an Ethernet link.
//!
//! While the link is down, no frame starts and the port discards arriving frames; queued frames stay. A
//! frame in transmission when the link goes down is lost at the other end, which is down as well. An
//! outage clears the pause state of both ends; a request that still stands is announced again.
//!
//! Source: IEEE 802.1Q, 36.1.3.2 (pauses apply to a link that is up). Switches clear pauses when a link
//! goes down (sonic-swss issue 1523).

use crate::units::Instant;
use serde::{Deserialize, Serialize};

/// One outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When the link goes down.
    pub from: Instant,
    /// When the link is up again; later than `from`.
    pub to: Instant,
}

/// The outages of one port, and whether its link is down.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// Begins and ends that are still to come, the next one last.
    edges: Vec<Instant>,
    /// The other end is gone, whatever the schedule says.
    pub is_severed: bool,
}

impl Outages {
    /// Outages in ascending order without overlap; the link is up before the first.
    pub fn new(all: &[Outage]) -> Outages {
        let edges = all.iter().rev().flat_map(|outage| [outage.to, outage.from]);
        Outages { edges: edges.collect(), is_severed: false }
    }

    /// Whether the link is down.
    pub fn is_down(&self) -> bool {
        self.is_severed || self.edges.len() % 2 == 1
    }

    /// When the link goes down or comes up next.
    pub fn poll_timeout(&self) -> Instant {
        self.edges.last().copied().unwrap_or(Instant::NEVER)
    }

    /// The next instant by `now` at which the link went down or came up. Call it until it returns `None`.
    pub fn poll_edge(&mut self, now: Instant) -> Option<Instant> {
        if self.poll_timeout() > now { None } else { self.edges.pop() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Duration;

    #[test]
    fn it_goes_down_and_comes_up_at_each_edge() {
        let at = |us| Instant::ZERO + Duration::from_us(us);
        let outage = |from, to| Outage { from: at(from), to: at(to) };
        let mut outages = Outages::new(&[outage(2, 4), outage(7, 9)]);
        let mut seen = vec![(outages.is_down(), outages.poll_timeout())];
        for us in 0..10 {
            while let Some(edge) = outages.poll_edge(at(us)) {
                assert_eq!(edge, at(us));
                seen.push((outages.is_down(), outages.poll_timeout()));
            }
        }
        let down = [false, true, false, true, false];
        let next = [at(2), at(4), at(7), at(9), Instant::NEVER];
        assert_eq!(seen, down.into_iter().zip(next).collect::<Vec<_>>());
    }
}
