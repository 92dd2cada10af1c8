//! What a NIC is told before it starts.

pub mod check;
pub mod encapsulation;

pub use encapsulation::{
    DrainConfig, Encapsulation, ResequenceConfig, RoceConfig, RoceVersion, StormConfig,
};

use proto::congestion::SchemeConfig;
use proto::ids::{Lid, ServiceLevel};
use proto::link::LinkConfig;
use proto::units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// The largest MTU, in octets of payload. Source: IBTA Vol 1, 5.2.1 (LRH packet length), 9.2.2 (PMTU).
pub(crate) const MTU_MAX: usize = 4096;

/// One NIC with one port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// The node's name.
    pub name: String,
    /// The scenario's seed; the NIC's streams come from it and the name.
    pub seed: u64,
    /// The NIC's own address.
    pub lid: Lid,
    /// In which order queue pairs are served.
    pub qp_order: QueuePairOrder,
    /// Requests per acknowledgement; 1 acknowledges each.
    pub ack_every: u32,
    /// Longest wait of a coalesced acknowledgement.
    pub ack_delay: Duration,
    /// How long an acknowledgement may take before the requester goes back.
    pub ack_timeout: Duration,
    /// How often it goes back before it gives up (3 bits: 0 to 7).
    pub retry_count: u8,
    /// How often it retries after RNR; 7 is for ever. Source: IBTA Vol 1, 9.7.5.2.8.
    pub rnr_retry: u8,
    /// How long a responder without receive buffers asks its peer to wait.
    pub rnr_timer: Duration,
    /// Receive buffers a queue pair posts; 0 is no limit (receiver always ready).
    pub receive_depth: u32,
    /// How long the user takes to post one receive buffer again.
    pub receive_refill: Duration,
    /// The dialect of its packets.
    #[serde(default)]
    pub wire: Encapsulation,
    /// What a CNP carries after its BTH on InfiniBand.
    pub cnp_body: CnpBody,
    /// The service level to virtual lane map of the port on InfiniBand, sixteen entries.
    pub sl2vl: Vec<u8>,
    /// Congestion control.
    pub scheme: SchemeConfig,
    /// The link.
    pub link: LinkConfig,
    /// The LIDs of all adapters, in node order, this one's included.
    pub adapters: Vec<Lid>,
    /// Connection classes; a pair of adapters has one queue pair a class, numbered by
    /// [`proto::ids::QueuePairNumber::planned`].
    pub classes: Vec<ClassConfig>,
    /// What this NIC sends.
    pub traffic: Vec<TrafficConfig>,
}

/// In which order queue pairs with work are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePairOrder {
    /// The oldest posted message among those that may send.
    Posting,
    /// Each in turn, a frame at a time.
    #[serde(rename = "rr")]
    RoundRobin,
}

/// What a congestion notification packet carries after its BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CnpBody {
    /// Sixteen reserved octets.
    #[serde(rename = "reserved16")]
    Reserved16,
    /// Nothing.
    None,
}

/// What the queue pairs of one class have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// The service.
    pub transport: Transport,
    /// The verb.
    pub operation: Operation,
    /// The service level.
    pub service_level: ServiceLevel,
}

/// A transport service. Source: IBTA Vol 1, 9.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram: messages of at most one MTU.
    Ud,
    /// No service at all: each message is one test frame, whose size is the message's.
    Test,
}

/// What a message does at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
}

/// One traffic item of one NIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficConfig {
    /// The item's name in the scenario.
    pub name: String,
    /// Its number among all traffic items of the scenario; travels in the first payload octets,
    /// so that a receiver can tell whose latency it sees.
    pub item: u16,
    /// Index into [`NicConfig::classes`].
    pub class: u8,
    /// To whom.
    pub to: Target,
    /// When messages are posted.
    pub arrivals: Arrivals,
    /// Mean time between messages; for `backlog` unused.
    pub interval: Duration,
    /// Line time of one message: the slot of Bernoulli arrivals.
    pub slot: Duration,
    /// Octets of one message.
    pub size: Bytes,
    /// First instant at which a message may be posted.
    pub start: Instant,
    /// From here on none is, and those of which no frame has left are withdrawn.
    pub stop: Instant,
    /// Post at most this many messages; 0 is no limit.
    pub messages: u64,
}

/// Where a traffic item sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Each message to a random adapter other than this one.
    Uniform,
    /// Each message to a random one of these (one entry: always there).
    Lids(Vec<Lid>),
    /// As written down: each step when what it waits for has happened. Arrivals and size do not count.
    Script(Vec<StepConfig>),
}

/// A step of a script: some messages to one adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    /// To whom.
    pub to: Lid,
    /// How many messages, at least one.
    pub messages: u64,
    /// Octets of each but the last.
    pub size: Bytes,
    /// Octets of the last.
    pub last: Bytes,
    /// Not earlier than this.
    pub at: Instant,
    /// What has to have happened before.
    pub after: Vec<AfterConfig>,
}

/// Something that a step waits for, on connections of its own class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterConfig {
    /// So many messages to an adapter are complete.
    Sent(Lid, u64),
    /// So many messages from an adapter have been delivered.
    Received(Lid, u64),
}

/// When messages are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson,
    /// In each slot with probability slot / interval.
    Bernoulli,
    /// Every interval exactly.
    Paced,
    /// Always one more than can be sent.
    Backlog,
}
