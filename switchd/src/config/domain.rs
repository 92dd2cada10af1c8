//! A switch's part in a domain of congestion notification: which priorities of which ports take part.
//!
//! Source: IEEE 802.1Q, 30.4 (congestion notification domain), 31 (its entities), 32.1 and 32.2
//! (variables); defence modes 32.1.1.

use proto::ids::Priority;
use serde::{Deserialize, Serialize};

proto::words! {
    /// How a port defends one priority of the domain.
    pub enum Defence {
        /// The priority is not a congestion notification priority here: its congestion points send no message,
        /// and tags stay as they are.
        Disabled = "disabled",
        /// The neighbour is outside the domain: frames from it on this priority take the alternate priority,
        /// and frames to it have no CN-TAG.
        Edge = "edge",
        /// The neighbour is inside the domain and does not support CN-TAGs: priorities are kept, tags removed.
        Interior = "interior",
        /// The neighbour is inside the domain and supports CN-TAGs: priorities and tags are kept.
        InteriorReady = "interior-ready",
    }
}

/// One port in the domain, and what its congestion points' messages look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainConfig {
    /// How each priority is defended.
    ///
    /// Shape: by priority.
    pub defence: [Defence; 8],
    /// The priority that takes the place of each that is defended as an edge does.
    ///
    /// Shape: by priority.
    pub alternate: [Priority; 8],
    /// The priority of congestion notification messages. Source: IEEE 802.1Q, 32.2.4
    /// (cngCnmTransmitPriority).
    pub cnm_priority: Priority,
    /// Octets of the sampled frame that a CNM holds, 0 to 64. Source: IEEE 802.1Q, 32.8.11
    /// (cpMinHeaderOctets).
    pub header_octets: u8,
}

impl DomainConfig {
    /// Messages go with priority 6 by habit.
    pub const CNM_PRIORITY: Priority = Priority::truncate(6);

    /// A port whose neighbour takes part in `cnpvs` (bit n is priority n) with this defence. Edges use
    /// the next lower priority that is not among them, else the next higher.
    ///
    /// Source: IEEE 802.1Q, 32.1.4 (cncpAlternatePriority).
    pub fn new(cnpvs: u8, defence: Defence) -> DomainConfig {
        let is_free = |priority: &u8| cnpvs >> priority & 1 == 0;
        let alternate = |priority: u8| {
            let lower = (0..priority).rev().find(is_free);
            lower.or_else(|| (priority..8).find(is_free)).unwrap_or(priority)
        };
        DomainConfig {
            defence: std::array::from_fn(|priority| match cnpvs >> priority & 1 {
                1 => defence,
                _ => Defence::Disabled,
            }),
            alternate: std::array::from_fn(|priority| {
                Priority::truncate(alternate(priority as u8))
            }),
            cnm_priority: DomainConfig::CNM_PRIORITY,
            header_octets: 0,
        }
    }

    /// Priorities in one of these modes, bit n for priority n.
    pub fn priorities_in(&self, modes: &[Defence]) -> u8 {
        let defended = self.defence.iter().enumerate();
        defended.fold(0, |set, (priority, mode)| set | u8::from(modes.contains(mode)) << priority)
    }
}

impl Default for DomainConfig {
    /// All priorities take part, and priorities and tags are kept. The scheme alone decides about messages.
    fn default() -> DomainConfig {
        DomainConfig::new(u8::MAX, Defence::InteriorReady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alternate_is_the_next_lower_free_priority_else_the_next_higher() {
        let alternate = |cnpvs: u8, priority: usize| {
            DomainConfig::new(cnpvs, Defence::Edge).alternate[priority].get()
        };
        assert_eq!(alternate(1 << 3, 3), 2);
        assert_eq!(alternate(0b1100, 3), 1);
        assert_eq!(alternate(0b1111, 3), 4);
        assert_eq!(alternate(1, 0), 1);
    }

    #[test]
    fn priorities_outside_the_domain_are_disabled() {
        let domain = DomainConfig::new(1 << 3 | 1 << 5, Defence::Interior);
        assert_eq!(domain.priorities_in(&[Defence::Interior]), 0b10_1000);
        assert_eq!(domain.priorities_in(&[Defence::Disabled]), !0b10_1000);
        assert_eq!(domain.priorities_in(&[Defence::Edge, Defence::InteriorReady]), 0);
    }
}
