//! What is fed: the frames of a capture that a port can take, and when each of them arrives.

use capture::reader::{CaptureReader, CapturedFrame, ReadError};
use emulation::cable::is_link_local;
use emulation::wiring::{End, NodeKind};
use proto::frame::{Frame, FrameKind};
use proto::technology::Technology;
use proto::units::{BitRate, Duration, Instant};
use scenario::render::Lab;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

/// Links are up and have told their credits long before so many frame times have passed.
const BEGIN_FRAMES: u64 = 50;
/// After the last frame the fabric gets so many frame times to carry it out.
const LINGER_FRAMES: u64 = 200;
/// Longer than any replay is meant to be: eleven days of fabric time.
const SPAN_MAX_PS: u64 = 1_000_000_000_000_000_000;

/// How far apart frames arrive, line time aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So far.
    Gap(Duration),
    /// As recorded, so many times as fast.
    Speed(f64),
}

/// A capture that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// It cannot be opened.
    #[error("cannot read: {0}")]
    Open(std::io::Error),
    /// It holds nothing at all.
    #[error("the file is empty")]
    Empty,
    /// It is no capture.
    #[error("{0}")]
    Refused(ReadError),
    /// It is none to its end.
    #[error("{error}, after {whole} whole frames; nothing was started")]
    Broken {
        /// What is wrong.
        error: ReadError,
        /// How many frames came before.
        whole: u64,
    },
    /// None of its frames can be fed.
    #[error("no {0} frames to feed{1}")]
    Nothing(&'static str, String),
    /// At that pace it lasts for ever.
    #[error("at this pace the replay lasts more than eleven days of fabric time")]
    Long,
}

/// Frames to be fed to one port.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The port.
    pub at: End,
    /// The frames in the order of the file, each with its arrival.
    pub frames: Vec<(Instant, Frame)>,
    /// Packets of the file that are not fed, by reason.
    pub skipped: BTreeMap<String, u64>,
}

impl Feed {
    /// Reads the capture `file` for the port `at` of `lab`.
    ///
    /// Arrivals are whole nanoseconds, so that live and virtual feeds are the same.
    ///
    /// # Errors
    /// If the file is no whole capture, or has nothing for the port.
    pub fn read(file: &Path, at: End, lab: &Lab, pace: Pace) -> Result<Feed, FeedError> {
        let opened = File::open(file).map_err(FeedError::Open)?;
        let about = opened.metadata().map_err(FeedError::Open)?;
        if about.is_dir() {
            return Err(FeedError::Open(ErrorKind::IsADirectory.into()));
        }
        if about.is_file() && about.len() == 0 {
            return Err(FeedError::Empty);
        }
        let mut reader = CaptureReader::new(BufReader::new(opened)).map_err(FeedError::Refused)?;
        let rate = lab.fabric.line_rate(at).unwrap_or(BitRate::gbps(1));
        let begin = whole_ns(Instant::ZERO + lab.fabric.tau * BEGIN_FRAMES);
        let mut pacer = Pacer { pace, rate, begin, last: None };
        let mut feed = Feed { at, frames: Vec::new(), skipped: BTreeMap::new() };
        let mut whole = 0;
        for captured in &mut reader {
            let captured = captured.map_err(|error| FeedError::Broken { error, whole })?;
            whole += u64::from(!captured.is_cut());
            match unfit(&captured, lab.fabric.technology) {
                Some(reason) => *feed.skipped.entry(reason.to_owned()).or_default() += 1,
                None => {
                    let arrives = pacer.arrival(&captured).ok_or(FeedError::Long)?;
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
            return Err(FeedError::Nothing(wanted, feed.reasons()));
        }
        Ok(feed)
    }

    /// What was passed over, in words that end a sentence.
    fn reasons(&self) -> String {
        let reasons = self.skipped.iter().map(|(reason, count)| format!("{count} × {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        if reasons.is_empty() { reasons } else { format!(": {reasons}") }
    }

    /// How long a run must be for every frame to get through.
    pub fn duration(&self, lab: &Lab) -> Duration {
        let last = self.frames.last().map_or(Instant::ZERO, |(arrives, _)| *arrives);
        last.since(Instant::ZERO) + lab.fabric.tau * LINGER_FRAMES
    }

    /// The frames as a run takes them.
    pub fn injections(&self) -> Vec<(End, Instant, Frame)> {
        self.frames.iter().map(|(arrives, frame)| (self.at, *arrives, frame.clone())).collect()
    }

    /// Why the result may not be what was meant: somebody else sends on the same cable.
    pub fn warning(&self, lab: &Lab) -> Option<String> {
        let wiring = &lab.fabric.wiring;
        let (_, peer) = wiring.peer(self.at)?;
        let silent = match wiring.nodes[peer.node].kind {
            NodeKind::Nic => lab.nics[peer.node].traffic.is_empty(),
            NodeKind::Switch => lab.nics.iter().all(|nic| nic.traffic.is_empty()),
        };
        (!silent).then(|| {
            format!(
                "{} may send on the same cable, and knows nothing of these frames: together they \
                 can overrun the buffer, which is counted",
                wiring.end_name(peer)
            )
        })
    }
}

fn whole_ns(at: Instant) -> Instant {
    Instant::from_ps(at.as_ps().div_ceil(1_000) * 1_000)
}

/// Why a frame cannot be fed to a port of this technology.
fn unfit(captured: &CapturedFrame, technology: Technology) -> Option<&'static str> {
    let frame = &captured.frame;
    match (technology, frame.kind) {
        (Technology::Infiniband, FrameKind::Ethernet) => Some("Ethernet frame"),
        // Its counters belong to the link it was on; here they would spoil another's.
        (Technology::Infiniband, FrameKind::InfinibandLink) => Some("link packet"),
        (Technology::Ethernet, FrameKind::Infiniband | FrameKind::InfinibandLink) => {
            Some("InfiniBand packet")
        }
        // It spoke to the port at the end of its link, not to this one.
        (Technology::Ethernet, FrameKind::Ethernet) if is_link_local(frame.kind, &frame.octets) => {
            Some("MAC control frame")
        }
        _ => captured.is_cut().then_some("cut by the capture's snap length"),
    }
}

/// What a capture's first frame is, as far as anybody can tell.
pub fn technology_of(file: &Path) -> Option<Technology> {
    let reader = CaptureReader::new(BufReader::new(File::open(file).ok()?)).ok()?;
    let first = reader.flatten().next()?;
    Some(match first.frame.kind {
        FrameKind::Ethernet => Technology::Ethernet,
        FrameKind::Infiniband | FrameKind::InfinibandLink => Technology::Infiniband,
    })
}

/// Gives frames their arrivals.
struct Pacer {
    pace: Pace,
    rate: BitRate,
    /// The first arrival.
    begin: Instant,
    /// The time stamp and the arrival of the frame before.
    last: Option<(u64, Instant)>,
}

impl Pacer {
    /// When the next frame arrives; `None` past [`SPAN_MAX_PS`].
    fn arrival(&mut self, captured: &CapturedFrame) -> Option<Instant> {
        let arrives = match self.last {
            None => self.begin,
            Some((stamp_ns, arrived)) => {
                let gap = match self.pace {
                    Pace::Gap(gap) => gap.as_ps(),
                    // A capture of several interfaces may run back a little; a float beyond the
                    // integers becomes the greatest one, which is refused below.
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
