//! The registry of routing policies: one row each.
//!
//! To add one: write a function in [`oblivious`], or `routing/<name>.rs` with its parameters if it has state,
//! and add the row to [`POLICIES`].

use super::adaptive::{self, Adaptive};
use super::{RoutingPolicy, oblivious};
use crate::config::SwitchConfig;
use proto::congestion::Roles;
use proto::params::{Key, ParamError};
use proto::random::Random;
use proto::technology::Technology;

/// One routing policy.
pub struct Policy {
    /// As in `routing = "…"`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// The ports of a destination that it chooses from.
    pub ports: Ports,
    /// Whether the launcher assigns its ports to pairs of adapters.
    pub assigned: bool,
    /// The key of `[fabric.switch]` whose table holds its parameters; `None` if it has none.
    pub section: Option<&'static Key>,
    /// Makes it for a configuration that has been checked; `roles` are those of the congestion control scheme.
    pub make: Make,
}

type Make = fn(&SwitchConfig, &dyn Roles) -> Result<Box<dyn RoutingPolicy>, ParamError>;

/// The ports that a table holds for a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// The preferred port alone, as in a forwarding table of InfiniBand.
    Preferred,
    /// All, the preferred one first.
    ByPreference,
    /// All, in port order.
    ByNumber,
}

impl Policy {
    /// Whether it works on a technology: InfiniBand has one port for a destination.
    pub fn fits(&self, technology: Technology) -> bool {
        technology == Technology::Ethernet || self.ports == Ports::Preferred
    }
}

/// Every policy; the first of a technology is the default of its switches.
pub const POLICIES: &[Policy] = &[
    Policy {
        name: "ecmp",
        about: "A port for each flow, by hash.",
        ports: Ports::ByNumber,
        assigned: false,
        section: None,
        make: |config, _| Ok(Box::new(oblivious::ecmp(seed(config, "flow hash")))),
    },
    Policy {
        name: "d-mod-k",
        about: "The preferred port of each destination.",
        ports: Ports::Preferred,
        assigned: false,
        section: None,
        make: |_, _| Ok(Box::new(oblivious::preferred())),
    },
    Policy {
        name: "s-mod-k",
        about: "A port for each source.",
        ports: Ports::ByNumber,
        assigned: false,
        section: None,
        make: |config, _| Ok(Box::new(oblivious::s_mod_k(config.routing.spread))),
    },
    Policy {
        name: "random",
        about: "A random port for each pair of adapters.",
        ports: Ports::ByNumber,
        assigned: false,
        section: None,
        make: |config, _| Ok(Box::new(oblivious::random_by_pair(seed(config, "random routes")))),
    },
    Policy {
        name: "colored",
        about: "A port for each pair of adapters, assigned from the traffic.",
        ports: Ports::ByPreference,
        assigned: true,
        section: None,
        make: |config, _| Ok(Box::new(oblivious::colored(&config.routing.pairs))),
    },
    Policy {
        name: "adaptive",
        about: "Away from congestion that notifications report.",
        ports: Ports::ByPreference,
        assigned: false,
        section: Some(&adaptive::SECTION),
        make: |config, roles| Ok(Box::new(Adaptive::new(config, roles)?)),
    },
];

/// The policy called `name`, or without a name the first of the technology.
pub fn find(name: Option<&str>, technology: Technology) -> Option<&'static Policy> {
    let mut fitting = POLICIES.iter().filter(|policy| policy.fits(technology));
    fitting.find(|policy| name.is_none_or(|name| policy.name == name))
}

fn seed(config: &SwitchConfig, purpose: &str) -> u64 {
    Random::stream(config.seed, &config.name, purpose).next_u64()
}
