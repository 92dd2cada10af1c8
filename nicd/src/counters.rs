//! What an adapter counts apart from its port: totals under operators' names, and flows.

use crate::config::Encapsulation;
use proto::counters::{FlowReading, Items, LatencyReading};
use proto::units::Instant;
use std::collections::BTreeMap;

/// The adapters that have a total.
enum Availability {
    Both,
    Infiniband,
    Roce,
    /// Adapters that resequence.
    Resequencing,
}

proto::named_counters! {
    /// A total under the name that `ethtool`, `rdma statistic` or a subnet manager uses.
    pub enum Total: Availability {
        /// Data frames received with FECN.
        EcnMarked = "np_ecn_marked_packets", Infiniband;
        /// Data frames received with CE.
        EcnMarkedRoce = "np_ecn_marked_roce_packets", Roce;
        /// CNPs sent.
        CnpSent = "np_cnp_sent", Both;
        /// Acknowledgements sent with BECN.
        BecnSent = "np_becn_sent", Infiniband;
        /// CNPs that reached a reaction point.
        CnpHandled = "rp_cnp_handled", Both;
        /// CNPs without content, for no flow of this adapter, or refused by the reaction point.
        CnpIgnored = "rp_cnp_ignored", Both;
        /// CNMs (IEEE 802.1Q) that changed or confirmed a rate limiter.
        CnmHandled = "rp_cnm_handled", Roce;
        /// CNMs that were too short, too long, or of an unknown version.
        CnmMalformed = "rp_cnm_malformed", Roce;
        /// CNMs for no flow of this adapter, or with the flow identifier of another limiter.
        CnmUnknownFlow = "rp_cnm_unknown_flow", Roce;
        /// CNMs with CPID 0.
        CnmUnknownCpid = "rp_cnm_unknown_cpid", Roce;
        /// CNMs that did not apply to the rate limiter.
        CnmIgnored = "rp_cnm_ignored", Roce;
        /// CNMs that the scheme refused, mostly for feedback 0.
        CnmRefused = "rp_cnm_refused", Roce;
        /// BCN messages that changed or confirmed a rate limiter.
        BcnHandled = "rp_bcn_handled", Roce;
        /// BCN messages that were too short, too long, or of an unknown version.
        BcnMalformed = "rp_bcn_malformed", Roce;
        /// BCN messages for no flow of this adapter.
        BcnUnknownFlow = "rp_bcn_unknown_flow", Roce;
        /// BCN messages with CPID 0.
        BcnUnknownCpid = "rp_bcn_unknown_cpid", Roce;
        /// BCN messages from a congestion point that the limiter is not associated with, or out of date.
        BcnIgnored = "rp_bcn_ignored", Roce;
        /// BCN messages that the scheme refused.
        BcnRefused = "rp_bcn_refused", Roce;
        /// Acknowledgements with BECN that reached a reaction point.
        BecnHandled = "rp_becn_handled", Infiniband;
        /// Frames of any kind received with FECN.
        RcvFecn = "port_rcv_fecn", Infiniband;
        /// Frames of any kind received with BECN.
        RcvBecn = "port_rcv_becn", Infiniband;
        /// NAKs received for a PSN sequence error.
        PacketSequenceError = "packet_seq_err", Both;
        /// Expired waits for an acknowledgement.
        AckTimeout = "local_ack_timeout_err", Both;
        /// RNR NAKs received.
        RnrNak = "rnr_nak_retry_err", Both;
        /// Data frames retransmitted.
        Retransmitted = "retransmitted_packets", Both;
        /// Requests refused because no receive buffer was posted.
        OutOfBuffer = "out_of_buffer", Both;
        /// Requests received ahead of the expected PSN and refused.
        OutOfSequence = "out_of_sequence", Both;
        /// Requests received a second time.
        DuplicateRequest = "duplicate_request", Both;
        /// Multicast frames received.
        MulticastReceived = "multicast_rcv_packets", Both;
        /// Joins of multicast groups that subnet administration has refused.
        MulticastRefused = "multicast_join_refusals", Infiniband;
        /// Reaction points that crossed their logging threshold.
        Trigger = "rp_trigger_events", Both;
        /// Queue pairs that entered the error state.
        QueuePairErrors = "qp_errors", Both;
        /// Messages that were not posted, because the send queue was full.
        SendQueueFull = "send_queue_full", Both;
        /// Frames still missing when the wait for them ended.
        ResequencerGaps = "rx_sequence_gaps", Resequencing;
        /// Expired waits for missing frames.
        ResequencerTimeouts = "rx_sequence_timeouts", Resequencing;
        /// The highest number of frames of one flow in a reorder buffer.
        ResequencerDepth = "rx_sequence_depth", Resequencing;
    }
}

impl Total {
    /// Whether an adapter with this wire format has the total.
    fn exists_on(self, wire: &Encapsulation) -> bool {
        let is_roce = matches!(wire, Encapsulation::Roce(_));
        match self.property() {
            Availability::Both => true,
            Availability::Infiniband => !is_roce,
            Availability::Roce => is_roce,
            Availability::Resequencing => wire.resequence().is_some(),
        }
    }
}

/// The value of every [`Total`].
#[derive(Clone, Debug)]
pub struct Totals([u64; Total::ALL.len()]);

impl Default for Totals {
    fn default() -> Totals {
        Totals([0; Total::ALL.len()])
    }
}

impl Totals {
    /// Adds 1 to `total`.
    pub fn count(&mut self, total: Total) {
        self.0[total as usize] += 1;
    }

    /// Adds 1 to `total` if `condition` holds.
    pub fn count_if(&mut self, condition: bool, total: Total) {
        self.0[total as usize] += u64::from(condition);
    }

    /// Adds `n` to `total`.
    pub fn add(&mut self, total: Total, n: u64) {
        self.0[total as usize] += n;
    }

    /// Raises `total` to `value` if it is lower.
    pub fn raise(&mut self, total: Total, value: u64) {
        self.0[total as usize] = self.0[total as usize].max(value);
    }

    /// The current value of `total`.
    pub fn get(&self, total: Total) -> u64 {
        self.0[total as usize]
    }

    /// Appends name and value of every total that an adapter with this wire format has.
    pub fn read(&self, wire: &Encapsulation, named: &mut Vec<(String, u64)>) {
        let totals = Total::ALL.iter().filter(|total| total.exists_on(wire));
        named.extend(totals.map(|total| (total.name().to_owned(), self.get(*total))));
    }
}

/// The messages posted for a flow.
#[derive(Clone, Debug, Default)]
pub struct OfferedLoad {
    /// Local indexes of the traffic items that posted, in order of first use.
    pub items: Items,
    /// Octets posted.
    pub bytes: u64,
    /// Messages posted.
    pub messages: u64,
    /// Messages withdrawn.
    pub withdrawn: u64,
}

impl OfferedLoad {
    /// Counts a message of `size` octets posted by traffic item `item`.
    pub fn on_post(&mut self, item: u16, size: u32) {
        if !self.items.contains(&item) {
            self.items.push(item);
        }
        self.messages += 1;
        self.bytes += u64::from(size);
    }

    /// Copies the counts into `reading`.
    pub fn read(&self, reading: &mut FlowReading) {
        reading.items.clone_from(&self.items);
        reading.offered_bytes = self.bytes;
        reading.messages = self.messages;
        reading.withdrawn = self.withdrawn;
    }
}

/// Counters of a flow that this adapter sends. The pacing group counts rate and gap.
#[derive(Clone, Debug, Default)]
pub struct SentFlow {
    /// The messages posted.
    pub offered: OfferedLoad,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// The bin of the latest data frame, and the octets sent in that bin.
    bin: u64,
    bin_bytes: u64,
    /// When the last bit of the first data frame left.
    pub first: Option<Instant>,
    /// When the last bit of the latest data frame left.
    pub last: Option<Instant>,
    /// Messages acknowledged, or sent on an unreliable service.
    pub completed: u64,
    /// Notifications received.
    pub notifications: u64,
}

impl SentFlow {
    /// Counts a data frame of `octets` in bin number `bin`; its last bit leaves at `end`.
    pub fn on_transmit(&mut self, octets: u64, end: Instant, bin: u64) {
        self.tx_bytes += octets;
        self.bin_bytes = self.octets_in(bin) + octets;
        self.bin = bin;
        self.first.get_or_insert(end);
        self.last = Some(end);
    }

    /// Octets of data frames sent in `bin`, which must be the latest bin.
    pub fn octets_in(&self, bin: u64) -> u64 {
        if self.bin == bin { self.bin_bytes } else { 0 }
    }

    /// Copies the counts into `reading`.
    pub fn read(&self, reading: &mut FlowReading) {
        self.offered.read(reading);
        reading.tx_bytes = self.tx_bytes;
        reading.first = self.first;
        reading.last = self.last;
        reading.completed = self.completed;
        reading.notes = self.notifications;
    }
}

/// Histograms of message latency by traffic item.
pub type Latencies = BTreeMap<u16, LatencyReading>;
