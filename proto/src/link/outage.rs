//! A link of Ethernet that is down for a while: from when until when, as written down beforehand.
//!
//! While it is down no frame starts and none that comes is taken; what waits is kept. A frame under way
//! when it goes down has left, and the other end, which is down as well, does not take it. Neither end
//! remembers afterwards what it was asked for or has asked for: a demand that still stands is told anew.
//!
//! Source: IEEE 802.1Q, 36.1.3.2 (pauses are of a link that is up); that nothing waits for a pause of a
//! link that is down is what switches do (sonic-swss issue 1523).

use crate::units::Instant;
use serde::{Deserialize, Serialize};

/// One outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When the link goes down.
    pub from: Instant,
    /// When it is up again; later than `from`.
    pub to: Instant,
}

/// The outages of one port, and whether it is in one.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// What is still to come, the next one last; of the one that holds its end alone.
    edges: Vec<Instant>,
}

impl Outages {
    /// Outages in ascending order that do not overlap; the link is up before the first.
    pub fn new(all: &[Outage]) -> Outages {
        let edges = all.iter().rev().flat_map(|outage| [outage.to, outage.from]);
        Outages { edges: edges.collect() }
    }

    /// Whether the link is down.
    pub fn is_down(&self) -> bool {
        self.edges.len() % 2 == 1
    }

    /// When it goes down or comes up next.
    pub fn poll_timeout(&self) -> Instant {
        self.edges.last().copied().unwrap_or(Instant::NEVER)
    }

    /// The next time by `now` that it went down or came up.
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
