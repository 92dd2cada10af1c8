//! Outputs that could not send for several consecutive bins: the data that the search for deadlocks needs,
//! bounded by the number of bins.

use crate::wiring::End;
use proto::events::{DeviceEvent, EventKind};
use proto::ids::PortNumber;
use proto::units::Instant;
use serde::{Deserialize, Serialize};

/// Bin edges that a hold must span to be kept.
pub const EDGES_MIN: u32 = 4;
/// Lanes of a port, including VL15.
const LANES: usize = 16;

/// An output that could not send for a long time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The port.
    pub at: End,
    /// Virtual lane or priority.
    pub tc: u8,
    /// When a ready frame was first refused transmission.
    pub from: Instant,
    /// When transmission was permitted again; `None` if the hold lasted until the end of the run.
    pub to: Option<Instant>,
}

/// All long holds, and the bin edges by which they are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// The bin edges, ascending.
    pub edges: Vec<Instant>,
    /// In the order in which they ended.
    pub long: Vec<Hold>,
}

/// A hold that has not ended, and the number of edges before it.
#[derive(Clone, Copy)]
struct Standing {
    from: Instant,
    edges_before: u32,
}

impl Standing {
    /// Whether it spans [`EDGES_MIN`] of `edges`.
    fn is_long(&self, edges: u32) -> bool {
        edges - self.edges_before >= EDGES_MIN
    }
}

/// Tracks the holds of a worker's devices.
pub(super) struct HoldTracker {
    kept: Holds,
    /// By device: its node, and by port and lane the current hold.
    devices: Vec<(usize, Vec<[Option<Standing>; LANES]>)>,
}

impl HoldTracker {
    /// A tracker for devices given as (node, number of ports).
    pub(super) fn new(devices: impl Iterator<Item = (usize, usize)>) -> HoldTracker {
        let devices = devices.map(|(node, ports)| (node, vec![[None; LANES]; ports]));
        HoldTracker { kept: Holds::default(), devices: devices.collect() }
    }

    /// An event of `device`.
    pub(super) fn note(&mut self, device: usize, event: &DeviceEvent) {
        let begins = match event.kind {
            EventKind::Hold { .. } => true,
            EventKind::Free { .. } => false,
            _ => return,
        };
        let (node, ports) = &mut self.devices[device];
        let place = ports.get_mut(event.port.index());
        let Some(place) = place.and_then(|lanes| lanes.get_mut(usize::from(event.tc))) else {
            return;
        };
        let edges = self.kept.edges.len() as u32;
        if begins {
            place.get_or_insert(Standing { from: event.at, edges_before: edges });
        } else if let Some(standing) = place.take().filter(|standing| standing.is_long(edges)) {
            let at = End { node: *node, port: event.port };
            let (from, to) = (standing.from, Some(event.at));
            self.kept.long.push(Hold { at, tc: event.tc, from, to });
        }
    }

    /// A bin ends at `now`.
    pub(super) fn edge(&mut self, now: Instant) {
        self.kept.edges.push(now);
    }

    /// All long holds, including those that have not ended.
    pub(super) fn finish(mut self) -> Holds {
        for (node, ports) in self.devices {
            for (index, lanes) in ports.into_iter().enumerate() {
                let at = End { node, port: PortNumber::from_index(index) };
                for (tc, standing) in (0..).zip(lanes) {
                    let long = standing.filter(|s| s.is_long(self.kept.edges.len() as u32));
                    let hold = |Standing { from, .. }| Hold { at, tc, from, to: None };
                    self.kept.long.extend(long.map(hold));
                }
            }
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::events::HoldCause;
    use proto::units::Duration;

    #[test]
    fn what_stood_at_four_edges_is_kept_with_its_end_and_nothing_shorter() {
        let mut keeper = HoldTracker::new([(7, 1)].into_iter());
        let (cause, waited) = (HoldCause::Pfc, Duration::ZERO);
        let at = |us| Instant::ZERO + Duration::from_us(us);
        let feed = |keeper: &mut HoldTracker, us, tc, kind| {
            let port = PortNumber::from_index(0);
            keeper.note(0, &DeviceEvent { at: at(us), port, tc, kind });
        };
        feed(&mut keeper, 1, 3, EventKind::Hold { cause });
        feed(&mut keeper, 1, 4, EventKind::Hold { cause });
        feed(&mut keeper, 15, 5, EventKind::Hold { cause });
        (1..=3).for_each(|n| keeper.edge(at(10 * n)));
        feed(&mut keeper, 35, 4, EventKind::Free { cause, waited });
        keeper.edge(at(40));
        feed(&mut keeper, 45, 3, EventKind::Free { cause, waited });
        keeper.edge(at(50));
        let end = End { node: 7, port: PortNumber::from_index(0) };
        let long = vec![
            Hold { at: end, tc: 3, from: at(1), to: Some(at(45)) },
            Hold { at: end, tc: 5, from: at(15), to: None },
        ];
        let edges = (1..=5).map(|n| at(10 * n)).collect();
        assert_eq!(keeper.finish(), Holds { edges, long });
    }
}
