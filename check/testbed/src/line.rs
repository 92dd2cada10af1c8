//! The line of a port: when the first and the last bit of each frame left it.

use crate::frames::ethernet::priority;
use crate::frames::is_packet;
use crate::seen::Seen;
use proto::frame::{Frame, FrameKind};
use proto::units::{BitRate, Duration, Instant};

/// A frame on a line, with both ends of its time there.
#[derive(Clone, Copy, Debug)]
pub struct OnLine<'a> {
    /// The frame.
    pub frame: &'a Frame,
    /// When its first bit left.
    pub start: Instant,
    /// When its last bit left.
    pub end: Instant,
}

impl<'a> OnLine<'a> {
    /// What was on a line of `rate`, first to last.
    pub fn all(sent: impl Iterator<Item = &'a Seen>, rate: BitRate) -> Vec<OnLine<'a>> {
        sent.map(|sent| OnLine { frame: &sent.frame, start: sent.start(rate), end: sent.at })
            .collect()
    }

    /// Virtual lane of a packet, or its priority by DSCP; none for flow control of the link.
    pub fn lane(&self) -> Option<u8> {
        match self.frame.kind {
            FrameKind::Infiniband => self.frame.octets.first().map(|octet| octet >> 4),
            FrameKind::InfinibandLink => None,
            FrameKind::Ethernet => priority(self.frame),
        }
    }

    /// Whether it is a packet, and not flow control of its link.
    pub fn is_packet(&self) -> bool {
        is_packet(self.frame)
    }

    /// Holds if nothing ever stands between two of the frames.
    ///
    /// # Errors
    /// If the line was idle: when, and for how long.
    pub fn never_idle(line: &[OnLine<'_>]) -> Result<(), String> {
        let mut pairs = line.windows(2).map(|pair| pair[1].start.since(pair[0].end));
        match pairs.position(|gap| gap > Duration::ZERO) {
            None => Ok(()),
            Some(at) => Err(format!(
                "the line was idle for {} before frame {} of {}, expected none",
                line[at + 1].start.since(line[at].end),
                at + 2,
                line.len()
            )),
        }
    }

    /// Holds if every packet starts exactly `delay` after the end of the one before it, or as soon after
    /// that as the line is free; how many gaps there were.
    ///
    /// # Errors
    /// At the first that does not: which, when it started and when it should have.
    pub fn paced(
        line: &[OnLine<'_>],
        delay: impl Fn(&OnLine<'_>) -> Duration,
    ) -> Result<usize, String> {
        let mut last: Option<&OnLine<'_>> = None;
        let mut gaps = 0;
        for (index, frame) in line.iter().enumerate().filter(|(_, frame)| frame.is_packet()) {
            if let Some(last) = last {
                let due = (last.end + delay(last)).max(line[index - 1].end);
                if frame.start != due {
                    return Err(format!(
                        "packet {} starts {} after the end of the one before it, expected {}",
                        gaps + 2,
                        frame.start.since(last.end),
                        due.since(last.end)
                    ));
                }
                gaps += 1;
            }
            last = Some(frame);
        }
        Ok(gaps)
    }
}
