//! Deadlock at run time: outputs that wait for each other in a cycle, named link by link.
//!
//! An output that is held waits for the buffer at the other end of its cable. That buffer waits for
//! the outputs to which routes lead from it. If such waits form a cycle and nothing in it has
//! moved for a while, it is a deadlock: no output of the cycle can move before another one does.
//!
//! Only long holds are needed, which every worker records ([`emulation::recorder::holds`]), so the method is the same for
//! credits and pauses, and for live runs and the virtual clock. No device states for which of the possible outputs a
//! buffer waits; routes that allow no cycle at all are
//! therefore never suspected.

use emulation::recorder::holds::{EDGES_MIN, Hold, Holds};
use emulation::wiring::End;
use proto::units::Instant;
use scenario::routes::proof::{Waits, circle};

/// A deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Instant of detection: the last of several consecutive bin edges with the same held outputs.
    pub at: Instant,
    /// The lane or priority.
    pub tc: u8,
    /// The outputs of the cycle: each waits for the next, the last for the first.
    pub circle: Vec<End>,
    /// Instant at which one of them moved again.
    pub over: Option<Instant>,
}

/// The deadlocks of a run in which outputs could wait for each other according to `waits`, in the order in
/// which they were found. All workers have the same bin edges.
pub fn found(waits: &Waits, recorded: &[&Holds]) -> Vec<Deadlock> {
    let edges = recorded.first().map_or(&[][..], |first| &first.edges);
    let holds = recorded.iter().flat_map(|holds| &holds.long);
    let holds: Vec<&Hold> = holds.filter(|hold| waits.contains_key(&hold.at)).collect();
    let mut found: Vec<Deadlock> = Vec::new();
    if holds.is_empty() {
        return found;
    }
    for window in edges.windows(EDGES_MIN as usize) {
        let [stable, .., now] = window else { continue };
        for tc in 0..16 {
            let stands =
                |other: &Deadlock| other.tc == tc && other.over.is_none_or(|over| over > *now);
            if found.iter().any(stands) {
                continue;
            }
            let stood = |hold: &&&Hold| {
                hold.tc == tc && hold.from <= *stable && hold.to.is_none_or(|to| to > *now)
            };
            let standing: Vec<&Hold> = holds.iter().filter(stood).copied().collect();
            let circle = circle(&among(waits, &standing));
            if !circle.is_empty() {
                let part = standing.iter().filter(|hold| circle.contains(&hold.at));
                let over = part.filter_map(|hold| hold.to).min();
                found.push(Deadlock { at: *now, tc, circle, over });
            }
        }
    }
    found
}

/// The waits among the outputs that are held.
fn among(waits: &Waits, standing: &[&Hold]) -> Waits {
    let stands = |end: &End| standing.iter().any(|hold| hold.at == *end);
    let among = waits.iter().filter(|(end, _)| stands(end));
    among.map(|(end, next)| (*end, next.iter().copied().filter(stands).collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::ids::PortNumber;
    use proto::units::Duration;

    fn output(node: usize) -> End {
        End { node, port: PortNumber::from_index(1) }
    }

    /// Outputs 0, 1 and 2 can wait for each other in a circle; 3 waits for 0 and no output waits for 3.
    fn ring() -> Waits {
        let pairs = [(0, 1), (1, 2), (2, 0), (3, 0)];
        pairs.map(|(from, to)| (output(from), [output(to)].into())).into()
    }

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_us(n)
    }

    fn held(node: usize, tc: u8, from: u64, to: Option<u64>) -> Hold {
        Hold { at: output(node), tc, from: us(from), to: to.map(us) }
    }

    /// What is found in these holds, each recorded by a worker of its own, with an edge every 10 us.
    fn found_in(holds: &[Hold]) -> Vec<Deadlock> {
        let edges: Vec<_> = (1..20).map(|n| us(10 * n)).collect();
        let one = |hold: &Hold| Holds { edges: edges.clone(), long: vec![*hold] };
        let recorded: Vec<Holds> = holds.iter().map(one).collect();
        found(&ring(), &recorded.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_circle_that_stands_for_four_edges_is_found_once_and_is_over_when_one_of_it_moves() {
        let ends = [None, Some(55), None, None];
        let holds: Vec<_> = (0..4).zip(ends).map(|(node, to)| held(node, 3, 5, to)).collect();
        let circle = (0..3).map(output).collect();
        let expected = Deadlock { at: us(40), tc: 3, circle, over: Some(us(55)) };
        assert_eq!(found_in(&holds), [expected]);
    }

    #[test]
    fn a_circle_that_closes_again_is_found_again() {
        let mut holds: Vec<_> = [0, 2].map(|node| held(node, 3, 5, None)).to_vec();
        holds.extend([held(1, 3, 5, Some(55)), held(1, 3, 57, None)]);
        let found: Vec<_> = found_in(&holds).iter().map(|one| (one.at, one.over)).collect();
        assert_eq!(found, [(us(40), Some(us(55))), (us(90), None)]);
    }

    #[test]
    fn a_chain_a_circle_of_two_lanes_and_one_that_moves_are_none() {
        let chain = [0, 1, 3].map(|node| held(node, 3, 5, None));
        let lanes = [0, 1, 2].map(|node| held(node, node as u8 / 2, 5, None));
        let moving = [held(0, 3, 5, Some(45)), held(1, 3, 5, None), held(2, 3, 42, None)];
        for holds in [chain, lanes, moving] {
            assert_eq!(found_in(&holds), []);
        }
    }
}
