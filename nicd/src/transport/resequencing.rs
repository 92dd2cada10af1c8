//! Resequencing of frames that took different paths: test frames by sequence number, requests by PSN.
//!
//! Requests are held in front of the responder, which sees a released request as if it had just arrived. When
//! the wait for missing frames ends, test frames behind the gap are delivered. Requests go to the responder,
//! which then handles the gap as it does without resequencing. Source: docs/spec/algorithms.md, 6.

use crate::counters::Total;
use crate::timers::Timer;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::queue_pair::{HeldRequest, ReceiveQueue};
use crate::transport::receive::{AdmittedPacket, Disposition, Outcome, ReceivedFrame};
use crate::transport::reorder_buffer::Insertion;
use proto::counters::DropReason;
use proto::frame::Frame;
use proto::ids::Psn;
use proto::units::Instant;

impl ChannelAdapter {
    /// The next released request. The caller must pass it to [`ChannelAdapter::receive`].
    pub fn poll_released_request(&mut self) -> Option<HeldRequest> {
        let next = self.released.pop_front()?;
        self.held -= 1;
        self.is_released_request = true;
        Some(next)
    }

    /// Holds a copy of a request that is ahead of its turn. False if resequencing is off, the request is not
    /// ahead, or the buffer cannot hold it.
    pub(super) fn hold_request(
        &mut self,
        index: u32,
        packet: &AdmittedPacket<'_>,
        now: Instant,
    ) -> bool {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        let Some(ahead) = queue.requests_held.as_mut().filter(|_| !self.is_released_request) else {
            return false;
        };
        let distance = packet.bth.psn.distance_from(queue.responder.expected());
        if distance <= 0 {
            return false;
        }
        let mut octets = self.pool.take();
        let ReceivedFrame { frame, headers, .. } = *packet.received;
        octets.extend_from_slice(&frame.octets);
        let copy = Frame { octets, ..*frame };
        let insertion =
            ahead.insert(distance as usize, HeldRequest { frame: copy, headers: *headers });
        if let Insertion::Duplicate(other) | Insertion::TooFar(other) = insertion {
            self.pool.recycle(other.frame);
            return false;
        }
        queue.received.reordered += 1;
        queue.has_received = true;
        self.held += 1;
        self.totals.raise(Total::ResequencerDepth, ahead.depth as u64);
        self.update_gap_timer(index, false, now);
        true
    }

    /// Releases the request with the PSN that the responder expects now; it expected `before` earlier.
    pub(super) fn release_requests(&mut self, index: u32, before: Psn, now: Instant) {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        let Some(ahead) = &mut queue.requests_held else { return };
        let moved = queue.responder.expected().distance_from(before);
        for _ in 0..moved {
            ahead.advance();
        }
        self.released.extend(ahead.take_expected());
        self.update_gap_timer(index, moved > 0, now);
    }

    /// Delivers or holds a test frame with `pattern` octets that is `distance` ahead of the expected one.
    ///
    /// # Errors
    /// [`DropReason::Duplicate`] if a frame with this sequence number has arrived before.
    pub(super) fn resequence_test_frame(
        &mut self,
        index: u32,
        distance: i32,
        pattern: u64,
        now: Instant,
    ) -> Outcome {
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        queue.received.reordered += u64::from(distance != 0);
        let mut distance = usize::try_from(distance).map_err(|_| DropReason::Duplicate)?;
        if distance == 0 {
            deliver(queue, Some(pattern), now);
        } else if let Some(ahead) = &mut queue.test_frames_held {
            // A frame beyond the window advances the window until it fits.
            let beyond = (distance + 1).saturating_sub(ahead.window);
            let gaps = skip(queue, beyond, now);
            self.totals.add(Total::ResequencerGaps, gaps);
            distance -= beyond;
            let Some(ahead) = &mut queue.test_frames_held else {
                return Ok(Disposition::Delivered);
            };
            if let Insertion::Duplicate(_) = ahead.insert(distance, pattern) {
                return Err(DropReason::Duplicate);
            }
            self.totals.raise(Total::ResequencerDepth, ahead.depth as u64);
        }
        let progress = deliver_waiting(queue, now) || distance == 0;
        self.update_gap_timer(index, progress, now);
        Ok(Disposition::Delivered)
    }

    /// Starts the wait for missing frames, restarts it after progress, or stops it if none is missing.
    fn update_gap_timer(&mut self, index: u32, progress: bool, now: Instant) {
        let Some(config) = self.config.wire.resequence() else { return };
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        let tests = queue.test_frames_held.as_ref().map_or(0, |ahead| ahead.held);
        let requests = queue.requests_held.as_ref().map_or(0, |ahead| ahead.held);
        if tests + requests == 0 {
            queue.gap_timer.clear();
        } else if progress || !queue.gap_timer.is_set() {
            self.out.timers.set(
                &mut queue.gap_timer,
                Timer::SequenceGap(index),
                now + config.timeout,
            );
        }
    }

    /// The wait for missing frames has expired.
    pub(super) fn on_gap_timeout(&mut self, index: u32, now: Instant) {
        self.totals.count(Total::ResequencerTimeouts);
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        if let Some(missing) = queue.test_frames_held.as_ref().and_then(|ahead| ahead.missing()) {
            let gaps = skip(queue, missing, now);
            self.totals.add(Total::ResequencerGaps, gaps);
            deliver_waiting(queue, now);
            self.note_progress(index);
        }
        let queue = self.queue_pairs[index as usize].receive_queue_mut();
        if let Some(ahead) = &mut queue.requests_held {
            self.totals.add(Total::ResequencerGaps, ahead.missing().unwrap_or(0) as u64);
            self.released.extend(ahead.drain());
        }
        self.update_gap_timer(index, true, now);
    }
}

/// Ends the turn of the expected test frame: delivers its `pattern` octets, or nothing if it is missing.
fn deliver(queue: &mut ReceiveQueue, pattern: Option<u64>, now: Instant) {
    if let Some(octets) = pattern {
        queue.received.delivered_bytes += octets;
        queue.received.messages += 1;
        queue.received.last = Some(now);
    }
    queue.test_sequence = queue.test_sequence.wrapping_add(1);
    if let Some(ahead) = &mut queue.test_frames_held {
        ahead.advance();
    }
}

/// Delivers consecutive test frames. Returns whether it delivered any.
fn deliver_waiting(queue: &mut ReceiveQueue, now: Instant) -> bool {
    let mut any = false;
    while let Some(octets) = queue.test_frames_held.as_mut().and_then(|ahead| ahead.take_expected())
    {
        deliver(queue, Some(octets), now);
        any = true;
    }
    any
}

/// Ends the turn of `numbers` test frames and delivers those present. Returns how many were missing.
fn skip(queue: &mut ReceiveQueue, numbers: usize, now: Instant) -> u64 {
    let window = queue.test_frames_held.as_ref().map_or(0, |ahead| ahead.window);
    let (mut gaps, near) = (0, numbers.min(window));
    for _ in 0..near {
        let waiting = queue.test_frames_held.as_mut().and_then(|ahead| ahead.take_expected());
        gaps += u64::from(waiting.is_none());
        deliver(queue, waiting, now);
    }
    // Nothing is held beyond the window.
    queue.test_sequence = queue.test_sequence.wrapping_add((numbers - near) as u32);
    gaps + (numbers - near) as u64
}
