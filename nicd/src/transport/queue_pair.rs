//! A queue pair: both halves of a conversation with one peer in one class.
//!
//! It is made when its first frame leaves or arrives, so memory grows with conversations that have begun, and
//! not with the square of the nodes. Most conversations go one way: the receive queue is opened when something
//! comes in, and what paces the send queue is made with the first message.

use crate::config::ClassConfig;
use crate::counters::SentFlow;
use crate::timers::Deadline;
use crate::transport::reorder_buffer::ReorderBuffer;
use crate::transport::requester::Requester;
use crate::transport::responder::Responder;
use proto::congestion::NotificationPoint;
use proto::counters::{FlowId, ReceptionReading};
use proto::frame::{Frame, FrameHeaders};
use proto::ids::{Lid, QueuePairNumber, VirtualLane};
use proto::units::Instant;

/// One queue pair.
pub struct QueuePair {
    /// Connection class.
    pub class: u8,
    /// What its class says.
    pub config: ClassConfig,
    /// The other end's port.
    pub peer: Lid,
    /// Our number for it.
    pub number: QueuePairNumber,
    /// The other end's number for it.
    pub remote: QueuePairNumber,
    /// The lane it sends on.
    pub lane: VirtualLane,
    /// The lane of notifications to its peer.
    pub notification_lane: VirtualLane,
    /// The group that paces it, from its first message on.
    pub group: Option<u32>,
    /// Sends.
    pub requester: Requester,
    /// Since when something could be sent, pacing aside.
    pub ready_since: Instant,
    /// Wait for an acknowledgement.
    pub retransmit: Deadline,
    /// Wait for the peer's receive buffers.
    pub receiver_ready: Deadline,
    /// Its flow is told of by itself at the end of bins.
    pub is_reported_alone: bool,
    /// The flow we send.
    pub tx_flow: FlowId,
    /// What is counted of it.
    pub sent: SentFlow,
    /// Receives, once it has been opened.
    pub receive_queue: Option<Box<ReceiveQueue>>,
}

impl QueuePair {
    /// The group that paces what it sends.
    ///
    /// # Panics
    /// Before its first message.
    pub fn pacing_group(&self) -> u32 {
        self.group.expect("who has a message has a reaction point")
    }

    /// Its receive queue.
    ///
    /// # Panics
    /// Before something has come in.
    pub fn receive_queue_mut(&mut self) -> &mut ReceiveQueue {
        self.receive_queue.as_mut().expect("it has been opened for what came in")
    }

    /// Messages it has received.
    pub fn messages_received(&self) -> u64 {
        self.receive_queue.as_ref().map_or(0, |queue| queue.received.messages)
    }
}

/// The receiving half.
pub struct ReceiveQueue {
    /// Takes requests.
    pub responder: Responder,
    /// Judges what comes in.
    pub notification_point: Box<dyn NotificationPoint>,
    /// The next acknowledgement carries BECN.
    pub becn_owed: bool,
    /// Delay of a coalesced acknowledgement.
    pub acknowledge: Deadline,
    /// The notification point's own timer.
    pub notify: Deadline,
    /// What is counted of the flow we receive.
    pub received: ReceptionReading,
    /// At least one data frame has come in.
    pub has_received: bool,
    /// The sequence number that the next test frame received should have.
    pub test_sequence: u32,
    /// Test frames that came ahead of it, if they are put into order here.
    pub tests_ahead: Option<Box<ReorderBuffer<u64>>>,
    /// Requests that came ahead of what the responder expects, if they are put into order here.
    pub requests_ahead: Option<Box<ReorderBuffer<HeldRequest>>>,
    /// Wait for what is missing before those.
    pub missing: Deadline,
}

/// A request that has waited for its turn.
#[derive(Debug)]
pub struct HeldRequest {
    /// The frame.
    pub frame: Frame,
    /// What its headers say.
    pub headers: FrameHeaders,
}
