//! One memory for all inputs: a reserve for each port and priority, a shared part with a threshold
//! for each, and headroom for those that must lose nothing.
//!
//! ```text
//! | reserves | shared: each up to its threshold, then XOFF | headroom: frames that arrive after XOFF |
//! ```
//!
//! The neighbour of a port and priority pauses once its shared octets have reached the threshold. Frames
//! that arrive after that occupy headroom. The neighbour resumes when the headroom is empty and the shared
//! octets have fallen below the threshold by the hysteresis, or to zero. A dynamic threshold moves with
//! every frame of the switch; a port and priority compares with it when one of its own frames arrives or
//! leaves, as switches do.
//!
//! A lossy priority has no headroom: its frames are dropped at the threshold, and where their queue
//! at an output is full.
//!
//! Source: HPCC simulator, `switch-mmu.cc` (dynamic threshold, reserve, headroom, hysteresis).

use super::headroom::{self, HeadroomWatch, MemoryError};
use super::ingress::{IngressPort, Room};
use super::level::Level;
use super::{Admission, HeadroomAlarm, Memory};
use crate::port_set::PortSet;
use proto::counters::DropReason;
use proto::ids::{PortNumber, VirtualLane};
use proto::params::{self, FromValue, Key, KeyTable, Kind, Params, Value};
use proto::units::Bytes;

const PRIORITIES: usize = 8;

/// The key of `[fabric.switch]` with the parameters.
pub static SECTION: Key = Key::new("pool", Kind::Table(&POOL), "{}", POOL.about);

static POOL: KeyTable = KeyTable::new("the parameters of a shared pool", PoolParams::KEYS);

proto::params! {
    /// Parameters of a shared pool. Defaults are those of the HPCC simulator with the memory of a Trident II.
    #[derive(Copy)]
    pub struct PoolParams {
        /// The whole memory: reserves, headroom, and the shared part.
        size: Bytes = Size, Default("9 MB"), "HPCC simulator, switch-mmu.cc";
        /// Octets that each port and priority has for itself.
        reserve: Bytes = Size, Default("4 KiB"), "HPCC simulator, switch-mmu.cc";
        /// The most that one port and priority may take of the shared part before its neighbour is paused, or
        /// its frames are dropped: the free octets divided by 2 to this power, or a size.
        threshold: Threshold = Either(&[Kind::Whole(0, 16), Kind::Size]), Default("1"), "HPCC simulator, switch-mmu.cc";
        /// Fall below the threshold after which the neighbour may send again.
        hysteresis: Bytes = Size, Default("3 KiB"), "HPCC simulator, switch-mmu.cc";
        /// Headroom of all ports and priorities together, of which each may take `headroom`.
        headroom_pool: Option<Bytes> = Size, Else("`headroom` for each port and lossless priority");
        /// The most that may stand at an output in one lossy priority; at least 4 KiB, the room for notifications.
        lossy_queue: Option<Bytes> = Size, Optional;
    }
}

/// How much of the shared part one port and priority may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// The free octets divided by two to this power: alpha = 2^-shift.
    Shift(u8),
    /// This size.
    Octets(Bytes),
}

impl FromValue for Threshold {
    fn from_value(value: &Value) -> Option<Threshold> {
        u8::from_value(value)
            .map(Threshold::Shift)
            .or_else(|| Bytes::from_value(value).map(Threshold::Octets))
    }
}

impl PoolParams {
    /// The headroom of all groups together, if each may take `each`.
    fn headroom(&self, room: Room<'_>, each: Bytes) -> Bytes {
        let lossless = room.ingress.iter().map(|port| u64::from(port.lossless.count_ones()));
        self.headroom_pool.unwrap_or(each * lossless.sum::<u64>())
    }

    /// Reserves and headroom.
    fn taken(&self, room: Room<'_>, each: Bytes) -> Bytes {
        self.reserve * groups(room) + self.headroom(room, each)
    }

    /// Whether a group below its threshold may find no room for a full frame in the shared part.
    ///
    /// At worst all groups first fill it one after another, each up to its threshold at that time, which is 1/(2^shift + 1)
    /// of what the groups before it have left. Then each takes the frame that reaches the threshold.
    fn can_fill(&self, room: Room<'_>, each: Bytes) -> bool {
        let mut free = self.size.get().saturating_sub(self.taken(room, each).get());
        for _ in 0..groups(room) {
            free = free.saturating_sub(match self.threshold {
                Threshold::Octets(octets) => octets.get(),
                Threshold::Shift(shift) => free.div_ceil((1 << shift) + 1),
            });
        }
        let frame = room.ingress.iter().map(|port| port.full_frame).max().unwrap_or_default();
        frame * groups(room) > Bytes::new(free)
    }

    /// The headroom that `port` needs. Where the shared part can be full, a frame that finds no room there occupies
    /// headroom, and XOFF follows it. A pool with less by that frame is made; validation warns of it.
    fn needed(&self, port: &IngressPort, room: Room<'_>) -> Bytes {
        let least = headroom::behind_xoff(port, room);
        match self.can_fill(room, room.numbers.headroom.max(least)) {
            true => headroom::behind_a_mark(port, room),
            false => least,
        }
    }
}

/// Priority groups of a switch.
fn groups(room: Room<'_>) -> u64 {
    (room.ingress.len() * PRIORITIES) as u64
}

/// The headroom that a port needs; with parameters that cannot be read, as with the defaults.
pub(super) fn needed(port: &IngressPort, room: Room<'_>) -> Bytes {
    let params = params::read(&room.numbers.params);
    params.unwrap_or_else(|_| params::defaults::<PoolParams>()).needed(port, room)
}

/// A priority group: the octets that one port and priority holds.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    reserved: Bytes,
    shared: Level,
    headroom: Level,
    watch: HeadroomWatch,
    /// Its neighbour must pause.
    paused: bool,
}

/// The memory.
#[derive(Debug)]
pub struct SharedPool {
    /// By port and priority.
    groups: Vec<Group>,
    /// By port.
    lossless: Vec<u8>,
    numbers: PoolParams,
    /// The limit of one group's headroom.
    headroom_each: Bytes,
    /// The headroom of all groups, and its limit.
    headroom: Level,
    headroom_size: Bytes,
    headroom_watch: HeadroomWatch,
    alarm: Option<HeadroomAlarm>,
    /// The shared octets of all groups, and their limit.
    shared: Bytes,
    shared_size: Bytes,
    /// All octets in use.
    held: Level,
    changed: PortSet,
}

impl SharedPool {
    /// An empty memory.
    ///
    /// # Errors
    /// If a parameter is wrong, if the headroom is too small, if no shared octets are left, or if a fixed
    /// threshold does not exceed the hysteresis.
    pub fn new(room: Room<'_>) -> Result<SharedPool, MemoryError> {
        SharedPool::of(room, params::read(&room.numbers.params)?)
    }

    fn of(room: Room<'_>, numbers: PoolParams) -> Result<SharedPool, MemoryError> {
        let headroom_each = room.numbers.headroom;
        headroom::check(room, headroom::behind_xoff)?;
        let headroom_size = numbers.headroom(room, headroom_each);
        let is_lossless = room.ingress.iter().any(|ingress| ingress.lossless != 0);
        if is_lossless && headroom_size < headroom_each {
            let (pool, headroom) = (headroom_size, headroom_each);
            return Err(MemoryError::HeadroomPool { pool, headroom });
        }
        if let Threshold::Octets(threshold) = numbers.threshold
            && threshold <= numbers.hysteresis
        {
            let hysteresis = numbers.hysteresis;
            return Err(MemoryError::Hysteresis { threshold, hysteresis });
        }
        if let Some(given) = numbers.lossy_queue
            && given < headroom::FEEDBACK
        {
            return Err(MemoryError::LossyQueue { given, least: headroom::FEEDBACK });
        }
        let taken = numbers.taken(room, headroom_each);
        if taken >= numbers.size {
            return Err(MemoryError::Pool { size: numbers.size, taken });
        }
        Ok(SharedPool {
            groups: vec![Group::default(); groups(room) as usize],
            lossless: room.ingress.iter().map(|ingress| ingress.lossless).collect(),
            headroom_each,
            headroom: Level::default(),
            headroom_size,
            headroom_watch: HeadroomWatch::default(),
            alarm: None,
            shared: Bytes::ZERO,
            shared_size: numbers.size - taken,
            numbers,
            held: Level::default(),
            changed: PortSet::EMPTY,
        })
    }

    fn is_lossless(&self, input: PortNumber, lane: VirtualLane) -> bool {
        self.lossless[input.index()] >> lane.get() & 1 == 1
    }

    /// The present threshold of a group.
    fn threshold(&self) -> Bytes {
        match self.numbers.threshold {
            Threshold::Octets(octets) => octets,
            Threshold::Shift(shift) => {
                let free = (self.shared_size - self.shared).get();
                Bytes::new(free.checked_shr(shift.into()).unwrap_or(0))
            }
        }
    }

    /// Decides whether `size` octets beyond a group's reserve are shared octets or headroom.
    fn place(&self, group: &Group, size: Bytes, lossless: bool) -> Result<Part, DropReason> {
        let threshold = self.threshold();
        let fits = self.shared + size <= self.shared_size;
        if !lossless {
            let within = fits && group.shared.get() + size <= threshold;
            return if within { Ok(Part::Shared) } else { Err(DropReason::BufferFull) };
        }
        // The frame that reaches the threshold arrived before XOFF, so it is not headroom yet.
        if fits && (!group.paused || group.shared.get() < threshold) {
            return Ok(Part::Shared);
        }
        let holds = group.headroom.get() + size <= self.headroom_each
            && self.headroom.get() + size <= self.headroom_size;
        if holds { Ok(Part::Headroom) } else { Err(DropReason::HeadroomOverrun) }
    }

    /// Updates the pause state of a lossless group.
    fn update_pause(&mut self, input: PortNumber, index: usize) {
        let threshold = self.threshold();
        let group = &mut self.groups[index];
        let shared = group.shared.get();
        let paused = if group.paused {
            let low = shared == Bytes::ZERO || shared + self.numbers.hysteresis <= threshold;
            group.headroom.get() > Bytes::ZERO || !low
        } else {
            group.headroom.get() > Bytes::ZERO || shared > Bytes::ZERO && shared >= threshold
        };
        if std::mem::replace(&mut group.paused, paused) != paused {
            self.changed.insert(input);
        }
    }
}

/// The account of octets beyond a group's reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Shared,
    Headroom,
}

fn index(input: PortNumber, lane: VirtualLane) -> usize {
    input.index() * PRIORITIES + lane.index()
}

impl Memory for SharedPool {
    fn admit(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) -> Admission {
        let (at, lossless) = (index(input, lane), self.is_lossless(input, lane));
        let group = self.groups[at];
        let reserved = size.min(self.numbers.reserve - group.reserved);
        let beyond = size - reserved;
        if beyond > Bytes::ZERO {
            match self.place(&group, beyond, lossless) {
                Ok(Part::Shared) => {
                    self.groups[at].shared.rise(beyond);
                    self.shared += beyond;
                }
                Ok(Part::Headroom) => {
                    self.headroom.rise(beyond);
                    let all = self.headroom_watch.note(self.headroom.get(), self.headroom_size);
                    let group = &mut self.groups[at];
                    group.headroom.rise(beyond);
                    self.alarm = group.watch.note(group.headroom.get(), self.headroom_each).or(all);
                }
                Err(reason) => return Admission::Refused(reason),
            }
        }
        self.groups[at].reserved += reserved;
        self.held.rise(size);
        if lossless {
            self.update_pause(input, at);
        }
        Admission::Taken
    }

    fn change(&mut self, room: Room<'_>) -> Result<(), MemoryError> {
        let fresh = SharedPool::new(room)?;
        let has_same = |size: fn(&SharedPool) -> Bytes| size(&fresh) == size(self);
        let fixed = [
            ("pool.size", has_same(|pool| pool.numbers.size)),
            ("pool.reserve", has_same(|pool| pool.numbers.reserve)),
            ("headroom", has_same(|pool| pool.headroom_each)),
            ("pool.headroom_pool", has_same(|pool| pool.headroom_size)),
        ];
        if let Some((name, _)) = fixed.into_iter().find(|(_, is_same)| !is_same) {
            return Err(MemoryError::Fixed(name));
        }
        self.numbers = fresh.numbers;
        Ok(())
    }

    fn take_alarm(&mut self) -> Option<HeadroomAlarm> {
        self.alarm.take()
    }

    /// Frees headroom first, shared octets next, and the reserve last.
    fn release(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) {
        let at = index(input, lane);
        let group = &mut self.groups[at];
        let headroom = size.min(group.headroom.get());
        let shared = (size - headroom).min(group.shared.get());
        group.headroom.fall(headroom);
        group.shared.fall(shared);
        group.reserved = group.reserved - (size - headroom - shared);
        self.headroom.fall(headroom);
        self.shared = self.shared - shared;
        self.held.fall(size);
        if self.is_lossless(input, lane) {
            self.update_pause(input, at);
        }
    }

    fn may_join(&self, input: PortNumber, lane: VirtualLane, size: Bytes, standing: Bytes) -> bool {
        let within = |limit| standing + size <= limit;
        self.is_lossless(input, lane) || self.numbers.lossy_queue.is_none_or(within)
    }

    fn demands(&self, input: PortNumber) -> u8 {
        let first = input.index() * PRIORITIES;
        let groups = self.groups[first..first + PRIORITIES].iter().enumerate();
        groups.fold(0, |bits, (priority, group)| bits | u8::from(group.paused) << priority)
    }

    fn take_changed(&mut self) -> PortSet {
        std::mem::take(&mut self.changed)
    }

    fn held(&self, input: PortNumber, lane: VirtualLane) -> Bytes {
        let group = &self.groups[index(input, lane)];
        group.reserved + group.shared.get() + group.headroom.get()
    }

    fn read(&self, input: PortNumber, named: &mut Vec<(String, u64)>) {
        let first = input.index() * PRIORITIES;
        for (priority, group) in self.groups[first..first + PRIORITIES].iter().enumerate() {
            let levels = [("shared", group.shared), ("headroom", group.headroom)];
            for (what, level) in levels.into_iter().filter(|(_, level)| level.max() > Bytes::ZERO) {
                named.push((format!("pg{priority}_{what}_watermark"), level.max().get()));
            }
        }
        // The first port shows the totals of the whole memory.
        if input.index() == 0 {
            named.push(("buffer_pool_watermark".to_owned(), self.held.max().get()));
            named.push(("headroom_pool_watermark".to_owned(), self.headroom.max().get()));
        }
    }

    fn clear_watermarks(&mut self) {
        for group in &mut self.groups {
            group.shared.restart();
            group.headroom.restart();
        }
        self.headroom.restart();
        self.held.restart();
    }
}

#[cfg(test)]
mod tests;
