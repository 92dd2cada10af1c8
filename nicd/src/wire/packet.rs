//! Packets in a form that does not depend on the wire format, and the content of a received frame.

use proto::counters::DropReason;
use proto::frame::FrameClass;
use proto::ids::{Lid, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Transport};

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingPacket {
    /// The receiver.
    pub to: Lid,
    /// The lane of this NIC's link.
    pub lane: VirtualLane,
    /// The service level.
    pub level: ServiceLevel,
    /// The sending queue pair; the BTH holds the receiving one.
    pub queue_pair: QueuePairNumber,
    /// What the packet is for; RoCEv2 chooses DSCP and ECN by it.
    pub class: FrameClass,
    /// Base Transport Header; the wire format computes PadCnt.
    pub bth: Bth,
    /// Exactly the extended headers that the opcode requires.
    pub extended: ExtendedHeaders,
}

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket<'a> {
    /// The sender.
    pub from: Lid,
    /// BTH to pad.
    pub transport: Transport<'a>,
}

/// The content of a received frame, or the reason why it is dropped.
pub type Parsed<'a> = Result<FrameContent<'a>, DropReason>;

/// The content of a received frame. Offsets count octets from the start of the frame.
#[derive(Clone, Copy, Debug)]
pub enum FrameContent<'a> {
    /// A transport packet.
    Packet(ReceivedPacket<'a>),
    /// A test frame; the offset of its header.
    Test(usize),
    /// A congestion notification message. Source: IEEE 802.1Q, 33.3.
    Cnm {
        /// The offset of the message.
        at: usize,
        /// The flow identifier in the CN-TAG; 0 without a tag.
        flow_id: u16,
    },
    /// A BCN message; the offset behind its subtype.
    Bcn(usize),
}
