//! Deadlock at run time: outputs that wait for each other in a circle, named link by link.
//!
//! An output that is held waits for the buffer at the other end of its cable. That buffer waits for
//! the outputs to which routes lead from it. Where such waits close a circle and nothing in it has
//! moved for a while, nothing will: no output of it can go on before another one does.
//!
//! Only events are needed, `hold` and `free`, so credits and pauses are the same to it. Which of the
//! possible outputs a buffer really waits for no device tells; routes that allow no circle at all are
//! therefore never suspected.

use crate::routes::proof::{Waits, circle};
use emulation::wiring::End;
use proto::events::{DeviceEvent, EventKind};
use proto::units::Instant;
use std::collections::BTreeMap;

/// So many looks in a row must find the same outputs held.
const LOOKS: usize = 4;

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was found.
    pub at: Instant,
    /// The lane or priority.
    pub tc: u8,
    /// The outputs, each waiting for the next and the last for the first.
    pub circle: Vec<End>,
    /// When one of them moved again.
    pub over: Option<Instant>,
}

/// Looks for deadlocks in what devices tell.
#[derive(Debug, Default)]
pub struct Watch {
    /// Who can wait for whom; empty where that is nobody.
    waits: Waits,
    /// Since when outputs are held, by lane.
    held: BTreeMap<(u8, End), Instant>,
    /// When the latest looks were, the oldest first.
    looks: Vec<Instant>,
    found: Vec<Deadlock>,
}

impl Watch {
    /// Watches a fabric in which those can wait for each other.
    pub fn new(waits: Waits) -> Watch {
        Watch { waits, ..Watch::default() }
    }

    /// Something happened at `at`.
    pub fn note(&mut self, at: End, event: &DeviceEvent) {
        let place = (event.tc, at);
        match event.kind {
            EventKind::Hold { .. } if self.waits.contains_key(&at) => {
                self.held.entry(place).or_insert(event.at);
            }
            EventKind::Free { .. } => {
                self.held.remove(&place);
                let stood = self.found.iter_mut().filter(|found| {
                    found.over.is_none() && found.tc == event.tc && found.circle.contains(&at)
                });
                stood.for_each(|found| found.over = Some(event.at));
            }
            _ => {}
        }
    }

    /// Looks, once all that happened by `now` has been noted.
    pub fn look(&mut self, now: Instant) {
        if self.waits.is_empty() {
            return;
        }
        self.looks.push(now);
        if self.looks.len() < LOOKS {
            return;
        }
        let stable = self.looks.remove(0);
        for tc in 0..16 {
            let stood = |found: &Deadlock| found.tc == tc && found.over.is_none();
            if self.found.iter().any(stood) {
                continue;
            }
            let circle = circle(&self.standing(tc, stable));
            if !circle.is_empty() {
                self.found.push(Deadlock { at: now, tc, circle, over: None });
            }
        }
    }

    /// Who waits for whom among the outputs that have been held on `tc` since `stable` or longer.
    fn standing(&self, tc: u8, stable: Instant) -> Waits {
        let stands = |end: &End| self.held.get(&(tc, *end)).is_some_and(|since| *since <= stable);
        let among = self.waits.iter().filter(|(end, _)| stands(end));
        among.map(|(end, next)| (*end, next.iter().copied().filter(stands).collect())).collect()
    }

    /// All that was found.
    pub fn finish(self) -> Vec<Deadlock> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::events::HoldCause;
    use proto::ids::PortNumber;
    use proto::units::Duration;

    fn output(node: usize) -> End {
        End { node, port: PortNumber::from_index(1) }
    }

    /// Outputs 0, 1 and 2 can wait for each other in a circle; 3 waits for 0 and nobody for it.
    fn ring() -> Watch {
        let pairs = [(0, 1), (1, 2), (2, 0), (3, 0)];
        let waits = pairs.map(|(from, to)| (output(from), [output(to)].into()));
        Watch::new(waits.into())
    }

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_us(n)
    }

    fn tell(watch: &mut Watch, node: usize, at: u64, tc: u8, holds: bool) {
        let (cause, waited) = (HoldCause::Pfc, Duration::ZERO);
        let kind =
            if holds { EventKind::Hold { cause } } else { EventKind::Free { cause, waited } };
        let port = output(node).port;
        watch.note(output(node), &DeviceEvent { at: us(at), port, tc, kind });
    }

    #[test]
    fn a_circle_that_stands_for_four_looks_is_found_once_and_is_over_when_one_of_it_moves() {
        let mut watch = ring();
        (0..4).for_each(|node| tell(&mut watch, node, 5, 3, true));
        for at in [10, 20, 30] {
            watch.look(us(at));
            assert!(watch.found.is_empty());
        }
        watch.look(us(40));
        watch.look(us(50));
        tell(&mut watch, 1, 55, 3, false);
        let circle = (0..3).map(output).collect();
        let expected = Deadlock { at: us(40), tc: 3, circle, over: Some(us(55)) };
        assert_eq!(watch.finish(), [expected]);
    }

    #[test]
    fn a_chain_a_circle_of_two_lanes_and_one_that_moves_are_none() {
        let mut chain = ring();
        [0, 1, 3].iter().for_each(|node| tell(&mut chain, *node, 5, 3, true));
        let mut lanes = ring();
        (0..3).for_each(|node| tell(&mut lanes, node, 5, node as u8 / 2, true));
        let mut moving = ring();
        (0..3).for_each(|node| tell(&mut moving, node, 5, 3, true));
        for at in (10..200).step_by(10) {
            [&mut chain, &mut lanes, &mut moving].into_iter().for_each(|watch| watch.look(us(at)));
            tell(&mut moving, 2, at + 1, 3, false);
            tell(&mut moving, 2, at + 2, 3, true);
        }
        for watch in [chain, lanes, moving] {
            assert_eq!(watch.finish(), []);
        }
    }
}
