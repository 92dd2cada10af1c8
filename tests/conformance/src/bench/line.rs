//! The line of a port: when the first and the last bit of each frame left it, and whether that is
//! when they had to.

use super::packets::{ethernet, is_packet};
use crate::case::{Failure, ensure};
use proto::device::Departure;
use proto::frame::{Frame, FrameKind};
use proto::units::{BitRate, Duration, Instant};

/// A frame on the line.
#[derive(Clone, Copy, Debug)]
pub struct OnLine<'a> {
    /// The frame.
    pub frame: &'a Frame,
    /// When its first bit left.
    pub start: Instant,
    /// When its last bit left.
    pub end: Instant,
}

impl OnLine<'_> {
    /// The virtual lane of a packet, on Ethernet its priority by DSCP; none for what governs the link.
    pub fn lane(&self) -> Option<u8> {
        match self.frame.kind {
            FrameKind::Infiniband => self.frame.octets.first().map(|octet| octet >> 4),
            FrameKind::InfinibandLink => None,
            FrameKind::Ethernet => ethernet::priority(self.frame),
        }
    }

    /// The destination LID of a packet.
    pub fn to(&self) -> u16 {
        u16::from_be_bytes([self.frame.octets[2], self.frame.octets[3]])
    }
}

/// What was on a line of `rate`, first to last.
pub fn line<'a>(sent: impl Iterator<Item = &'a Departure>, rate: BitRate) -> Vec<OnLine<'a>> {
    sent.map(|sent| {
        let took = sent.frame.line_size().time_at(rate);
        let start = Instant::from_ps(sent.at.as_ps() - took.as_ps());
        OnLine { frame: &sent.frame, start, end: sent.at }
    })
    .collect()
}

/// The packets of a line.
pub fn packets<'a, 'b>(line: &'b [OnLine<'a>]) -> impl Iterator<Item = &'b OnLine<'a>> {
    line.iter().filter(|frame| is_packet(frame.frame))
}

/// Holds if nothing ever stands between two of the frames.
///
/// # Errors
/// If the line was idle: when, and for how long.
pub fn never_idle(line: &[OnLine<'_>]) -> Result<(), Failure> {
    let mut pairs = line.windows(2).map(|pair| pair[1].start.since(pair[0].end));
    match pairs.position(|gap| gap > Duration::ZERO) {
        None => Ok(()),
        Some(at) => Err(Failure::Failed(format!(
            "the line was idle for {} before frame {} of {}, expected none",
            line[at + 1].start.since(line[at].end),
            at + 2,
            line.len()
        ))),
    }
}

/// Holds if every packet that `is_paced` picks starts exactly `delay` after the end of the one
/// before it, or as soon after that as the line is free; how many gaps there were.
///
/// # Errors
/// At the first that does not: which, when it started and when it should have.
pub fn paced(
    line: &[OnLine<'_>],
    is_paced: impl Fn(&OnLine<'_>) -> bool,
    delay: impl Fn(&OnLine<'_>) -> Duration,
) -> Result<usize, Failure> {
    let mut last: Option<&OnLine<'_>> = None;
    let mut gaps = 0;
    for (index, frame) in line.iter().enumerate() {
        if !is_packet(frame.frame) || !is_paced(frame) {
            continue;
        }
        if let Some(last) = last {
            let due = (last.end + delay(last)).max(line[index - 1].end);
            ensure(frame.start == due, || {
                format!(
                    "packet {} starts {} after the end of the one before it, expected {}",
                    gaps + 2,
                    frame.start.since(last.end),
                    due.since(last.end)
                )
            })?;
            gaps += 1;
        }
        last = Some(frame);
    }
    Ok(gaps)
}
