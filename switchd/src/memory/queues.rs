//! The queues of a switch: a virtual output queue for each input, output and lane. An output serves its
//! inputs in round robin.
//!
//! Every memory model uses these queues. A model admits frames; it does not order departures.
//!
//! A turn lasts one full frame's octets, rounded up to a whole frame as in the VL arbiter. With one frame
//! per turn, an acknowledgement of 30 octets would cost its input the turn of a full frame: in case 1 of
//! the paper, the input that also carries acknowledgements of the hot node then got 0.09 of the line
//! instead of the quarter that the paper shows.
//!
//! Source: Pfister et al., section V.A.2 (shared buffer per input, virtual output queues, round robin).
//! The paper leaves open whether several outputs may read one input at once, so this is a parameter.

use crate::config::Read;
use crate::memory::slab::{Queue, Slab};
use crate::port_set::PortSet;
use proto::frame::{Frame, FrameClass, FrameHeaders};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Bytes, Instant};

/// One queue of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId {
    /// The port that received the frames.
    pub input: PortNumber,
    /// The port that sends them.
    pub output: PortNumber,
    /// The lane they leave by.
    pub lane: VirtualLane,
}

/// A frame that waits in the switch.
#[derive(Debug)]
pub struct Stored {
    /// The frame.
    pub frame: Frame,
    /// Its headers. A mark is recorded here until the frame leaves, and only then written to the octets.
    pub headers: FrameHeaders,
    /// The port that received it.
    pub input: PortNumber,
    /// The lane whose input buffer it occupies.
    pub input_lane: VirtualLane,
    /// When its last bit arrived.
    pub arrived: Instant,
    /// The key under which all copies of a multicast packet share their room in the input buffer.
    pub group: Option<u32>,
}

/// The frame that an output would send next.
#[derive(Clone, Copy, Debug)]
pub struct NextOut {
    /// The input whose turn it is.
    pub input: PortNumber,
    /// Octets on the line.
    pub size: Bytes,
    /// The earliest instant at which it can leave.
    pub ready: Instant,
    /// Its purpose.
    pub class: FrameClass,
}

/// Buffered octets of one output and one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Octets that wait for, or leave by, an output and lane.
    pub output: Bytes,
    /// Octets in the buffer of one input.
    pub input: Bytes,
}

/// A frame that has just joined its queue.
#[derive(Debug)]
pub struct Queued<'a> {
    /// The frame.
    pub packet: &'a mut Stored,
    /// It is the first of its queue.
    pub is_first: bool,
    /// Occupancy with the frame included.
    pub occupancy: Occupancy,
}

/// The dimensions of the queues.
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
    /// A frame occupies a multiple of so many octets, a power of two: 64 with credits, which count blocks,
    /// and 1 on Ethernet.
    pub unit: u64,
}

#[derive(Debug, Default)]
struct Output {
    /// Inputs with a frame for this output and lane.
    waiting: PortSet,
    octets: Bytes,
    /// The input of the last turn.
    served: Option<PortNumber>,
    /// Octets left of that turn; the input keeps the turn while this is positive.
    left: u64,
}

/// The queues of a switch.
#[derive(Debug)]
pub struct Queues {
    ports: usize,
    lanes: usize,
    read: Read,
    /// Octets of one turn.
    turn: u64,
    /// [`QueueShape::unit`] minus one.
    remainder: u64,
    /// By (input, output, lane).
    queues: Vec<Queue>,
    slab: Slab<Stored>,
    /// By (output, lane).
    outputs: Vec<Output>,
    /// By output: the lanes on which frames wait, bit n for lane n.
    waiting: Vec<u16>,
    /// Buffered octets by input, over all its lanes.
    inputs: Vec<Bytes>,
    /// By input: until when an output reads it.
    read_until: Vec<Instant>,
    frames: u64,
}

impl Queues {
    /// Empty queues.
    ///
    /// # Panics
    /// If the unit is not a power of two.
    pub fn new(shape: QueueShape) -> Queues {
        let QueueShape { ports, lanes, read, full_frame, unit } = shape;
        assert!(unit.is_power_of_two(), "the unit of room is a power of two");
        Queues {
            ports,
            lanes,
            read,
            turn: full_frame.get(),
            remainder: unit - 1,
            queues: vec![Queue::default(); ports * ports * lanes],
            slab: Slab::default(),
            outputs: (0..ports * lanes).map(|_| Output::default()).collect(),
            waiting: vec![0; ports],
            inputs: vec![Bytes::ZERO; ports],
            read_until: vec![Instant::ZERO; ports],
            frames: 0,
        }
    }

    /// The octets that a frame of `size` occupies.
    fn buffered(&self, size: Bytes) -> Bytes {
        Bytes::new((size.get() + self.remainder) & !self.remainder)
    }

    fn queue(&self, id: QueueId) -> usize {
        (id.input.index() * self.ports + id.output.index()) * self.lanes + id.lane.index()
    }

    fn output(&self, output: PortNumber, lane: VirtualLane) -> usize {
        output.index() * self.lanes + lane.index()
    }

    /// The input whose turn it is at `output` and `lane`.
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

    /// Charges a frame of `size` octets to the turn of its input.
    fn charge(&mut self, id: QueueId, size: Bytes) {
        let (state, input) = (self.output(id.output, id.lane), id.input);
        let state = &mut self.outputs[state];
        if state.served != Some(input) || state.left == 0 {
            state.left = self.turn;
        }
        state.served = Some(input);
        state.left = state.left.saturating_sub(size.get());
        if !state.waiting.contains(input) {
            // An empty queue gives up the rest of its turn.
            state.left = 0;
        }
    }

    /// Appends a frame to the queue of its input for `output` and `lane`.
    pub fn store(&mut self, packet: Stored, output: PortNumber, lane: VirtualLane) -> Queued<'_> {
        let size = self.buffered(packet.headers.size);
        let input = packet.input;
        let queue = self.queue(QueueId { input, output, lane });
        let state = self.output(output, lane);
        let (queue, state) = (&mut self.queues[queue], &mut self.outputs[state]);
        state.waiting.insert(input);
        state.octets += size;
        self.waiting[output.index()] |= 1 << lane.index();
        self.inputs[input.index()] += size;
        self.frames += 1;
        let occupancy = Occupancy { output: state.octets, input: self.inputs[input.index()] };
        let is_first = queue.is_empty();
        Queued { packet: self.slab.push_back(queue, packet), is_first, occupancy }
    }

    /// The frame that `output` would send next on `lane` at `now`.
    pub fn next_out(&self, output: PortNumber, lane: VirtualLane, now: Instant) -> Option<NextOut> {
        let input = self.turn(output, lane, now)?;
        let first = self.slab.front(self.queues[self.queue(QueueId { input, output, lane })])?;
        let free = match self.read {
            Read::Multi => Instant::ZERO,
            Read::Single => self.read_until[input.index()],
        };
        let size = first.frame.line_size();
        let (ready, class) = (first.arrived.max(free), first.headers.class);
        Some(NextOut { input, size, ready, class })
    }

    /// Removes the first frame of queue `id`, whose last bit leaves at `end`. Its room stays occupied until
    /// [`Queues::finished`].
    pub fn take(&mut self, id: QueueId, end: Instant) -> Option<Stored> {
        let packet = self.pop(id)?;
        self.charge(id, packet.headers.size);
        self.read_until[id.input.index()] = end;
        Some(packet)
    }

    fn pop(&mut self, id: QueueId) -> Option<Stored> {
        let (queue, state) = (self.queue(id), self.output(id.output, id.lane));
        let packet = self.slab.pop_front(&mut self.queues[queue])?;
        if self.queues[queue].is_empty() {
            self.outputs[state].waiting.remove(id.input);
            if self.outputs[state].waiting.is_empty() {
                self.waiting[id.output.index()] &= !(1 << id.lane.index());
            }
        }
        self.frames -= 1;
        Some(packet)
    }

    /// Removes a frame that waits for `output` and `lane` without sending it. Its room stays occupied until
    /// [`Queues::finished`].
    pub fn withdraw(&mut self, output: PortNumber, lane: VirtualLane) -> Option<Stored> {
        let input = self.outputs[self.output(output, lane)].waiting.first_from(0)?;
        self.pop(QueueId { input, output, lane })
    }

    /// Frees the room of a frame of `size` octets that was removed from queue `id`.
    pub fn finished(&mut self, id: QueueId, size: Bytes) {
        let size = self.buffered(size);
        let state = self.output(id.output, id.lane);
        self.outputs[state].octets = self.outputs[state].octets - size;
        let input = &mut self.inputs[id.input.index()];
        *input = *input - size;
    }

    /// The first frame of queue `id`.
    pub fn head(&mut self, id: QueueId) -> Option<&mut Stored> {
        let queue = self.queue(id);
        self.slab.front_mut(self.queues[queue])
    }

    /// The present occupancy of the output and the input of queue `id`.
    pub fn occupancy(&self, id: QueueId) -> Occupancy {
        let (output, input) = (self.standing(id.output, id.lane), self.inputs[id.input.index()]);
        Occupancy { output, input }
    }

    /// Octets that wait for, or leave by, `output` and `lane`, as buffered.
    pub fn standing(&self, output: PortNumber, lane: VirtualLane) -> Bytes {
        self.outputs[self.output(output, lane)].octets
    }

    /// The lanes on which frames wait for `output`, bit n for lane n.
    pub fn waiting(&self, output: PortNumber) -> u16 {
        self.waiting[output.index()]
    }

    /// Whether frames wait for `output`.
    pub fn is_waiting(&self, output: PortNumber) -> bool {
        self.waiting(output) != 0
    }

    /// Whether frames wait for `output` on `lane`.
    pub fn is_waiting_on(&self, output: PortNumber, lane: VirtualLane) -> bool {
        self.waiting(output) & 1 << lane.index() != 0
    }

    /// The number of waiting frames; those under way are not included.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether one output's transmission can block other outputs.
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
            let next = queues.next_out(output, lane, Instant::ZERO).expect("frames wait");
            let id = QueueId { input: next.input, output, lane };
            assert!(queues.take(id, Instant::ZERO).is_some());
            assert_eq!(queues.waiting(output), left);
        }
        assert!(queues.withdraw(output, low).is_some());
        assert!(!queues.is_waiting(output) && queues.frames() == 0);
    }
}
