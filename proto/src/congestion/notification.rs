//! The notifications that a reaction point receives, and the tags that it writes on its frames.
//!
//! A notification point uses the transport of the flow that it watches. A congestion point inside the
//! network notifies the source of the frame that it sampled, in a separate frame. The congestion point
//! supplies the contents of the notification. The switch has the addresses and the sampled octets, so
//! the switch builds the frame.

use crate::ids::CongestionPointId;

/// How a notification may travel to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// On the acknowledgement if one is due for the frame, else as a packet of its own.
    AckOrCnp,
    /// As a packet of its own.
    Cnp,
}

/// A notification to a reaction point, by the way on which it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// From the receiver, on the flow's own transport: BECN on an acknowledgement, or a CNP.
    Transport(TransportNote),
    /// From a congestion point of QCN, in a CNM (IEEE 802.1Q, 33.4).
    Cnm(CnmBody),
    /// From a congestion point of BCN, in a BCN message.
    Bcn(BcnBody),
}

impl Notification {
    /// A plain BECN with nothing in its reserved octets.
    pub const fn becn(travel: Travel) -> Notification {
        Notification::Transport(TransportNote::becn(travel))
    }

    /// The receiver's notification; `None` if a congestion point sent it.
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

/// The contents of a receiver's notification: a CNP, or BECN on an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportNote {
    /// The packet that carries it.
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

/// The fields that a congestion point of QCN writes into a congestion notification message.
///
/// Source: IEEE 802.1Q, 33.4 (CNM PDU).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnmBody {
    /// Quantized Feedback: severity of the congestion, 0 to 63; 63 is the largest feedback.
    pub quantized_feedback: u8,
    /// The congestion point that sends it.
    pub cpid: CongestionPointId,
    /// cnmQOffset: by how much the queue is below its set point. Units: 64 octets.
    pub q_offset: i16,
    /// cnmQDelta: by how much the queue has grown since the sample before. Units: 64 octets.
    pub q_delta: i16,
}

/// The fields that a congestion point of BCN writes into its message.
///
/// Source: docs/spec/design.md 3; no field table was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BcnBody {
    /// The congestion point that sends it.
    pub cpid: CongestionPointId,
    /// Qoff: by how much the queue is below its equilibrium. Units: 64 octets.
    pub q_offset: i16,
    /// Qdelta: by how much the queue has grown since the sample before. Units: 64 octets.
    pub q_delta: i16,
    /// Severity of the congestion, as flags.
    pub flags: BcnFlags,
    /// The timestamp of the sampled frame's rate-regulated tag, 0 if it had none. A congestion point
    /// leaves it 0; the switch, which has the frame, fills it in.
    pub timestamp: u32,
}

/// Severity of the congestion that a BCN message reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BcnFlags {
    /// The queue is above its equilibrium.
    pub mild: bool,
    /// The queue is above the severe threshold.
    pub severe: bool,
    /// BCN(0,0): the source must stop for a random time.
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
