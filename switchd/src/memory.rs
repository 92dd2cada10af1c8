//! The memory of a switch: queues of frames, and the admission of frames to the buffer.
//!
//! [`queues`] holds the frames and chooses which input an output serves next; it is the same in every
//! switch. A memory model, trait [`Memory`], accounts for the buffer: it admits or refuses frames, and
//! decides which priorities of which inputs must pause. Models handle sizes, not frames. A new model is
//! one file in `memory/` and one row in [`models`].

use crate::port_set::PortSet;
use headroom::MemoryError;
use ingress::Room;
use proto::counters::DropReason;
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Bytes;

pub mod headroom;
pub(crate) mod ingress;
mod level;
pub mod models;
pub(crate) mod queues;
mod shared_pool;
mod slab;
mod watermarks;

/// The decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The frame occupies its room until [`Memory::release`].
    Taken,
    /// There is no room; the frame is dropped for this reason.
    Refused(DropReason),
}

/// Headroom that is nearly full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadroomAlarm {
    /// Octets in use.
    pub used: Bytes,
    /// Octets in all.
    pub headroom: Bytes,
}

/// A memory model: it accounts for the buffer of an Ethernet switch, whose lanes are priorities. With
/// credits the ports account for their buffers themselves.
pub trait Memory: Send {
    /// Decides about a frame of `size` octets from `input` on `lane`, after its routing.
    fn admit(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) -> Admission;

    /// The alarm that the last admission raised; at most one per headroom.
    fn take_alarm(&mut self) -> Option<HeadroomAlarm>;

    /// Adopts other thresholds. Frames keep their room, and each port and priority compares with the new threshold when
    /// one of its own frames arrives or leaves.
    ///
    /// # Errors
    /// If the numbers contradict each other, or one cannot change while frames are in the memory. Then nothing changes.
    fn change(&mut self, room: Room<'_>) -> Result<(), MemoryError>;

    /// Frees the room of an admitted frame, when all its copies have left or were dropped.
    fn release(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes);

    /// Whether an admitted frame of `size` octets may join an output queue that holds `standing` octets.
    fn may_join(
        &self,
        _input: PortNumber,
        _lane: VirtualLane,
        _size: Bytes,
        _standing: Bytes,
    ) -> bool {
        true
    }

    /// The priorities of `input` whose sender must pause, bit n for priority n.
    fn demands(&self, input: PortNumber) -> u8;

    /// The inputs whose demands may have changed since the last call.
    fn take_changed(&mut self) -> PortSet;

    /// Octets that frames of `input` and `lane` occupy.
    fn held(&self, input: PortNumber, lane: VirtualLane) -> Bytes;

    /// Adds the watermarks of `input`, under operators' names.
    fn read(&self, input: PortNumber, named: &mut Vec<(String, u64)>);

    /// Restarts the watermarks at the present levels.
    fn clear_watermarks(&mut self);
}
