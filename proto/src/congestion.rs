//! A congestion-control scheme is a conversation between three roles: the congestion point in a
//! switch's egress, the notification point in the receiving NIC, the reaction point in the sending
//! NIC.
//!
//! Default methods do nothing, so a scheme writes only what it uses; a role that does not exist is
//! `none`'s, never an `Option`. A scheme is one file in `schemes/` that holds all its roles, and
//! one row in [`schemes`]. This file holds the traits and knows no scheme.

use crate::frame::FrameHeaders;
use crate::ids::{CongestionPointId, PortNumber};
use crate::random::Random;
use crate::units::{BitRate, Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

pub mod notification;
pub mod schemes;

pub use notification::{BcnBody, BcnFlags, CnmBody, Notification, Tag, TransportNote, Travel};

/// What a congestion point may look at when it judges a frame.
#[derive(Clone, Copy, Debug)]
pub struct QueueSample {
    /// The port the frame came in on.
    pub ingress: PortNumber,
    /// Octets waiting for this output and lane, over all inputs, as buffered.
    pub queue: Bytes,
    /// Octets in the frame's input buffer, as buffered.
    pub ingress_buffer: Bytes,
    /// The output's line rate.
    pub line_rate: BitRate,
    /// Since when a ready frame waits for credit on this output and lane. For `on_head` also the
    /// latest such wait while the frame's predecessor was first of the queue, and `now` if the
    /// frame itself has no credit; `None` then means a root.
    pub blocked_since: Option<Instant>,
    /// When the last frame left this output and lane.
    pub last_departure: Option<Instant>,
}

/// What a congestion point decides about one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marking {
    /// Nothing.
    Pass,
    /// Set FECN.
    Fecn {
        /// The threshold the queue was above.
        limit: Bytes,
    },
    /// Set congestion experienced.
    Ce {
        /// The threshold the queue was above.
        limit: Bytes,
    },
    /// Send a notification back to the frame's source.
    Notify(Notification),
}

/// When a flow's next frame may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// At this instant or later.
    At(Instant),
    /// Not until a notification or a timer changes the reaction point.
    Stopped,
}

/// What a reaction point shows of itself, for counters and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactionState {
    /// The gap asked for after a full frame.
    pub gap: Duration,
    /// The rate allowed.
    pub rate: BitRate,
    /// The scheme's own number.
    pub scalar: u64,
}

/// The role in a switch: one per output port and lane.
pub trait CongestionPoint: Send {
    /// A frame was admitted to the output's queue.
    fn on_enqueue(&mut self, _: &FrameHeaders, _: &QueueSample, _now: Instant) -> Marking {
        Marking::Pass
    }
    /// A frame became the first of its virtual output queue.
    fn on_head(&mut self, _: &FrameHeaders, _: &QueueSample, _now: Instant) -> Marking {
        Marking::Pass
    }
    /// A frame starts to leave.
    fn on_dequeue(&mut self, _: &FrameHeaders, _: &QueueSample, _now: Instant) -> Marking {
        Marking::Pass
    }
    /// A frame was refused for want of room.
    fn on_drop(&mut self, _size: Bytes, _: &QueueSample, _now: Instant) {}
    /// What it has said last became a message. The switch makes none for who is not to be told.
    fn on_message(&mut self) {}
    /// Adds totals of its own to `named`, each name behind `prefix`.
    fn read(&self, _prefix: &str, _named: &mut Vec<(String, u64)>) {}
}

/// The role in a receiving NIC: one per flow. It speaks on the flow's own transport.
pub trait NotificationPoint: Send {
    /// A frame of the flow was received.
    fn on_receive(
        &mut self,
        _: &FrameHeaders,
        _size: Bytes,
        _now: Instant,
    ) -> Option<TransportNote> {
        None
    }
    /// A timer of [`NotificationPoint::poll_timeout`] ran out.
    fn handle_timeout(&mut self, _now: Instant) -> Option<TransportNote> {
        None
    }
    /// When the next timer runs out.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// How many periods of the flow it has judged, for schemes that judge by periods.
    fn periods(&self) -> Periods {
        Periods::default()
    }
}

/// What a notification point that looks at a flow period by period has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Periods {
    /// Periods judged.
    pub judged: u64,
    /// Periods in which the flow was found to be a cause of congestion.
    pub congested: u64,
}

/// What a reaction point made of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was for this scheme, whether or not it changed anything.
    Taken,
    /// It crossed the scheme's logging threshold.
    Crossed,
    /// It was legal and meant for somebody else, or too old: it changed nothing.
    Ignored,
    /// It made no sense and changed nothing.
    Refused,
}

/// The role in a sending NIC: one per flow, or per service level, as the scheme's scope says.
pub trait ReactionPoint: Send {
    /// A notification arrived.
    fn on_notification(&mut self, _: &Notification, _now: Instant) -> Heard {
        Heard::Taken
    }
    /// A frame of `size` octets has left (`now` is when its last bit does).
    fn on_transmit(&mut self, _size: Bytes, _now: Instant) {}
    /// Nothing that the point governs waits any longer.
    fn on_queue_empty(&mut self, _now: Instant) {}
    /// When the next frame may leave, given when the last one did.
    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        Permission::At(last_departure.unwrap_or(Instant::ZERO))
    }
    /// What the next frame is to carry, if it leaves at `now`.
    fn tag(&self, _now: Instant) -> Option<Tag> {
        None
    }
    /// The point holds nothing back.
    fn is_released(&self) -> bool {
        true
    }
    /// A timer of [`ReactionPoint::poll_timeout`] ran out.
    fn handle_timeout(&mut self, _now: Instant) {}
    /// When the next timer runs out.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// What to show in counters and events.
    fn state(&self) -> ReactionState;
}

/// A congestion-control scheme by name, with parameters that only its own file understands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemeConfig {
    /// A row of the registry of schemes ("none", "ib-cca").
    pub kind: String,
    /// The scheme's own parameters.
    pub params: toml::Table,
}

/// What one reaction point governs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each queue pair has its own.
    QueuePair,
    /// All queue pairs of a service level share one.
    ServiceLevel,
    /// All flows to a destination share one.
    Destination,
    /// All flows of a priority share one.
    Priority,
}

/// What a scheme is told about the place its role stands in.
#[derive(Debug)]
pub struct Place<'a> {
    /// The scheme's own parameters.
    pub params: &'a toml::Table,
    /// The line's rate.
    pub line_rate: BitRate,
    /// The wire size of one full data frame.
    pub full_frame: Bytes,
    /// The input buffer of one port and lane (congestion points only).
    pub buffer: Bytes,
    /// The port's number; its own for a congestion point, 1 in a NIC.
    pub port: PortNumber,
    /// The port leads to a NIC.
    pub faces_adapter: bool,
    /// The identifier it speaks under (congestion points of Ethernet only).
    pub congestion_point: Option<CongestionPointId>,
    /// A random stream of the role's own.
    pub random: Random,
}

/// A parameter that a scheme refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: {allowed}")]
pub struct ParamError {
    /// The parameter's key.
    pub field: String,
    /// What was written.
    pub value: String,
    /// What may be written, or which key was probably meant.
    pub allowed: String,
}
