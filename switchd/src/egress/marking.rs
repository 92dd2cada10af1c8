//! What a switch changes in a frame, in the dialect of its technology: FECN and lane on InfiniBand,
//! congestion experienced on Ethernet.
//!
//! A decision is kept in the headers beside the frame; the octets change once, when it leaves.

use proto::congestion::Marking;
use proto::counters::FlowId;
use proto::events::MarkKind;
use proto::frame::{Frame, FrameHeaders, FrameKind};
use proto::ids::{Ecn, QueuePairNumber, VirtualLane};
use proto::units::Bytes;
use proto::wire::ethernet::{MacAddress, plan};
use proto::wire::infiniband::relabel::relabel;
use proto::wire::internet::mark_congestion;

/// Which marks a switch can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// FECN.
    Infiniband,
    /// Congestion experienced.
    Ethernet,
}

/// A mark that a frame will carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose frame it is.
    pub flow: FlowId,
    /// What it will carry.
    pub kind: MarkKind,
    /// The threshold the queue was above.
    pub limit: Bytes,
}

/// Carries out a congestion point's decision in the headers kept with a frame. A mark of the other
/// dialect is none, and so is one that the frame's ends would not understand or that it carries
/// already.
#[inline]
pub fn decide(marking: Marking, dialect: Dialect, headers: &mut FrameHeaders) -> Option<Mark> {
    // Nearly always.
    if marking == Marking::Pass {
        return None;
    }
    made(marking, dialect, headers)
}

fn made(marking: Marking, dialect: Dialect, headers: &mut FrameHeaders) -> Option<Mark> {
    let (kind, limit) = match (marking, dialect) {
        (Marking::Fecn { limit }, Dialect::Infiniband) if !headers.fecn => {
            headers.fecn = true;
            (MarkKind::Fecn, limit)
        }
        (Marking::Ce { limit }, Dialect::Ethernet)
            if matches!(headers.ecn, Ecn::Capable0 | Ecn::Capable1) =>
        {
            headers.ecn = Ecn::CongestionExperienced;
            (MarkKind::Ce, limit)
        }
        _ => return None,
    };
    Some(Mark { flow: flow(headers, dialect), kind, limit })
}

/// Whose frame of Ethernet it is.
pub fn flow_of(headers: &FrameHeaders) -> FlowId {
    flow(headers, Dialect::Ethernet)
}

/// Whose frame it is. Adapters are known by their number where they have one.
fn flow(headers: &FrameHeaders, dialect: Dialect) -> FlowId {
    let class = QueuePairNumber::truncate(headers.queue_pair).plan().map_or(0, |(class, _)| class);
    let [source, destination] =
        [headers.source, headers.destination].map(|address| match dialect {
            Dialect::Infiniband => address,
            Dialect::Ethernet => plan::adapter_of_mac(MacAddress::from_number(address))
                .map_or(address, |adapter| adapter.get().into()),
        });
    FlowId { source, destination, class }
}

/// The last changes to the octets of a frame that leaves on `lane`: its marks and its lane, with the
/// checks that cover them.
#[inline]
pub fn write(headers: &FrameHeaders, lane: VirtualLane, frame: &mut Frame) {
    match frame.kind {
        FrameKind::Ethernet if headers.ecn == Ecn::CongestionExperienced => {
            mark_congestion(&mut frame.octets);
        }
        FrameKind::Infiniband if headers.fecn || lane.get() != headers.lane => {
            relabel(&mut frame.octets, lane, headers.fecn);
        }
        _ => {}
    }
}
