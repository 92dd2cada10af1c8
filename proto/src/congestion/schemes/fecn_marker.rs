//! The congestion point of InfiniBand: an output above its threshold that is the root of a tree of
//! congestion sets FECN. Every scheme whose switches are plain InfiniBand switches has this one.
//!
//! Source: IBTA Vol 1, annex A10 (Threshold, Packet_Size, Marking_Rate, Victim_Mask); Pfister et
//! al., section IV.A.

use super::none;
use super::params::{self, Kind, Param};
use crate::congestion::{CongestionPoint, Marking, Place, QueueSample};
use crate::frame::{FrameClass, FrameHeaders};
use crate::units::{Bytes, Instant};

/// Its parameters under the names of annex A10, and the project's own where A10 leaves it to the
/// vendor.
pub const PARAMS: &[Param] = &[
    // 0 never marks; 1 is the highest fill, 15 the lowest.
    Param { name: "threshold", kind: Kind::Integer(0, 15) },
    // Overrides what `threshold` means, as a share of one input buffer.
    Param { name: "sw_th_frac", kind: Kind::Fraction },
    // Shorter packets are never marked, in 64-octet units.
    Param { name: "packet_size", kind: Kind::Integer(0, 255) },
    // Mean number of eligible packets between marks; 0 marks each.
    Param { name: "marking_rate", kind: Kind::Integer(0, 65_535) },
    // Ports that mark victims too.
    Param {
        name: "victim_mask",
        kind: Kind::WordOrList(&["none", "adapters", "all"], 1, 254, 254),
    },
    Param { name: "root_test", kind: Kind::Word(&["head_wait", "enqueue", "dequeue"]) },
];

/// The congestion point that `place` asks for.
pub fn congestion_point(place: Place<'_>) -> Box<dyn CongestionPoint> {
    match Marker::new(place) {
        Some(marker) => Box::new(marker),
        None => Box::new(none::Silent),
    }
}

/// When the queue is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RootTest {
    /// When the packet becomes first of its queue: a port that had to wait for credit while the
    /// packet before it was first, or has none for the packet itself, is a victim.
    HeadWait,
    /// When it is admitted: a port without credit is a victim.
    Enqueue,
    /// When it leaves: credits are there by then, so every victim passes for a root. Kept because
    /// that is the trap (algorithms.md 2.1).
    Dequeue,
}

/// The congestion point of one output port and lane.
#[derive(Debug)]
pub struct Marker {
    /// What the queue must be above.
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
    pub fn new(mut place: Place<'_>) -> Option<Marker> {
        let params = place.params;
        let threshold = params::integer(params, "threshold", 1) as u64;
        if threshold == 0 {
            return None;
        }
        let millionths =
            params::millionths(params, "sw_th_frac").unwrap_or(fill_millionths(threshold));
        let marking_rate = params::integer(params, "marking_rate", 0) as u64;
        let listed = params::list(params, "victim_mask")
            .is_some_and(|ports| ports.contains(&i64::from(place.port.get())));
        let marks_victims = match params::word(params, "victim_mask", "none") {
            "all" => true,
            "adapters" => place.faces_adapter,
            _ => listed,
        };
        Some(Marker {
            limit: Bytes::new(place.buffer.get() * millionths / 1_000_000),
            packet_size: Bytes::new(params::integer(params, "packet_size", 0) as u64 * 64),
            root_test: match params::word(params, "root_test", "head_wait") {
                "enqueue" => RootTest::Enqueue,
                "dequeue" => RootTest::Dequeue,
                _ => RootTest::HeadWait,
            },
            marks_victims,
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

/// The share of an input buffer that Threshold `k` stands for, in millionths: 0.90 for 1, falling
/// in equal steps to 0.06 for 15. A10 leaves the scale to the vendor (algorithms.md 2.1).
fn fill_millionths(k: u64) -> u64 {
    900_000 - 60_000 * (k - 1)
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
