//! A script, and the words that its steps are written in.

use super::{Label, Seen, Tester};
use crate::live::neighbour::Neighbour;
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::units::Instant;
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
        let neighbour = self.neighbour(port);
        neighbour.on_send(octets);
        let kind = neighbour.kind();
        self.put(port, kind, octets, label);
    }

    /// The neighbour at `port` sends a packet as soon as line and credit permit.
    pub fn enqueue(&mut self, port: u8, octets: BytesMut) {
        self.cables[usize::from(port) - 1].waiting.push_back((self.now, octets));
    }
}
