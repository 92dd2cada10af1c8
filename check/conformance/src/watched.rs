//! A whole fabric on the virtual clock whose devices are changed, and at whose frames the case looks.

use crate::case::Result;
use crate::stage;
use emulation::observer::{NoObserver, Observer, Passage};
use emulation::simulator::{Simulator, Tally};
use emulation::wiring::{End, Wiring};
use launch::virtual_clock::devices;
use proto::counters::DeviceReading;
use proto::device::Device;
use proto::events::Direction;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
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

/// Runs the scenario `text`. `wants` selects the ends whose frames `look` receives.
///
/// # Errors
/// If the scenario has a fault, or a device refuses its configuration.
pub fn watch(
    text: &str,
    wants: impl Fn(&Wiring, End) -> bool,
    look: impl FnMut(End, Direction, &Frame),
) -> Result<Watched> {
    let scenario = stage::read(text)?;
    let lab = render(&scenario);
    let wiring = &lab.fabric.wiring;
    let mut simulator =
        Simulator::new(wiring, devices(&lab).map_err(stage::died)?, scenario.run.seed);
    let mut onlooker = Onlooker { wants: |end| wants(wiring, end), look };
    let tally = simulator.run(lab.plan.stop, &mut onlooker, |_| ControlFlow::Continue(()));
    let readings = read(&mut simulator, tally.ended);
    Ok(Watched { lab, readings, tally })
}

/// Runs the scenario `text` with configurations that `change` and devices that `wrap` has changed, by node; every
/// counter at each of `stops`.
///
/// # Errors
/// If the scenario has a fault, or a device refuses its configuration.
pub fn hampered(
    text: &str,
    change: impl FnOnce(&mut Lab),
    mut wrap: impl FnMut(usize, Box<dyn Device>) -> Box<dyn Device>,
    stops: &[Instant],
) -> Result<Vec<Vec<DeviceReading>>> {
    let scenario = stage::read(text)?;
    let mut lab = render(&scenario);
    change(&mut lab);
    let made = devices(&lab).map_err(stage::died)?;
    let made = made.into_iter().enumerate().map(|(node, device)| wrap(node, device)).collect();
    let mut simulator = Simulator::new(&lab.fabric.wiring, made, scenario.run.seed);
    let until = |stop: &Instant| {
        simulator.run(*stop, &mut NoObserver, |_| ControlFlow::Continue(()));
        read(&mut simulator, *stop)
    };
    Ok(stops.iter().map(until).collect())
}

/// Every counter at `now`, by node.
fn read(simulator: &mut Simulator, now: Instant) -> Vec<DeviceReading> {
    let all = simulator.devices().iter_mut().map(|device| {
        let mut reading = DeviceReading::default();
        device.read(now, &mut reading);
        reading
    });
    all.collect()
}

/// Shows frames to the case.
struct Onlooker<W, L> {
    wants: W,
    look: L,
}

impl<W: Fn(End) -> bool, L: FnMut(End, Direction, &Frame)> Observer for Onlooker<W, L> {
    fn wants_frames(&self, node: usize, port: PortNumber) -> bool {
        (self.wants)(End { node, port })
    }

    fn frame(&mut self, frame: &Frame, passage: &Passage) {
        let Passage { device: node, port, direction, .. } = *passage;
        let mut whole = frame.clone();
        whole.materialise();
        (self.look)(End { node, port }, direction, &whole);
    }
}
