//! The words of scripts about Ethernet: frames, pauses, and what a neighbour was asked for.

use super::{Label, Tester};
use crate::bench::packets::ethernet as frames;
use crate::live::record::ethernet::quanta_for;
use emulation::cable::shim::Shim;
use proto::frame::{Frame, Integrity};

impl Tester {
    /// The neighbour at `port` sends `frame`; one that is aborted ends as one with a bad FCS.
    pub fn send_frame(&mut self, port: u8, frame: &Frame) {
        let flags = if frame.integrity == Integrity::Aborted { Shim::ABORTED } else { 0 };
        let label = Label { flags, ..self.label() };
        self.send_labelled(port, &frame.octets, label);
    }

    /// The neighbour at `port` asks for `quanta` of silence on `priorities`; 0 ends it.
    ///
    /// Shape: bit n is priority n.
    pub fn pfc(&mut self, port: u8, priorities: u8, quanta: u16) {
        self.send_frame(port, &frames::pfc(priorities, quanta));
    }

    /// What the neighbour at `port` was asked for last on `priority`: quanta, 0 for XON.
    pub fn asked_last(&self, port: u8, priority: u8) -> Option<u16> {
        let here = self.seen().iter().rev().filter(|seen| seen.port == port);
        here.filter_map(|seen| quanta_for(&seen.frame, priority)).next()
    }
}
