//! What a packet says in any wire format: one to be sent, one received, and what else a frame may carry.

use proto::frame::FrameClass;
use proto::ids::{Lid, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Transport};

/// What a packet to be sent says, in any dialect.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingPacket {
    /// To whom.
    pub to: Lid,
    /// On which lane of our link.
    pub lane: VirtualLane,
    /// With which service level.
    pub level: ServiceLevel,
    /// Our queue pair; the peer's is in the BTH.
    pub queue_pair: QueuePairNumber,
    /// What kind of work it does.
    pub class: FrameClass,
    /// Base Transport Header; its PadCnt is computed.
    pub bth: Bth,
    /// Exactly the headers that the opcode calls for.
    pub extended: ExtendedHeaders,
}

/// What a packet said, in any dialect.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket<'a> {
    /// The adapter it came from.
    pub from: Lid,
    /// BTH to pad.
    pub transport: Transport<'a>,
}

/// What a frame carries, or where that begins.
#[derive(Clone, Copy, Debug)]
pub enum FrameContent<'a> {
    /// A packet of the transport.
    Packet(ReceivedPacket<'a>),
    /// The header of a test frame.
    Test(usize),
    /// A congestion notification message of 802.1Q.
    Cnm {
        /// Where it begins.
        at: usize,
        /// The flow that the CN-TAG before it names; 0 without one.
        flow_id: u16,
    },
    /// A message of BCN, behind its subtype.
    Bcn(usize),
}
