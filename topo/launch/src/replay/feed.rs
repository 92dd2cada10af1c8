//! The frames of a capture that a port accepts, and the arrival of each.

use crate::{LaunchError, with_sources};
use capture::reader::{CaptureReader, CapturedFrame, ReadError};
use emulation::cable::is_link_local;
use emulation::wiring::{End, NodeKind};
use proto::frame::{Frame, FrameKind};
use proto::technology::Technology;
use proto::units::{BitRate, Duration, Instant};
use scenario::render::Lab;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;

/// The first arrival, in frame times: links are up and credits have been exchanged by then.
const BEGIN_FRAMES: u64 = 50;
/// Frame times after the last arrival, for the fabric to deliver it.
const LINGER_FRAMES: u64 = 200;
/// The longest replay: eleven days of fabric time.
const SPAN_MAX_PS: u64 = 1_000_000_000_000_000_000;

/// The gap between frames, which is at least their line time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A constant gap.
    Gap(Duration),
    /// The recorded gap, divided by this factor.
    Speed(f64),
}

/// Frames to inject at one port.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The port.
    pub at: End,
    /// The frames in the order of the file, each with its arrival.
    pub frames: Vec<(Instant, Frame)>,
    /// Packets of the file that are left out, by reason.
    pub skipped: BTreeMap<String, u64>,
}

impl Feed {
    /// Reads the capture `file` for the port `at` of `lab`.
    ///
    /// Arrivals are whole nanoseconds, so that live and virtual feeds are the same.
    ///
    /// # Errors
    /// If the file is not a whole capture, or has nothing for the port.
    pub fn read(file: &Path, at: End, lab: &Lab, pace: Pace) -> Result<Feed, LaunchError> {
        let open = || -> io::Result<File> {
            let opened = File::open(file)?;
            if opened.metadata()?.is_dir() {
                Err(ErrorKind::IsADirectory.into())
            } else {
                Ok(opened)
            }
        };
        let opened = open().map_err(LaunchError::config("cannot read").caused())?;
        if opened.metadata().is_ok_and(|about| about.is_file() && about.len() == 0) {
            return Err(LaunchError::config("the file is empty"));
        }
        let refused = |error: ReadError| LaunchError::config(with_sources(&error));
        let mut reader = CaptureReader::new(BufReader::new(opened)).map_err(refused)?;
        let rate = lab.fabric.line_rate(at).unwrap_or(BitRate::gbps(1));
        let begin = whole_ns(Instant::ZERO + lab.fabric.tau * BEGIN_FRAMES);
        let mut pacer = Pacer { pace, rate, begin, last: None };
        let mut feed = Feed { at, frames: Vec::new(), skipped: BTreeMap::new() };
        let too_long = || {
            let reason = "at this pace the replay lasts more than eleven days of fabric time";
            LaunchError::config(reason)
        };
        let mut whole = 0;
        for captured in &mut reader {
            let captured = captured.map_err(|error| {
                let error = with_sources(&error);
                LaunchError::config(format!(
                    "{error}, after {whole} whole frames; nothing was started"
                ))
            })?;
            whole += u64::from(!captured.is_cut());
            match unfit(&captured, lab.fabric.technology) {
                Some(reason) => *feed.skipped.entry(reason.to_owned()).or_default() += 1,
                None => {
                    let arrives = pacer.arrival(&captured).ok_or_else(too_long)?;
                    feed.frames.push((arrives, captured.frame));
                }
            }
        }
        for (reason, count) in reader.skipped() {
            *feed.skipped.entry(reason.clone().into_owned()).or_default() += count;
        }
        if feed.frames.is_empty() {
            let wanted = match lab.fabric.technology {
                Technology::Infiniband => "InfiniBand",
                Technology::Ethernet => "Ethernet",
            };
            let reasons = feed.reasons();
            return Err(LaunchError::config(format!("no {wanted} frames to feed{reasons}")));
        }
        Ok(feed)
    }

    /// The packets left out, as the end of a sentence.
    fn reasons(&self) -> String {
        let reasons = self.skipped.iter().map(|(reason, count)| format!("{count} × {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        if reasons.is_empty() { reasons } else { format!(": {reasons}") }
    }

    /// The duration of a run that delivers every frame.
    pub fn duration(&self, lab: &Lab) -> Duration {
        let last = self.frames.last().map_or(Instant::ZERO, |(arrives, _)| *arrives);
        last.since(Instant::ZERO) + lab.fabric.tau * LINGER_FRAMES
    }

    /// The frames as injections of a run.
    pub fn injections(&self) -> Vec<(End, Instant, Frame)> {
        self.frames.iter().map(|(arrives, frame)| (self.at, *arrives, frame.clone())).collect()
    }

    /// A warning if another device sends on the same cable.
    pub fn warning(&self, lab: &Lab) -> Option<String> {
        let wiring = &lab.fabric.wiring;
        let (_, peer) = wiring.peer(self.at)?;
        let silent = match wiring.nodes[peer.node].kind {
            NodeKind::Nic => lab.nics[peer.node].traffic.is_empty(),
            NodeKind::Switch => lab.nics.iter().all(|nic| nic.traffic.is_empty()),
        };
        (!silent).then(|| {
            format!(
                "{} may send on the same cable too: together with these frames that can overrun the \
                 buffer, which is counted",
                wiring.end_name(peer)
            )
        })
    }
}

fn whole_ns(at: Instant) -> Instant {
    Instant::from_ps(at.as_ps().div_ceil(1_000) * 1_000)
}

/// Why a frame cannot be injected at a port of this technology.
fn unfit(captured: &CapturedFrame, technology: Technology) -> Option<&'static str> {
    let frame = &captured.frame;
    match (technology, frame.kind) {
        (Technology::Infiniband, FrameKind::Ethernet) => Some("Ethernet frame"),
        // Its counters belong to its own link, and would corrupt those of another.
        (Technology::Infiniband, FrameKind::InfinibandLink) => Some("link packet"),
        (Technology::Ethernet, FrameKind::Infiniband | FrameKind::InfinibandLink) => {
            Some("InfiniBand packet")
        }
        // It was meant for the port at the end of its own link.
        (Technology::Ethernet, FrameKind::Ethernet) if is_link_local(frame.kind, &frame.octets) => {
            Some("MAC control frame")
        }
        _ => captured.is_cut().then_some("cut by the capture's snap length"),
    }
}

/// The technology of the first frame of a capture, if it can be read.
pub fn technology_of(file: &Path) -> Option<Technology> {
    let reader = CaptureReader::new(BufReader::new(File::open(file).ok()?)).ok()?;
    let first = reader.flatten().next()?;
    Some(match first.frame.kind {
        FrameKind::Ethernet => Technology::Ethernet,
        FrameKind::Infiniband | FrameKind::InfinibandLink => Technology::Infiniband,
    })
}

/// Computes the arrivals of frames.
struct Pacer {
    pace: Pace,
    rate: BitRate,
    /// The first arrival.
    begin: Instant,
    /// The time stamp and the arrival of the frame before.
    last: Option<(u64, Instant)>,
}

impl Pacer {
    /// The arrival of the next frame; `None` beyond [`SPAN_MAX_PS`].
    fn arrival(&mut self, captured: &CapturedFrame) -> Option<Instant> {
        let arrives = match self.last {
            None => self.begin,
            Some((stamp_ns, arrived)) => {
                let gap = match self.pace {
                    Pace::Gap(gap) => gap.as_ps(),
                    // Timestamps of several interfaces may run back a little. A float beyond the integers
                    // saturates, and is refused below.
                    Pace::Speed(speed) => {
                        (captured.at_ns.saturating_sub(stamp_ns) as f64 * 1_000.0 / speed) as u64
                    }
                };
                let line = captured.frame.line_size().time_at(self.rate).as_ps();
                let at = arrived.as_ps().checked_add(gap.max(line))?;
                whole_ns(Instant::from_ps(Some(at).filter(|at| *at <= SPAN_MAX_PS)?))
            }
        };
        self.last = Some((captured.at_ns, arrives));
        Some(arrives)
    }
}

#[cfg(test)]
mod tests;
