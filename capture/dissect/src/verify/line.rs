//! The rule of the line: frames of one direction are no closer than the line permits.
//!
//! ```text
//!   stamps     |a      |b |c                each frame passed at its stamp or at most `error` later
//!   earliest   |a      |b    |c    |d       not before its stamp, and a line time after the frame before it
//!                                   └── later than stamp + error: no line of this rate carried these frames
//! ```
//!
//! This is exact: a finding means that no instants within the error of the stamps are possible. Spans that are too short are
//! found however they are distributed over the frames of a burst. After a finding the line begins anew.
//!
//! Captures of this project have the instant of the last bit, to the nanosecond, but on the wall clock only of what a port
//! sends. Preamble and gap do not count there unless the scenario says so, and are left out. Other stamps are the instant at
//! which an adapter or a kernel took note, at either end of the frame. Kernels do so for a burst at once, when an interrupt or a
//! queue comes to its turn: [`JITTER`]. Clocks of line and stamps differ by up to [`DRIFT`].
//!
//! Without directions, frames of one source are taken to travel the same way.

use super::flows::FLOWS_MAX;
use super::packet::Endpoint;
use super::ports::Place;
use super::rule::rules;
use super::{Check, Family, Seen, Settings};
use proto::frame::{FrameKind, ethernet_size};
use proto::units::{BitRate, Bytes, Duration};
use std::collections::HashMap;

rules! {
    LINE_RATE "line-rate" Deviation "frames of one direction pass no faster than the line's rate permits (asks for --rate)",
        "IEEE 802.3, 4.2.3.2 and 4.4.2; IBTA Vol 1, 7.6.9";
}

/// Preamble, start of frame and gap of Ethernet, octets. Source: IEEE 802.3, 3.2.1, 3.2.2 and 4.4.2.
const OVERHEAD: Bytes = Bytes::new(20);
/// The error of stamps that are not fabric time, unless `--jitter` says otherwise. Interrupts of adapters come tens to
/// hundreds of microseconds late, and a queue of a driver holds about as much.
pub const JITTER: Duration = Duration::from_us(1_000);
/// The part of a line time by which two clocks may differ, as its reciprocal: 100 ppm each. Source: IEEE 802.3, 46.3 and
/// 86.7.
const DRIFT: u64 = 5_000;
/// Without a direction, the source of frames tells it.
const NO_SOURCE: &str = "line rate of frames without direction and source";

/// One direction of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The earliest instant at which the last frame can have passed, picoseconds.
    passed: u128,
    /// The stamp of the last frame, nanoseconds.
    stamp: u64,
    /// The stamp of the frame before the burst under way, nanoseconds; octets and line time of the burst.
    since: u64,
    octets: u64,
    time: Duration,
}

/// The family.
pub struct Lines {
    rate: Option<BitRate>,
    jitter: Option<Duration>,
    lines: HashMap<(Place, Option<Source>), Line>,
}

/// A source address of Ethernet, or of InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Mac([u8; 6]),
    Endpoint(Endpoint),
}

impl Lines {
    /// Judges by the rates that the file states, or by that of `settings`.
    pub fn new(settings: &Settings) -> Lines {
        let Settings { rate, jitter, .. } = *settings;
        Lines { rate, jitter, lines: HashMap::new() }
    }
}

impl Family for Lines {
    fn check(&mut self, check: &mut Check<'_>) {
        let seen = check.seen;
        // What a lab receives from outside was on no line of the rate that its capture names: a veth pair has none.
        let is_outside = seen.stamps.is_fabric && !seen.stamps.is_exact;
        let stated = seen.rate.filter(|_| !is_outside);
        let Some(rate) = stated.or(self.rate) else {
            return check.not_checked("line rate (needs --rate)");
        };
        if seen.at_ns == 0 {
            return check.not_checked("line rate of frames without a time stamp");
        }
        let source = match seen.place.direction {
            Some(_) => None,
            None => match source(seen) {
                None => return check.not_checked(NO_SOURCE),
                known => known,
            },
        };
        let key = (seen.place, source);
        if self.lines.len() >= FLOWS_MAX && !self.lines.contains_key(&key) {
            return check.not_checked("line rate of further sources");
        }
        let first = !self.lines.contains_key(&key);
        let line = self.lines.entry(key).or_default();
        let needed = line_time(seen, rate);
        // Stamps may be of either end of the frame.
        let (jitter, early) = match seen.stamps.is_exact {
            true => (Duration::ZERO, Duration::ZERO),
            false => (JITTER, needed),
        };
        let error = self.jitter.unwrap_or(jitter) + early;
        let error = u128::from(error.as_ps()) + u128::from(seen.stamps.tick_ns) * 1_000;
        let at = u128::from(seen.at_ns) * 1_000;
        let is_back = u128::from(line.stamp) * 1_000 > at + error;
        if !first && is_back {
            check.not_checked("line rate where time stamps run back");
        } else if !first {
            check.checked("frames against the line's rate");
        }
        if first || is_back {
            return line.begin(seen.at_ns);
        }
        let earliest = line.passed + u128::from(needed.as_ps());
        if earliest <= at {
            return line.begin(seen.at_ns);
        }
        line.octets += size(seen).get();
        line.time += needed;
        (line.passed, line.stamp) = (earliest, seen.at_ns);
        if earliest >= at + error {
            let Line { since, octets, time, .. } = *line;
            let took = Duration::from_ns(seen.at_ns.saturating_sub(since));
            let found = format_args!("{octets} octets in {took}");
            check.breaks(&LINE_RATE, found, format_args!("at least {time} at {rate}"));
            line.begin(seen.at_ns);
        }
    }
}

impl Line {
    /// The line has been free until the frame that passed at `stamp`.
    fn begin(&mut self, stamp: u64) {
        let passed = u128::from(stamp) * 1_000;
        *self = Line { passed, stamp, since: stamp, ..Line::default() };
    }
}

fn source(seen: &Seen<'_>) -> Option<Source> {
    match seen.kind {
        FrameKind::Ethernet => seen.octets.get(6..12)?.try_into().ok().map(Source::Mac),
        _ => seen.headers.map(|headers| Source::Endpoint(headers.source)),
    }
}

/// Octets of line time, without preamble and gap. Of a cut frame it is not known whether it had an FCS.
fn size(seen: &Seen<'_>) -> Bytes {
    match seen.ethernet {
        Some(frame) if !seen.is_cut() => ethernet_size(frame.octets.len()),
        Some(_) if !seen.stamps.is_fabric => ethernet_size(seen.wire_size.saturating_sub(4)),
        _ => seen.kind.line_size(seen.wire_size),
    }
}

/// The least time from the end of the frame before.
fn line_time(seen: &Seen<'_>, rate: BitRate) -> Duration {
    let has_overhead = seen.kind == FrameKind::Ethernet && !seen.stamps.is_fabric;
    let overhead = if has_overhead { OVERHEAD } else { Bytes::ZERO };
    let time = (size(seen) + overhead).time_at(rate);
    match seen.stamps.is_exact {
        true => time,
        false => Duration::from_ps(time.as_ps() - time.as_ps().div_ceil(DRIFT)),
    }
}

#[cfg(test)]
mod tests;
