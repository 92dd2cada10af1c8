//! The congestion point of InfiniBand: an output above its threshold that is the root of a tree of
//! congestion sets FECN. All schemes for plain InfiniBand switches share it.
//!
//! Source: IBTA Vol 1, annex A10 (Threshold, Packet_Size, Marking_Rate, Victim_Mask); Pfister et
//! al., section IV.A.

use super::none;
use crate::congestion::{CongestionPoint, Marking, Place, QueueSample};
use crate::frame::{FrameClass, FrameHeaders};
use crate::params::{FromValue, Kind, Millionths, Value};
use crate::units::{Bytes, Instant};

crate::params! {
    /// Parameters of the marker. Names are those of annex A10 where it has one.
    pub struct MarkerParams {
        /// Threshold: 0 never marks; 1 is the highest fill of an input buffer, 15 the lowest.
        threshold: u64 = Whole(0, 15), Default("1"), "IBTA Vol 1, A10";
        /// Overrides the fill that `threshold` means: a share of one input buffer.
        sw_th_frac: Option<Millionths> = Real(0.0, 1.0), Else("0.90 for threshold 1, 0.06 less for each step") => Not("threshold", "0");
        /// Packets below this size are never marked, in units of 64 octets.
        packet_size: u64 = Whole(0, 255), Default("0"), "IBTA Vol 1, A10" => Not("threshold", "0");
        /// Mean number of eligible packets between two marks; 0 marks each.
        marking_rate: u64 = Whole(0, 65_535), Default("0"), "IBTA Vol 1, A10" => Not("threshold", "0");
        /// Ports that mark victims of congestion too, by word or by number.
        victim_mask: VictimMask = VICTIM_MASK, Default("none"), "IBTA Vol 1, A10" => Not("threshold", "0");
        /// When the queue is judged: at the head of its queue, at admission, or at departure.
        root_test: RootTest = RootTest::KIND, Default("head_wait") => Not("threshold", "0");
    }
}

const VICTIM_MASK: Kind = Kind::Either(&[
    Kind::Word(|| vec!["none", "adapters", "all"]),
    Kind::UpTo(254, &Kind::Whole(1, 254)),
]);

/// Ports that mark victims too.
#[derive(Clone, Debug, PartialEq)]
pub enum VictimMask {
    /// No port.
    None,
    /// Ports that lead to adapters.
    Adapters,
    /// All ports.
    All,
    /// Ports with these numbers.
    Ports(Vec<u8>),
}

impl FromValue for VictimMask {
    fn from_value(value: &Value) -> Option<VictimMask> {
        Some(match value.text() {
            Some("none") => VictimMask::None,
            Some("adapters") => VictimMask::Adapters,
            Some(_) => VictimMask::All,
            None => VictimMask::Ports(Vec::from_value(value)?),
        })
    }
}

crate::words! {
    /// When the queue is judged.
    pub enum RootTest {
        /// When the packet becomes first of its queue. A port is a victim if it waited for credit while the
        /// packet before was first, or has no credit for the packet itself.
        HeadWait = "head_wait",
        /// When the packet is admitted. A port without credit is a victim.
        Enqueue = "enqueue",
        /// When the packet leaves. Credits are there by then, so every victim passes for a root. Kept to
        /// show this mistake.
        Dequeue = "dequeue",
    }
}

impl MarkerParams {
    /// The congestion point of `place`.
    pub fn congestion_point(&self, place: Place) -> Box<dyn CongestionPoint> {
        none::or_silent(Marker::new(self, place))
    }

    /// The marking threshold as a share of one input buffer, in millionths; 0 if nothing is marked.
    ///
    /// A10 leaves the scale to the vendor. Here it is 0.90 for threshold 1, falling in equal steps to
    /// 0.06 for 15.
    pub fn fill(&self) -> u64 {
        match (self.threshold.checked_sub(1), self.sw_th_frac) {
            (None, _) => 0,
            (Some(_), Some(Millionths(share))) => share,
            (Some(steps), None) => 900_000 - 60_000 * steps,
        }
    }

    /// The fill in force, for run.json.
    pub fn in_force(&self) -> Vec<(&'static str, String)> {
        vec![("sw_th_frac", (self.fill() as f64 / 1e6).to_string())]
    }
}

/// The congestion point of one output port and lane.
#[derive(Debug)]
pub struct Marker {
    /// Frames are marked while the queue is longer than this.
    pub limit: Bytes,
    packet_size: Bytes,
    root_test: RootTest,
    marks_victims: bool,
    /// Eligible packets between two marks.
    marking_rate: u64,
    until_mark: u64,
}

impl Marker {
    /// `None` if Threshold is 0: the port never marks.
    pub fn new(params: &MarkerParams, mut place: Place) -> Option<Marker> {
        if params.threshold == 0 {
            return None;
        }
        let marking_rate = params.marking_rate;
        Some(Marker {
            limit: Bytes::new(place.buffer.get() * params.fill() / 1_000_000),
            packet_size: Bytes::new(params.packet_size * 64),
            root_test: params.root_test,
            marks_victims: match &params.victim_mask {
                VictimMask::None => false,
                VictimMask::Adapters => place.faces_adapter,
                VictimMask::All => true,
                VictimMask::Ports(ports) => ports.contains(&place.port.get()),
            },
            marking_rate,
            // A random phase keeps the ports of a switch from marking in step.
            until_mark: if marking_rate == 0 { 0 } else { place.random.below(marking_rate + 1) },
        })
    }

    fn judge(&mut self, test: RootTest, headers: &FrameHeaders, sample: &QueueSample) -> Marking {
        let eligible = test == self.root_test
            && headers.class == FrameClass::Data
            && headers.queue_pair != 0
            && headers.size >= self.packet_size
            && sample.queue > self.limit;
        let is_root = test == RootTest::Dequeue || sample.blocked_since.is_none();
        if !eligible || !(is_root || self.marks_victims) {
            return Marking::Pass;
        }
        if self.until_mark > 0 {
            self.until_mark -= 1;
            return Marking::Pass;
        }
        self.until_mark = self.marking_rate;
        Marking::Fecn { limit: self.limit }
    }
}

impl CongestionPoint for Marker {
    fn on_enqueue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        self.judge(RootTest::Enqueue, headers, sample)
    }
    fn on_head(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        self.judge(RootTest::HeadWait, headers, sample)
    }
    fn on_dequeue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        self.judge(RootTest::Dequeue, headers, sample)
    }
}
