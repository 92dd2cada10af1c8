//! The switch's memory: what may come in, who must be silent, and where frames wait.
//!
//! Those are two things. [`queues`] keeps frames and knows which input an output serves next; it is
//! the same for every switch. A memory model, trait [`Memory`], keeps account of room: it takes or
//! refuses what comes in, and says which priorities of which inputs are to be silent. Models know
//! sizes and places, not frames. A further model is one file in `memory/` and one row in [`models`].

use crate::port_set::PortSet;
use proto::counters::DropReason;
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Bytes;

pub mod global_watermark;
pub mod headroom;
pub mod level;
pub mod models;
pub mod per_input;
pub mod queues;
pub mod shared_pool;
pub mod shelf;

/// Whether a frame may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Its room is taken until [`Memory::release`].
    Taken,
    /// There is none.
    Refused(DropReason),
}

/// Headroom of which nearly all is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadroomAlarm {
    /// What is used of it.
    pub used: Bytes,
    /// All of it.
    pub headroom: Bytes,
}

/// A memory model: the account of room, where links are paused and lanes are priorities. With credits
/// the ports keep it themselves.
pub trait Memory: Send {
    /// A frame of `size` came in by `input` on `lane` and knows where to go.
    fn admit(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) -> Admission;

    /// Whether the frame admitted last has taken nearly all of some headroom, told once for each.
    fn take_alarm(&mut self) -> Option<HeadroomAlarm>;

    /// It is gone, with all its copies: its last bit has left, or it was dropped after all.
    fn release(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes);

    /// Whether a frame admitted from `input` and `lane` may join a queue of an output in which
    /// `standing` octets are.
    fn may_join(
        &self,
        _input: PortNumber,
        _lane: VirtualLane,
        _size: Bytes,
        _standing: Bytes,
    ) -> bool {
        true
    }

    /// The priorities of `input` that are to be silent, bit n for priority n.
    fn demands(&self, input: PortNumber) -> u8;

    /// Inputs whose demands may have changed since somebody asked.
    fn take_changed(&mut self) -> PortSet;

    /// Octets held for `input` and `lane`.
    fn held(&self, input: PortNumber, lane: VirtualLane) -> Bytes;

    /// Adds the greatest levels of `input` so far, under operators' names.
    fn read(&self, input: PortNumber, named: &mut Vec<(String, u64)>);

    /// Takes the greatest levels anew from the present ones.
    fn clear_watermarks(&mut self);
}
