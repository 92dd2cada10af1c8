//! Traces of applications whose ranks exchange with one partner after another.
//!
//! A rank begins a phase when it has sent and received all of the phase before. Source: the
//! NAS benchmarks CG and FT, with the phases of docs/spec/algorithms.md 10.3.

use super::{Message, Trace};
use proto::units::{Bytes, Duration};

proto::words! {
    /// An application.
    pub enum Pattern {
        /// Conjugate gradient: five phases of 750 KB, 128 ranks.
        Cg = "cg",
        /// Fourier transform: with each other rank once, 130 KB; a power of two of ranks.
        Ft = "ft",
    }
}

/// CG's ranks.
const CG_RANKS: u32 = 128;

impl Pattern {
    /// Whether it is defined for so many ranks.
    pub fn takes(self, ranks: u32) -> bool {
        match self {
            Pattern::Cg => ranks == CG_RANKS,
            Pattern::Ft => ranks >= 2 && ranks.is_power_of_two(),
        }
    }

    /// Its trace for so many ranks.
    pub fn trace(self, ranks: u32) -> Trace {
        let (phases, size) = match self {
            Pattern::Cg => (5, Bytes::new(750_000)),
            Pattern::Ft => (ranks - 1, Bytes::new(130_000)),
        };
        let mut trace = Trace::default();
        // By rank: its messages of the latest phase in which it had any.
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); ranks as usize];
        for phase in 1..=phases {
            let mut now: Vec<Vec<usize>> = vec![Vec::new(); ranks as usize];
            for from in 0..ranks {
                let to = self.partner(from, phase);
                // A rank that is its own partner exchanges nothing in this phase.
                if to == from {
                    continue;
                }
                let place = trace.messages.len();
                let (at, after) = (Duration::ZERO, before[from as usize].clone());
                trace.messages.push(Message { from, to, size, at, after });
                now[from as usize].push(place);
                now[to as usize].push(place);
            }
            for (before, now) in before.iter_mut().zip(now).filter(|(_, now)| !now.is_empty()) {
                *before = now;
            }
        }
        trace
    }

    /// The partner of `rank` in a phase; phases count from 1. The relation is symmetric.
    fn partner(self, rank: u32, phase: u32) -> u32 {
        match (self, phase) {
            (Pattern::Ft, _) => rank ^ phase,
            (Pattern::Cg, 1..=4) => rank ^ 1 << (phase - 1),
            (Pattern::Cg, _) => {
                let pair = rank / 2;
                2 * (pair % 8 * 8 + pair / 8) + rank % 2
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::units::BitRate;

    #[test]
    fn cg_has_five_phases_of_which_the_last_leaves_sixteen_ranks_alone() {
        let trace = Pattern::Cg.trace(128);
        assert_eq!(trace.messages.len(), 4 * 128 + 112);
        let last = &trace.messages[4 * 128..];
        // Rank 2 is of pair 1, whose partner is pair 8: rank 16.
        assert!(last.iter().any(|message| (message.from, message.to) == (2, 16)));
        assert!(last.iter().all(|message| message.after.len() == 2));
        assert_eq!(trace.levels().iter().max(), Some(&4));
        assert_eq!(trace.ideal(BitRate::gbps(10)), Duration::from_us(3_000));
    }

    #[test]
    fn ft_meets_everybody_once_and_partners_are_mutual() {
        let trace = Pattern::Ft.trace(16);
        assert_eq!(trace.messages.len(), 15 * 16);
        let levels = trace.levels();
        for (message, level) in trace.messages.iter().zip(levels) {
            assert_eq!(message.from ^ message.to, level + 1);
        }
        for pattern in [Pattern::Cg, Pattern::Ft] {
            for (rank, phase) in (0..128).flat_map(|rank| (1..=5).map(move |phase| (rank, phase))) {
                assert_eq!(pattern.partner(pattern.partner(rank, phase), phase), rank);
            }
        }
        assert!(!Pattern::Cg.takes(64) && !Pattern::Ft.takes(12) && Pattern::Ft.takes(8));
    }
}
