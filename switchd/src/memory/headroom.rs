//! How much may still come in after a neighbour was told to be silent, and who leaves room for it.
//!
//! ```text
//! our frame under way | PFC frame | cable | [reaction, jitter] its frame under way | cable
//! ```
//!
//! During all of that it sends. Source: IEEE 802.1Q, annex N (buffer requirements for PFC).

use super::HeadroomAlarm;
use super::models::{Inlet, Room};
use proto::ids::PortNumber;
use proto::params::ParamError;
use proto::units::{Bytes, Duration};

/// More than this share of headroom, in hundredths, is an alarm. Source: algorithms.md 7.
const ALARM_ABOVE: u64 = 80;

/// Looks at one headroom, and tells once that it is nearly used up.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadroomWatch {
    raised: bool,
}

impl HeadroomWatch {
    /// `used` of `headroom` is taken.
    pub fn note(&mut self, used: Bytes, headroom: Bytes) -> Option<HeadroomAlarm> {
        if self.raised || used * 100 <= headroom * ALARM_ABOVE {
            return None;
        }
        self.raised = true;
        Some(HeadroomAlarm { used, headroom })
    }
}

/// A frame of MAC control, FCS included.
const CONTROL_FRAME: Bytes = Bytes::new(64);

/// Parameters of a memory model that are wrong or contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A lossless priority would lose frames.
    #[error(
        "port {port}: headroom = {given}, but {needed} can still come in after its neighbour was \
         told to be silent (both ways over the cable, jitter, the largest frame of each end)"
    )]
    Headroom {
        /// Where.
        port: PortNumber,
        /// What is configured.
        given: Bytes,
        /// The least that holds.
        needed: Bytes,
    },
    /// Nothing is left beside the headroom.
    #[error("port {port}: headroom = {headroom} leaves nothing of a buffer of {buffer}")]
    Buffer {
        /// Where.
        port: PortNumber,
        /// What is configured.
        headroom: Bytes,
        /// The port's buffer.
        buffer: Bytes,
    },
    /// Nothing is left to share.
    #[error("pool.size = {size}, but reserves and headroom alone take {taken}")]
    Pool {
        /// What is configured.
        size: Bytes,
        /// Reserves and headroom of all ports.
        taken: Bytes,
    },
    /// One priority's headroom does not fit the pool for all.
    #[error("pool.headroom_pool = {pool} is less than headroom = {headroom}")]
    HeadroomPool {
        /// What is configured.
        pool: Bytes,
        /// What one may take.
        headroom: Bytes,
    },
    /// A parameter of the model is unknown or wrong.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// Silence would never end.
    #[error("pool.threshold = {threshold} is not above pool.hysteresis = {hysteresis}")]
    Hysteresis {
        /// What is configured.
        threshold: Bytes,
        /// What it must fall.
        hysteresis: Bytes,
    },
}

/// The headroom that holds at an inlet, if a neighbour may go on for a while (the jitter) after it
/// should have heard.
pub type Needed = fn(&Inlet, Duration) -> Bytes;

/// What can still come in by `inlet` after the decision that its neighbour shall be silent.
pub fn behind_xoff(inlet: &Inlet, jitter: Duration) -> Bytes {
    let on_its_way = inlet.rate.octets_in(inlet.delay * 2 + jitter);
    on_its_way + inlet.full_frame * 2 + CONTROL_FRAME
}

/// The same with the frame that led to the decision: where a mark is passed by frames, not by octets,
/// nearly all of it may be above.
pub fn behind_a_mark(inlet: &Inlet, jitter: Duration) -> Bytes {
    behind_xoff(inlet, jitter) + inlet.full_frame
}

/// Whether the configured headroom is what is `needed` wherever something is lossless.
///
/// # Errors
/// Naming the first port where it is not.
pub fn check(room: Room<'_>, needed: Needed) -> Result<(), MemoryError> {
    let given = room.numbers.headroom;
    for (index, inlet) in room.inlets.iter().enumerate() {
        let needed = needed(inlet, room.numbers.jitter);
        if inlet.lossless != 0 && given < needed {
            let port = PortNumber::from_index(index);
            return Err(MemoryError::Headroom { port, given, needed });
        }
    }
    Ok(())
}
