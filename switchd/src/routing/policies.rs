//! The registry of routing policies: one row each.

use super::RoutingPolicy;
use super::adaptive::Adaptive;
use super::colored::Colored;
use super::ecmp::EqualCost;
use super::preferred::Preferred;
use super::random::RandomByPair;
use super::s_mod_k::SourceModK;
use crate::config::SwitchConfig;
use proto::random::Random;

/// A row: the policy's name and how it is made.
pub struct Policy {
    /// As in `routing.kind = "…"`.
    pub name: &'static str,
    /// It serves where a table has one port for a destination, as InfiniBand's has.
    pub with_one_port: bool,
    /// Makes it for a configuration that has been checked.
    pub make: fn(&SwitchConfig) -> Box<dyn RoutingPolicy>,
}

/// Every policy; the first of a technology is what its switches have unless told otherwise.
pub const POLICIES: &[Policy] = &[
    Policy {
        name: "ecmp",
        with_one_port: false,
        make: |config| Box::new(EqualCost { seed: seed(config, "flow hash") }),
    },
    Policy { name: "d-mod-k", with_one_port: true, make: |_| Box::new(Preferred) },
    Policy {
        name: "s-mod-k",
        with_one_port: false,
        make: |config| Box::new(SourceModK { spread: config.routing.spread }),
    },
    Policy {
        name: "random",
        with_one_port: false,
        make: |config| Box::new(RandomByPair { seed: seed(config, "random routes") }),
    },
    Policy {
        name: "colored",
        with_one_port: false,
        make: |config| Box::new(Colored::new(&config.routing.pairs)),
    },
    Policy {
        name: "adaptive",
        with_one_port: false,
        make: |config| Box::new(Adaptive::new(config)),
    },
];

/// The policy called `name`, or without a name the first of the technology.
pub fn find(name: Option<&str>, ethernet: bool) -> Option<&'static Policy> {
    POLICIES
        .iter()
        .filter(|policy| ethernet || policy.with_one_port)
        .find(|policy| name.is_none_or(|name| policy.name == name))
}

fn seed(config: &SwitchConfig, purpose: &str) -> u64 {
    Random::stream(config.seed, &config.name, purpose).next_u64()
}
