//! d-mod-k: the preferred port, always.
//!
//! Which port that is the laboratory reckons from the destination's number d, so that k ports share all
//! destinations evenly: number ⌊d / spread⌋ mod k. Source: Zahavi, "D-Mod-K Routing" (2009).

use super::{Passing, RoutingPolicy};
use proto::ids::PortNumber;

/// Has no choice.
#[derive(Clone, Copy, Debug)]
pub struct Preferred;

impl RoutingPolicy for Preferred {
    fn choose(&mut self, _: Passing<'_>, legal: &[PortNumber]) -> PortNumber {
        legal[0]
    }
}
