//! The registry of routing policies: one row each.

use super::RoutingPolicy;
use super::forwarding_table::ForwardingTable;
use super::mac_table::MacTable;
use crate::config::SwitchConfig;
use proto::random::Random;

/// A row: the policy's name, what it routes, and how it is made.
pub struct Policy {
    /// As in `routing.kind = "…"`.
    pub name: &'static str,
    /// It reads addresses of Ethernet; otherwise those of InfiniBand.
    pub ethernet: bool,
    /// Makes it from the routes of a configuration that has been checked.
    pub make: fn(&SwitchConfig) -> Box<dyn RoutingPolicy>,
}

/// Every policy; the first of a technology is what its switches have unless told otherwise.
pub const POLICIES: &[Policy] = &[
    Policy {
        name: "forwarding-table",
        ethernet: false,
        make: |config| Box::new(ForwardingTable::new(&config.routes, &config.multicast)),
    },
    Policy {
        name: "mac-table",
        ethernet: true,
        make: |config| {
            let seed = Random::stream(config.seed, &config.name, "flow hash").next_u64();
            let ports = config.ports.len();
            Box::new(MacTable::new(&config.routes, ports, &config.routing, seed))
        },
    },
];

/// The policy called `name`, or without a name the first of the technology.
pub fn find(name: Option<&str>, ethernet: bool) -> Option<&'static Policy> {
    POLICIES
        .iter()
        .filter(|policy| policy.ethernet == ethernet)
        .find(|policy| name.is_none_or(|name| policy.name == name))
}
