//! A buffer of its own for every input.
//!
//! On InfiniBand the ports account for it by credits. On Ethernet this is the partitioned memory of the
//! Zurich benchmark: the neighbour pauses from M − headroom on until half of that, where M is the buffer
//! and headroom covers the round-trip time. All priorities share the buffer, so all lossless priorities
//! pause together.
//!
//! Source: the Zurich benchmark, partitioned switch.

use super::headroom::{self, HeadroomWatch, MemoryError};
use super::ingress::{IngressPort, Room};
use super::level::{Level, Mark};
use super::{Admission, HeadroomAlarm, Memory};
use crate::port_set::PortSet;
use proto::counters::DropReason;
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Bytes;

#[derive(Debug)]
struct Buffer {
    lanes: [Bytes; 8],
    held: Level,
    size: Bytes,
    mark: Mark,
    watch: HeadroomWatch,
    lossless: u8,
}

/// Buffers whose senders are paused.
#[derive(Debug)]
pub struct PerInput {
    /// By input.
    buffers: Vec<Buffer>,
    alarm: Option<HeadroomAlarm>,
    changed: PortSet,
}

impl PerInput {
    /// Empty buffers.
    ///
    /// # Errors
    /// If the headroom is too small, or fills a whole buffer.
    pub fn new(room: Room<'_>) -> Result<PerInput, MemoryError> {
        headroom::check(room, headroom::behind_a_mark)?;
        let given = room.numbers.headroom;
        let buffers = room.ingress.iter().enumerate();
        let buffers = buffers.map(|(index, ingress)| Buffer::new(index, ingress, given));
        let buffers = buffers.collect::<Result<_, _>>()?;
        Ok(PerInput { buffers, alarm: None, changed: PortSet::EMPTY })
    }
}

impl Buffer {
    fn new(index: usize, ingress: &IngressPort, headroom: Bytes) -> Result<Buffer, MemoryError> {
        let IngressPort { buffer, lossless, .. } = *ingress;
        if lossless != 0 && headroom >= buffer {
            let port = PortNumber::from_index(index);
            return Err(MemoryError::Buffer { port, headroom, buffer });
        }
        // Without lossless priorities no headroom is needed.
        let xoff = if lossless == 0 { buffer } else { buffer - headroom };
        let mark = Mark::new(xoff, Bytes::new(xoff.get() / 2));
        let held = Level::default();
        let watch = HeadroomWatch::default();
        Ok(Buffer { lanes: [Bytes::ZERO; 8], held, size: buffer, mark, watch, lossless })
    }

    /// The level up to which frames of `lane` may fill the buffer, and the drop reason beyond.
    fn limit(&self, lane: VirtualLane) -> (Bytes, DropReason) {
        match self.lossless >> lane.get() & 1 {
            1 => (self.size, DropReason::HeadroomOverrun),
            _ => (self.mark.xoff, DropReason::BufferFull),
        }
    }
}

impl Memory for PerInput {
    fn admit(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) -> Admission {
        let buffer = &mut self.buffers[input.index()];
        let (limit, reason) = buffer.limit(lane);
        if buffer.held.get() + size > limit {
            return Admission::Refused(reason);
        }
        buffer.held.rise(size);
        buffer.lanes[lane.index()] += size;
        self.alarm = buffer.mark.beyond(buffer.held.get()).and_then(|used| {
            let headroom = buffer.size - buffer.mark.xoff;
            buffer.watch.note(used, headroom)
        });
        if buffer.mark.note(buffer.held.get()) {
            self.changed.insert(input);
        }
        Admission::Taken
    }

    fn take_alarm(&mut self) -> Option<HeadroomAlarm> {
        self.alarm.take()
    }

    fn release(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) {
        let buffer = &mut self.buffers[input.index()];
        buffer.held.fall(size);
        buffer.lanes[lane.index()] = buffer.lanes[lane.index()] - size;
        if buffer.mark.note(buffer.held.get()) {
            self.changed.insert(input);
        }
    }

    fn demands(&self, input: PortNumber) -> u8 {
        let buffer = &self.buffers[input.index()];
        if buffer.mark.is_over() { buffer.lossless } else { 0 }
    }

    fn take_changed(&mut self) -> PortSet {
        std::mem::take(&mut self.changed)
    }

    fn held(&self, input: PortNumber, lane: VirtualLane) -> Bytes {
        self.buffers[input.index()].lanes[lane.index()]
    }

    fn read(&self, input: PortNumber, named: &mut Vec<(String, u64)>) {
        let max = self.buffers[input.index()].held.max();
        named.push(("input_buffer_watermark".to_owned(), max.get()));
    }

    fn clear_watermarks(&mut self) {
        self.buffers.iter_mut().for_each(|buffer| buffer.held.restart());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MemoryConfig;
    use crate::memory::ingress::ingress;

    const P3: VirtualLane = VirtualLane::truncate(3);
    const P0: VirtualLane = VirtualLane::ZERO;

    fn port(index: usize) -> PortNumber {
        PortNumber::from_index(index)
    }

    fn memory(headroom: u64) -> Result<PerInput, MemoryError> {
        let numbers = MemoryConfig { headroom: Bytes::new(headroom), ..MemoryConfig::default() };
        PerInput::new(Room { ingress: &ingress(2), numbers: &numbers })
    }

    #[test]
    fn an_input_pauses_at_its_mark_and_resumes_at_half_of_it() {
        let mut memory = memory(15_000).unwrap();
        let frame = Bytes::new(1_000);
        for _ in 0..134 {
            assert_eq!(memory.admit(port(0), P3, frame), Admission::Taken);
        }
        assert!(memory.take_changed().is_empty() && memory.demands(port(0)) == 0);
        assert_eq!(memory.admit(port(0), P3, frame), Admission::Taken);
        assert_eq!(memory.take_changed().first_from(0), Some(port(0)));
        assert_eq!((memory.demands(port(0)), memory.demands(port(1))), (1 << 3, 0));
        for _ in 0..67 {
            memory.release(port(0), P3, frame);
        }
        assert_eq!(memory.demands(port(0)), 1 << 3, "68 000 of 135 000 is above half");
        memory.release(port(0), P3, frame);
        assert_eq!(memory.demands(port(0)), 0);
        assert_eq!(memory.held(port(0), P3), Bytes::new(67_000));
    }

    #[test]
    fn beyond_the_buffer_a_lossless_frame_is_an_alarm_and_a_lossy_one_ends_at_the_mark() {
        let mut memory = memory(15_000).unwrap();
        assert_eq!(memory.admit(port(0), P0, Bytes::new(135_000)), Admission::Taken);
        let refused = memory.admit(port(0), P0, Bytes::new(64));
        assert_eq!(refused, Admission::Refused(DropReason::BufferFull));
        assert_eq!(memory.admit(port(0), P3, Bytes::new(15_000)), Admission::Taken);
        let refused = memory.admit(port(0), P3, Bytes::new(64));
        assert_eq!(refused, Admission::Refused(DropReason::HeadroomOverrun));
    }

    /// QOS-10.
    #[test]
    fn too_little_headroom_is_refused_with_the_figure_that_holds() {
        // 1 us on the cable is 1250 octets; three frames and a control frame.
        let needed = Bytes::new(1250 + 3 * 1518 + 64);
        assert!(memory(needed.get()).is_ok());
        for given in [0, needed.get() - 1] {
            let given = Bytes::new(given);
            let expected = MemoryError::Headroom { port: port(0), given, needed };
            assert_eq!(memory(given.get()).err(), Some(expected));
        }
        assert!(matches!(memory(150_000), Err(MemoryError::Buffer { .. })));
    }
}
