//! A queue pair: send queue and receive queue for one peer and class.
//!
//! It is made when its first frame leaves or arrives, so memory grows with the connections in use and not
//! with the square of the nodes. Most connections carry data in one direction. So the receive queue is made
//! with the first frame received, and the pacing group with the first message posted.

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

/// A queue pair.
pub struct QueuePair {
    /// Connection class.
    pub class: u8,
    /// The configuration of the class.
    pub config: ClassConfig,
    /// The peer's LID.
    pub peer: Lid,
    /// The number of this queue pair.
    pub number: QueuePairNumber,
    /// The number of the peer's queue pair.
    pub remote: QueuePairNumber,
    /// Where the peer's memory begins and its R_Key, for RDMA WRITEs.
    pub memory: (u64, u32),
    /// Octets of payload in a full packet from the peer.
    pub path_mtu: u32,
    /// The lane of data and acknowledgements.
    pub lane: VirtualLane,
    /// The lane of notifications to the peer.
    pub notification_lane: VirtualLane,
    /// The pacing group, from the first message on.
    pub group: Option<u32>,
    /// The send queue.
    pub requester: Requester,
    /// Since when a packet could be sent, apart from pacing.
    pub ready_since: Instant,
    /// Retransmission timer.
    pub retransmit: Deadline,
    /// The wait that an RNR NAK asked for.
    pub receiver_ready: Deadline,
    /// Bins report its flow individually.
    pub is_reported_alone: bool,
    /// The flow that it sends.
    pub tx_flow: FlowId,
    /// Counters of that flow.
    pub sent: SentFlow,
    /// The receive queue, from the first frame received on.
    pub receive_queue: Option<Box<ReceiveQueue>>,
}

impl QueuePair {
    /// The pacing group.
    ///
    /// # Panics
    /// Before the first message.
    pub fn pacing_group(&self) -> u32 {
        self.group.expect("a queue pair with a message has a pacing group")
    }

    /// The receive queue.
    ///
    /// # Panics
    /// If `open_receive_queue` has not run.
    pub fn receive_queue_mut(&mut self) -> &mut ReceiveQueue {
        self.receive_queue.as_mut().expect("`open_receive_queue` ran when the first frame arrived")
    }

    /// The number of messages received.
    pub fn messages_received(&self) -> u64 {
        self.receive_queue.as_ref().map_or(0, |queue| queue.received.messages)
    }
}

/// The receiving half of a queue pair.
pub struct ReceiveQueue {
    /// Validates and accepts requests.
    pub responder: Responder,
    /// Decides when the sender is notified of congestion.
    pub notification_point: Box<dyn NotificationPoint>,
    /// The next acknowledgement carries BECN.
    pub becn_pending: bool,
    /// Delay of a coalesced acknowledgement.
    pub ack_delay: Deadline,
    /// The notification point's timer.
    pub notification_timer: Deadline,
    /// Counters of the received flow.
    pub received: ReceptionReading,
    /// At least one data frame has been received.
    pub has_received: bool,
    /// The sequence number of the next test frame.
    pub test_sequence: u32,
    /// Test frames ahead of it with their pattern octets, if resequencing is configured.
    pub test_frames_held: Option<Box<ReorderBuffer<u64>>>,
    /// Requests ahead of the expected PSN, if resequencing is configured.
    pub requests_held: Option<Box<ReorderBuffer<HeldRequest>>>,
    /// The wait for the frames missing before them.
    pub gap_timer: Deadline,
}

/// A request in the reorder buffer.
#[derive(Debug)]
pub struct HeldRequest {
    /// A copy of the frame.
    pub frame: Frame,
    /// The header fields, as the port classified them.
    pub headers: FrameHeaders,
}
