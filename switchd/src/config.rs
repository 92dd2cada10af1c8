//! The configuration of a switch.

pub mod domain;

pub use domain::{Defence, DomainConfig};

pub use management::ManagementConfig;
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, PortNumber};
use proto::link::LinkConfig;
use proto::params;
use proto::units::{BitRate, Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// One switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// The node's name.
    pub name: String,
    /// The scenario's seed; the switch's streams come from it and the name.
    pub seed: u64,
    /// The switch's own address.
    pub lid: Lid,
    /// Which memory model, and how it is read.
    pub memory: MemoryConfig,
    /// The service level to virtual lane map: sixteen entries for every pair of ports alike, or
    /// sixteen for each pair, by input and then by output. 15 discards the level.
    pub sl2vl: Vec<u8>,
    /// Congestion control.
    pub scheme: SchemeConfig,
    /// By port, index 0 is port 1.
    pub ports: Vec<PortConfig>,
    /// Runs of LIDs and the port they leave by: the linear forwarding table of InfiniBand, the static
    /// entries of Ethernet.
    pub routes: Vec<Route>,
    /// Multicast forwarding table; on Ethernet groups go out by every port.
    pub multicast: Vec<MulticastRoute>,
    /// How ports are chosen, beyond the tables.
    #[serde(default)]
    pub routing: RoutingConfig,
    /// Watches for priorities that are paused for ever; Ethernet only.
    #[serde(default)]
    pub watchdog: Option<WatchdogConfig>,
    /// The switch is under a subnet manager; InfiniBand only. Its tables and its LID are then empty at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<ManagementConfig>,
}

/// One port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortConfig {
    /// The port leads to a NIC.
    pub faces_adapter: bool,
    /// The link.
    pub link: LinkConfig,
    /// What the cable takes, one way. Only what a memory model needs as headroom depends on it.
    #[serde(default)]
    pub delay: Duration,
    /// When the port serves its data frames slower than its line carries them; the last that holds
    /// counts.
    #[serde(default)]
    pub service: Vec<ServiceConfig>,
    /// Its part in a domain of congestion notification; Ethernet only.
    #[serde(default)]
    pub domain: DomainConfig,
}

impl PortConfig {
    /// A port that does nothing special.
    pub fn plain(faces_adapter: bool, link: LinkConfig, delay: Duration) -> PortConfig {
        let (service, domain) = (Vec::new(), DomainConfig::default());
        PortConfig { faces_adapter, link, delay, service, domain }
    }
}

/// A time in which an output serves its data frames at no more than a rate.
///
/// Source: the Zurich benchmark (output-generated hot spots: service rate of a port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// The rate.
    pub rate: BitRate,
    /// From when on.
    pub start: Instant,
    /// Up to when.
    pub stop: Instant,
}

/// A memory model with its parameters.
///
/// On InfiniBand credits limit what may come in, so only the model and `read` apply there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// A row of the registry of memory models ("per-input", "shared-pool", "global-watermark").
    pub kind: String,
    /// Whether several outputs may read one input at once.
    pub read: Read,
    /// Octets that may still come in after a neighbour was paused: a share of the buffer of each input (in
    /// the Zurich benchmark round-trip time by bandwidth), or in a shared pool this much for each port and
    /// lossless priority, besides everything else.
    pub headroom: Bytes,
    /// Time that a neighbour may go on sending beyond the delay of its cable, for its reaction and for the
    /// wall clock's jitter in live runs. Headroom must cover it.
    pub jitter: Duration,
    /// The model's own parameters, as written.
    pub params: toml::Table,
}

impl MemoryConfig {
    /// Sets a parameter of the model.
    pub fn set(&mut self, key: &str, value: impl Into<toml::Value>) {
        self.params.insert(key.to_owned(), value.into());
    }
}

impl Default for MemoryConfig {
    /// A buffer for each input, read by several outputs at once, without headroom.
    fn default() -> MemoryConfig {
        MemoryConfig {
            kind: "per-input".to_owned(),
            read: Read::Multi,
            headroom: Bytes::ZERO,
            jitter: Duration::ZERO,
            params: toml::Table::new(),
        }
    }
}

/// How ports are chosen, beyond the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingConfig {
    /// A row of the registry of routing policies; without it the first of the ports' technology.
    pub kind: Option<String>,
    /// Divisor of a source's number in s-mod-k.
    pub spread: u64,
    /// The ports that "colored" assigns to pairs of adapters.
    pub pairs: Vec<PairRoute>,
    /// The policy's own parameters, as written.
    pub params: toml::Table,
    /// The MAC table of an Ethernet switch.
    pub table: MacTableParams,
}

impl Default for RoutingConfig {
    fn default() -> RoutingConfig {
        let (params, table) = (toml::Table::new(), params::defaults());
        RoutingConfig { kind: None, spread: 1, pairs: Vec::new(), params, table }
    }
}

proto::params! {
    /// The MAC table: addresses that no route plans.
    #[derive(Copy, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct MacTableParams {
        /// Most addresses that it learns; every port may learn the same part of them.
        learned_max: usize = Whole(0, 1 << 20), Default("8192");
        /// Time without a frame from it after which a learned address is forgotten.
        age: Duration = Span, Default("300 s"), "IEEE 802.1Q, table 8-6";
        /// Mean time between two frames that a port may flood: without it a frame in a loop never ends.
        flood_gap: Duration = Time, Default("10 us");
        /// Frames that a port may flood at once after a pause.
        flood_burst: u64 = Whole(1, 1 << 20), Default("1024");
    }
}

/// What one adapter sends to another leaves by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairRoute {
    /// The sender.
    pub source: Lid,
    /// The receiver.
    pub destination: Lid,
    /// The port.
    pub port: PortNumber,
}

proto::params! {
    /// Gives up priorities that are paused for ever.
    #[derive(Copy, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WatchdogConfig {
        /// Time for which a paused queue must stand still until it is a storm.
        detection: Duration = Span, Default("200 ms"), "SONiC, pfcwd";
        /// Time without pause after which a storm is over.
        restoration: Duration = Span, Default("200 ms"), "SONiC, pfcwd";
        /// Time between two looks at the queues.
        poll: Duration = Span, Default("200 ms"), "SONiC, pfcwd";
        /// Reaction to a storm.
        action: StormAction = StormAction::KIND, Default("drop"), "SONiC, pfcwd";
    }
}

proto::words! {
    /// The watchdog's reaction to a storm.
    pub enum StormAction {
        /// Empty the queue, and drop what comes for it.
        Drop = "drop",
        /// Ignore the pause.
        Forward = "forward",
        /// Only log an event.
        Alert = "alert",
    }

    /// How many outputs may read one input buffer at the same time.
    pub enum Read {
        /// Any number.
        Multi = "multi",
        /// One.
        Single = "single",
    }
}

/// LIDs `first` to `last` leave by `port`. Where several routes hold a LID, InfiniBand obeys the last
/// of them; on Ethernet the routing policy chooses among all, and the first is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// First LID of the run.
    pub first: Lid,
    /// Last LID of the run, included.
    pub last: Lid,
    /// The port they leave by.
    pub port: PortNumber,
}

/// A multicast LID and the ports its copies leave by (never the one they came in on).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastRoute {
    /// The group's LID.
    pub lid: Lid,
    /// The ports.
    pub ports: Vec<PortNumber>,
}
