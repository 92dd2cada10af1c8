//! Memory with a pair of marks: a pool for each input, or one pool for all inputs.
//!
//! A pool of M octets pauses its inputs from M − headroom on until half of that, where headroom covers the
//! round-trip time. All priorities of an input share its pool, so all lossless priorities pause together.
//!
//! A pool for each input is the partitioned memory of the Zurich benchmark. On InfiniBand the ports account
//! for it by credits. One pool for N inputs has N·M octets and its mark at N·(M − headroom). It shares memory
//! best but isolates no input; multi-stage networks can deadlock with it, of which validation warns.
//!
//! A lossy priority may fill a pool up to the mark, and lossless priorities fill it up to the mark and beyond. So that
//! feedback of a lossy priority (CNPs, messages of BCN and QCN, acknowledgements) is not lost by the congestion that it
//! reports, each input has a reserve for each lossy priority, beside the pools: a frame that finds no room below the
//! mark is admitted while its input holds no more than the reserve of its priority. The reserve is not part of `buffer`,
//! moves no mark and takes no headroom. A lossy priority that holds more than its reserve loses frames at the mark.
//!
//! Source: the Zurich benchmark, partitioned switch and shared switch. It has one priority and no reserve; the reserve
//! is that of a shared pool.

use super::headroom::{self, HeadroomWatch, MemoryError};
use super::ingress::Room;
use super::level::{Level, Mark};
use super::{Admission, HeadroomAlarm, Memory};
use crate::port_set::PortSet;
use proto::counters::DropReason;
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Bytes;

#[derive(Debug)]
struct Pool {
    held: Level,
    size: Bytes,
    mark: Mark,
    watch: HeadroomWatch,
}

#[derive(Debug)]
struct Input {
    /// Octets held, by lane.
    lanes: [Bytes; 8],
    /// The part of them that is in the reserve of the lane and not in the pool.
    reserved: [Bytes; 8],
    lossless: u8,
    /// Index of its pool.
    pool: usize,
}

/// Pools whose senders are paused.
#[derive(Debug)]
pub struct Watermarks {
    pools: Vec<Pool>,
    inputs: Vec<Input>,
    is_global: bool,
    alarm: Option<HeadroomAlarm>,
    changed: PortSet,
}

impl Watermarks {
    /// An empty pool for each input.
    ///
    /// # Errors
    /// If the headroom is too small, or fills a whole buffer.
    pub fn per_input(room: Room<'_>) -> Result<Watermarks, MemoryError> {
        Watermarks::new(room, false)
    }

    /// One empty pool for all inputs.
    ///
    /// # Errors
    /// If the headroom is too small, or fills a whole buffer.
    pub fn global(room: Room<'_>) -> Result<Watermarks, MemoryError> {
        Watermarks::new(room, true)
    }

    fn new(room: Room<'_>, is_global: bool) -> Result<Watermarks, MemoryError> {
        headroom::check(room, headroom::behind_a_mark)?;
        let pausing = room.ingress.iter().any(|port| port.lossless != 0);
        let mut sizes =
            vec![(Bytes::ZERO, Bytes::ZERO); if is_global { 1 } else { room.ingress.len() }];
        let mut inputs = Vec::new();
        for (index, port) in room.ingress.iter().enumerate() {
            // Without lossless priorities no headroom is needed.
            let pauses = if is_global { pausing } else { port.lossless != 0 };
            let headroom = if pauses { room.numbers.headroom } else { Bytes::ZERO };
            if (pauses || is_global) && headroom >= port.buffer {
                let (port, buffer) = (PortNumber::from_index(index), port.buffer);
                return Err(MemoryError::Buffer { port, headroom, buffer });
            }
            let pool = if is_global { 0 } else { index };
            let (size, xoff) = &mut sizes[pool];
            *size += port.buffer;
            *xoff += port.buffer - headroom;
            let none = [Bytes::ZERO; 8];
            inputs.push(Input { lanes: none, reserved: none, lossless: port.lossless, pool });
        }
        let pool = |(size, xoff): (Bytes, Bytes)| {
            let mark = Mark::new(xoff, Bytes::new(xoff.get() / 2));
            Pool { held: Level::default(), size, mark, watch: HeadroomWatch::default() }
        };
        let pools = sizes.into_iter().map(pool).collect();
        Ok(Watermarks { pools, inputs, is_global, alarm: None, changed: PortSet::EMPTY })
    }

    /// Reports the inputs of `pool` as changed if the pool has crossed a mark.
    fn note(&mut self, pool: usize) {
        let Pool { held, mark, .. } = &mut self.pools[pool];
        if mark.note(held.get()) {
            for (index, _) in self.inputs.iter().enumerate().filter(|(_, input)| input.pool == pool)
            {
                self.changed.insert(PortNumber::from_index(index));
            }
        }
    }
}

impl Memory for Watermarks {
    fn admit(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) -> Admission {
        let input = &mut self.inputs[input.index()];
        let (index, pool) = (input.pool, &mut self.pools[input.pool]);
        let is_lossless = input.lossless >> lane.get() & 1 == 1;
        let limit = if is_lossless { pool.size } else { pool.mark.xoff };
        if pool.held.get() + size > limit {
            if is_lossless {
                return Admission::Refused(DropReason::HeadroomOverrun);
            }
            if input.lanes[lane.index()] + size > headroom::FEEDBACK {
                return Admission::Refused(DropReason::BufferFull);
            }
            input.lanes[lane.index()] += size;
            input.reserved[lane.index()] += size;
            return Admission::Taken;
        }
        pool.held.rise(size);
        input.lanes[lane.index()] += size;
        self.alarm = pool.mark.beyond(pool.held.get()).and_then(|used| {
            let headroom = pool.size - pool.mark.xoff;
            pool.watch.note(used, headroom)
        });
        self.note(index);
        Admission::Taken
    }

    fn change(&mut self, room: Room<'_>) -> Result<(), MemoryError> {
        let fresh = Watermarks::new(room, self.is_global)?;
        for (pool, fresh) in self.pools.iter_mut().zip(fresh.pools) {
            pool.mark = pool.mark.moved(fresh.mark);
        }
        Ok(())
    }

    fn take_alarm(&mut self) -> Option<HeadroomAlarm> {
        self.alarm.take()
    }

    /// Frees the pool first and the reserve last, as a shared pool does.
    fn release(&mut self, input: PortNumber, lane: VirtualLane, size: Bytes) {
        let Input { lanes, reserved, pool, .. } = &mut self.inputs[input.index()];
        let (held, reserved) = (&mut lanes[lane.index()], &mut reserved[lane.index()]);
        let pooled = size.min(*held - *reserved);
        *held = *held - size;
        *reserved = *reserved - (size - pooled);
        let pool = *pool;
        self.pools[pool].held.fall(pooled);
        self.note(pool);
    }

    fn demands(&self, input: PortNumber) -> u8 {
        let Input { lossless, pool, .. } = self.inputs[input.index()];
        if self.pools[pool].mark.is_over() { lossless } else { 0 }
    }

    fn take_changed(&mut self) -> PortSet {
        std::mem::take(&mut self.changed)
    }

    fn held(&self, input: PortNumber, lane: VirtualLane) -> Bytes {
        self.inputs[input.index()].lanes[lane.index()]
    }

    fn read(&self, input: PortNumber, named: &mut Vec<(String, u64)>) {
        let max = self.pools[self.inputs[input.index()].pool].held.max().get();
        if !self.is_global {
            named.push(("input_buffer_watermark".to_owned(), max));
        } else if input.index() == 0 {
            named.push(("buffer_pool_watermark".to_owned(), max));
        }
    }

    fn clear_watermarks(&mut self) {
        self.pools.iter_mut().for_each(|pool| pool.held.restart());
    }
}

#[cfg(test)]
mod tests;
