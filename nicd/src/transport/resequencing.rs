//! Order in front of those who deliver: of test frames by their sequence, of requests by their PSN, below
//! the responder.
//!
//! A request that is held is a copy, and comes to the responder as if it had just arrived. When the wait
//! for what is missing is over, test frames go on behind the gap; requests go on to the responder, which
//! refuses them as it does without this.

use crate::counters::Total;
use crate::timers::Timer;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::queue_pair::{HeldRequest, ReceiveQueue};
use crate::transport::receive::ReceivedFrame;
use crate::transport::reorder_buffer::Insertion;
use proto::counters::DropReason;
use proto::frame::Frame;
use proto::ids::Psn;
use proto::units::Instant;

impl ChannelAdapter {
    /// The next frame whose turn has come, if frames wait for that at all. It is to be received next.
    pub fn poll_released_request(&mut self) -> Option<HeldRequest> {
        let next = self.released.pop_front()?;
        self.held -= 1;
        self.is_released_request = true;
        Some(next)
    }

    /// Frames that wait for their turn.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Keeps a copy of a request that comes ahead of its turn; false if it does not or cannot be kept.
    pub(super) fn hold_request(
        &mut self,
        index: u32,
        psn: Psn,
        received: &ReceivedFrame<'_>,
        now: Instant,
    ) -> bool {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        let Some(ahead) = queue.requests_ahead.as_mut().filter(|_| !self.is_released_request)
        else {
            return false;
        };
        let distance = psn.distance_from(queue.responder.expected());
        if distance <= 0 {
            return false;
        }
        let mut octets = self.pool.take();
        let ReceivedFrame { frame, headers, .. } = *received;
        octets.extend_from_slice(&frame.octets);
        let copy = Frame { octets, kind: frame.kind, integrity: frame.integrity };
        let insertion =
            ahead.insert(distance as usize, HeldRequest { frame: copy, headers: *headers });
        if let Insertion::Duplicate(other) | Insertion::TooFar(other) = insertion {
            self.pool.recycle(other.frame);
            return false;
        }
        queue.received.reordered += 1;
        queue.has_received = true;
        self.held += 1;
        self.totals.raise(Total::ResequencerDepth, ahead.depth() as u64);
        self.update_gap_timer(index, false, now);
        true
    }

    /// The responder of a queue pair expected `before` until now: what has waited for what it expects
    /// instead is next.
    pub(super) fn release_requests(&mut self, index: u32, before: Psn, now: Instant) {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        let Some(ahead) = &mut queue.requests_ahead else { return };
        let moved = queue.responder.expected().distance_from(before);
        for _ in 0..moved {
            ahead.advance();
        }
        self.released.extend(ahead.take_expected());
        self.update_gap_timer(index, moved > 0, now);
    }

    /// A test frame with `pattern` octets came `distance` ahead of its turn, in it if that is zero.
    ///
    /// # Errors
    /// If its like has come before.
    pub(super) fn resequence_test_frame(
        &mut self,
        index: u32,
        distance: i32,
        pattern: u64,
        now: Instant,
    ) -> Result<(), DropReason> {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        queue.received.reordered += u64::from(distance != 0);
        let mut distance = usize::try_from(distance).map_err(|_| DropReason::Duplicate)?;
        if distance == 0 {
            deliver(queue, Some(pattern), now);
        } else if let Some(ahead) = &mut queue.tests_ahead {
            // One beyond the window makes room for itself.
            let beyond = (distance + 1).saturating_sub(ahead.window());
            let gaps = skip(queue, beyond, now);
            self.totals.add(Total::ResequencerGaps, gaps);
            distance -= beyond;
            let Some(ahead) = &mut queue.tests_ahead else { return Ok(()) };
            if let Insertion::Duplicate(_) = ahead.insert(distance, pattern) {
                return Err(DropReason::Duplicate);
            }
            self.totals.raise(Total::ResequencerDepth, ahead.depth() as u64);
        }
        let progress = deliver_waiting(queue, now) || distance == 0;
        self.update_gap_timer(index, progress, now);
        Ok(())
    }

    /// Starts the wait for what is missing, anew if something has come, or ends it if nothing is.
    fn update_gap_timer(&mut self, index: u32, progress: bool, now: Instant) {
        let Some(config) = self.config.wire.resequence() else { return };
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        let tests = queue.tests_ahead.as_ref().map_or(0, |ahead| ahead.held());
        let requests = queue.requests_ahead.as_ref().map_or(0, |ahead| ahead.held());
        if tests + requests == 0 {
            queue.missing.clear();
        } else if progress || !queue.missing.is_set() {
            self.timers.set(&mut queue.missing, Timer::SequenceGap(index), now + config.timeout);
        }
    }

    /// What is missing has been waited for long enough.
    pub(super) fn on_gap_timeout(&mut self, index: u32, now: Instant) {
        self.totals.count(Total::ResequencerTimeouts);
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        if let Some(missing) = queue.tests_ahead.as_ref().and_then(|ahead| ahead.missing()) {
            let gaps = skip(queue, missing, now);
            self.totals.add(Total::ResequencerGaps, gaps);
            deliver_waiting(queue, now);
            self.note_progress(index);
        }
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        if let Some(ahead) = &mut queue.requests_ahead {
            self.totals.add(Total::ResequencerGaps, ahead.missing().unwrap_or(0) as u64);
            self.released.extend(ahead.drain());
        }
        self.update_gap_timer(index, true, now);
    }
}

/// A test frame's turn is over: it is delivered, or nothing is.
fn deliver(queue: &mut ReceiveQueue, pattern: Option<u64>, now: Instant) {
    if let Some(octets) = pattern {
        queue.received.delivered_bytes += octets;
        queue.received.messages += 1;
        queue.received.last = Some(now);
    }
    queue.test_sequence = queue.test_sequence.wrapping_add(1);
    if let Some(ahead) = &mut queue.tests_ahead {
        ahead.advance();
    }
}

/// Delivers test frames as long as the next one waits; whether there was any.
fn deliver_waiting(queue: &mut ReceiveQueue, now: Instant) -> bool {
    let mut any = false;
    while let Some(octets) = queue.tests_ahead.as_mut().and_then(|ahead| ahead.take_expected()) {
        deliver(queue, Some(octets), now);
        any = true;
    }
    any
}

/// Takes `numbers` test frames as past, those that are here as delivered; how many are not.
fn skip(queue: &mut ReceiveQueue, numbers: usize, now: Instant) -> u64 {
    let window = queue.tests_ahead.as_ref().map_or(0, |ahead| ahead.window());
    let (mut gaps, near) = (0, numbers.min(window));
    for _ in 0..near {
        let waiting = queue.tests_ahead.as_mut().and_then(|ahead| ahead.take_expected());
        gaps += u64::from(waiting.is_none());
        deliver(queue, waiting, now);
    }
    // Beyond the window nothing waits.
    queue.test_sequence = queue.test_sequence.wrapping_add((numbers - near) as u32);
    gaps + (numbers - near) as u64
}
