//! Reception: the checks that a port makes on a frame, and the counters they change.
//!
//! Each technology has its own order of checks. The order decides which counter records a frame with
//! two faults.

mod ethernet;
mod infiniband;

use crate::counters::DropReason;
use crate::events::EventLog;
use crate::frame::{Frame, FrameHeaders, FrameKind};
use crate::ids::VirtualLane;
use crate::link::flow_control::FlowControl;
use crate::link::port::LinkPort;
use crate::units::Instant;

/// The result of [`LinkPort::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A flow-control frame; the port has processed it.
    Control,
    /// A good packet. On a data lane of InfiniBand it occupies input buffer until the owner calls
    /// [`LinkPort::release`]. On Ethernet the owner decides about buffer space.
    Packet(FrameHeaders),
    /// The port discarded and counted the frame.
    Lost(DropReason),
}

/// The reason for a drop, and the lane that counts it.
type Loss = (DropReason, VirtualLane);

impl LinkPort {
    /// Checks a frame whose last bit reached the port at `arrived`.
    pub fn receive(
        &mut self,
        frame: &Frame,
        arrived: Instant,
        now: Instant,
        log: &mut EventLog,
    ) -> Arrival {
        let state = &mut self.state;
        let outcome = match (&mut self.flow, frame.kind) {
            (FlowControl::Credit(credit), FrameKind::Infiniband) => {
                infiniband::receive_packet(credit, state, frame, now)
            }
            (FlowControl::Credit(credit), FrameKind::InfinibandLink) => {
                infiniband::receive_control(credit, state, frame, arrived)
            }
            (FlowControl::Pause(pause), FrameKind::Ethernet) => {
                ethernet::receive(pause, state, frame, arrived, log)
            }
            (FlowControl::Pause(_), FrameKind::InfinibandLink) => {
                Err((DropReason::LinkPacket, VirtualLane::ZERO))
            }
            (FlowControl::Credit(_), FrameKind::Ethernet)
            | (FlowControl::Pause(_), FrameKind::Infiniband) => {
                Err((DropReason::Malformed, VirtualLane::ZERO))
            }
        };
        outcome.unwrap_or_else(|(reason, lane)| {
            self.state.count_drop(reason, frame.line_size(), lane, now, log);
            Arrival::Lost(reason)
        })
    }
}
