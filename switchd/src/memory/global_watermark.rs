//! One memory for all inputs with one XOFF mark: when it fills, all neighbours pause.
//!
//! N ports with buffers of M share N·M. From N·(M − headroom) on all neighbours pause, until half of that.
//! This model shares memory best but isolates no input; multi-stage networks can deadlock with it.
//!
//! Source: the Zurich benchmark, shared switch.

use super::headroom::{self, HeadroomWatch, MemoryError};
use super::ingress::Room;
use super::level::{Level, Mark};
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
    /// If the headroom is too small, or fills a whole buffer.
    pub fn new(room: Room<'_>) -> Result<GlobalWatermark, MemoryError> {
        let given = room.numbers.headroom;
        headroom::check(room, headroom::behind_a_mark)?;
        // Without lossless priorities no headroom is needed.
        let pauses = room.ingress.iter().any(|port| port.lossless != 0);
        let headroom = if pauses { given } else { Bytes::ZERO };
        let (mut size, mut xoff) = (Bytes::ZERO, Bytes::ZERO);
        for (index, ingress) in room.ingress.iter().enumerate() {
            if headroom >= ingress.buffer {
                let (port, buffer) = (PortNumber::from_index(index), ingress.buffer);
                return Err(MemoryError::Buffer { port, headroom, buffer });
            }
            size += ingress.buffer;
            xoff += ingress.buffer - headroom;
        }
        Ok(GlobalWatermark {
            lanes: vec![[Bytes::ZERO; 8]; room.ingress.len()],
            lossless: room.ingress.iter().map(|port| port.lossless).collect(),
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
    use crate::memory::ingress::ingress;

    #[test]
    fn one_input_that_fills_the_memory_pauses_all_until_half_is_free() {
        let numbers = MemoryConfig { headroom: Bytes::new(15_000), ..MemoryConfig::default() };
        let room = Room { ingress: &ingress(4), numbers: &numbers };
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
