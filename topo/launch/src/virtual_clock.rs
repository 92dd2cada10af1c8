//! The substrate `virtual`: all devices in this process, on a virtual clock.

use super::{Job, LaunchError, Outcome, Progress, interrupt, refuse_attached};
use crate::error::OrHost;
use capture::Capture;
use emulation::clock::Stopwatch;
use emulation::recorder::Recorder;
use emulation::recorder::snapshot::BinSnapshot;
use emulation::simulator::Simulator;
use nicd::nic::Nic;
use proto::counters::{DropReason, Drops};
use proto::device::Device;
use results::run_directory::result::{ClockPieces, Fidelity, OnCables};
use scenario::render::Lab;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::Receiver;
use switchd::switch::Switch;

/// Runs a job.
///
/// # Errors
/// If a device refuses its configuration or a capture cannot be written.
pub fn run(job: &Job<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, LaunchError> {
    refuse_attached(job)?;
    let lab = job.lab;
    let stopwatch = Stopwatch::start();
    let mut simulator =
        Simulator::new(&lab.fabric.wiring, devices(lab)?, job.run.seed).on_threads(job.threads);
    for (end, arrives, frame) in &job.injections {
        simulator.inject(*end, frame.clone(), *arrives);
    }
    let nodes: Vec<usize> = (0..lab.fabric.wiring.nodes.len()).collect();
    let mut recorder =
        Recorder::new(lab.plan.clone(), &lab.fabric.wiring, nodes.clone()).on_threads(job.threads);
    if let Some(plan) = &job.capture {
        let capture = Capture::create(plan, &lab.fabric.wiring, &nodes);
        recorder = recorder.with_tap(capture.or_host("cannot capture")?);
    }
    let listener = recorder.listen();
    let tally = simulator.run(lab.plan.stop, &mut recorder, |at| {
        let bins: Vec<BinSnapshot> = listener.iter().flat_map(Receiver::try_iter).collect();
        progress(Progress { at, late_p99_frames: None, lost: 0, dilation: 1, bins: &bins });
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if interrupt::requested() {
        return Err(LaunchError::interrupted());
    }
    let recording = recorder.finish(tally.ended, simulator.devices());
    let bins: Vec<BinSnapshot> = listener.iter().flat_map(Receiver::try_iter).collect();
    progress(Progress {
        at: tally.ended,
        late_p99_frames: None,
        lost: 0,
        dilation: 1,
        bins: &bins,
    });
    let mut dropped = Drops::default();
    dropped.add(DropReason::Injected, tally.injected.lost.end_to_end);
    Ok(Outcome {
        recordings: vec![recording],
        fidelity: Fidelity::VIRTUAL,
        reasons: Vec::new(),
        timeline: Vec::new(),
        on_cables: OnCables {
            under_way: tally.on_cables,
            dropped,
            duplicated: tally.injected.duplicated.end_to_end + tally.fed,
            handed_over: 0,
        },
        cables: BTreeMap::from([
            ("memory".to_owned(), lab.fabric.wiring.links.len() as u64),
            ("udp".to_owned(), 0),
        ]),
        dilation: None,
        pieces: ClockPieces::default(),
        frame_hops: tally.frame_hops,
        wall_seconds: stopwatch.seconds(),
        cpu_seconds: stopwatch.seconds(),
        refused: BTreeMap::new(),
        repeated: None,
        scheduling: format!("virtual clock, threads: {}", job.threads),
        hosts: Vec::new(),
    })
}

/// The devices of a fabric, in node order.
///
/// # Errors
/// If a device refuses its configuration.
pub fn devices(lab: &Lab) -> Result<Vec<Box<dyn Device>>, LaunchError> {
    let mut devices: Vec<Box<dyn Device>> = Vec::with_capacity(lab.fabric.wiring.nodes.len());
    for config in &lab.nics {
        let refused = LaunchError::config(config.name.as_str()).caused();
        devices.push(Box::new(Nic::new(config.clone()).map_err(refused)?));
    }
    for config in &lab.switches {
        let refused = LaunchError::config(config.name.as_str()).caused();
        devices.push(Box::new(Switch::new(config.clone()).map_err(refused)?));
    }
    Ok(devices)
}
