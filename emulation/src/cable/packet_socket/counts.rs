//! The indices of rings that are shared with the kernel: slots that are used in turn, and the places and counts of frames.
//!
//! Counts have 32 bits and wrap. Nothing here reads memory of a ring or calls the kernel, so tests/tests/chaos/rings.rs
//! tries all cases.

use std::cell::Cell;
use std::ops::Range;

/// The slot to be read next, of `SLOTS` slots that are used in turn.
#[derive(Debug, Default)]
pub struct NextSlot<const SLOTS: usize>(Cell<usize>);

impl<const SLOTS: usize> NextSlot<SLOTS> {
    /// Its index, below `SLOTS`.
    pub fn index(&self) -> usize {
        self.0.get()
    }

    /// Goes on to the slot behind it.
    pub fn advance(&self) {
        self.0.set((self.0.get() + 1) % SLOTS);
    }
}

/// Where a frame is in `slot_octets` octets of a slot: the kernel's offset of the frame and its octets there, with
/// `before` octets in front of it. `None` if that is not within the slot.
pub fn frame_in_slot(
    slot_octets: usize,
    before: usize,
    offset: u16,
    octets: u32,
) -> Option<Range<usize>> {
    let begin = usize::from(offset).checked_sub(before)?;
    let end = usize::from(offset).checked_add(octets as usize)?;
    (end <= slot_octets).then_some(begin..end)
}

/// Which of `PLACES` places, of `OCTETS` octets each, are free in a send ring, and how many frames the kernel has taken.
/// `PLACES` is a power of two.
///
/// ```text
///   free ── put ──▶ waiting ── the kernel takes it ──▶ in transmission ── returned ──▶ free
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SendCounts<const PLACES: usize, const OCTETS: usize> {
    /// Places without a frame.
    free: Vec<usize>,
    /// Frames ever put in.
    put: u32,
    /// Frames that the kernel has taken.
    taken: u32,
    /// Forgotten entries that the kernel may not have skipped yet.
    forgotten: u32,
    is_refused: bool,
}

impl<const PLACES: usize, const OCTETS: usize> SendCounts<PLACES, OCTETS> {
    /// All places are free, and `begin` frames were put in and taken before.
    pub fn new(begin: u32) -> Self {
        const { assert!(PLACES.is_power_of_two()) };
        let free = (0..PLACES).collect();
        SendCounts { free, put: begin, taken: begin, forgotten: 0, is_refused: false }
    }

    /// The entry of a ring for the frame or completion of this number, below `PLACES`.
    pub const fn entry(number: u32) -> usize {
        number as usize % PLACES
    }

    /// The address of a place.
    pub const fn address(place: usize) -> u64 {
        (place * OCTETS) as u64
    }

    /// Frames that were put in and not taken yet.
    pub const fn waits(&self) -> usize {
        self.put.wrapping_sub(self.taken) as usize
    }

    /// The kernel refused the last frame that it took. It must be sent in another way, before those that wait.
    pub const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// That frame was sent in another way.
    pub const fn skip(&mut self) {
        self.is_refused = false;
    }

    /// Frames ever put in, as the kernel reads it.
    pub const fn written(&self) -> u32 {
        self.put
    }

    /// A free place for a frame, and the number of the frame.
    pub fn put(&mut self) -> Option<(usize, u32)> {
        let place = self.free.pop()?;
        let number = self.put;
        self.put = number.wrapping_add(1);
        Some((place, number))
    }

    /// The place in which this address lies has no frame any more. An address outside all places is that of a forgotten
    /// entry, which some kernels report too.
    pub fn returned(&mut self, address: u64) {
        let place = address / OCTETS as u64;
        self.free.extend((place < PLACES as u64).then_some(place as usize));
    }

    /// Forgets the frames that wait and returns their numbers. Their entries must name no place from now on, and their
    /// places must be returned.
    pub fn forget(&mut self) -> impl Iterator<Item = u32> + use<PLACES, OCTETS> {
        let (first, waited) = (self.taken, self.waits() as u32);
        self.forgotten += waited;
        self.taken = self.put;
        self.is_refused = false;
        (0..waited).map(move |ahead| first.wrapping_add(ahead))
    }

    /// Whether the kernel, whose count is `consumed`, has looked at the ring lately: half of the entries can be forgotten.
    pub const fn is_near(&self, consumed: u32) -> bool {
        self.put.wrapping_sub(consumed) as usize <= PLACES / 2
    }

    /// Has the kernel take what waits: `once` calls it, and returns its count of frames taken and its error.
    /// Returns how many of the frames that waited were sent, and the error.
    pub fn call<E>(
        &mut self,
        mut once: impl FnMut() -> (u32, Option<E>),
        is_refusal: impl Fn(&E) -> bool,
    ) -> (usize, Option<E>) {
        let (counted, error) = loop {
            let (consumed, error) = once();
            let counted = consumed.wrapping_sub(self.taken);
            // The count lags behind after a frame that was taken alone and refused.
            let counted = if counted as usize > self.waits() { 0 } else { counted };
            // Some kernels skip one forgotten entry a call, and take no other.
            if counted > 0 || error.is_some() || self.forgotten == 0 {
                break (counted, error);
            }
            self.forgotten -= 1;
        };
        if counted > 0 {
            self.forgotten = 0;
        }
        // The interface refused a frame, and the kernel stopped behind it.
        self.is_refused = error.as_ref().is_some_and(is_refusal);
        let taken = if self.is_refused { counted.max(1) } else { counted };
        self.taken = self.taken.wrapping_add(taken);
        (taken as usize - usize::from(self.is_refused), error)
    }
}
