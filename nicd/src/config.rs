//! The configuration of a NIC: identity, transport parameters, link, connection classes and traffic.

pub mod check;
pub mod encapsulation;
pub mod host;
mod lid_ranges;

pub use encapsulation::{
    DrainConfig, DscpMap, Encapsulation, ResequenceConfig, RoceConfig, RoceParams, RoceVersion,
    StormConfig,
};

pub use host::{HostConfig, RemoteConfig, ServeConfig, ServiceKind};

pub use management::ManagementConfig;
pub use management::records::GroupConfig;
use proto::congestion::SchemeConfig;
use proto::ids::{Lid, ServiceLevel};
use proto::link::LinkConfig;
use proto::units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// The largest path MTU, in octets of payload. Source: IBTA Vol 1, 14.2.5.6 (PortInfo, MTUCap).
pub(crate) const MTU_MAX: usize = 4096;

/// The configuration of a NIC with one port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// The node's name in the scenario.
    pub name: String,
    /// The seed of the run. The NIC derives its random streams from the seed, its name and their purpose.
    pub seed: u64,
    /// The LID of the port. On Ethernet the MAC and IP addresses derive from it
    /// (`proto::wire::ethernet::plan`).
    pub lid: Lid,
    /// In which order queue pairs with work send.
    pub qp_order: QueuePairOrder,
    /// Requests per acknowledgement; 1 acknowledges every request, 0 counts as 1.
    pub ack_every: u32,
    /// The longest delay of a coalesced acknowledgement.
    pub ack_delay: Duration,
    /// The time without an acknowledgement after which the requester retransmits (Local ACK Timeout). Source:
    /// IBTA Vol 1, 9.7.6.1.3.
    pub ack_timeout: Duration,
    /// Retransmissions without progress before the queue pair enters the error state, 0 to 7.
    pub retry_count: u8,
    /// RNR NAKs without progress before the queue pair enters the error state, 0 to 7; 7 means no limit. Source:
    /// IBTA Vol 1, 9.7.5.2.8.
    pub rnr_retry: u8,
    /// The wait that an RNR NAK asks for, rounded up to the next code of IBTA Vol 1, 9.7.5.2.8.
    pub rnr_timer: Duration,
    /// Receive buffers that each queue pair posts; 0 means no limit (the receiver is always ready).
    pub receive_depth: u32,
    /// The time that the application needs to post one receive buffer again.
    pub receive_refill: Duration,
    /// Messages that a queue pair takes before they are complete, from items that post whether or not the earlier ones
    /// have left. `None`, for runs with an end, means no limit. Source: IBTA Vol 1, 10.8.2 (a work queue has a depth).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_queue_max: Option<u32>,
    /// The wire format of the packets: InfiniBand or RoCEv2.
    #[serde(default)]
    pub wire: Encapsulation,
    /// The payload of an InfiniBand CNP.
    pub cnp_body: CnpBody,
    /// The SL to VL mapping table of the InfiniBand port: sixteen entries, indexed by service level. Source:
    /// IBTA Vol 1, 7.6.6.
    pub sl2vl: Vec<u8>,
    /// The congestion control scheme and its parameters.
    pub scheme: SchemeConfig,
    /// Rate, MTU, buffer and flow control of the link.
    pub link: LinkConfig,
    /// The LIDs of all adapters of the fabric in node order, including this NIC's. In the text also `[FIRST, LAST]`.
    #[serde(with = "lid_ranges")]
    pub adapters: Vec<Lid>,
    /// Connection classes, at most 255. Each pair of adapters has one queue pair per class, numbered by
    /// [`proto::ids::QueuePairNumber::planned`].
    pub classes: Vec<ClassConfig>,
    /// The traffic that this NIC sends.
    pub traffic: Vec<TrafficConfig>,
    /// The host beside the channel adapter, on Ethernet links that lead to foreign hosts.
    #[serde(default)]
    pub host: Option<HostConfig>,
    /// The NIC is under a subnet manager; InfiniBand only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<ManagementConfig>,
    /// The multicast groups that the NIC joins through subnet administration, at most 256. Traffic names one by its LID
    /// of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupConfig>,
}

proto::params! {
    /// The parameters of `[fabric.nic]` that both technologies have.
    #[derive(Copy)]
    pub struct NicParams {
        /// The order in which queue pairs with work send.
        qp_order: QueuePairOrder = QueuePairOrder::KIND, Default("posting");
        /// Requests per acknowledgement.
        ack_every: u32 = Whole(1, 65_535), Default("1");
        /// Longest wait of a coalesced acknowledgement.
        ack_delay: Duration = Time, Default("16 mtu") => Not("ack_every", "1");
        /// Time without acknowledgement after which a requester goes back. The default is so long that saturation
        /// does not look like loss.
        ack_timeout: Duration = Span, Default("100000 mtu");
        /// Times that a requester goes back before it gives up.
        retry_count: u8 = Whole(0, 7), Default("7"), "IBTA Vol 1, 9.7.5.2";
        /// Retries after RNR; 7 is without limit.
        rnr_retry: u8 = Whole(0, 7), Default("7"), "IBTA Vol 1, 9.7.5.2.8" => Not("receive_depth", "0");
        /// Wait that a responder without receive buffers asks of its peer.
        rnr_timer: Duration = Span, Default("10 us"), "IBTA Vol 1, 9.7.5.2.8" => Not("receive_depth", "0");
        /// Receive buffers that a queue pair posts; 0 means no limit.
        receive_depth: u32 = Whole(0, 65_535), Default("0");
        /// Time until a receive buffer is posted again.
        receive_refill: Duration = Time, Default("0 mtu") => Not("receive_depth", "0");
        /// Input buffer of the port.
        buffer: Bytes = Size, Default("36 mtu");
    }
}

proto::words! {
    /// The order in which queue pairs with work send.
    pub enum QueuePairOrder {
        /// The queue pair with the oldest posted message first, among those that may send.
        Posting = "posting",
        /// Round robin, one frame at a time.
        RoundRobin = "rr",
    }
}

proto::words! {
    /// The payload of a congestion notification packet, behind its BTH.
    pub enum CnpBody {
        /// Sixteen reserved octets.
        Reserved16 = "reserved16",
        /// No payload.
        None = "none",
    }
}

/// What the queue pairs of one class have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// The transport service.
    pub transport: Transport,
    /// The operation of every message.
    pub operation: Operation,
    /// The service level of every packet.
    pub service_level: ServiceLevel,
}

proto::words! {
    /// A transport service. Source: IBTA Vol 1, 9.1.
    pub enum Transport {
        /// Reliable connection.
        Rc = "rc",
        /// Unreliable connection.
        Uc = "uc",
        /// Unreliable datagram. A message has at most one MTU.
        Ud = "ud",
        /// No transport: each message is one test frame of the message's size. Ethernet only.
        Test = "test",
    }
}

proto::words! {
    /// The operation of a message.
    pub enum Operation {
        /// SEND.
        Send = "send",
        /// RDMA WRITE.
        Write = "write",
    }
}

/// A traffic item: a stream of messages that this NIC sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficConfig {
    /// The item's name in the scenario.
    pub name: String,
    /// The item's index among all traffic items of the scenario. The first payload octets carry it, so that
    /// the receiver can assign a message's latency to the item.
    pub item: u16,
    /// Index into [`NicConfig::classes`].
    pub class: u8,
    /// The receivers.
    pub to: Target,
    /// When messages are posted.
    pub arrivals: Arrivals,
    /// The mean time between messages; not used by `backlog`.
    pub interval: Duration,
    /// The slot of Bernoulli arrivals: the time that one message takes on the line.
    pub slot: Duration,
    /// The size of each message, at most 2 GiB.
    pub size: Bytes,
    /// No message is posted before this instant.
    pub start: Instant,
    /// No message is posted from this instant on. Posted messages of which no frame has left are withdrawn.
    pub stop: Instant,
    /// The number of messages to post; 0 means no limit.
    pub messages: u64,
}

/// The receivers of a traffic item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A random other adapter for each message.
    Uniform,
    /// A random adapter of this list for each message.
    Lids(Vec<Lid>),
    /// A script: each step posts its messages when its conditions hold. Arrivals and size are not used.
    Script(Vec<StepConfig>),
}

/// A step of a script: messages to one adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    /// The receiver.
    pub to: Lid,
    /// The number of messages, at least one.
    pub messages: u64,
    /// The size of each message except the last.
    pub size: Bytes,
    /// The size of the last message.
    pub last: Bytes,
    /// The step does not begin before this instant.
    pub at: Instant,
    /// Conditions that must hold before the step begins.
    pub after: Vec<AfterConfig>,
}

/// A condition of a step. It counts messages of the step's connection class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterConfig {
    /// This many messages to the adapter are complete.
    Sent(Lid, u64),
    /// This many messages from the adapter have been delivered.
    Received(Lid, u64),
}

proto::words! {
    /// When a traffic item posts messages.
    pub enum Arrivals {
        /// Exponentially distributed gaps.
        Poisson = "poisson",
        /// A message in each slot with probability slot / interval.
        Bernoulli = "bernoulli",
        /// A message every interval.
        Paced = "paced",
        /// A new message whenever the first frame of the previous one has left: always one message is ready.
        Backlog = "backlog",
    }
}
