//! The transport timer of a requester, as far as a capture shows it.
//!
//! The timer runs while an answer is due. It restarts when a packet that asks for an answer is sent and when a valid
//! answer arrives; a time-out is detected between T and 4 T after that, T = 4.096 µs · 2^timeout.
//! Source: IBTA Vol 1, 9.7.6.1.3, as far as it could be checked.
//!
//! Data packets do not carry the timeout. It is stated by the user, or by a connection request in the file. Without
//! either, T is bounded from the requester's own behaviour: a requester that waited for a time w and sent nothing again
//! has a T of at least w / 4. Here w / 5 counts, because the distance between requester and port is not known.

use super::{At, EARLY, Report};
use proto::events::Direction;
use proto::ids::Psn;
use proto::units::Duration;

/// T at timeout 0, nanoseconds. Source: IBTA Vol 1, 9.7.6.1.3.
const UNIT_NS: u64 = 4_096;

/// Part of a silence that T has at least: four, and one for the distance between requester and port.
const PARTS: u64 = 5;

/// The clock of a capture counts whole microseconds at worst.
pub const RESOLUTION_NS: u64 = 1_000;

/// The timeout of a requester, and where it is stated.
#[derive(Clone, Copy, Debug)]
pub struct Stated {
    /// The exponent, 1 to 31.
    pub timeout: u8,
    /// Number of the frame with the connection request; `None` if the user states the timeout.
    pub frame: Option<u64>,
}

impl Stated {
    /// The least time-out, nanoseconds.
    pub const fn least_ns(&self) -> u64 {
        UNIT_NS << self.timeout
    }
}

/// A retransmission that nothing but the timer explains.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Number of the frame.
    pub frame: u64,
    /// Name of the port.
    pub interface: String,
    /// Direction there.
    pub direction: Option<Direction>,
    /// Its number.
    pub psn: Psn,
    /// Time since the timer can have started, nanoseconds.
    pub after_ns: u64,
}

/// What is known of the timer.
#[derive(Clone, Debug, Default)]
pub struct Timer {
    /// The timeout, if it is stated.
    pub stated: Option<Stated>,
    /// Last restart, nanoseconds; `None` while no answer is due, or if the file does not show the restart.
    runs_from: Option<u64>,
    /// The highest number that asks for an answer.
    awaited: Option<Psn>,
    /// The longest time without a retransmission while an answer was due, nanoseconds, and the frame that ended it.
    silence: (u64, u64),
    repeats: Vec<Repeat>,
}

impl Timer {
    /// A timer that does not run.
    pub fn new(stated: Option<Stated>) -> Timer {
        Timer { stated, ..Timer::default() }
    }

    /// A packet that asks for an answer is sent.
    pub fn restart(&mut self, psn: Psn, at_ns: u64) {
        self.runs_from = Some(at_ns);
        if self.awaited.is_none_or(|awaited| psn.distance_from(awaited) > 0) {
            self.awaited = Some(psn);
        }
    }

    /// The frame `frame` answers all numbers up to `psn`.
    pub fn answered(&mut self, psn: Psn, at_ns: u64, frame: u64) {
        self.waited(at_ns, frame);
        self.awaited = self.awaited.filter(|awaited| awaited.distance_from(psn) > 0);
        self.runs_from =
            self.runs_from.filter(|_| self.awaited.is_some()).map(|from| from.max(at_ns));
    }

    /// The requester sends again, or it is not known what it waits for.
    pub fn stop(&mut self) {
        self.runs_from = None;
    }

    /// The frame `frame` ends a wait without retransmission.
    pub fn waited(&mut self, at_ns: u64, frame: u64) {
        let waited = self.runs_from.map_or(0, |from| at_ns.saturating_sub(from));
        if waited > self.silence.0 {
            self.silence = (waited, frame);
        }
    }

    /// Keeps a retransmission until the file shows how long the requester waits.
    pub fn keep(&mut self, repeat: Repeat) {
        self.repeats.push(repeat);
    }

    /// Number of the first frame kept.
    pub fn first_repeat(&self) -> Option<u64> {
        self.repeats.first().map(|repeat| repeat.frame)
    }

    /// Reports the retransmissions that were not due; if `unknown` says why they cannot be judged, counts them.
    pub fn settle(&mut self, report: &mut Report, kept: u64, unknown: Option<&str>) {
        let repeats = std::mem::take(&mut self.repeats);
        if let Some(why) = unknown.filter(|_| !repeats.is_empty()) {
            return report.tally.not_checked(why, repeats.len() as u64);
        }
        let (least_ns, why) = self.least();
        for repeat in repeats {
            report.tally.checked("retransmissions by time-out", 1);
            if repeat.after_ns + RESOLUTION_NS >= least_ns {
                continue;
            }
            let Repeat { frame, direction, psn, .. } = repeat;
            let at = At { frame, interface: &repeat.interface, direction };
            let after = Duration::from_ns(repeat.after_ns);
            let found = format_args!(
                "PSN {psn} again, {after} after its transmission or the last progress"
            );
            report.add(&EARLY, kept, at, found, &why);
        }
    }

    /// The least T, nanoseconds, and how it is known.
    fn least(&self) -> (u64, String) {
        let shown = |ns| Duration::from_ns(ns);
        if let Some(stated) = self.stated {
            let (least, timeout) = (stated.least_ns(), stated.timeout);
            let by = stated.frame.map_or("--timeout".to_owned(), |frame| format!("frame {frame}"));
            return (least, format!("at least {} (timeout {timeout} by {by})", shown(least)));
        }
        let (silence, frame) = self.silence;
        let least = silence / PARTS;
        if least < UNIT_NS << 1 {
            return (UNIT_NS << 1, format!("at least {}, the least time-out", shown(UNIT_NS << 1)));
        }
        let why = format!(
            "at least {}: before frame {frame} it waited {} and sent nothing again",
            shown(least),
            shown(silence)
        );
        (least, why)
    }
}
