//! Congestion marks: FECN on InfiniBand, congestion experienced (CE) on Ethernet.
//!
//! A decision is recorded in the headers beside the frame. The octets change once, just before departure.

use proto::Technology;
use proto::congestion::Marking;
use proto::counters::FlowId;
use proto::events::MarkKind;
use proto::frame::{Frame, FrameHeaders, FrameKind};
use proto::ids::{Ecn, QueuePairNumber, VirtualLane};
use proto::units::Bytes;
use proto::wire::ethernet::plan;
use proto::wire::infiniband::relabel::relabel_frame;
use proto::wire::internet::mark_congestion;

/// A mark that a frame will carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The flow of the frame.
    pub flow: FlowId,
    /// The kind of mark.
    pub kind: MarkKind,
    /// The threshold that the queue exceeded.
    pub limit: Bytes,
}

/// Applies a congestion point's decision to the headers kept with a frame. Returns `None` if the mark
/// belongs to the other technology, if the frame is not ECN-capable, or if it is marked already.
#[inline]
pub fn decide(
    marking: Marking,
    technology: Technology,
    headers: &mut FrameHeaders,
) -> Option<Mark> {
    // The frequent case, inlined.
    if marking == Marking::Pass {
        return None;
    }
    mark(marking, technology, headers)
}

fn mark(marking: Marking, technology: Technology, headers: &mut FrameHeaders) -> Option<Mark> {
    let (kind, limit) = match (marking, technology) {
        (Marking::Fecn { limit }, Technology::Infiniband) if !headers.fecn => {
            headers.fecn = true;
            (MarkKind::Fecn, limit)
        }
        (Marking::Ce { limit }, Technology::Ethernet)
            if matches!(headers.ecn, Ecn::Capable0 | Ecn::Capable1) =>
        {
            headers.ecn = Ecn::CongestionExperienced;
            (MarkKind::Ce, limit)
        }
        _ => return None,
    };
    Some(Mark { flow: flow(headers), kind, limit })
}

/// The flow of a frame. Adapters of the address plan appear by their number.
pub fn flow(headers: &FrameHeaders) -> FlowId {
    let class = QueuePairNumber::truncate(headers.queue_pair).plan().map_or(0, |(class, _)| class);
    let [source, destination] = [headers.source, headers.destination].map(|address| {
        plan::adapter_of(address).map_or(address.number(), |adapter| adapter.get().into())
    });
    FlowId { source, destination, class }
}

/// Writes marks and lane into the octets of a frame that leaves on `lane`, and updates the checksums that
/// cover them.
#[inline]
pub fn write(headers: &FrameHeaders, lane: VirtualLane, frame: &mut Frame) {
    match frame.kind {
        FrameKind::Ethernet if headers.ecn == Ecn::CongestionExperienced => {
            mark_congestion(&mut frame.octets);
        }
        FrameKind::Infiniband if headers.fecn || lane != headers.lane => {
            relabel_frame(frame, lane, headers.fecn);
        }
        _ => {}
    }
}
