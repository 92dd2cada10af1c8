//! What a device counts: monotonic totals a port and lane, time integrals, and reasons for loss.
//!
//! Totals only grow; whoever wants a rate takes two readings and subtracts (seeing.md 3.1). Every
//! frame that does not go on is counted under exactly one [`DropReason`].

mod bin;
mod flow;

pub use bin::{BinReading, MovedFlow, PortTotals, Span, UnmovedFlows};
pub use flow::{FlowId, FlowReading, Items, ReceptionReading};

use crate::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $scope:ident;)*) => {
        /// Why a frame ended before its destination.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[repr(usize)]
        pub enum DropReason { $($(#[$doc])* $name,)* }

        impl DropReason {
            /// Every reason, in the order of [`Drops`].
            pub const ALL: &'static [DropReason] = &[$(DropReason::$name,)*];

            /// The name in results and metrics.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$name => $text,)* }
            }

            /// True where nothing was wrong with the frame: there was no room for it.
            pub const fn is_want_of_room(self) -> bool {
                matches!(
                    self,
                    DropReason::BufferOverrun
                        | DropReason::HeadroomOverrun
                        | DropReason::BufferFull
                        | DropReason::QueueFull
                        | DropReason::ReceiveBuffer
                )
            }

            /// True for frames that cross more than one link and so enter the conservation sum.
            pub const fn is_end_to_end(self) -> bool {
                matches!(match self { $(DropReason::$name => Scope::$scope,)* }, Scope::EndToEnd)
            }
        }
    };
}

enum Scope {
    EndToEnd,
    Link,
}

drop_reasons! {
    /// Octets that are no packet of the link's technology.
    Malformed = "malformed", EndToEnd;
    /// The packet length field disagrees with the octets.
    PacketLength = "pktlen", EndToEnd;
    /// The link CRC is wrong.
    Vcrc = "vcrc", EndToEnd;
    /// The end-to-end CRC is wrong.
    Icrc = "icrc", EndToEnd;
    /// The checksum of an IPv4 header, or that of a UDP datagram, is wrong.
    Checksum = "checksum", EndToEnd;
    /// The sender marked it as bad at its end, or its FCS was wrong.
    Aborted = "aborted", EndToEnd;
    /// Larger than the port's MTU.
    Mtu = "mtu", EndToEnd;
    /// A lane that is not operational here, or a service level mapped to VL15.
    Lane = "vl", EndToEnd;
    /// The link is not up.
    LinkState = "link_state", EndToEnd;
    /// No route to the destination LID.
    NoRoute = "no_route", EndToEnd;
    /// A multicast LID without a multicast route.
    NoMulticastRoute = "no_multicast_route", EndToEnd;
    /// The route leads back out of the port it came in on.
    Hairpin = "hairpin", EndToEnd;
    /// A management packet with the permissive LID: it ends here, and nobody manages yet.
    Management = "management", EndToEnd;
    /// The peer sent more than the credits it had.
    BufferOverrun = "buffer_overrun", EndToEnd;
    /// A lossless priority got more than its threshold and its headroom hold: an alarm.
    HeadroomOverrun = "headroom_overrun", EndToEnd;
    /// A lossy priority has used up its share of a switch's memory.
    BufferFull = "buffer_full", EndToEnd;
    /// The queue of a lossy priority at an output is at its limit.
    QueueFull = "queue_full", EndToEnd;
    /// Too many messages of the switch's own congestion points wait for an output.
    NotificationOverflow = "notification_overflow", EndToEnd;
    /// An adapter told of congestion on the way to another.
    NotificationForged = "notification_forged", EndToEnd;
    /// The PFC watchdog gave the queue up.
    PauseStorm = "wd_drop", EndToEnd;
    /// For a group address that no bridge forwards.
    ReservedAddress = "reserved_address", EndToEnd;
    /// The port may flood no more for now.
    FloodLimit = "flood_limit", EndToEnd;
    /// VL15 has no credits, and its buffer was full.
    ManagementOverrun = "management_overrun", EndToEnd;
    /// For another LID than ours.
    NotForUs = "not_for_us", EndToEnd;
    /// A queue pair that does not exist, or belongs to another peer.
    QueuePair = "queue_pair", EndToEnd;
    /// The partition, queue or memory key is wrong.
    Key = "key", EndToEnd;
    /// The opcode does not fit the queue pair's service or its place in the message.
    Opcode = "opcode", EndToEnd;
    /// The sequence number is ahead of what was expected.
    OutOfSequence = "out_of_sequence", EndToEnd;
    /// The sequence number was seen before.
    Duplicate = "duplicate", EndToEnd;
    /// A congestion notification about no flow that this adapter sends.
    NotificationFlow = "notification_flow", EndToEnd;
    /// No RoCE that this adapter speaks: another protocol or UDP port, a fragment, another version.
    NotRoce = "not_roce", EndToEnd;
    /// The receive buffer of an adapter with a slow host was full.
    ReceiveBuffer = "receive_buffer", EndToEnd;
    /// No receive buffer was posted (RNR).
    ReceiverNotReady = "receiver_not_ready", EndToEnd;
    /// An impairment of the scenario took it.
    Injected = "injected", EndToEnd;
    /// The carrying socket lost it.
    Transport = "transport", EndToEnd;
    /// A link packet with a wrong LPCRC.
    Lpcrc = "lpcrc", Link;
    /// A link packet of unknown operation or for a lane that is not operational.
    LinkPacket = "link_packet", Link;
    /// A link packet older than newer data on the same link.
    StaleLinkPacket = "stale_link_packet", Link;
    /// A MAC control frame whose opcode asks for nothing known here.
    MacControlOpcode = "mac_control_opcode", Link;
    /// A MAC control frame that ends before its parameters do.
    MacControlLength = "mac_control_length", Link;
    /// A MAC control frame behind a tag, where none belongs.
    MacControlTag = "mac_control_tag", Link;
    /// A MAC control frame to somebody else.
    MacControlAddress = "mac_control_address", Link;
    /// A MAC control frame that its sender marked as bad, or whose FCS was wrong.
    MacControlAborted = "mac_control_aborted", Link;
    /// A PFC frame that speaks of priorities above 7. What it says of others is obeyed all the same.
    PfcVector = "pfc_vector", Link;
}

/// Losses a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct Drops {
    /// Indexed by `DropReason as usize`.
    by_reason: Vec<u64>,
    /// Their sum, which is asked for more often than they are.
    total: u64,
}

impl Default for Drops {
    fn default() -> Drops {
        Drops { by_reason: vec![0; DropReason::ALL.len()], total: 0 }
    }
}

impl From<Vec<u64>> for Drops {
    fn from(by_reason: Vec<u64>) -> Drops {
        Drops { total: by_reason.iter().sum(), by_reason }
    }
}

impl From<Drops> for Vec<u64> {
    fn from(drops: Drops) -> Vec<u64> {
        drops.by_reason
    }
}

impl Drops {
    /// Counts one frame.
    pub fn count(&mut self, reason: DropReason) {
        self.add(reason, 1);
    }

    /// Counts `n` frames.
    pub fn add(&mut self, reason: DropReason, n: u64) {
        self.by_reason[reason as usize] += n;
        self.total += n;
    }

    /// How many frames ended for this reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.by_reason[reason as usize]
    }

    /// Every reason with its count, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason)))
    }

    /// All frames, whatever the reason.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds another table to this one.
    pub fn merge(&mut self, other: &Drops) {
        for (mine, theirs) in self.by_reason.iter_mut().zip(&other.by_reason) {
            *mine += theirs;
        }
        self.total += other.total;
    }
}

/// A level that goes up and down, with its time integral and the extremes since they were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauge {
    /// The level now.
    pub value: u64,
    /// The least since the watermarks were taken.
    pub min: u64,
    /// The greatest since the watermarks were taken.
    pub max: u64,
    /// The greatest since the run began, or since [`Gauge::forget_peak`].
    #[serde(default)]
    pub peak: u64,
    /// ∫ level dt, in level · picoseconds, closed at `since`.
    pub integral: u128,
    /// ∫ level² dt, in level² · picoseconds, for spreads over time.
    pub square_integral: u128,
    /// Up to when the integrals are closed.
    pub since: Instant,
}

impl Gauge {
    /// The level becomes `value` at `now`.
    pub fn set(&mut self, value: u64, now: Instant) {
        self.close(now);
        self.value = value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.peak = self.peak.max(value);
    }

    /// ∫ level dt up to `now`, if the level has not changed since it was closed.
    pub fn integral_at(&self, now: Instant) -> u128 {
        self.integral + self.held_until(now)
    }

    fn held_until(&self, now: Instant) -> u128 {
        u128::from(now.since(self.since).as_ps()) * u128::from(self.value)
    }

    /// Brings the integrals up to `now`.
    pub fn close(&mut self, now: Instant) {
        if self.value > 0 {
            let held = self.held_until(now);
            self.integral += held;
            self.square_integral += held * u128::from(self.value);
        }
        self.since = self.since.max(now);
    }

    /// Starts the extremes anew from the present level.
    pub fn restart_watermarks(&mut self) {
        self.min = self.value;
        self.max = self.value;
    }

    /// Takes the peak anew from the present level.
    pub fn forget_peak(&mut self) {
        self.peak = self.value;
    }
}

/// A condition that comes and goes, with the total time it has held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    since: Option<Instant>,
    total: Duration,
}

impl Condition {
    /// The condition holds from `now` on; true if it did not hold before.
    pub fn begin(&mut self, now: Instant) -> bool {
        let begins = self.since.is_none();
        self.since.get_or_insert(now);
        begins
    }

    /// The condition ends at `now`; how long it held, if it did.
    pub fn end(&mut self, now: Instant) -> Option<Duration> {
        let held = now.since(self.since.take()?);
        self.total += held;
        Some(held)
    }

    /// Since when it holds.
    pub const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Total time up to `now`.
    pub fn total(&self, now: Instant) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// Totals of one lane of one port. Frames and bytes are data frames, LRH to VCRC or DA to FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounters {
    /// Data frames sent.
    pub tx_frames: u64,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// Data frames received.
    pub rx_frames: u64,
    /// Octets of data frames received.
    pub rx_bytes: u64,
    /// Time in which a frame was ready and link-level flow control forbade it (PortXmitWait).
    pub hold_ps: u64,
    /// Time in which the lane was forbidden, ready frame or not.
    pub pause_ps: u64,
    /// Frames lost for want of room, here or behind: what a lossless lane must not lose.
    #[serde(default)]
    pub no_room: u64,
    /// Frames marked by the congestion point.
    pub marks: u64,
    /// Congestion notifications sent.
    pub notes_tx: u64,
    /// Congestion notifications received.
    pub notes_rx: u64,
    /// Other frames sent: ACK, CNP, management, flow control.
    pub ctl_tx: u64,
    /// Other frames received.
    pub ctl_rx: u64,
    /// Octets waiting to leave by this port, as buffered.
    pub out_queue: Gauge,
    /// Octets held in this port's input buffer, as buffered.
    pub in_queue: Gauge,
    /// Octets posted by workloads and not yet sent (adapters only).
    pub source_queue: Gauge,
}

/// One lane's totals with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneReading {
    /// Virtual lane or priority.
    pub tc: u8,
    /// The totals.
    pub counters: LaneCounters,
}

/// Everything one port counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReading {
    /// One entry an operational data lane, by number, then VL15 if it carried anything.
    pub lanes: Vec<LaneReading>,
    /// Losses by reason.
    pub drops: Drops,
    /// Credit or pause time-outs that retrained the link.
    pub watchdogs: u64,
    /// Operators' names for further totals of this port ("port_xmit_wait", "np_cnp_sent").
    pub named: Vec<(String, u64)>,
}

/// How long messages of one traffic item took, posting to delivery, as a histogram.
///
/// Bucket `b < 16` holds `b` nanoseconds; above, each power of two has sixteen equal buckets, so a
/// value is known to 1/16 of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyReading {
    /// The traffic item's number in the scenario.
    pub item: u16,
    /// Messages a bucket, trailing zeros left out.
    pub buckets: Vec<u64>,
    /// Sum of all latencies, in nanoseconds.
    pub sum_ns: u128,
}

impl LatencyReading {
    /// Counts one message.
    pub fn count(&mut self, latency: Duration) {
        let ns = latency.as_ps() / 1_000;
        let bucket = Self::bucket(ns);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.sum_ns += u128::from(ns);
    }

    fn bucket(ns: u64) -> usize {
        if ns < 16 {
            return ns as usize;
        }
        let exponent = 63 - ns.leading_zeros() as usize;
        let sub = (ns >> (exponent - 4)) as usize & 15;
        (exponent - 3) * 16 + sub
    }

    /// The least latency a bucket stands for, in nanoseconds.
    pub fn bucket_floor(bucket: usize) -> u64 {
        if bucket < 16 {
            return bucket as u64;
        }
        let exponent = bucket / 16 + 3;
        (16 + (bucket % 16) as u64) << (exponent - 4)
    }
}

/// A device's whole state of counting at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceReading {
    /// By port, index 0 is port 1.
    pub ports: Vec<PortReading>,
    /// Flows sent, adapters only, by flow.
    pub flows: Vec<FlowReading>,
    /// Flows received, adapters only, by flow.
    pub receptions: Vec<ReceptionReading>,
    /// Message latencies by traffic item, adapters only.
    pub latencies: Vec<LatencyReading>,
    /// The end-to-end frame balance.
    pub balance: Balance,
}

/// Frames that cross more than one link, counted where they begin, end and stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Frames this device made, retransmissions and multicast copies included.
    pub injected: u64,
    /// Frames that reached their end here.
    pub delivered: u64,
    /// Frames that stand in this device now, the one under way on each line excepted.
    pub buffered: u64,
    /// Frames of one link that this device sent.
    pub link_local: u64,
    /// Messages withdrawn unsent.
    pub withdrawn: u64,
}

#[cfg(test)]
mod tests;
