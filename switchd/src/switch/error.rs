//! Why a configuration describes no switch.

use crate::memory::headroom::MemoryError;
use proto::congestion::SchemeError;
use proto::ids::PortNumber;
use proto::params::ParamError;

/// Why [`super::Switch::new`] refuses a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No memory model of that name for this technology.
    #[error("unknown memory model {0:?}")]
    Memory(String),
    /// The memory model cannot work with these sizes.
    #[error(transparent)]
    Room(#[from] MemoryError),
    /// No routing policy of that name for this technology.
    #[error("unknown routing policy {0:?}")]
    Routing(String),
    /// The routing policy refuses a parameter.
    #[error("routing: {0}")]
    Policy(#[from] ParamError),
    /// The congestion control scheme is unknown, or refuses a parameter.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// The service level map has another length than sixteen, or sixteen for each pair of ports, or an entry
    /// above 15.
    #[error(
        "the service level map needs sixteen lanes from 0 to 15, for all or for each pair of ports"
    )]
    ServiceLevels,
    /// A route or group names a port that the switch does not have.
    #[error("a route leads out of port {0}, which the switch does not have")]
    Port(PortNumber),
    /// The number of ports is not 1 to 254.
    #[error("a switch has 1 to 254 ports, not {0}")]
    Ports(usize),
    /// A port has another technology than port 1.
    #[error("port {0} is of another technology than port 1")]
    Technology(PortNumber),
    /// A watchdog without pauses, or with a poll interval of 0.
    #[error("a watchdog needs links that can be paused, and a poll above 0")]
    Watchdog,
    /// A setting that cannot change while the switch runs.
    #[error(
        "{0:?} cannot change while a switch runs: scheme.*, switch.pool.*, switch.headroom, link.scheduling can"
    )]
    Setting(String),
    /// The value of a setting is wrong.
    #[error(transparent)]
    Value(ParamError),
    /// The switch does not have what a setting is for.
    #[error("{0} has no effect on this switch")]
    Effectless(&'static str),
    /// A subnet manager on Ethernet.
    #[error("a subnet manager needs links of InfiniBand")]
    Management,
}
