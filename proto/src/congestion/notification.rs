//! What is told to a reaction point, and what a reaction point writes on its frames.
//!
//! A notification point speaks on the transport of the flow it watches. A congestion point inside
//! the network speaks to the source of the frame it sampled, in a frame of its own; it says what a
//! notification contains, and the switch, which knows addresses and the sampled octets, makes the
//! frame.

use crate::ids::CongestionPointId;

/// How a notification may travel to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// On the acknowledgement if one is due for the frame, else as a packet of its own.
    AckOrCnp,
    /// As a packet of its own.
    Cnp,
}

/// What a reaction point is told, by whichever way it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A receiver says it, on the flow's own transport.
    Transport(TransportNote),
    /// A congestion point of QCN says it.
    Cnm(CnmBody),
    /// A congestion point of BCN says it.
    Bcn(BcnBody),
}

impl Notification {
    /// A plain BECN with nothing in its reserved octets.
    pub const fn becn(travel: Travel) -> Notification {
        Notification::Transport(TransportNote::becn(travel))
    }

    /// What a receiver said, if it was one that spoke.
    pub const fn transport(&self) -> Option<&TransportNote> {
        match self {
            Notification::Transport(note) => Some(note),
            Notification::Cnm(_) | Notification::Bcn(_) => None,
        }
    }
}

impl From<TransportNote> for Notification {
    fn from(note: TransportNote) -> Notification {
        Notification::Transport(note)
    }
}

/// What a notification point tells: a CNP, or BECN on an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportNote {
    /// The way it goes.
    pub travel: Travel,
    /// BECN is set.
    pub becn: bool,
    /// The sixteen reserved octets of a CNP; zero unless the scheme fills them.
    pub body: [u8; 16],
}

impl TransportNote {
    /// A plain BECN with nothing in its reserved octets.
    pub const fn becn(travel: Travel) -> TransportNote {
        TransportNote { travel, becn: true, body: [0; 16] }
    }
}

/// What the congestion point of QCN says in a congestion notification message.
///
/// Source: IEEE 802.1Q, 33.4 (CNM PDU).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnmBody {
    /// Quantized Feedback: how bad it is, 0 to 63 of the largest feedback there is.
    pub quantized_feedback: u8,
    /// Who says it.
    pub cpid: CongestionPointId,
    /// cnmQOffset: by how much the queue is below its set point. Units: 64 octets.
    pub q_offset: i16,
    /// cnmQDelta: by how much the queue has grown since the sample before. Units: 64 octets.
    pub q_delta: i16,
}

/// What the congestion point of BCN says.
///
/// Source: docs/spec/design.md 3; no field table was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BcnBody {
    /// Who says it.
    pub cpid: CongestionPointId,
    /// Qoff: by how much the queue is below its equilibrium. Units: 64 octets.
    pub q_offset: i16,
    /// Qdelta: by how much the queue has grown since the sample before. Units: 64 octets.
    pub q_delta: i16,
    /// How bad it is, in words.
    pub flags: BcnFlags,
    /// The timestamp of the sampled frame's rate-regulated tag, 0 if it had none. A congestion point
    /// leaves it 0; the switch, which has the frame, fills it in.
    pub timestamp: u32,
}

/// How bad the congestion is that a BCN message tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BcnFlags {
    /// The queue is above its equilibrium.
    pub mild: bool,
    /// The queue is above the severe threshold.
    pub severe: bool,
    /// BCN(0,0): the source is to stop for a while.
    pub stop: bool,
}

/// What a reaction point writes on the frames it lets pass.
///
/// A CN-TAG is not among them: its flow identifier is the NIC's own number of the reaction point and
/// needs no scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A rate-regulated tag: the frame passed a rate limiter that this congestion point called for.
    RateRegulated {
        /// The congestion point of the last negative feedback.
        cpid: CongestionPointId,
        /// When the frame left the limiter, never 0. Units: nanoseconds modulo 2^32.
        timestamp: u32,
    },
}
