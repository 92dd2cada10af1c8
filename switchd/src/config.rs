//! What a switch is told before it starts.

pub mod domain;

pub use domain::{Defence, DomainConfig};

use proto::congestion::SchemeConfig;
use proto::ids::{Lid, PortNumber};
use proto::link::LinkConfig;
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

/// A memory model, its reading discipline, and the numbers of models for Ethernet.
///
/// Credits settle on InfiniBand what may come in; there, only the first two count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryConfig {
    /// A row of the registry of memory models ("per-input", "shared-pool", "global-watermark").
    pub kind: String,
    /// Whether several outputs may read one input at once.
    pub read: Read,
    /// Octets for what still comes in after a neighbour was told to be silent: a share of the buffer
    /// of each input (in the Zurich benchmark round-trip time by bandwidth), or in a shared pool so
    /// many for each port and lossless priority, besides everything else.
    #[serde(default)]
    pub headroom: Bytes,
    /// How much longer than its cable takes a neighbour may go on, for what it takes to react and
    /// for the wall clock's jitter in live runs. Headroom must cover it.
    #[serde(default)]
    pub jitter: Duration,
    /// What "shared-pool" alone asks for.
    #[serde(default)]
    pub pool: PoolConfig,
}

impl Default for MemoryConfig {
    /// A buffer an input, read by several outputs at once.
    fn default() -> MemoryConfig {
        MemoryConfig {
            kind: "per-input".to_owned(),
            read: Read::Multi,
            headroom: Bytes::ZERO,
            jitter: Duration::ZERO,
            pool: PoolConfig::default(),
        }
    }
}

/// One memory for all ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    /// Octets of the whole memory: reserves, headroom, and what all share.
    pub size: Bytes,
    /// Octets that each port and priority has for itself.
    pub reserve: Bytes,
    /// How much of the shared part one port and priority may take.
    pub threshold: Threshold,
    /// How far below the threshold it must fall until its neighbour may speak again.
    pub hysteresis: Bytes,
    /// Octets of headroom for all ports and priorities together, of which each may take as much as
    /// `headroom` says; without it each has that much of its own.
    pub headroom_pool: Option<Bytes>,
    /// The most octets that may stand at an output in one lossy priority; no such limit without it.
    pub lossy_queue: Option<Bytes>,
}

impl Default for PoolConfig {
    /// 9 MB, 4 KiB reserved, half of what is free for one, 3 KiB of hysteresis. Source: the defaults
    /// of the HPCC simulator (`switch-mmu.cc`), with the memory of a Trident II.
    fn default() -> PoolConfig {
        PoolConfig {
            size: Bytes::new(9_000_000),
            reserve: Bytes::new(4 << 10),
            threshold: Threshold::Shift(1),
            hysteresis: Bytes::new(3 << 10),
            headroom_pool: None,
            lossy_queue: None,
        }
    }
}

/// How much of the shared part of a pool one port and priority may take before its neighbour is told
/// to be silent, or its frames are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threshold {
    /// What is free, divided by two to this power: alpha = 2^-shift.
    Shift(u8),
    /// So many octets.
    Octets(Bytes),
}

/// How ports are chosen, beyond the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingConfig {
    /// A row of the registry of routing policies; without it the one of the ports' technology.
    pub kind: Option<String>,
    /// What s-mod-k divides a source's number by.
    pub spread: u64,
    /// The ports that "colored" gives to pairs of adapters.
    pub pairs: Vec<PairRoute>,
    /// What "adaptive" alone asks for.
    pub adaptive: AdaptiveConfig,
    /// How many addresses a MAC table learns beside those it is told.
    pub learned_max: usize,
    /// After how long without a frame from it a learned address is forgotten.
    pub age: Duration,
    /// A port may flood one frame in so much time, on average: nothing else ends a frame that goes
    /// round in a net with loops.
    pub flood_gap: Duration,
    /// How many frames a port may flood at once after a pause.
    pub flood_burst: u64,
}

impl Default for RoutingConfig {
    /// As a small bridge: 8192 addresses for 300 s (IEEE 802.1Q, table 8-6); 1024 frames of flood at
    /// once and one in 10 us.
    fn default() -> RoutingConfig {
        RoutingConfig {
            kind: None,
            spread: 1,
            pairs: Vec::new(),
            adaptive: AdaptiveConfig::default(),
            learned_max: 8192,
            age: Duration::from_us(300_000_000),
            flood_gap: Duration::from_us(10),
            flood_burst: 1024,
        }
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

/// How adaptive routing forgets congestion, and whom it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveConfig {
    /// How long what another switch has told holds after its last notification.
    pub timeout: Duration,
    /// What a queue of this switch has told ends when so much or less stands there.
    pub low: Bytes,
    /// Notifications end where another way is free, instead of going on to the source.
    pub absorb: bool,
}

impl Default for AdaptiveConfig {
    /// 250 ms and half the set point that 802.1Q has as default; sources are told. Source: algorithms.md 6.
    fn default() -> AdaptiveConfig {
        AdaptiveConfig {
            timeout: Duration::from_us(250_000),
            low: Bytes::new(13_000),
            absorb: false,
        }
    }
}

/// When a priority that is paused for ever is given up. Source: SONiC, `pfcwd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchdogConfig {
    /// How long a queue must stand still, paused, until it is a storm.
    pub detection: Duration,
    /// How long no pause may be in force until the storm is over.
    pub restoration: Duration,
    /// How often it looks.
    pub poll: Duration,
    /// What it does about a storm.
    pub action: StormAction,
}

/// What the watchdog does about a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StormAction {
    /// The queue is emptied, and what comes for it is dropped.
    Drop,
    /// The queue does not obey the pause.
    Forward,
    /// Nothing but an event.
    Alert,
}

/// How many outputs may take from one input buffer at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// Any number.
    Multi,
    /// One.
    Single,
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
