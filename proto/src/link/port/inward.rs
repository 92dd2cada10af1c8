//! The way in: what a port checks of a frame, and what it counts.
//!
//! Each technology has its own order of checks, which decides which counter names a frame with two
//! faults.

mod ethernet;
mod infiniband;

use super::LinkPort;
use crate::counters::DropReason;
use crate::events::EventLog;
use crate::frame::{Frame, FrameClass, FrameHeaders, FrameKind};
use crate::ids::VirtualLane;
use crate::link::flow::Flow;
use crate::units::Instant;

/// What became of a frame that reached a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A frame of flow control: it has done its work.
    Control,
    /// A good packet. On a data lane of InfiniBand buffer was taken for it: the owner owes a
    /// [`LinkPort::release`]. On Ethernet the owner decides about room.
    Packet(FrameHeaders),
    /// It ended here and was counted.
    Lost(DropReason),
}

/// Why a frame ended, and on which lane.
type Loss = (DropReason, u8);

impl LinkPort {
    /// A frame's last bit reached the port at `arrived`.
    pub fn receive(
        &mut self,
        frame: &Frame,
        arrived: Instant,
        now: Instant,
        log: &mut EventLog,
    ) -> Arrival {
        let outcome = match (&self.flow, frame.kind) {
            (Flow::Credits(_), FrameKind::Infiniband) => self.receive_packet(frame, now),
            (Flow::Credits(_), FrameKind::InfinibandLink) => self.receive_control(frame, arrived),
            (Flow::Pause(_), FrameKind::Ethernet) => self.receive_frame(frame, arrived, log),
            (Flow::Pause(_), FrameKind::InfinibandLink) => Err((DropReason::LinkPacket, 0)),
            (Flow::Credits(_), FrameKind::Ethernet) | (Flow::Pause(_), FrameKind::Infiniband) => {
                Err((DropReason::Malformed, 0))
            }
        };
        outcome.unwrap_or_else(|(reason, tc)| {
            self.count_drop(reason, frame.line_size(), tc, now, log);
            Arrival::Lost(reason)
        })
    }

    /// A good packet came in on a data lane.
    fn count_received(&mut self, lane: VirtualLane, headers: &FrameHeaders) {
        let counters = &mut self.lanes[lane.index()].counters;
        match headers.class {
            FrameClass::Data => {
                counters.rx_frames += 1;
                counters.rx_bytes += headers.size.get();
            }
            FrameClass::Ack | FrameClass::Notification | FrameClass::Management => {
                counters.ctl_rx += 1
            }
        }
        // Those of receivers say it by a bit, those of switches are of no queue pair.
        let is_message = headers.class == FrameClass::Notification && headers.queue_pair == 0;
        counters.notes_rx += u64::from(headers.becn || is_message);
    }
}
