//! Checks a capture of any origin offline: CRCs, lengths, order and credits, frame by frame.
//!
//! ```text
//! capture ─▶ Seen (headers, CRCs computed once) ─▶ each family of rules ─▶ Report
//! ```
//!
//! A rule is a row of its family's table; a family is one file here and one row of [`FAMILIES`]. What cannot be judged
//! (a frame cut by a snap length, a direction that the file does not state) is counted as not checked and never
//! reported as wrong. A damaged frame is reported once, by the CRC that caught it: its sequence number and credit are
//! not used, and the hole that it leaves in its flow is not reported again.
//!
//! Memory is bounded: findings are kept up to a limit for each rule and counted beyond it, and no more than
//! [`flows::FLOWS_MAX`] flows are followed.

mod congestion;
mod crc;
mod credit;
mod ethernet;
mod findings;
mod flows;
mod frame;
mod lengths;
mod line;
mod message;
mod notification;
mod packet;
mod pause;
mod ports;
mod refresh;
mod report;
mod rule;
mod rules;
mod sequence;
pub mod table;

use capture::reader::Stamps;
pub use findings::{At, Finding, Tally};
use frame::EthernetFrame;
use packet::PacketHeaders;
use ports::Place;
use proto::frame::FrameKind;
use proto::ids::Dscp;
use proto::units::{BitRate, Duration};
use proto::wire::classify::PriorityMap;
use proto::wire::error::ParseError;
pub use report::{KEPT, Report, verify};
pub use rule::{Rule, Severity};
pub use rules::{FAMILIES, Row};
use std::fmt::Display;

/// Properties of the links that the user supplies because the file does not state them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Symbol time of the links: eight data bits of one lane.
    pub symbol: Option<Duration>,
    /// Least time between two CNPs that an adapter sends about a flow.
    pub cnp_interval: Option<Duration>,
    /// The DSCP of CNPs.
    pub cnp_dscp: Option<Dscp>,
    /// Local ACK timeout of the requesters, 1 to 31: the time-out is 4.096 µs · 2^timeout.
    pub timeout: Option<u8>,
    /// Data rate of links whose rate the file does not state.
    pub rate: Option<BitRate>,
    /// Error of the time stamps, for the rule of the line's rate; `None` for what the file lets expect.
    pub jitter: Option<Duration>,
    /// How Ethernet links are paused.
    pub pause: Option<Pausing>,
}

/// How Ethernet links are paused, and the response time of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pausing {
    /// What gives a frame its priority, with PFC; `None` with PAUSE, which stops all priorities.
    pub priorities: Option<PriorityMap>,
    /// The priorities for which PFC is obeyed.
    ///
    /// Shape: bit n is priority n.
    pub obeyed: u8,
    /// Longest time from the arrival of a pause until no frame begins; `None` for the limit of the standard.
    pub response: Option<Duration>,
}

/// Rules about the same subject, with the state that they need; without state, a function.
pub trait Family {
    /// Checks the next frame of the file.
    fn check(&mut self, check: &mut Check<'_>);

    /// Judges what only the whole file shows, and counts what was followed, after the last frame. Of the findings,
    /// `kept` are kept for each rule.
    fn finish(&mut self, _report: &mut Report, _kept: u64) {}
}

impl<F: FnMut(&mut Check<'_>)> Family for F {
    fn check(&mut self, check: &mut Check<'_>) {
        self(check);
    }
}

/// A frame under check, and where the results go.
#[derive(Debug)]
pub struct Check<'a> {
    seen: &'a Seen<'a>,
    report: &'a mut Report,
    /// Name of the port.
    port: &'a str,
    /// Findings kept of each rule.
    kept: u64,
}

impl Check<'_> {
    /// Reports that the frame breaks `rule`. Text is made only for findings that are kept.
    fn breaks(&mut self, rule: &Rule, found: impl Display, expected: impl Display) {
        let at = At {
            frame: self.seen.number,
            interface: self.port,
            direction: self.seen.place.direction,
        };
        self.report.add(rule, self.kept, at, found, expected);
    }

    /// Counts something that was judged.
    fn checked(&mut self, what: &'static str) {
        self.report.tally.checked(what, 1);
    }

    /// Counts something that was passed over.
    fn not_checked(&mut self, why: &str) {
        self.report.tally.not_checked(why, 1);
    }
}

/// The result of each CRC of a frame; `None` if the frame has none or the capture cut it off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The invariant CRC, end to end.
    pub icrc: Option<Result<(), ParseError>>,
    /// The variant CRC of an InfiniBand link.
    pub vcrc: Option<Result<(), ParseError>>,
    /// The FCS of an Ethernet link.
    pub fcs: Option<Result<(), ParseError>>,
    /// The CRC of a link packet.
    pub lpcrc: Option<Result<(), ParseError>>,
}

/// One frame of the file, with what all families need.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its number in the file, from 1; frames of unknown kinds count.
    pub number: u64,
    /// Time of capture, nanoseconds from the epoch of the file.
    pub at_ns: u64,
    /// How well that states when the frame passed.
    pub stamps: Stamps,
    /// Port and direction.
    pub place: Place,
    /// The interface's name in the file, if it has one.
    pub interface: Option<&'a str>,
    /// Data rate of the port's link, if the file states it.
    pub rate: Option<BitRate>,
    /// Its format.
    pub kind: FrameKind,
    /// The octets that the file holds.
    pub octets: &'a [u8],
    /// Octets that it had on the wire.
    pub wire_size: usize,
    /// Its CRCs.
    pub checks: Checks,
    /// Its Ethernet headers, on Ethernet.
    pub ethernet: Option<EthernetFrame<'a>>,
    /// The headers of a data packet, as far as the file holds them.
    pub headers: Option<PacketHeaders>,
    /// Damaged frames before this one at the same place.
    pub damaged_before: u64,
}

impl Seen<'_> {
    /// True if the file holds less than the wire.
    pub fn is_cut(&self) -> bool {
        self.octets.len() < self.wire_size
    }

    /// True if no CRC of the link is wrong.
    pub fn is_sound_on_link(&self) -> bool {
        let Checks { vcrc, fcs, lpcrc, .. } = self.checks;
        ![vcrc, fcs, lpcrc].iter().any(|check| matches!(check, Some(Err(_))))
    }

    /// True if no CRC is wrong, so that the headers are as sent.
    pub fn is_sound(&self) -> bool {
        self.is_sound_on_link() && !matches!(self.checks.icrc, Some(Err(_)))
    }

    /// The headers, if no CRC is wrong.
    pub fn believed(&self) -> Option<&PacketHeaders> {
        self.headers.as_ref().filter(|_| self.is_sound())
    }
}

#[cfg(test)]
mod tests;
