//! The bench for devices of Ethernet: neighbours that pause, and what a device says of pauses.
//!
//! No link trains, and a neighbour says nothing by itself. What it sends at line rate while time
//! passes is written down beforehand ([`Bench::stream`]).

use super::packets::ethernet as frames;
use super::{Bench, Neighbour};
use crate::case::{Failure, same};
use proto::counters::{DeviceReading, DropReason};
use proto::device::{Departure, Device};
use proto::events::EventKind;
use proto::frame::Frame;
use proto::ids::Priority;
use proto::units::{BitRate, Duration, Instant};
use proto::wire::ethernet::MacControl;

impl<D: Device> Bench<D> {
    /// A device of Ethernet, whose links are always up.
    pub fn ethernet(device: D) -> Bench<D> {
        let silent = Neighbour { speaks: false, ..Neighbour::new(0) };
        Bench { neighbours: vec![silent; device.ports()], ..Bench::new(device, 0) }
    }

    /// The neighbour at `port` asks for `quanta` of silence on `priorities`; 0 ends it.
    ///
    /// Shape: bit n is priority n.
    pub fn pfc(&mut self, port: u8, priorities: u8, quanta: u16) {
        self.inject(port, frames::pfc(priorities, quanta));
    }

    /// The last octet of `frame` comes from the neighbour of `port` at `at`, in time order.
    pub fn schedule(&mut self, port: u8, at: Instant, frame: Frame) {
        self.neighbour(port).coming.push_back((at, frame));
    }

    /// The neighbour at `port` sends `frames` back to back from `start` on a line of `rate`; when the
    /// last bit of the last one comes.
    pub fn stream(
        &mut self,
        port: u8,
        start: Instant,
        rate: BitRate,
        frames: impl IntoIterator<Item = Frame>,
    ) -> Instant {
        let mut at = start;
        for frame in frames {
            at = at + frame.line_size().time_at(rate);
            self.schedule(port, at, frame);
        }
        at
    }

    /// The MAC control that the neighbour at `port` has seen, and when its last bit came.
    pub fn control(&self, port: u8) -> impl Iterator<Item = (Instant, MacControl)> {
        let read = |sent: &Departure| Some((sent.at, frames::control_of(&sent.frame)?));
        self.line(port).filter_map(read)
    }

    /// What the neighbour at `port` was asked for on `priority`, and when: quanta, 0 for XON.
    pub fn asked(&self, port: u8, priority: u8) -> Vec<(Instant, u16)> {
        let of = |(at, control)| match control {
            MacControl::Pfc(pfc) => Some((at, pfc.time(Priority::truncate(priority))?)),
            MacControl::Pause(pause) => Some((at, pause.time)),
            MacControl::Unknown(_) => None,
        };
        self.control(port).filter_map(of).collect()
    }

    /// Data frames of `priority`, by their DSCP, that the neighbour at `port` has seen.
    pub fn data(&self, port: u8, priority: u8) -> impl Iterator<Item = &Departure> {
        self.packets(port).filter(move |sent| frames::priority(&sent.frame) == Some(priority))
    }

    /// A total of `port` under an operator's name; 0 if it is not told.
    pub fn named(&mut self, port: u8, name: &str) -> u64 {
        let reading = self.reading();
        let named = &reading.ports[usize::from(port) - 1].named;
        named.iter().find(|(key, _)| key == name).map_or(0, |(_, total)| *total)
    }

    /// Octets held for `priority` in the input buffer of `port`.
    pub fn held(&mut self, port: u8, priority: u8) -> u64 {
        let reading = self.reading();
        reading.ports[usize::from(port) - 1].lanes[usize::from(priority)].counters.in_queue.value
    }

    /// Octets that stand or leave at `port`, by priority.
    pub fn queued(&mut self, port: u8) -> [u64; 8] {
        let reading = self.reading();
        let lanes = &reading.ports[usize::from(port) - 1].lanes;
        std::array::from_fn(|priority| lanes[priority].counters.out_queue.value)
    }

    /// Frames lost at all ports for `reason` since `before`.
    pub fn lost_for(&mut self, before: &DeviceReading, reason: DropReason) -> u64 {
        let after = self.reading();
        let lost = |reading: &DeviceReading| -> u64 {
            reading.ports.iter().map(|port| port.drops.get(reason)).sum()
        };
        lost(&after) - lost(before)
    }

    /// Holds if nothing was lost anywhere since `before`.
    ///
    /// # Errors
    /// If something was: what, and where first.
    pub fn nothing_lost(&mut self, before: &DeviceReading) -> Result<(), Failure> {
        for port in 1..=self.device.ports() as u8 {
            same(format!("what port {port} has lost"), self.lost_since(before, port), nothing())?;
        }
        Ok(())
    }

    /// Events of this kind that have happened, and when.
    pub fn told(&self, is: impl Fn(&EventKind) -> bool) -> Vec<(Instant, u8, u8)> {
        let of_kind = self.events.iter().filter(|event| is(&event.kind));
        of_kind.map(|event| (event.at, event.port.get(), event.tc)).collect()
    }

    /// Lets time pass in `steps` of `length`, and forgets after each what was seen: for long runs.
    pub fn run_on(&mut self, steps: u64, length: Duration, mut look: impl FnMut(&mut Bench<D>)) {
        for _ in 0..steps {
            self.run_for(length);
            look(self);
            self.forget();
        }
    }
}

/// As [`Bench::lost_since`] says it.
fn nothing() -> String {
    "nothing".to_owned()
}
