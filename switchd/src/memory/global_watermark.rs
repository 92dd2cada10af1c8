//! One memory for all inputs with one pair of marks: when it fills, every neighbour is silent.
//!
//! N ports with buffers of M share N·M. From N·(M − headroom) on everybody is silent, until half of
//! that. It shares best and isolates nobody; in nets of several stages it can deadlock.
//!
//! Source: the Zurich benchmark, shared switch.

use super::headroom::{self, HeadroomWatch, MemoryError};
use super::level::{Level, Mark};
use super::models::Room;
use super::{Admission, HeadroomAlarm, Memory};
use crate::port_set::PortSet;
use proto::counters::DropReason;
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Bytes;

/// The memory.
#[derive(Debug)]
pub struct GlobalWatermark {
    /// By input and lane.
    lanes: Vec<[Bytes; 8]>,
    /// By input.
    lossless: Vec<u8>,
    held: Level,
    size: Bytes,
    mark: Mark,
    watch: HeadroomWatch,
    alarm: Option<HeadroomAlarm>,
    changed: PortSet,
}

impl GlobalWatermark {
    /// An empty memory.
    ///
    /// # Errors
    /// If the headroom does not hold what may still come in, or leaves nothing of a buffer.
    pub fn new(room: Room<'_>) -> Result<GlobalWatermark, MemoryError> {
        let given = room.numbers.headroom;
        headroom::check(room, headroom::behind_a_mark)?;
        // Where nobody can be silenced there is no headroom to keep.
        let pauses = room.inlets.iter().any(|inlet| inlet.lossless != 0);
        let headroom = if pauses { given } else { Bytes::ZERO };
        let (mut size, mut xoff) = (Bytes::ZERO, Bytes::ZERO);
        for (index, inlet) in room.inlets.iter().enumerate() {
            if headroom >= inlet.buffer {
                let (port, buffer) = (PortNumber::from_index(index), inlet.buffer);
                return Err(MemoryError::Buffer { port, headroom, buffer });
            }
            size += inlet.buffer;
            xoff += inlet.buffer - headroom;
        }
        Ok(GlobalWatermark {
            lanes: vec![[Bytes::ZERO; 8]; room.inlets.len()],
            lossless: room.inlets.iter().map(|inlet| inlet.lossless).collect(),
            held: Level::default(),
            size,
            mark: Mark::new(xoff, Bytes::new(xoff.get() / 2)),
            watch: HeadroomWatch::default(),
            alarm: None,
            changed: PortSet::EMPTY,
        })
    }

    fn note(&mut self) {
        if self.mark.note(self.held.get()) {
            let all = (0..self.lossless.len()).map(PortNumber::from_index);
            all.for_each(|port| self.changed.insert(port));
        }
    }
}

impl Memory for GlobalWatermark {
    fn admit(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) -> Admission {
        let (limit, reason) = match self.lossless[input.index()] >> lane.get() & 1 {
            1 => (self.size, DropReason::HeadroomOverrun),
            _ => (self.mark.xoff, DropReason::BufferFull),
        };
        if self.held.get() + size > limit {
            return Admission::Refused(reason);
        }
        self.held.rise(size);
        self.lanes[input.index()][lane.index()] += size;
        self.alarm = self.mark.beyond(self.held.get()).and_then(|used| {
            let headroom = self.size - self.mark.xoff;
            self.watch.note(used, headroom)
        });
        self.note();
        Admission::Taken
    }

    fn take_alarm(&mut self) -> Option<HeadroomAlarm> {
        self.alarm.take()
    }

    fn release(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) {
        let held = &mut self.lanes[input.index()][lane.index()];
        *held = *held - size;
        self.held.fall(size);
        self.note();
    }

    fn demands(&self, input: PortNumber) -> u8 {
        if self.mark.is_over() { self.lossless[input.index()] } else { 0 }
    }

    fn take_changed(&mut self) -> PortSet {
        std::mem::take(&mut self.changed)
    }

    fn held(&self, input: PortNumber, lane: VirtualLane) -> Bytes {
        self.lanes[input.index()][lane.index()]
    }

    fn read(&self, input: PortNumber, named: &mut Vec<(String, u64)>) {
        // The memory belongs to no port; the first one tells of it.
        if input.index() == 0 {
            named.push(("buffer_pool_watermark".to_owned(), self.held.max().get()));
        }
    }

    fn clear_watermarks(&mut self) {
        self.held.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MemoryConfig;
    use crate::memory::models::inlets;

    #[test]
    fn one_input_that_fills_the_memory_silences_all_until_half_is_gone() {
        let numbers = MemoryConfig { headroom: Bytes::new(15_000), ..MemoryConfig::default() };
        let room = Room { inlets: &inlets(4), numbers: &numbers };
        let mut memory = GlobalWatermark::new(room).unwrap();
        let (lane, frame) = (VirtualLane::truncate(3), Bytes::new(1_000));
        let ports: Vec<_> = (0..4).map(PortNumber::from_index).collect();
        for _ in 0..539 {
            assert_eq!(memory.admit(ports[0], lane, frame), Admission::Taken);
        }
        assert!(ports.iter().all(|port| memory.demands(*port) == 0));
        assert_eq!(memory.admit(ports[1], lane, frame), Admission::Taken);
        assert_eq!(memory.take_changed().iter().collect::<Vec<_>>(), ports);
        assert!(ports.iter().all(|port| memory.demands(*port) == 1 << 3));
        // What was under way still comes in, up to N·M.
        for _ in 0..60 {
            assert_eq!(memory.admit(ports[2], lane, frame), Admission::Taken);
        }
        let beyond = memory.admit(ports[2], lane, frame);
        assert_eq!(beyond, Admission::Refused(DropReason::HeadroomOverrun));
        for _ in 0..329 {
            memory.release(ports[0], lane, frame);
        }
        assert_eq!(memory.demands(ports[3]), 1 << 3, "271 000 of 540 000");
        memory.release(ports[0], lane, frame);
        assert_eq!(memory.demands(ports[3]), 0);
    }
}
