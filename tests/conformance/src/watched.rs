//! A whole fabric on the virtual clock, from a scenario's text to the counters at its end, with the
//! case looking at every frame.

use crate::case::Failure;
use emulation::observer::Observer;
use emulation::recorder::Recorder;
use emulation::simulator::{Simulator, Tally};
use emulation::wiring::{End, Wiring};
use launch::virtual_clock::devices;
use proto::counters::DeviceReading;
use proto::device::Device;
use proto::events::{DeviceEvent, Direction};
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::ops::ControlFlow;

/// A run that is over.
#[derive(Debug)]
pub struct Watched {
    /// What was run.
    pub lab: Lab,
    /// Every counter at the end, by node.
    pub readings: Vec<DeviceReading>,
    /// What the cables did.
    pub tally: Tally,
}

/// Runs the scenario `text`. `wants` says at which ends `look` is shown what passes.
///
/// # Errors
/// If the scenario has a fault, or a device refuses its configuration.
pub fn watch(
    text: &str,
    wants: impl Fn(&Wiring, End) -> bool,
    look: impl FnMut(End, Direction, &Frame),
) -> Result<Watched, Failure> {
    let scenario = Scenario::parse(text, &[]).map_err(|problems| problems.to_string())?;
    let lab = render(&scenario);
    let wiring = &lab.fabric.wiring;
    let made = devices(&lab).map_err(|error| error.to_string())?;
    let mut simulator = Simulator::new(wiring, made, scenario.run.seed);
    let nodes = (0..wiring.nodes.len()).collect();
    let recorder = Recorder::new(lab.plan.clone(), wiring, nodes);
    let wants = |end| wants(wiring, end);
    let mut onlooker = Onlooker { recorder, wants, look };
    let tally = simulator.run(lab.plan.stop, &mut onlooker, |_| ControlFlow::Continue(()));
    let recording = onlooker.recorder.finish(tally.ended, simulator.devices());
    Ok(Watched { lab, readings: recording.last, tally })
}

/// A recorder that also shows frames.
struct Onlooker<W, L> {
    recorder: Recorder,
    wants: W,
    look: L,
}

impl<W: Fn(End) -> bool, L: FnMut(End, Direction, &Frame)> Observer for Onlooker<W, L> {
    fn next_due(&self) -> Option<Instant> {
        self.recorder.next_due()
    }

    fn sample(&mut self, now: Instant, devices: &mut [Box<dyn Device>]) {
        self.recorder.sample(now, devices);
    }

    fn event(&mut self, device: usize, event: DeviceEvent) {
        self.recorder.event(device, event);
    }

    fn wants_frames(&self, device: usize, port: PortNumber) -> bool {
        (self.wants)(End { node: device, port })
    }

    fn frame(
        &mut self,
        device: usize,
        port: PortNumber,
        direction: Direction,
        frame: &Frame,
        _: Instant,
    ) {
        (self.look)(End { node: device, port }, direction, frame);
    }
}
