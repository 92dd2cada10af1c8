//! Where frames wait: a virtual output queue for every input, output and lane; outputs serve inputs
//! in turn.
//!
//! Every memory model has these queues: a model says what may come in, never what goes out first.
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

use crate::config::Read;
use crate::memory::shelf::{Queue, Shelf};
use crate::port_set::PortSet;
use proto::frame::{Frame, FrameClass, FrameHeaders};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Bytes, Instant};

/// A frame that waits in the switch.
#[derive(Debug)]
pub struct Stored {
    /// The frame.
    pub frame: Frame,
    /// What its headers say; a mark decided while it waits is here before it is in the octets.
    pub headers: FrameHeaders,
    /// The port it came in by.
    pub input: PortNumber,
    /// The lane whose buffer it occupies there.
    pub input_lane: VirtualLane,
    /// When its last bit came in.
    pub arrived: Instant,
    /// Copies of one multicast packet share one place in the input buffer under this key.
    pub group: Option<u32>,
}

/// What an output may know about the frame it would send next.
#[derive(Clone, Copy, Debug)]
pub struct NextOut {
    /// Octets on the line.
    pub size: Bytes,
    /// When it could leave at the earliest.
    pub ready: Instant,
    /// What kind of work it does.
    pub class: FrameClass,
}

/// How much waits, where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Octets waiting for or leaving by an output and lane, as buffered.
    pub output: Bytes,
    /// Octets in one input's buffer, as buffered.
    pub input: Bytes,
}

/// What queues are built for.
#[derive(Clone, Copy, Debug)]
pub struct QueueShape {
    /// Ports of the switch.
    pub ports: usize,
    /// Data lanes of the switch.
    pub lanes: usize,
    /// How inputs are read.
    pub read: Read,
    /// Octets of one full data frame.
    pub full_frame: Bytes,
    /// A frame takes room in whole pieces of so many octets, a power of two: 64 where credits are
    /// counted in blocks, 1 on Ethernet.
    pub unit: u64,
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
    /// The input whose frame was announced last, until that is handed over.
    announced: Option<PortNumber>,
}

/// The queues of a switch.
#[derive(Debug)]
pub struct Queues {
    ports: usize,
    lanes: usize,
    read: Read,
    /// Octets of one turn.
    turn: u64,
    /// What [`QueueShape::unit`] leaves to round up: one less.
    remainder: u64,
    /// By (input, output, lane).
    queues: Vec<Queue>,
    shelf: Shelf<Stored>,
    /// By (output, lane).
    outputs: Vec<Output>,
    /// By output: the lanes for which an input has a frame, bit n for lane n.
    waiting: Vec<u16>,
    /// By input, over all its lanes.
    inputs: Vec<Bytes>,
    /// Until when each input is being read.
    read_until: Vec<Instant>,
    frames: u64,
}

impl Queues {
    /// Empty queues.
    ///
    /// # Panics
    /// If the unit is no power of two.
    pub fn new(shape: QueueShape) -> Queues {
        let QueueShape { ports, lanes, read, full_frame, unit } = shape;
        assert!(unit.is_power_of_two(), "room comes in pieces of a power of two");
        Queues {
            ports,
            lanes,
            read,
            turn: full_frame.get(),
            remainder: unit - 1,
            queues: vec![Queue::default(); ports * ports * lanes],
            shelf: Shelf::default(),
            outputs: (0..ports * lanes).map(|_| Output::default()).collect(),
            waiting: vec![0; ports],
            inputs: vec![Bytes::ZERO; ports],
            read_until: vec![Instant::ZERO; ports],
            frames: 0,
        }
    }

    /// Octets as buffered.
    fn buffered(&self, size: Bytes) -> Bytes {
        Bytes::new((size.get() + self.remainder) & !self.remainder)
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

    /// Keeps a frame for `output` and `lane`; true if it is the first of its queue.
    pub fn store(&mut self, packet: Stored, output: PortNumber, lane: VirtualLane) -> bool {
        let size = self.buffered(packet.headers.size);
        let input = packet.input;
        let (queue, state) = (self.queue(input, output, lane), self.output(output, lane));
        self.outputs[state].waiting.insert(input);
        self.waiting[output.index()] |= 1 << lane.index();
        self.outputs[state].octets += size;
        self.inputs[input.index()] += size;
        self.frames += 1;
        self.shelf.push_back(&mut self.queues[queue], packet)
    }

    /// What `output` would send next on `lane` at `now`.
    pub fn next_out(
        &mut self,
        output: PortNumber,
        lane: VirtualLane,
        now: Instant,
    ) -> Option<NextOut> {
        let input = self.turn(output, lane, now)?;
        let state = self.output(output, lane);
        self.outputs[state].announced = Some(input);
        let first = self.shelf.front(self.queues[self.queue(input, output, lane)])?;
        let free = match self.read {
            Read::Multi => Instant::ZERO,
            Read::Single => self.read_until[input.index()],
        };
        let size = first.frame.line_size();
        Some(NextOut { size, ready: first.arrived.max(free), class: first.headers.class })
    }

    /// Hands over that frame; its last bit leaves at `end`. Its room stays taken until
    /// [`Queues::finished`].
    ///
    /// # Panics
    /// If [`Queues::next_out`] has named none since.
    pub fn take(&mut self, output: PortNumber, lane: VirtualLane, end: Instant) -> Stored {
        let state = self.output(output, lane);
        let input = self.outputs[state].announced.take().expect("next_out has just named an input");
        let packet = self.pop(input, output, lane).expect("a waiting input has a frame");
        self.charge(state, input, packet.headers.size);
        if !self.outputs[state].waiting.contains(input) {
            // What is left of a turn is not banked.
            self.outputs[state].left = 0;
        }
        self.read_until[input.index()] = end;
        packet
    }

    fn pop(&mut self, input: PortNumber, output: PortNumber, lane: VirtualLane) -> Option<Stored> {
        let (queue, state) = (self.queue(input, output, lane), self.output(output, lane));
        let packet = self.shelf.pop_front(&mut self.queues[queue])?;
        if self.queues[queue].is_empty() {
            self.outputs[state].waiting.remove(input);
            if self.outputs[state].waiting.is_empty() {
                self.waiting[output.index()] &= !(1 << lane.index());
            }
        }
        self.frames -= 1;
        Some(packet)
    }

    /// Takes a frame that waits for `output` and `lane` out of its queue, never to be sent. Its room
    /// stays taken until [`Queues::finished`].
    pub fn withdraw(&mut self, output: PortNumber, lane: VirtualLane) -> Option<Stored> {
        let input = self.outputs[self.output(output, lane)].waiting.first_from(0)?;
        self.pop(input, output, lane)
    }

    /// The last bit of a frame of `size` taken from `input` has left; the frame that is now first
    /// of its queue, if any.
    pub fn finished(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
        size: Bytes,
    ) -> Option<&mut Stored> {
        let size = self.buffered(size);
        let state = self.output(output, lane);
        self.outputs[state].octets = self.outputs[state].octets - size;
        let held = &mut self.inputs[input.index()];
        *held = *held - size;
        self.head(input, output, lane)
    }

    /// The first frame of one input's queue for `output` and `lane`.
    pub fn head(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
    ) -> Option<&mut Stored> {
        let queue = self.queue(input, output, lane);
        self.shelf.front_mut(self.queues[queue])
    }

    /// The frame last stored by `input` for `output` and `lane`.
    pub fn tail(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
    ) -> Option<&mut Stored> {
        let queue = self.queue(input, output, lane);
        self.shelf.back_mut(self.queues[queue])
    }

    /// Octets standing at `output` and `lane`, and those of `input` among all outputs.
    pub fn occupancy(&self, input: PortNumber, output: PortNumber, lane: VirtualLane) -> Occupancy {
        Occupancy { output: self.standing(output, lane), input: self.inputs[input.index()] }
    }

    /// Octets waiting for or leaving by `output` and `lane`, as buffered.
    pub fn standing(&self, output: PortNumber, lane: VirtualLane) -> Bytes {
        self.outputs[self.output(output, lane)].octets
    }

    /// The lanes on which anything waits for `output`, bit n for lane n.
    pub fn waiting(&self, output: PortNumber) -> u16 {
        self.waiting[output.index()]
    }

    /// Whether anything waits for `output`.
    pub fn is_waiting(&self, output: PortNumber) -> bool {
        self.waiting(output) != 0
    }

    /// Whether anything waits for `output` on `lane`.
    pub fn is_waiting_on(&self, output: PortNumber, lane: VirtualLane) -> bool {
        self.waiting(output) & 1 << lane.index() != 0
    }

    /// Frames kept, those already handed over not counted.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// An output that starts or ends a frame may free others to start theirs.
    pub fn couples_outputs(&self) -> bool {
        self.read == Read::Single
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proto::frame::FrameKind;
    use proto::ids::{Psn, QueuePairNumber};
    use proto::wire::classify::classify;
    use proto::wire::infiniband::{Bth, Opcode, PacketBuilder};

    fn packet(input: PortNumber) -> Stored {
        let bth = Bth::new(Opcode::RC_SEND_ONLY, QueuePairNumber::truncate(5), Psn::default());
        let mut octets = BytesMut::new();
        PacketBuilder::new(bth).emit(&mut octets, 64, |_| ()).expect("short enough");
        let headers = classify(FrameKind::Infiniband, &octets).expect("a packet");
        Stored {
            frame: Frame::intact(FrameKind::Infiniband, octets),
            headers,
            input,
            input_lane: VirtualLane::ZERO,
            arrived: Instant::ZERO,
            group: None,
        }
    }

    #[test]
    fn a_lane_waits_until_every_input_has_sent_what_it_has_for_it() {
        let (read, full_frame) = (Read::Multi, Bytes::new(2112));
        let shape = QueueShape { ports: 3, lanes: 4, read, full_frame, unit: 64 };
        let mut queues = Queues::new(shape);
        let [first, second, output] = [0, 1, 2].map(PortNumber::from_index);
        let [low, high] = [1, 3].map(VirtualLane::truncate);
        for (input, lane) in [(first, low), (second, low), (first, high)] {
            queues.store(packet(input), output, lane);
        }
        assert_eq!((queues.waiting(output), queues.waiting(first)), (0b1010, 0));
        for (lane, left) in [(low, 0b1010), (high, 0b0010)] {
            assert!(queues.next_out(output, lane, Instant::ZERO).is_some());
            queues.take(output, lane, Instant::ZERO);
            assert_eq!(queues.waiting(output), left);
        }
        assert!(queues.withdraw(output, low).is_some());
        assert!(!queues.is_waiting(output) && queues.frames() == 0);
    }
}
