//! A script, and the words that its steps are written in.

use super::{Label, Seen, Tester};
use crate::check::live::neighbour::{Neighbour, Voice};
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::units::Instant;
use proto::wire::infiniband::FlowControlPacket;
use std::collections::VecDeque;

/// One step of a script.
pub type Step = Box<dyn FnOnce(&mut Tester) + Send>;

/// What is done when.
#[derive(Default)]
pub struct Script(Vec<(Instant, Step)>);

impl Script {
    /// At `at`, do `step`.
    pub fn at(&mut self, at: Instant, step: impl FnOnce(&mut Tester) + Send + 'static) {
        self.0.push((at, Box::new(step)));
    }

    /// The steps in the order of their time, those of one instant as they were written.
    pub(super) fn into_steps(mut self) -> VecDeque<(Instant, Step)> {
        self.0.sort_by_key(|(at, _)| *at);
        self.0.into()
    }
}

impl Tester {
    /// The neighbour at `port` of the device, to change what it says.
    pub fn neighbour(&mut self, port: u8) -> &mut Neighbour {
        &mut self.parts.neighbours[usize::from(port) - 1].2
    }

    /// What came back so far.
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// The next number of the line to `port`.
    pub fn sequence(&self, port: u8) -> u32 {
        self.cables[usize::from(port) - 1].sequence
    }

    /// Takes the next number of the line to `port`: its frame will come late.
    pub fn hold_back(&mut self, port: u8, kind: FrameKind, octets: &[u8]) -> u32 {
        self.cables[usize::from(port) - 1].next_number(kind, octets)
    }

    /// An ordinary label.
    pub fn label(&self) -> Label {
        Label { flags: 0, epoch: self.parts.epoch, sequence: None, stamp: None }
    }

    /// The neighbour at `port` sends a packet, whatever its credits.
    pub fn send(&mut self, port: u8, octets: &[u8]) {
        self.send_labelled(port, octets, self.label());
    }

    /// The same with a label of its own.
    pub fn send_labelled(&mut self, port: u8, octets: &[u8], label: Label) {
        self.neighbour(port).on_send(octets);
        self.put(port, FrameKind::Infiniband, octets, label);
    }

    /// The neighbour at `port` sends a packet as soon as line and credit permit.
    pub fn enqueue(&mut self, port: u8, octets: BytesMut) {
        self.cables[usize::from(port) - 1].waiting.push_back((self.now, octets));
    }

    /// The neighbour at `port` says about `lane` what there is to say, out of turn.
    pub fn say(&mut self, port: u8, lane: u8) {
        let packet = self.neighbour(port).packet(lane);
        if self.neighbour(port).tell(&packet) {
            self.say_packet(port, &packet);
        }
    }

    /// The neighbour at `port` sends this flow-control packet.
    pub fn say_packet(&mut self, port: u8, packet: &FlowControlPacket) {
        self.put(port, FrameKind::InfinibandLink, &packet.to_octets(), self.label());
    }

    /// The neighbour at `port` offers `blocks` on `lane` beyond what it has received, and says so.
    pub fn offer(&mut self, port: u8, lane: u8, blocks: u16) {
        self.neighbour(port).lanes[usize::from(lane)].offer = blocks;
        self.say(port, lane);
    }

    /// The neighbour at `port` speaks so from now on, at once.
    pub fn speak(&mut self, port: u8, voice: Voice) {
        let now = self.now;
        let neighbour = self.neighbour(port);
        neighbour.voice = voice;
        neighbour.due = now;
    }
}
