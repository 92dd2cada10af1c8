//! Congestion control: a scheme has three roles. The congestion point is in a switch's egress, the
//! notification point in the receiving NIC, the reaction point in the sending NIC.
//!
//! Default methods do nothing, so a scheme implements only what it uses. A role that a scheme does not
//! have is that of `none`, never an `Option`. A scheme is one file in `schemes/` with all its roles and
//! parameters, and one row in [`schemes`]. This file defines the traits and depends on no scheme.
//!
//! A scheme's parameters are parsed once per device, into a value that implements [`Roles`]. All roles of
//! that device are made from this value and share its tables.

use crate::counters::Periods;
use crate::frame::FrameHeaders;
use crate::ids::{CongestionPointId, PortNumber};
use crate::params::ParamError;
use crate::random::Random;
use crate::units::{BitRate, Bytes, Duration, Instant};
use schemes::none;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

pub mod notification;
pub mod schemes;

pub use notification::{BcnBody, BcnFlags, CnmBody, Notification, Tag, TransportNote, Travel};

/// The state of the output's queue at the time of a frame.
#[derive(Clone, Copy, Debug)]
pub struct QueueSample {
    /// The port the frame came in on.
    pub ingress: PortNumber,
    /// Octets that wait for this output and lane, over all inputs, as buffered.
    pub queue: Bytes,
    /// Octets in the frame's input buffer, as buffered.
    pub ingress_buffer: Bytes,
    /// The output's line rate.
    pub line_rate: BitRate,
    /// Start of the wait for credit of a ready frame on this output and lane. For `on_head` also the
    /// latest such wait while the frame's predecessor was first of the queue, and `now` if the
    /// frame itself has no credit; `None` then means a root of congestion.
    pub blocked_since: Option<Instant>,
    /// Instant at which the last frame left this output and lane.
    pub last_departure: Option<Instant>,
}

/// A congestion point's decision about one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marking {
    /// Leave the frame as it is.
    Pass,
    /// Set FECN.
    Fecn {
        /// The threshold that the queue exceeded.
        limit: Bytes,
    },
    /// Set congestion experienced.
    Ce {
        /// The threshold that the queue exceeded.
        limit: Bytes,
    },
    /// Send a notification to the frame's source.
    Notify(Notification),
}

/// The earliest departure of a flow's next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// At this instant or later.
    At(Instant),
    /// No departure until a notification or a timer changes the reaction point.
    Stopped,
}

/// A reaction point's state for counters and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactionState {
    /// Gap after a full frame.
    pub gap: Duration,
    /// Allowed rate.
    pub rate: BitRate,
    /// A number whose meaning the scheme defines, such as CCTI.
    pub scalar: u64,
}

/// The role in a switch: one per output port and lane.
pub trait CongestionPoint: Send {
    /// A frame joined the output's queue.
    fn on_enqueue(&mut self, _: &FrameHeaders, _: &QueueSample, _now: Instant) -> Marking {
        Marking::Pass
    }
    /// A frame became the first of its virtual output queue.
    fn on_head(&mut self, _: &FrameHeaders, _: &QueueSample, _now: Instant) -> Marking {
        Marking::Pass
    }
    /// A frame starts to be transmitted.
    fn on_dequeue(&mut self, _: &FrameHeaders, _: &QueueSample, _now: Instant) -> Marking {
        Marking::Pass
    }
    /// A frame was dropped because the memory had no room.
    fn on_drop(&mut self, _size: Bytes, _: &QueueSample, _now: Instant) {}
    /// The last notification was sent. Not called when the switch suppresses the notification.
    fn on_message(&mut self) {}
    /// Appends the scheme's own totals to `named`; each name starts with `prefix`.
    fn read(&self, _prefix: &str, _named: &mut Vec<(String, u64)>) {}
}

/// The role in a receiving NIC: one per flow. Its notifications use the flow's own transport.
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
    /// A timer of [`NotificationPoint::poll_timeout`] expired.
    fn handle_timeout(&mut self, _now: Instant) -> Option<TransportNote> {
        None
    }
    /// Expiry of the next timer.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// Periods of the flow judged so far, for schemes that judge by periods.
    fn periods(&self) -> Periods {
        Periods::default()
    }
}

/// The effect of a notification on a reaction point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Valid for this scheme, whether or not it changed anything.
    Valid,
    /// Valid, and it crossed the scheme's logging threshold.
    Crossed,
    /// Valid but stale or for another limiter: it changed nothing.
    Ignored,
    /// Invalid for this scheme: it changed nothing.
    Refused,
}

/// The role in a sending NIC: one per flow, or per service level, as the scheme's scope sets.
pub trait ReactionPoint: Send {
    /// A notification arrived.
    fn on_notification(&mut self, _: &Notification, _now: Instant) -> Effect {
        Effect::Valid
    }
    /// A frame of `size` octets was transmitted; its last bit leaves at `now`.
    fn on_transmit(&mut self, _size: Bytes, _now: Instant) {}
    /// No frame that the point governs waits any longer.
    fn on_queue_empty(&mut self, _now: Instant) {}
    /// The earliest departure of the next frame, given the last departure.
    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        Permission::At(last_departure.unwrap_or(Instant::ZERO))
    }
    /// The tag of the next frame, if it leaves at `now`.
    fn tag(&self, _now: Instant) -> Option<Tag> {
        None
    }
    /// The point limits nothing.
    fn is_released(&self) -> bool {
        true
    }
    /// A timer of [`ReactionPoint::poll_timeout`] expired.
    fn handle_timeout(&mut self, _now: Instant) {}
    /// Expiry of the next timer.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// The state for counters and events.
    fn state(&self) -> ReactionState;
}

/// A congestion-control scheme by name, with its parameters as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemeConfig {
    /// A row of the registry of schemes ("none", "ib-cca").
    pub kind: String,
    /// The parameters that were written; defaults are not among them.
    pub params: toml::Table,
}

impl SchemeConfig {
    /// Parses the parameters.
    ///
    /// # Errors
    /// If no scheme has this name, or the scheme refuses a parameter.
    pub fn roles(&self) -> Result<Arc<dyn Roles>, SchemeError> {
        let unknown = || SchemeError::Unknown(self.kind.clone());
        let scheme = schemes::find(&self.kind).ok_or_else(unknown)?;
        scheme.configure(&self.params).map_err(|mut errors| SchemeError::Parameter {
            scheme: self.kind.clone(),
            error: errors.remove(0),
        })
    }
}

/// A scheme configuration that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// No row of the registry has this name.
    #[error("there is no congestion control scheme {0:?}")]
    Unknown(String),
    /// The scheme refuses a parameter; the first if there are several.
    #[error("scheme {scheme}: {error}")]
    Parameter {
        /// The scheme's name.
        scheme: String,
        /// The refused parameter.
        error: ParamError,
    },
}

/// The flows that share one reaction point.
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

/// The port and lane that a role belongs to.
#[derive(Debug)]
pub struct Place {
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
    /// The identifier in its notifications (congestion points of Ethernet only).
    pub congestion_point: Option<CongestionPointId>,
    /// The role's own random stream.
    pub random: Random,
}

/// A scheme with its parameters: makes the roles of one device.
///
/// A role that a scheme does not define does nothing.
pub trait Roles: fmt::Debug + Send + Sync {
    /// The flows that share one reaction point.
    fn scope(&self) -> Scope {
        Scope::QueuePair
    }

    /// Most reaction points of a sender in one priority; further flows share the latest one.
    fn reaction_points(&self) -> usize {
        usize::MAX
    }

    /// The role of a switch's output port and lane.
    fn congestion_point(&self, _: Place) -> Box<dyn CongestionPoint> {
        Box::new(none::Silent)
    }

    /// The role of a receiver towards one flow.
    fn notification_point(&self, _: Place) -> Box<dyn NotificationPoint> {
        Box::new(none::Silent)
    }

    /// The role of a sender towards one flow or group of flows.
    fn reaction_point(&self, place: Place) -> Box<dyn ReactionPoint> {
        Box::new(none::Unlimited::new(place.line_rate))
    }

    /// The parameters whose values depend on the place, as they are in force there.
    fn in_force(&self, _: &Place) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The queue length that the scheme's congestion points aim for, if it is a parameter.
    fn set_point(&self) -> Option<Bytes> {
        None
    }
}
