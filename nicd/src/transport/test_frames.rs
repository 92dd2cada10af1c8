//! Flows of test frames: no service stands behind them, so nothing is answered, repeated or in error.

use crate::config::Transport as Service;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::queue_pair::QueuePair;
use crate::transport::requester::Packet;
use crate::wire::test_frame::{self, OutgoingTestFrame, ReceivedTestFrame};
use proto::counters::DropReason;
use proto::frame::Frame;
use proto::units::Instant;
use proto::wire::project::TestFrame;

impl ChannelAdapter {
    /// Makes the test frame that a queue pair sends next; its first bit leaves at `start`, its last at
    /// `end`. A tag takes room of the pattern's.
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
            // Whatever has left is complete, so this is the number of frames before.
            sequence: pair.sent.completed as u32,
            departure: end,
        };
        let level = pair.config.service_level;
        let tag = self.congestion_tag(pair, start);
        OutgoingTestFrame { to: pair.peer, level, size: packet.length, header, tag }
    }

    /// A test frame whose header begins at `at` came in.
    ///
    /// # Errors
    /// If it does not parse, or belongs to no flow that could end here.
    pub(super) fn on_test_frame(
        &mut self,
        frame: &Frame,
        at: usize,
        now: Instant,
    ) -> Result<(), DropReason> {
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
        let queue = self.open_receive_queue(index);
        queue.has_received = true;
        // Behind one that came before it: a half of all numbers counts as behind.
        let distance = header.sequence.wrapping_sub(queue.test_sequence).cast_signed();
        if queue.tests_ahead.is_some() {
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
        Ok(())
    }
}
