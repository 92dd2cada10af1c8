//! Whole fabrics through the ordinary launcher, on the virtual clock and live.

use super::case::{Failure, Level, Result};
use super::shared::Evidence;
use super::stage;
use super::star::dilation;
use capture::reader::{CaptureReader, CapturedFrame, ReadError};
use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use proto::counters::{DeviceReading, LaneCounters, PortReading};
use proto::events::Direction;
use scenario::run::Backend;
use std::path::{Path, PathBuf};

/// A fabric's run and its captures.
#[derive(Debug)]
pub struct Fabric {
    /// The run.
    pub experiment: Experiment,
    /// Its events.jsonl.
    pub events: String,
    /// Its captures, each as the file was.
    captures: Vec<Vec<u8>>,
}

impl Evidence for Fabric {
    fn kept_up(&self) -> Result<()> {
        if self.experiment.result.fidelity.ok {
            return Ok(());
        }
        Err(Failure::Inconclusive(self.experiment.outcome.reasons.join("; ")))
    }
}

impl Fabric {
    /// Runs the scenario `text`: on the virtual clock, or live at `profile` times the dilation of the
    /// environment.
    ///
    /// # Errors
    /// If it does not come back.
    pub fn run(level: Level, text: &str, profile: u64) -> Result<Fabric> {
        let live = level == Level::Live;
        let backend = if live { Backend::Udp } else { Backend::Virtual };
        Fabric::on(backend, text, if live { dilation(profile) } else { 1 })
    }

    /// The same on another substrate, so much slowed down.
    ///
    /// # Errors
    /// If it does not come back.
    pub fn on(backend: Backend, text: &str, dilation: u64) -> Result<Fabric> {
        let scenario = stage::read(text)?;
        let folder = tempfile::tempdir().map_err(Failure::of_host)?;
        let conditions = Conditions {
            dilation,
            folder: Some(folder.path()),
            ..Conditions::new(substrate(backend), "pausebed check")
        };
        let run = Experiment::run(&scenario, conditions, &mut |_| {});
        let experiment = run.map_err(stage::died)?;
        // A run without events has no such file.
        let events =
            std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap_or_default();
        Ok(Fabric { experiment, events, captures: captures_in(folder.path())? })
    }

    /// A measure of the run.
    ///
    /// # Errors
    /// If it has no value.
    pub fn measure(&self, name: &str) -> Result<f64> {
        let value = self.experiment.result.measures.get(name).and_then(Option::as_ref);
        let value = value.and_then(scenario::measure::value::Value::number);
        Ok(value.ok_or_else(|| format!("{name} has no value"))?)
    }

    /// The last reading of a node.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn reading(&self, name: &str) -> Result<&DeviceReading> {
        let nodes = &self.experiment.lab.fabric.wiring.nodes;
        let recordings = self.experiment.outcome.recordings.iter();
        let mut all = recordings.flat_map(|one| one.nodes.iter().zip(&one.last));
        let found = all.find(|(node, _)| nodes[**node].name == name);
        Ok(found.map(|(_, reading)| reading).ok_or_else(|| format!("no reading of {name}"))?)
    }

    /// The last reading of one port.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn port(&self, node: &str, port: usize) -> Result<&PortReading> {
        let reading = self.reading(node)?.ports.get(port - 1);
        Ok(reading.ok_or_else(|| format!("no reading of {node}:{port}"))?)
    }

    /// A total of one port under an operator's name; 0 if there is none.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn named(&self, node: &str, port: usize, name: &str) -> Result<u64> {
        let named = &self.port(node, port)?.named;
        Ok(named.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count))
    }

    /// How many frames were dropped anywhere.
    pub fn dropped(&self) -> u64 {
        self.experiment.result.conservation.dropped.values().sum()
    }

    /// Totals of one port, over its lanes.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn totals(&self, node: &str, port: usize) -> Result<LaneCounters> {
        let reading = self.port(node, port)?;
        let mut sum = LaneCounters::default();
        for lane in &reading.lanes {
            sum.tx_frames += lane.counters.tx_frames;
            sum.rx_frames += lane.counters.rx_frames;
            sum.ctl_tx += lane.counters.ctl_tx;
            sum.ctl_rx += lane.counters.ctl_rx;
        }
        Ok(sum)
    }

    /// Every captured frame of one port and way, in the order of its file.
    ///
    /// # Errors
    /// If a capture cannot be read to its end.
    pub fn captured(&self, port: &str, way: Direction) -> Result<Vec<CapturedFrame>> {
        let mut found = Vec::new();
        let say = |error: ReadError| Failure::Failed(format!("a capture: {error}"));
        for octets in &self.captures {
            for frame in CaptureReader::new(octets.as_slice()).map_err(say)? {
                let frame = frame.map_err(say)?;
                // Link packets have an interface of their own beside the port's.
                let name = frame.interface.as_deref().unwrap_or_default();
                let here =
                    name.strip_prefix(port).is_some_and(|rest| rest.is_empty() || rest == "/link");
                if here && frame.direction == Some(way) {
                    found.push(frame);
                }
            }
        }
        Ok(found)
    }
}

/// The captures of a run directory.
fn captures_in(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let say = |error: std::io::Error| Failure::Failed(format!("a capture: {error}"));
    let entries = std::fs::read_dir(folder).map_err(say)?.flatten().map(|entry| entry.path());
    let is_capture = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "pcapng");
    entries.filter(is_capture).map(|file| std::fs::read(file).map_err(say)).collect()
}
