//! The vocabulary of scripts, and a script.

use crate::credits::{Credits, FcMode};
use crate::frames::ethernet::{pfc, quanta_for};
use crate::neighbour::Neighbour;
use crate::seen::Seen;
use bytes::BytesMut;
use proto::frame::{Frame, FrameKind, Integrity};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::FlowControlPacket;

/// How a frame travels, beyond its octets. The default is an ordinary frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label {
    /// It ends with the mark of a bad frame.
    pub aborted: bool,
    /// The run it claims to belong to; this one if none is given.
    pub epoch: Option<u32>,
    /// Its number on the line; the next one if none is given.
    pub sequence: Option<u32>,
    /// When its last bit leaves; as the line permits if none is given.
    pub stamp: Option<Instant>,
}

/// All neighbours of one device, ports counted from 1.
pub trait Bed {
    /// The instant of the step that is being done.
    fn now(&self) -> Instant;
    /// The neighbour at `port`, to change what it does by itself.
    fn neighbour(&mut self, port: u8) -> &mut Neighbour;
    /// What the device has sent so far, in the order of arrival.
    fn seen(&self) -> &[Seen];
    /// The neighbour at `port` sends these octets as soon as its line is free.
    fn put(&mut self, port: u8, kind: FrameKind, octets: &[u8], label: Label);
    /// The next sequence number of the line to `port`.
    fn sequence(&self, port: u8) -> u32;
    /// Takes the next sequence number of the line to `port` for a frame that comes late.
    fn hold_back(&mut self, port: u8, kind: FrameKind, octets: &[u8]) -> u32;

    /// Reads every counter of the device at this step. A daemon is not read: it has no such instant.
    fn sample(&mut self) {}

    /// The neighbour at `port` sends a packet, whatever its credit.
    fn send(&mut self, port: u8, octets: &[u8]) {
        self.send_labelled(port, octets, Label::default());
    }

    /// The same with a label of its own.
    fn send_labelled(&mut self, port: u8, octets: &[u8], label: Label) {
        let neighbour = self.neighbour(port);
        neighbour.on_send(octets);
        let kind = neighbour.kind();
        self.put(port, kind, octets, label);
    }

    /// The neighbour at `port` sends `frame`; an aborted one ends with the mark of a bad frame.
    fn send_frame(&mut self, port: u8, frame: &Frame) {
        let aborted = frame.integrity == Integrity::Aborted;
        self.send_labelled(port, &frame.octets, Label { aborted, ..Label::default() });
    }

    /// The neighbour at `port` sends a packet as soon as line and credit permit.
    fn enqueue(&mut self, port: u8, octets: BytesMut) {
        let now = self.now();
        self.neighbour(port).waiting.push_back((now, octets));
    }

    /// The neighbour at `port` sends each of `frames` as soon as line and credit permit.
    fn queue(&mut self, port: u8, frames: &mut dyn Iterator<Item = Frame>) {
        frames.for_each(|frame| self.enqueue(port, frame.octets));
    }

    /// The neighbour at `port` pauses `priorities` (bit n is priority n) for `quanta`; 0 resumes.
    fn pfc(&mut self, port: u8, priorities: u8, quanta: u16) {
        self.send_frame(port, &pfc(priorities, quanta));
    }

    /// The last pause that the device sent to the neighbour at `port` for `priority`: quanta, 0 for XON.
    fn last_pause(&self, port: u8, priority: u8) -> Option<u16> {
        let here = self.seen().iter().rev().filter(|seen| seen.port == port);
        here.filter_map(|seen| quanta_for(&seen.frame, priority)).next()
    }

    /// The credits of the neighbour at `port`.
    fn credits(&mut self, port: u8) -> &mut Credits {
        self.neighbour(port).credits()
    }

    /// The neighbour at `port` sends its flow-control packet of `lane` now.
    fn advertise(&mut self, port: u8, lane: u8) {
        let packet = self.credits(port).packet(lane);
        if self.credits(port).announce(&packet) {
            self.send_credit(port, &packet);
        }
    }

    /// The neighbour at `port` sends this flow-control packet.
    fn send_credit(&mut self, port: u8, packet: &FlowControlPacket) {
        self.put(port, FrameKind::InfinibandLink, &packet.to_octets(), Label::default());
    }

    /// The neighbour at `port` offers `blocks` on `lane` beyond what it has received.
    fn offer(&mut self, port: u8, lane: u8, blocks: u16) {
        self.credits(port).lanes[usize::from(lane)].offer = blocks;
        self.advertise(port, lane);
    }

    /// The neighbour at `port` sends flow control in this way from now on.
    fn set_mode(&mut self, port: u8, mode: FcMode) {
        let now = self.now();
        let credits = self.credits(port);
        credits.mode = mode;
        credits.due = now;
    }
}

/// One step of a script.
pub type Step = Box<dyn FnOnce(&mut dyn Bed) + Send>;

/// What happens when.
#[derive(Default)]
pub struct Script(Vec<(Instant, Step)>);

impl Script {
    /// At `at`, do `step`.
    pub fn at(&mut self, at: Instant, step: impl FnOnce(&mut dyn Bed) + Send + 'static) {
        self.0.push((at, Box::new(step)));
    }

    /// At `first`, and then `count` times in all, `every` apart, do `step`, which receives its number from 0.
    pub fn every(
        &mut self,
        first: Instant,
        every: Duration,
        count: u64,
        step: impl Fn(&mut dyn Bed, u64) + Clone + Send + 'static,
    ) {
        for number in 0..count {
            let step = step.clone();
            self.at(first + every * number, move |bed| step(bed, number));
        }
    }

    /// From the first instant to the second the neighbours at `ports` pause `priorities` (bit n is priority n).
    pub fn pause(&mut self, (from, to): (Instant, Instant), ports: &[u8], priorities: u8) {
        for port in ports.iter().copied() {
            self.at(from, move |bed| bed.pfc(port, priorities, u16::MAX));
            self.at(to, move |bed| bed.pfc(port, priorities, 0));
        }
    }

    /// The steps in the order of their time, those of one instant as they were written.
    pub fn into_steps(mut self) -> Vec<(Instant, Step)> {
        self.0.sort_by_key(|(at, _)| *at);
        self.0
    }
}
