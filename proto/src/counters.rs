//! Counters of a device: totals per port and lane, gauges with time integrals, and drop reasons.
//!
//! Totals only grow; a rate is the difference of two readings (docs/spec/seeing.md 3.1). Every dropped
//! frame counts under exactly one [`DropReason`].

mod bin;
mod flow;
mod named;

pub use bin::{BinReading, MovedFlow, PortTotals, Span, UnmovedFlows};
pub use flow::{FlowId, FlowReading, Items, Level, Periods, ReceptionReading};

use crate::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

enum Scope {
    EndToEnd,
    Link,
}

impl DropReason {
    /// Whether a good frame was dropped because a buffer or queue was full.
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

    /// Whether congestion dropped a frame that flow control should have kept, if flow control protects its lane. A memory
    /// drops for the other reasons of [`DropReason::is_want_of_room`] what no pause protects at the port.
    pub const fn breaks_lossless(self) -> bool {
        self.is_want_of_room() && !matches!(self, DropReason::BufferFull | DropReason::QueueFull)
    }

    /// Whether the dropped frame counts in the conservation sum: it crosses more than one link.
    pub const fn is_end_to_end(self) -> bool {
        matches!(self.property(), Scope::EndToEnd)
    }
}

crate::named_counters! {
    /// Why a frame was dropped.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DropReason: Scope {
        /// The octets are not a packet of the link's technology.
        Malformed = "malformed", EndToEnd;
        /// The version of the LRH is unknown (LVer).
        LinkVersion = "lver", EndToEnd;
        /// The GRH is wrong: another version than 6, or a next header that is not a BTH.
        GlobalHeader = "grh", EndToEnd;
        /// The version of the BTH is unknown (TVer).
        TransportVersion = "tver", EndToEnd;
        /// The packet length field disagrees with the octets.
        PacketLength = "pktlen", EndToEnd;
        /// The link CRC is wrong.
        Vcrc = "vcrc", EndToEnd;
        /// The end-to-end CRC is wrong.
        Icrc = "icrc", EndToEnd;
        /// The checksum of an IPv4 header, or that of a UDP datagram, is wrong.
        Checksum = "checksum", EndToEnd;
        /// The sender aborted the frame, or its FCS was wrong.
        Aborted = "aborted", EndToEnd;
        /// The frame is larger than the port's MTU.
        Mtu = "mtu", EndToEnd;
        /// A lane that is not operational here, or a service level mapped to VL15.
        Lane = "vl", EndToEnd;
        /// The link is not up. MAC control frames count as [`DropReason::MacControlLinkState`].
        LinkState = "link_state", EndToEnd;
        /// No route to the destination LID.
        NoRoute = "no_route", EndToEnd;
        /// A multicast LID without a multicast route.
        NoMulticastRoute = "no_multicast_route", EndToEnd;
        /// The route leads back out of the port it came in on.
        Hairpin = "hairpin", EndToEnd;
        /// A management packet for this device, which has no management agent.
        Management = "management", EndToEnd;
        /// The peer sent more than its credits permit.
        BufferOverrun = "buffer_overrun", EndToEnd;
        /// A lossless priority overran its threshold and its headroom.
        HeadroomOverrun = "headroom_overrun", EndToEnd;
        /// A lossy priority has used up its share of a switch's memory.
        BufferFull = "buffer_full", EndToEnd;
        /// The queue of a lossy priority at an output is at its limit.
        QueueFull = "queue_full", EndToEnd;
        /// The queue of the switch's own messages at an output is full.
        NotificationOverflow = "notification_overflow", EndToEnd;
        /// An adapter sent a notification about a path that it is not part of.
        NotificationForged = "notification_forged", EndToEnd;
        /// The PFC watchdog drops the frames of this queue.
        PauseStorm = "wd_drop", EndToEnd;
        /// The destination is a group address that no bridge forwards.
        ReservedAddress = "reserved_address", EndToEnd;
        /// The port exceeds its flood rate limit.
        FloodLimit = "flood_limit", EndToEnd;
        /// The VL15 buffer was full; VL15 has no credits.
        ManagementOverrun = "management_overrun", EndToEnd;
        /// The destination is another adapter.
        NotForUs = "not_for_us", EndToEnd;
        /// The queue pair does not exist or belongs to another peer.
        QueuePair = "queue_pair", EndToEnd;
        /// The queue, memory or management key is wrong.
        Key = "key", EndToEnd;
        /// The P_Key matches no entry of the table in force.
        PartitionKey = "partition_key", EndToEnd;
        /// The opcode does not fit the queue pair's service or its place in the message.
        Opcode = "opcode", EndToEnd;
        /// The sequence number is ahead of what was expected.
        OutOfSequence = "out_of_sequence", EndToEnd;
        /// The sequence number was received before.
        Duplicate = "duplicate", EndToEnd;
        /// A congestion notification about a flow that this adapter does not send.
        NotificationFlow = "notification_flow", EndToEnd;
        /// Not RoCE as this adapter supports it: another protocol or UDP port, a fragment, another version.
        NotRoce = "not_roce", EndToEnd;
        /// The receive buffer of an adapter with a slow host was full.
        ReceiveBuffer = "receive_buffer", EndToEnd;
        /// No receive buffer was posted (RNR).
        ReceiverNotReady = "receiver_not_ready", EndToEnd;
        /// An impairment of the scenario dropped the frame.
        Injected = "injected", EndToEnd;
        /// The process that had the frame has ended, and another has taken its place.
        Restart = "lost_on_restart", EndToEnd;
        /// The socket that carries the cable lost the frame.
        Transport = "transport", EndToEnd;
        /// The interface at an attached port was down, without a carrier or removed.
        InterfaceDown = "interface_down", EndToEnd;
        /// The frame is longer than the MTU of the interface at an attached port permits.
        InterfaceMtu = "interface_mtu", EndToEnd;
        /// A link packet with a wrong LPCRC.
        Lpcrc = "lpcrc", Link;
        /// A link packet of unknown operation or for a lane that is not operational.
        LinkPacket = "link_packet", Link;
        /// A link packet older than newer data on the same link.
        StaleLinkPacket = "stale_link_packet", Link;
        /// A MAC control frame with an unknown opcode.
        MacControlOpcode = "mac_control_opcode", Link;
        /// A MAC control frame that ends before its parameters do.
        MacControlLength = "mac_control_length", Link;
        /// A MAC control frame behind a VLAN tag.
        MacControlTag = "mac_control_tag", Link;
        /// A MAC control frame for another address.
        MacControlAddress = "mac_control_address", Link;
        /// A MAC control frame that its sender aborted, or whose FCS was wrong.
        MacControlAborted = "mac_control_aborted", Link;
        /// A MAC control frame, and the link is not up.
        MacControlLinkState = "mac_control_link_state", Link;
        /// A PFC frame with reserved bits in its priority vector. The other bits apply.
        PfcVector = "pfc_vector", Link;
    }
}

/// Dropped frames by reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct Drops {
    /// Indexed by `DropReason as usize`.
    by_reason: Vec<u64>,
    /// Their sum, kept because it is read often.
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

    /// The number of frames dropped for this reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.by_reason[reason as usize]
    }

    /// Every reason with its number of frames, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason)))
    }

    /// The number of dropped frames of all reasons.
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

/// A level with its time integral, and its minimum and maximum since [`Gauge::restart_watermarks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauge {
    /// The present level.
    pub value: u64,
    /// The minimum since the last restart.
    pub min: u64,
    /// The maximum since the last restart.
    pub max: u64,
    /// The maximum since the run began, or since [`Gauge::forget_peak`].
    #[serde(default)]
    pub peak: u64,
    /// ∫ level dt, in level · picoseconds, closed at `since`.
    pub integral: u128,
    /// ∫ level² dt, in level² · picoseconds, for spreads over time.
    pub square_integral: u128,
    /// The instant at which the integrals are closed.
    pub since: Instant,
}

impl Gauge {
    /// Sets the level to `value` at `now`.
    pub fn set(&mut self, value: u64, now: Instant) {
        self.close(now);
        self.value = value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.peak = self.peak.max(value);
    }

    /// ∫ level dt up to `now`, for a level that has not changed since [`Gauge::close`].
    pub fn integral_at(&self, now: Instant) -> u128 {
        self.integral + self.held_until(now)
    }

    fn held_until(&self, now: Instant) -> u128 {
        u128::from(now.since(self.since).as_ps()) * u128::from(self.value)
    }

    /// Extends the integrals to `now`.
    pub fn close(&mut self, now: Instant) {
        if self.value > 0 {
            let held = self.held_until(now);
            self.integral += held;
            self.square_integral += held * u128::from(self.value);
        }
        self.since = self.since.max(now);
    }

    /// Restarts minimum and maximum at the present level.
    pub fn restart_watermarks(&mut self) {
        self.min = self.value;
        self.max = self.value;
    }

    /// Restarts the peak at the present level.
    pub fn forget_peak(&mut self) {
        self.peak = self.value;
    }
}

/// A condition that holds at times, with the total time for which it held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    since: Option<Instant>,
    total: Duration,
}

impl Condition {
    /// Begins the condition at `now`; true if it did not hold before.
    pub fn begin(&mut self, now: Instant) -> bool {
        let begins = self.since.is_none();
        self.since.get_or_insert(now);
        begins
    }

    /// Ends the condition at `now`; returns how long it held, if it did.
    pub fn end(&mut self, now: Instant) -> Option<Duration> {
        let held = now.since(self.since.take()?);
        self.total += held;
        Some(held)
    }

    /// Since when the condition holds.
    pub const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// The total time for which it held up to `now`.
    pub fn total(&self, now: Instant) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// Counters of one lane of one port. Octets are those from LRH to VCRC, or from DA to FCS.
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
    /// Picoseconds for which flow control held a ready frame (PortXmitWait).
    pub hold_ps: u64,
    /// Picoseconds for which flow control closed the lane, with or without a ready frame.
    pub pause_ps: u64,
    /// Frames dropped because a buffer or queue was full. A lossless lane must have none.
    #[serde(default)]
    pub no_room: u64,
    /// Frames marked by the congestion point.
    pub marks: u64,
    /// Congestion notifications sent.
    pub notes_tx: u64,
    /// Congestion notifications received.
    pub notes_rx: u64,
    /// Other frames sent: ACK, CNP, management and flow control.
    pub ctl_tx: u64,
    /// Other frames received.
    pub ctl_rx: u64,
    /// Octets that wait for this port, as buffered.
    pub out_queue: Gauge,
    /// Octets in this port's input buffer, as buffered.
    pub in_queue: Gauge,
    /// Octets that workloads have posted and that are not sent yet (adapters only).
    pub source_queue: Gauge,
}

/// The counters of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneReading {
    /// Virtual lane or priority.
    pub tc: u8,
    /// Its counters.
    pub counters: LaneCounters,
}

/// The counters of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReading {
    /// One entry per operational data lane, by number; then VL15 if it carried frames.
    pub lanes: Vec<LaneReading>,
    /// Dropped frames by reason.
    pub drops: Drops,
    /// Time-outs of flow control that retrained the link.
    pub watchdogs: u64,
    /// Further totals of this port, by operators' name ("port_xmit_wait", "np_cnp_sent").
    pub named: Vec<(String, u64)>,
}

/// Histogram of the message latencies of one traffic item, from posting to delivery.
///
/// Bucket `b < 16` counts latencies of `b` nanoseconds. Above, each power of two has sixteen equal buckets,
/// a resolution of 1/16.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyReading {
    /// The traffic item's number in the scenario.
    pub item: u16,
    /// Messages per bucket, without trailing zeros.
    pub buckets: Vec<u64>,
    /// Sum of all latencies in nanoseconds.
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

    /// The least latency of a bucket, in nanoseconds.
    pub fn bucket_floor(bucket: usize) -> u64 {
        if bucket < 16 {
            return bucket as u64;
        }
        let exponent = bucket / 16 + 3;
        (16 + (bucket % 16) as u64) << (exponent - 4)
    }
}

/// All counters of a device at one instant.
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

/// The conservation sum of one device: frames that cross more than one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Frames that this device made, including retransmissions and multicast copies.
    pub injected: u64,
    /// Frames that reached their destination here.
    pub delivered: u64,
    /// Frames in this device now, except those in transmission.
    pub buffered: u64,
    /// Flow-control frames that this device sent.
    pub link_local: u64,
    /// Messages that were withdrawn before their first frame left.
    pub withdrawn: u64,
}

#[cfg(test)]
mod tests;
