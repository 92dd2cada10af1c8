//! One shared buffer per input with a virtual output queue for every output and lane; outputs serve
//! inputs in turn.
//!
//! A turn is one full frame's worth of octets, rounded up to a whole frame as in the VL arbiter. A
//! turn a frame would let each acknowledgement of 30 octets cost its input the turn of a full
//! frame: with three inputs full of hot data, the fourth, which carries the hot node's
//! acknowledgements too, got 0.09 of the line instead of its quarter (case 1 of the paper, whose
//! result is the quarter).
//!
//! Source: Pfister et al., section V.A.2 (shared buffer per input, virtual output queues, round
//! robin). Whether several outputs may read one input at once is not stated there, so it is a
//! parameter.

use super::models::Shape;
use super::{Memory, NextOut, Occupancy, Stored};
use crate::config::Read;
use crate::port_set::PortSet;
use proto::ids::{PortNumber, VirtualLane};
use proto::link::credit::{block_octets, blocks};
use proto::units::{Bytes, Instant};
use std::collections::VecDeque;

/// Octets as buffered: whole credit blocks.
fn buffered(size: Bytes) -> Bytes {
    block_octets(blocks(size))
}

#[derive(Debug, Default)]
struct Output {
    /// Inputs with a frame for this output and lane.
    waiting: PortSet,
    octets: Bytes,
    /// The input whose turn it was last.
    served: Option<PortNumber>,
    /// Octets it may still send in that turn; it keeps the turn while this is above zero.
    left: u64,
}

/// The memory.
#[derive(Debug)]
pub struct PerInput {
    ports: usize,
    lanes: usize,
    read: Read,
    /// Octets of one turn.
    turn: u64,
    /// By (input, output, lane).
    queues: Vec<VecDeque<Stored>>,
    /// By (output, lane).
    outputs: Vec<Output>,
    /// By input, over all its lanes.
    inputs: Vec<Bytes>,
    /// Until when each input is being read.
    read_until: Vec<Instant>,
    frames: u64,
}

impl PerInput {
    /// An empty memory.
    pub fn new(shape: Shape) -> PerInput {
        let Shape { ports, lanes, read, full_frame } = shape;
        PerInput {
            ports,
            lanes,
            read,
            turn: full_frame.get(),
            queues: (0..ports * ports * lanes).map(|_| VecDeque::new()).collect(),
            outputs: (0..ports * lanes).map(|_| Output::default()).collect(),
            inputs: vec![Bytes::ZERO; ports],
            read_until: vec![Instant::ZERO; ports],
            frames: 0,
        }
    }

    fn queue(&self, input: PortNumber, output: PortNumber, lane: VirtualLane) -> usize {
        (input.index() * self.ports + output.index()) * self.lanes + lane.index()
    }

    fn output(&self, output: PortNumber, lane: VirtualLane) -> usize {
        output.index() * self.lanes + lane.index()
    }

    /// The input whose turn it is at `output`.
    fn turn(&self, output: PortNumber, lane: VirtualLane, now: Instant) -> Option<PortNumber> {
        let state = &self.outputs[self.output(output, lane)];
        let may_be_read =
            |input: &PortNumber| self.read == Read::Multi || self.read_until[input.index()] <= now;
        let last = state.served.unwrap_or(PortNumber::from_index(self.ports - 1));
        if state.left > 0 && state.waiting.contains(last) && may_be_read(&last) {
            return Some(last);
        }
        state.waiting.after(last).find(may_be_read)
    }

    /// Charges a frame to the turn of `input`.
    fn charge(&mut self, state: usize, input: PortNumber, size: Bytes) {
        let state = &mut self.outputs[state];
        if state.served != Some(input) || state.left == 0 {
            state.left = self.turn;
        }
        state.served = Some(input);
        state.left = state.left.saturating_sub(size.get());
    }
}

impl Memory for PerInput {
    fn store(&mut self, packet: Stored, output: PortNumber, lane: VirtualLane) -> bool {
        let size = buffered(packet.headers.size);
        let input = packet.input;
        let (queue, state) = (self.queue(input, output, lane), self.output(output, lane));
        self.outputs[state].waiting.insert(input);
        self.outputs[state].octets += size;
        self.inputs[input.index()] += size;
        self.frames += 1;
        self.queues[queue].push_back(packet);
        self.queues[queue].len() == 1
    }

    fn next_out(&self, output: PortNumber, lane: VirtualLane, now: Instant) -> Option<NextOut> {
        let input = self.turn(output, lane, now)?;
        let first = self.queues[self.queue(input, output, lane)].front()?;
        let free = match self.read {
            Read::Multi => Instant::ZERO,
            Read::Single => self.read_until[input.index()],
        };
        let size = first.frame.line_size();
        Some(NextOut { size, ready: first.arrived.max(free), headers: first.headers })
    }

    fn take(
        &mut self,
        output: PortNumber,
        lane: VirtualLane,
        now: Instant,
        end: Instant,
    ) -> Stored {
        let input = self.turn(output, lane, now).expect("next_out has just named an input");
        let (queue, state) = (self.queue(input, output, lane), self.output(output, lane));
        let packet = self.queues[queue].pop_front().expect("a waiting input has a frame");
        self.charge(state, input, packet.headers.size);
        if self.queues[queue].is_empty() {
            // What is left of a turn is not banked.
            self.outputs[state].waiting.remove(input);
            self.outputs[state].left = 0;
        }
        self.read_until[input.index()] = end;
        self.frames -= 1;
        packet
    }

    fn finished(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
        size: Bytes,
    ) -> Option<&mut Stored> {
        let size = buffered(size);
        let state = self.output(output, lane);
        self.outputs[state].octets = self.outputs[state].octets - size;
        let held = &mut self.inputs[input.index()];
        *held = *held - size;
        self.head(input, output, lane)
    }

    fn head(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
    ) -> Option<&mut Stored> {
        let queue = self.queue(input, output, lane);
        self.queues[queue].front_mut()
    }

    fn tail(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
    ) -> Option<&mut Stored> {
        let queue = self.queue(input, output, lane);
        self.queues[queue].back_mut()
    }

    fn occupancy(&self, input: PortNumber, output: PortNumber, lane: VirtualLane) -> Occupancy {
        Occupancy {
            output: self.outputs[self.output(output, lane)].octets,
            input: self.inputs[input.index()],
        }
    }

    fn is_waiting(&self, output: PortNumber) -> bool {
        let first = output.index() * self.lanes;
        self.outputs[first..first + self.lanes].iter().any(|state| !state.waiting.is_empty())
    }

    fn frames(&self) -> u64 {
        self.frames
    }

    fn couples_outputs(&self) -> bool {
        self.read == Read::Single
    }
}
