//! Events of a device, and the log that holds them until the driver reads them (docs/spec/seeing.md 3.2).

use crate::counters::{DropReason, FlowId};
use crate::ids::{PortNumber, QueuePairNumber, ServiceLevel};
use crate::units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// One event at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEvent {
    /// Fabric time of the event.
    pub at: Instant,
    /// The port concerned.
    pub port: PortNumber,
    /// Virtual lane or priority.
    pub tc: u8,
    /// The kind of event, with its details.
    pub kind: EventKind,
}

/// The flow control that held a ready frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldCause {
    /// InfiniBand credits ran out.
    Credit,
    /// A PAUSE of the whole link. Source: IEEE 802.3, 31B.
    Pause,
    /// Priority flow control. Source: IEEE 802.1Q, 36.
    Pfc,
}

/// How a congestion point marked a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// FECN in the BTH.
    Fecn,
    /// Congestion experienced in the IP header.
    Ce,
}

/// The format of a congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// BECN on an acknowledgement.
    Becn,
    /// A congestion notification packet of its own.
    Cnp,
    /// A congestion notification message (CNM) of a switch, IEEE 802.1Qau.
    Cnm,
    /// A BCN message of a switch.
    Bcn,
}

/// The direction of a frame, seen from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Sent.
    Tx,
    /// Received.
    Rx,
}

/// Why an interface of the host, or the cable to another program, cannot send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CarrierLoss {
    /// It is switched off.
    Down,
    /// Its link has no carrier.
    NoCarrier,
    /// There is no such interface.
    Removed,
    /// No program is at the other end, or it does not read.
    NoPeer,
}

/// A law of a line or of pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Frames of one direction are no closer than the later one is long. Source: IEEE 802.3, 4.2.3.2.
    LineRate,
    /// A frame starts not before the input that caused it.
    Causality,
    /// A frame is received not before its last bit has left and the delay of the cable is over.
    Delay,
    /// No frame of a priority starts in a pause of it. Source: IEEE 802.3, 31B.3; IEEE 802.1Q, 36.1.3.2.
    Pause,
    /// No data packet starts without credit for all of it. Source: IBTA Vol 1, 7.9.4.2.
    Credit,
    /// A data frame starts not before its reaction point permits.
    Pacing,
}

/// The kinds of event, each with its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ev", rename_all = "kebab-case")]
pub enum EventKind {
    /// Flow control starts to hold a ready frame.
    Hold {
        /// The flow control in use.
        cause: HoldCause,
    },
    /// Flow control releases a held frame.
    Free {
        /// The flow control in use.
        cause: HoldCause,
        /// The duration of the hold.
        waited: Duration,
    },
    /// The congestion point marked a frame.
    Mark {
        /// The flow concerned.
        flow: FlowId,
        /// The kind of mark.
        mark: MarkKind,
        /// Octets in the queue.
        queue: Bytes,
        /// The threshold that the queue exceeded.
        limit: Bytes,
    },
    /// A congestion notification was sent or received.
    Note {
        /// The flow concerned.
        flow: FlowId,
        /// The format of the notification.
        note: NoteKind,
        /// Sent or received.
        dir: Direction,
    },
    /// A reaction point changed its state.
    React {
        /// The flow concerned.
        flow: FlowId,
        /// The gap that it now requires after a full frame.
        gap: Duration,
        /// The scheme's own state (`ccti`, `alpha`, `stage`).
        scalar: u64,
    },
    /// A frame was dropped.
    Drop {
        /// The reason.
        reason: DropReason,
        /// Octets of the frame.
        bytes: Bytes,
    },
    /// A PAUSE or PFC frame with XOFF: every sent one, repetitions included, and every received one that
    /// begins a pause.
    Xoff {
        /// The priorities concerned, bit n for priority n. The event's lane is the lowest of them.
        priorities: u8,
        /// The pause time, in quanta of 512 bit times.
        quanta: u16,
        /// Octets in the sender's input buffer for these priorities; 0 for a received frame.
        fill: Bytes,
        /// Sent or received.
        dir: Direction,
    },
    /// A PAUSE or PFC frame with XON.
    Xon {
        /// The priorities concerned, bit n for priority n. The event's lane is the lowest of them.
        priorities: u8,
        /// Octets in the sender's input buffer for these priorities; 0 for a received frame.
        fill: Bytes,
        /// Sent or received.
        dir: Direction,
    },
    /// A pause expired without XON.
    PauseExpired {
        /// The priorities concerned, bit n for priority n. The event's lane is the lowest of them.
        priorities: u8,
    },
    /// Frames after XOFF occupy more than four fifths of their headroom; logged once per port and priority.
    /// Source: docs/spec/algorithms.md 7 (alarm).
    HeadroomAlarm {
        /// Octets of headroom in use.
        used: Bytes,
        /// Octets of headroom in all.
        headroom: Bytes,
    },
    /// The PFC watchdog found a pause storm: a queue with frames that stays paused.
    Storm {
        /// For how long the queue had been stuck.
        stuck: Duration,
    },
    /// The PFC watchdog found the storm to be over.
    StormOver {
        /// The time since its detection.
        lasted: Duration,
    },
    /// The link retrains because no flow-control packet arrived in time.
    Watchdog,
    /// A reaction point reached its logging threshold: an entry of the CA congestion log. The remote LID is
    /// the flow's destination. Source: IBTA Vol 1, annex A10 (CongestionLog).
    Trigger {
        /// The flow concerned.
        flow: FlowId,
        /// The notified queue pair of this adapter.
        qp: QueuePairNumber,
        /// Its service level.
        sl: ServiceLevel,
        /// The CCTI that it reached.
        ccti: u64,
    },
    /// The interface at an attached port can no longer send, or the cause has changed.
    CarrierDown {
        /// Why it cannot send.
        cause: CarrierLoss,
    },
    /// The interface at an attached port can send again.
    CarrierUp {
        /// For how long it could not.
        away: Duration,
        /// Frames to it that were dropped in this time.
        dropped: u64,
    },
    /// The MTU of the interface at an attached port has changed.
    InterfaceMtu {
        /// The new MTU: octets of the longest payload of a frame.
        mtu: Bytes,
    },
    /// A frame broke a law of physics: an error of this program. Logged once per port. The event's instant is the
    /// frame's start, for [`Law::Delay`] its reception.
    Violation {
        /// The law.
        law: Law,
        /// The earliest instant that the law permits; [`Instant::NEVER`] if it names none.
        earliest: Instant,
        /// Octets of the frame.
        bytes: Bytes,
    },
    /// A queue pair entered the error state.
    QueuePairError {
        /// The flow concerned.
        flow: FlowId,
    },
}

/// Events that the driver has not read yet, oldest first.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    events: std::collections::VecDeque<DeviceEvent>,
}

impl EventLog {
    /// Appends an event.
    pub fn push(&mut self, event: DeviceEvent) {
        self.events.push_back(event);
    }

    /// Removes the oldest event.
    pub fn pop(&mut self) -> Option<DeviceEvent> {
        self.events.pop_front()
    }
}
