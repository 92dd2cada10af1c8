//! What an adapter counts beside its port: totals under the names operators know, and flows.

use crate::config::Encapsulation;
use proto::congestion::Periods;
use proto::counters::{FlowId, FlowReading, Items, LatencyReading, ReceptionReading};
use proto::units::{Duration, Instant};

macro_rules! named_totals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $on:ident;)*) => {
        /// A total that `ethtool`, `rdma statistic` or a subnet manager would show by this name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Total { $($(#[$doc])* $variant,)* }

        impl Total {
            /// Every total, in the order of [`Totals`].
            pub const ALL: &'static [Total] = &[$(Total::$variant,)*];

            /// The operators' name.
            pub const fn name(self) -> &'static str {
                match self { $(Total::$variant => $name,)* }
            }

            /// Whether adapters with this dialect have it.
            fn exists_on(self, wire: &Encapsulation) -> bool {
                let is_roce = matches!(wire, Encapsulation::Roce(_));
                match match self { $(Total::$variant => Availability::$on,)* } {
                    Availability::Both => true,
                    Availability::Infiniband => !is_roce,
                    Availability::Roce => is_roce,
                    Availability::Resequencing => wire.resequence().is_some(),
                }
            }
        }
    };
}

/// Which adapters have a total.
enum Availability {
    Both,
    Infiniband,
    Roce,
    /// Where frames are put into order.
    Resequencing,
}

named_totals! {
    /// Data frames received with FECN.
    EcnMarked = "np_ecn_marked_packets", Infiniband;
    /// Data frames received with CE.
    EcnMarkedRoce = "np_ecn_marked_roce_packets", Roce;
    /// Congestion notification packets sent.
    CnpSent = "np_cnp_sent", Both;
    /// Acknowledgements sent with BECN.
    BecnSent = "np_becn_sent", Infiniband;
    /// Congestion notification packets that reached a reaction point.
    CnpHandled = "rp_cnp_handled", Both;
    /// Congestion notification packets that said nothing or were for no flow of ours.
    CnpIgnored = "rp_cnp_ignored", Both;
    /// Congestion notification messages of 802.1Qau that changed or confirmed a limiter.
    CnmHandled = "rp_cnm_handled", Roce;
    /// Such messages that were too short, too long, or of an unknown version.
    CnmMalformed = "rp_cnm_malformed", Roce;
    /// Such messages about no flow of ours, or with a flow id that is no limiter of it.
    CnmUnknownFlow = "rp_cnm_unknown_flow", Roce;
    /// Such messages whose congestion point has no name.
    CnmUnknownCpid = "rp_cnm_unknown_cpid", Roce;
    /// Such messages that did not concern the limiter.
    CnmIgnored = "rp_cnm_ignored", Roce;
    /// Such messages that made no sense to the scheme: feedback 0 above all.
    CnmRefused = "rp_cnm_refused", Roce;
    /// Messages of BCN that changed or confirmed a limiter.
    BcnHandled = "rp_bcn_handled", Roce;
    /// Messages of BCN that were too short, too long, or of an unknown version.
    BcnMalformed = "rp_bcn_malformed", Roce;
    /// Messages of BCN about no flow of ours.
    BcnUnknownFlow = "rp_bcn_unknown_flow", Roce;
    /// Messages of BCN whose congestion point has no name.
    BcnUnknownCpid = "rp_bcn_unknown_cpid", Roce;
    /// Messages of BCN from another congestion point than the limiter obeys, or out of date.
    BcnIgnored = "rp_bcn_ignored", Roce;
    /// Messages of BCN that made no sense to the scheme.
    BcnRefused = "rp_bcn_refused", Roce;
    /// Acknowledgements with BECN that reached a reaction point.
    BecnHandled = "rp_becn_handled", Infiniband;
    /// Frames of any kind received with FECN.
    RcvFecn = "port_rcv_fecn", Infiniband;
    /// Frames of any kind received with BECN.
    RcvBecn = "port_rcv_becn", Infiniband;
    /// NAKs for a gap received.
    PacketSequenceError = "packet_seq_err", Both;
    /// Waits for an acknowledgement that ran out.
    AckTimeout = "local_ack_timeout_err", Both;
    /// RNR NAKs received.
    RnrNak = "rnr_nak_retry_err", Both;
    /// Data frames sent again.
    Retransmitted = "retransmitted_packets", Both;
    /// Requests refused for want of a receive buffer.
    OutOfBuffer = "out_of_buffer", Both;
    /// Requests received ahead of their turn.
    OutOfSequence = "out_of_sequence", Both;
    /// Requests received a second time.
    DuplicateRequest = "duplicate_request", Both;
    /// Multicast frames that ended here.
    MulticastReceived = "multicast_rcv_packets", Both;
    /// Times a reaction point crossed its logging threshold.
    Trigger = "rp_trigger_events", Both;
    /// Queue pairs that gave up.
    QueuePairErrors = "qp_errors", Both;
    /// Frames that were missing when the wait for them was over.
    ResequencerGaps = "rx_sequence_gaps", Resequencing;
    /// Waits for missing frames that were over.
    ResequencerTimeouts = "rx_sequence_timeouts", Resequencing;
    /// The most frames of one flow that have waited for their turn.
    ResequencerDepth = "rx_sequence_depth", Resequencing;
}

/// One number a [`Total`].
#[derive(Clone, Debug)]
pub struct Totals([u64; Total::ALL.len()]);

impl Default for Totals {
    fn default() -> Totals {
        Totals([0; Total::ALL.len()])
    }
}

impl Totals {
    /// Counts one.
    pub fn count(&mut self, total: Total) {
        self.0[total as usize] += 1;
    }

    /// Counts one if `condition` holds.
    pub fn count_if(&mut self, condition: bool, total: Total) {
        self.0[total as usize] += u64::from(condition);
    }

    /// Counts `n`.
    pub fn add(&mut self, total: Total, n: u64) {
        self.0[total as usize] += n;
    }

    /// The total is at least `value`.
    pub fn raise(&mut self, total: Total, value: u64) {
        self.0[total as usize] = self.0[total as usize].max(value);
    }

    /// The number so far.
    pub fn get(&self, total: Total) -> u64 {
        self.0[total as usize]
    }

    /// Appends every total of an adapter with this dialect under its name.
    pub fn read(&self, wire: &Encapsulation, named: &mut Vec<(String, u64)>) {
        let totals = Total::ALL.iter().filter(|total| total.exists_on(wire));
        named.extend(totals.map(|total| (total.name().to_owned(), self.get(*total))));
    }
}

/// What a flow has been asked to carry.
#[derive(Clone, Debug, Default)]
pub struct OfferedLoad {
    /// Local indexes of the traffic items that used it, in order of first use.
    pub items: Items,
    /// Octets of messages posted.
    pub bytes: u64,
    /// Messages posted.
    pub messages: u64,
    /// Messages taken back.
    pub withdrawn: u64,
}

impl OfferedLoad {
    /// A message of `size` octets was posted by `item`.
    pub fn on_post(&mut self, item: u16, size: u32) {
        if !self.items.contains(&item) {
            self.items.push(item);
        }
        self.messages += 1;
        self.bytes += u64::from(size);
    }

    /// Copies the totals into `reading`.
    pub fn read(&self, reading: &mut FlowReading) {
        reading.items.clone_from(&self.items);
        reading.offered_bytes = self.bytes;
        reading.messages = self.messages;
        reading.withdrawn = self.withdrawn;
    }
}

/// What is counted for a flow that this adapter sends; its pacing is counted with its group.
#[derive(Clone, Debug, Default)]
pub struct SentFlow {
    /// What it has been asked to carry.
    pub offer: OfferedLoad,
    /// Octets of data frames sent.
    pub tx_bytes: u64,
    /// The bin in which the latest of them was sent, and the octets sent in it.
    bin: u64,
    bin_bytes: u64,
    /// First departure of a data frame.
    pub first: Option<Instant>,
    /// Last departure of a data frame.
    pub last: Option<Instant>,
    /// Messages confirmed, or gone on an unreliable service.
    pub completed: u64,
    /// Notifications received.
    pub notifications: u64,
}

impl SentFlow {
    /// A data frame of `octets` leaves in `bin`, its last bit at `end`.
    pub fn on_transmit(&mut self, octets: u64, end: Instant, bin: u64) {
        self.tx_bytes += octets;
        self.bin_bytes = self.octets_in(bin) + octets;
        self.bin = bin;
        self.first.get_or_insert(end);
        self.last = Some(end);
    }

    /// Octets of data frames sent in `bin`, which is the latest.
    pub fn octets_in(&self, bin: u64) -> u64 {
        if self.bin == bin { self.bin_bytes } else { 0 }
    }

    /// Copies the totals into `reading`.
    pub fn read(&self, reading: &mut FlowReading) {
        self.offer.read(reading);
        reading.tx_bytes = self.tx_bytes;
        reading.first = self.first;
        reading.last = self.last;
        reading.completed = self.completed;
        reading.notes = self.notifications;
    }
}

/// A reception of `flow` with nothing in it.
pub fn empty_reception(flow: FlowId) -> ReceptionReading {
    let periods = Periods::default();
    ReceptionReading {
        flow,
        delivered_bytes: 0,
        messages: 0,
        last: None,
        marked: 0,
        reordered: 0,
        periods,
    }
}

/// Message latencies by traffic item, in order of the items' numbers.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<LatencyReading>);

impl Latencies {
    /// A message of traffic item `item` took this long.
    pub fn count(&mut self, item: u16, latency: Duration) {
        let index = match self.0.binary_search_by_key(&item, |reading| reading.item) {
            Ok(index) => index,
            Err(index) => {
                self.0.insert(index, LatencyReading { item, ..LatencyReading::default() });
                index
            }
        };
        self.0[index].count(latency);
    }

    /// Every item that has delivered something here.
    pub fn readings(&self) -> &[LatencyReading] {
        &self.0
    }
}
