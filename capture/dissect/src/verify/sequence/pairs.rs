//! Which requester an answer belongs to.
//!
//! A request names the queue pair of the responder, an answer that of the requester, and no data packet names both. Both
//! are put together by their numbers: if just one requester between two ends awaits the number of an answer, the
//! answer is its own, and so are later answers to the same queue pair.

use crate::verify::flows::FlowKey;
use crate::verify::packet::Endpoint;
use std::collections::HashMap;

/// A port, a requester and a responder.
pub type Ends = (u32, Endpoint, Endpoint);

/// The distinct requesters between two ends at one port.
const FLOWS_MAX: usize = 64;
/// Pairs of ends; answers between further ones are not attributed.
const ENDS_MAX: usize = 1 << 16;

/// Where a number lies in what a requester sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Before all of it.
    Before,
    /// Within it, responses to READ requests included.
    Within,
    /// Behind all of it.
    Behind,
}

/// The requesters that an answer may belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This one.
    One(FlowKey),
    /// Each of these, or one that is not known.
    Several(Vec<FlowKey>),
    /// This one, which did not send that number as far as the file shows.
    Unsent(FlowKey),
}

#[derive(Clone, Debug, Default)]
struct Between {
    flows: Vec<FlowKey>,
    is_crowded: bool,
    /// The requester behind each queue pair that answers go to.
    owners: HashMap<u32, FlowKey>,
}

/// All requesters, by their ends.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    between: HashMap<Ends, Between>,
}

impl Pairs {
    /// Adds a requester. Returns false if there are too many.
    pub fn add(&mut self, ends: Ends, key: FlowKey) -> bool {
        if self.between.len() >= ENDS_MAX && !self.between.contains_key(&ends) {
            return false;
        }
        let between = self.between.entry(ends).or_default();
        if between.flows.contains(&key) {
            // The responder's queue pair was connected again, perhaps to another requester.
            between.owners.retain(|_, owner| *owner != key);
            return true;
        }
        between.is_crowded |= between.flows.len() == FLOWS_MAX;
        if !between.is_crowded {
            between.flows.push(key);
        }
        !between.is_crowded
    }

    /// The owner of an answer to `queue_pair`; `place` tells where its number lies in what a requester sent.
    pub fn owner(
        &mut self,
        ends: Ends,
        queue_pair: u32,
        place: impl Fn(&FlowKey) -> Where,
    ) -> Option<Owner> {
        let between = self.between.get_mut(&ends)?;
        if let Some(&owner) = between.owners.get(&queue_pair) {
            if place(&owner) != Where::Behind {
                return Some(Owner::One(owner));
            }
            between.owners.remove(&queue_pair);
            return Some(Owner::Unsent(owner));
        }
        let is_free = |key: &&FlowKey| !between.owners.values().any(|owner| owner == *key);
        let awaits = |key: &&FlowKey| place(key) == Where::Within;
        let mut able: Vec<_> =
            between.flows.iter().filter(is_free).filter(awaits).copied().collect();
        if able.len() == 1 && !between.is_crowded {
            let owner = able.remove(0);
            between.owners.insert(queue_pair, owner);
            return Some(Owner::One(owner));
        }
        Some(Owner::Several(able))
    }
}
