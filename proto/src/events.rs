//! What happened, one line at a time: the events a device tells its shell (seeing.md 3.2).

use crate::counters::{DropReason, FlowId};
use crate::ids::{PortNumber, QueuePairNumber, ServiceLevel};
use crate::units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// One event at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEvent {
    /// When, in fabric time.
    pub at: Instant,
    /// Where.
    pub port: PortNumber,
    /// Virtual lane or priority.
    pub tc: u8,
    /// What.
    pub kind: EventKind,
}

/// What kept a ready frame from leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldCause {
    /// No InfiniBand credits.
    Credit,
    /// IEEE 802.3x PAUSE.
    Pause,
    /// Priority flow control.
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

/// In what form a notification travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// BECN on an acknowledgement.
    Becn,
    /// A congestion notification packet of its own.
    Cnp,
    /// A congestion notification message of a switch, IEEE 802.1Qau.
    Cnm,
    /// A message of BCN, of a switch.
    Bcn,
}

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Sent.
    Tx,
    /// Received.
    Rx,
}

/// The kinds of event and what each says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ev", rename_all = "kebab-case")]
pub enum EventKind {
    /// A ready frame starts to be forbidden.
    Hold {
        /// By what.
        cause: HoldCause,
    },
    /// A ready frame stops being forbidden.
    Free {
        /// By what it was forbidden.
        cause: HoldCause,
        /// For how long.
        waited: Duration,
    },
    /// The congestion point marked a frame.
    Mark {
        /// Of which flow.
        flow: FlowId,
        /// With what.
        mark: MarkKind,
        /// The queue it was judged by.
        queue: Bytes,
        /// The threshold it was judged against.
        limit: Bytes,
    },
    /// A congestion notification was sent or received.
    Note {
        /// About which flow.
        flow: FlowId,
        /// In what form.
        note: NoteKind,
        /// Sent or received.
        dir: Direction,
    },
    /// A reaction point changed its state.
    React {
        /// Of which flow.
        flow: FlowId,
        /// The gap it now asks for after a full frame.
        gap: Duration,
        /// The scheme's own number.
        scalar: u64,
    },
    /// A frame ended before its destination.
    Drop {
        /// Why.
        reason: DropReason,
        /// Its size.
        bytes: Bytes,
    },
    /// A PAUSE or PFC that asks for silence: each one sent, repetitions included, and of those
    /// received the one that begins a silence.
    Xoff {
        /// On which priorities; bit n is priority n, and the event stands at the lowest.
        priorities: u8,
        /// For how long, in quanta of 512 bit times.
        quanta: u16,
        /// What stands in the input buffer of these priorities where it is sent; zero where it is
        /// received.
        fill: Bytes,
        /// Sent or received.
        dir: Direction,
    },
    /// A PAUSE or PFC that ends a silence.
    Xon {
        /// On which priorities; bit n is priority n, and the event stands at the lowest.
        priorities: u8,
        /// What stands in the input buffer of these priorities where it is sent; zero where it is
        /// received.
        fill: Bytes,
        /// Sent or received.
        dir: Direction,
    },
    /// A silence that was asked for ended by itself.
    PauseExpired {
        /// On which priorities; bit n is priority n, and the event stands at the lowest.
        priorities: u8,
    },
    /// What came in after XOFF has taken more than four fifths of the headroom kept for it: told once
    /// a port and priority. Source: algorithms.md 7 (alarm).
    HeadroomAlarm {
        /// Of the headroom.
        used: Bytes,
        /// All of it.
        headroom: Bytes,
    },
    /// The PFC watchdog found a queue that waits and is paused all the time.
    Storm {
        /// For how long it had been.
        stuck: Duration,
    },
    /// The PFC watchdog found no pause of that queue for long enough.
    StormOver {
        /// How long after it found the storm.
        lasted: Duration,
    },
    /// A link was declared dead for want of flow control packets and trains anew.
    Watchdog,
    /// A reaction point reached its logging threshold: what a CA congestion log keeps, the remote
    /// LID being the flow's destination. Source: IBTA Vol 1, annex A10 (CongestionLog).
    Trigger {
        /// Of which flow.
        flow: FlowId,
        /// Our queue pair that was notified.
        qp: QueuePairNumber,
        /// Its service level.
        sl: ServiceLevel,
        /// The index it reached.
        ccti: u64,
    },
    /// A queue pair gave up on its peer.
    QueuePairError {
        /// Of which flow.
        flow: FlowId,
    },
}

/// Events not yet taken by the shell, oldest first.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    events: std::collections::VecDeque<DeviceEvent>,
}

impl EventLog {
    /// Adds the latest event.
    pub fn push(&mut self, event: DeviceEvent) {
        self.events.push_back(event);
    }

    /// Takes the oldest event.
    pub fn pop(&mut self) -> Option<DeviceEvent> {
        self.events.pop_front()
    }
}
