//! Headroom: the octets that still arrive after XOFF, and the check that a configuration provides for them.
//!
//! ```text
//! local frame under way | PFC frame | cable | [reaction, jitter] its frame under way | cable
//! ```
//!
//! The neighbour sends during all of this time. Source: IEEE 802.1Q, annex N (buffer requirements for PFC).

use super::HeadroomAlarm;
use super::ingress::{IngressPort, Room};
use proto::ids::PortNumber;
use proto::params::ParamError;
use proto::units::Bytes;

/// Use of headroom above this share, in hundredths, raises an alarm. Source: docs/spec/algorithms.md 7.
const ALARM_ABOVE: u64 = 80;

/// Octets of one lossy priority that find room whatever else is full: about 50 CNPs. Source: HPCC simulator,
/// `switch-mmu.cc` (the reserve of a shared pool).
pub const FEEDBACK: Bytes = Bytes::new(4096);

/// Raises one alarm when a headroom is nearly full.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadroomWatch {
    raised: bool,
}

impl HeadroomWatch {
    /// Notes that `used` octets of `headroom` are in use; returns the alarm the first time it is due.
    pub fn note(&mut self, used: Bytes, headroom: Bytes) -> Option<HeadroomAlarm> {
        if self.raised || used * 100 <= headroom * ALARM_ABOVE {
            return None;
        }
        self.raised = true;
        Some(HeadroomAlarm { used, headroom })
    }
}

/// Octets of a MAC control frame with FCS.
const CONTROL_FRAME: Bytes = Bytes::new(64);

/// Parameters of a memory model that are wrong or contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A lossless priority would lose frames.
    #[error(
        "port {port}: headroom = {given}, but {needed} can still arrive after \
         XOFF (both ways over the cable, jitter, the largest frame of each end)"
    )]
    Headroom {
        /// The port.
        port: PortNumber,
        /// The configured value.
        given: Bytes,
        /// The least sufficient value.
        needed: Bytes,
    },
    /// The headroom fills the whole buffer.
    #[error("port {port}: headroom = {headroom} leaves nothing of a buffer of {buffer}")]
    Buffer {
        /// The port.
        port: PortNumber,
        /// The configured value.
        headroom: Bytes,
        /// The port's buffer.
        buffer: Bytes,
    },
    /// Reserves and headroom fill the whole pool.
    #[error("pool.size = {size}, but reserves and headroom alone take {taken}")]
    Pool {
        /// The configured value.
        size: Bytes,
        /// Reserves and headroom of all ports.
        taken: Bytes,
    },
    /// The headroom of one priority exceeds the headroom pool.
    #[error("pool.headroom_pool = {pool} is less than headroom = {headroom}")]
    HeadroomPool {
        /// The configured value.
        pool: Bytes,
        /// The headroom of one priority.
        headroom: Bytes,
    },
    /// The queue of a lossy priority is so short that it loses the feedback that is to shorten it.
    #[error("pool.lossy_queue = {given} is less than {least}, the room that notifications need")]
    LossyQueue {
        /// The configured value.
        given: Bytes,
        /// What it must be at least.
        least: Bytes,
    },
    /// A parameter of the model is unknown or wrong.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A number that holds as long as the switch runs.
    #[error("{0} cannot change while frames are in the memory")]
    Fixed(&'static str),
    /// The threshold does not exceed the hysteresis: a pause would never end.
    #[error("pool.threshold = {threshold} is not above pool.hysteresis = {hysteresis}")]
    Hysteresis {
        /// The configured value.
        threshold: Bytes,
        /// The configured hysteresis.
        hysteresis: Bytes,
    },
}

/// The headroom that an ingress port of a switch needs.
pub type Needed = fn(&IngressPort, Room<'_>) -> Bytes;

/// Octets that can still arrive at `port` after the decision to pause its neighbour, which may take longer to react by
/// the jitter.
pub fn behind_xoff(port: &IngressPort, room: Room<'_>) -> Bytes {
    let on_its_way = port.rate.octets_in(port.delay * 2 + room.numbers.jitter);
    on_its_way + port.full_frame * 2 + CONTROL_FRAME
}

/// Like [`behind_xoff`], plus the frame that led to the decision: nearly all of it may exceed the mark.
pub fn behind_a_mark(port: &IngressPort, room: Room<'_>) -> Bytes {
    behind_xoff(port, room) + port.full_frame
}

/// How far a pool of headroom goes that cannot serve all lossless priorities of all ports at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortPool {
    /// Its size.
    pub size: Bytes,
    /// How many it serves, whichever they are.
    pub served: usize,
    /// How many there are.
    pub all: usize,
    /// The size that serves all.
    pub needed: Bytes,
}

/// How far a pool of `size` goes, of which each lossless priority of a port may need what is `needed` there; `None` if it
/// serves all.
pub fn short_pool(size: Bytes, room: Room<'_>, needed: Needed) -> Option<ShortPool> {
    let each = |port: &IngressPort| vec![needed(port, room); port.lossless.count_ones() as usize];
    let mut each: Vec<Bytes> = room.ingress.iter().flat_map(each).collect();
    each.sort_unstable_by(|a, b| b.cmp(a));
    let (mut served, mut needed) = (0, Bytes::ZERO);
    for octets in &each {
        needed += *octets;
        served += usize::from(needed <= size);
    }
    (served < each.len()).then_some(ShortPool { size, served, all: each.len(), needed })
}

/// Checks that the configured headroom covers what is `needed` at every port with lossless priorities.
///
/// # Errors
/// The first port where it does not.
pub fn check(
    room: Room<'_>,
    needed: impl Fn(&IngressPort, Room<'_>) -> Bytes,
) -> Result<(), MemoryError> {
    let given = room.numbers.headroom;
    for (index, ingress) in room.ingress.iter().enumerate() {
        let needed = needed(ingress, room);
        if ingress.lossless != 0 && given < needed {
            let port = PortNumber::from_index(index);
            return Err(MemoryError::Headroom { port, given, needed });
        }
    }
    Ok(())
}
