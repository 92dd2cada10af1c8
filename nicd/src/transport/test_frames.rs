//! Flows of test frames. They have no transport service: no acknowledgement, no retransmission, no error
//! state.

use crate::config::Transport as Service;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::queue_pair::QueuePair;
use crate::transport::receive::{Disposition, Outcome};
use crate::transport::requester::Packet;
use crate::wire::test_frame::{self, OutgoingTestFrame, ReceivedTestFrame};
use proto::counters::DropReason;
use proto::frame::Frame;
use proto::units::Instant;
use proto::wire::project::TestFrame;

impl ChannelAdapter {
    /// The test frame that `pair` sends next. Its first bit leaves at `start`, its last at `end`.
    pub(super) fn test_frame(
        &self,
        pair: &QueuePair,
        packet: &Packet,
        start: Instant,
        end: Instant,
    ) -> OutgoingTestFrame {
        let header = TestFrame {
            reserved: 0,
            flow: pair.remote.get(),
            // A test frame is complete when it has left, so this counts the frames before it.
            sequence: pair.sent.completed as u32,
            departure: end,
        };
        let level = pair.config.service_level;
        let tag = self.congestion_tag(pair, start);
        OutgoingTestFrame { to: pair.peer, level, size: packet.length, header, tag }
    }

    /// Handles a test frame whose header begins at octet `at`.
    ///
    /// # Errors
    /// The drop reason if it does not parse, names no flow to this adapter, or is a duplicate.
    pub(super) fn on_test_frame(&mut self, frame: &Frame, at: usize, now: Instant) -> Outcome {
        let ReceivedTestFrame { from, flow, header, pattern } =
            test_frame::parse(&frame.octets, at)?;
        let (class, planned) = flow.plan().ok_or(DropReason::QueuePair)?;
        let is_test = |class: u8| {
            let classes = &self.config.classes;
            classes.get(usize::from(class)).is_some_and(|class| class.transport == Service::Test)
        };
        if planned != from || !self.connections.admits(class, from) || !is_test(class) {
            return Err(DropReason::QueuePair);
        }
        let index = self.queue_pair(class, from, now);
        self.open_receive_queue(index);
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        queue.has_received = true;
        // Serial number arithmetic: half of all numbers are behind the expected one (RFC 1982).
        let distance = header.sequence.wrapping_sub(queue.test_sequence).cast_signed();
        if queue.test_frames_held.is_some() {
            let outcome = self.resequence_test_frame(index, distance, pattern as u64, now);
            self.note_progress(index);
            return outcome;
        }
        if distance < 0 {
            queue.received.reordered += 1;
        } else {
            queue.test_sequence = header.sequence.wrapping_add(1);
        }
        queue.received.delivered_bytes += pattern as u64;
        queue.received.messages += 1;
        queue.received.last = Some(now);
        self.note_progress(index);
        Ok(Disposition::Delivered)
    }
}
