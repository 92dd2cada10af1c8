//! Checks a capture offline, ours or anybody's: CRCs, lengths, order and credits, frame by frame.
//!
//! ```text
//! capture ─▶ Seen (headers, CRCs looked at once) ─▶ each family of rules ─▶ Findings, Tally ─▶ Report
//! ```
//!
//! A rule is a row of its family's table; a family is one file here and one row of
//! [`rules::FAMILIES`]. What cannot be judged (a frame cut by a snap length, a direction the file does
//! not tell) is counted as not checked and never called wrong. A damaged frame is reported once, by
//! the CRC that caught it: what it says about order and credit is not believed, and the hole it leaves
//! in its flow is not reported again.
//!
//! Memory is bounded: findings are kept up to a limit a rule and counted beyond it, and no more than
//! [`flows::FLOWS_MAX`] flows are followed.

pub mod anatomy;
pub mod congestion;
pub mod crc;
pub mod credit;
pub mod ethernet;
pub mod findings;
pub mod flows;
pub mod frame;
pub mod lengths;
pub mod message;
pub mod notification;
pub mod pause;
pub mod ports;
pub mod refresh;
pub mod report;
pub mod rules;
pub mod sequence;
pub mod table;

pub use findings::{Finding, Findings, Tally};
pub use report::{Report, verify};

use anatomy::Anatomy;
use frame::EthernetFrame;
use ports::Place;
use proto::frame::FrameKind;
use proto::ids::Dscp;
use proto::units::{BitRate, Duration};
use proto::wire::classify::PriorityMap;
use proto::wire::error::ParseError;

/// One rule, as the table of findings names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A short word that stays the same from version to version.
    pub id: &'static str,
    /// What it asks, in a sentence.
    pub title: &'static str,
    /// Where that is written.
    pub source: &'static str,
}

/// What the user knows of the links and the file does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// A symbol time of the links: eight data bits of one lane.
    pub symbol: Option<Duration>,
    /// The least time between two CNPs that an adapter sends about a flow.
    pub cnp_interval: Option<Duration>,
    /// The DSCP of CNPs.
    pub cnp_dscp: Option<Dscp>,
    /// Data rate of links of which the file does not tell it.
    pub rate: Option<BitRate>,
    /// How links of Ethernet are paused.
    pub pause: Option<Pausing>,
}

/// How links of Ethernet are paused, and how soon that is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pausing {
    /// What tells the priority of a frame, with PFC; with PAUSE, which silences all, `None`.
    pub priorities: Option<PriorityMap>,
    /// The priorities for which PFC is obeyed.
    ///
    /// Shape: bit n is priority n.
    pub obeyed: u8,
    /// From a pause's arrival until no frame begins any more; `None` is what the standard gives.
    pub response: Option<Duration>,
}

/// Some rules that look at the same thing.
pub trait Family {
    /// Looks at the next frame of the file.
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally);

    /// The file is over: what was followed is counted.
    fn finish(&mut self, _tally: &mut Tally) {}
}

/// What each CRC of a frame turned out to be; `None` where there is none or it was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// End to end.
    pub icrc: Option<Result<(), ParseError>>,
    /// Of the link.
    pub vcrc: Option<Result<(), ParseError>>,
    /// Of the link, on Ethernet.
    pub fcs: Option<Result<(), ParseError>>,
    /// Of a link packet.
    pub lpcrc: Option<Result<(), ParseError>>,
}

/// One frame of the file, with what every family asks for.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its number in the file, counted from 1, frames of unknown kinds included.
    pub number: u64,
    /// When, in nanoseconds, from whatever epoch the file has.
    pub at_ns: u64,
    /// At which port, in which direction.
    pub place: Place,
    /// The interface's name in the file, if it has one.
    pub interface: Option<&'a str>,
    /// Data rate of that port's link, if the file tells it.
    pub rate: Option<BitRate>,
    /// Its format.
    pub kind: FrameKind,
    /// What the file holds of it.
    pub octets: &'a [u8],
    /// Octets it had on the wire.
    pub wire_size: usize,
    /// Its CRCs.
    pub checks: Checks,
    /// What is known of it if it is of Ethernet.
    pub ethernet: Option<EthernetFrame<'a>>,
    /// The headers of a data packet, as far as they are there.
    pub anatomy: Option<Anatomy>,
    /// Frames before this one, at the same place, of which nothing could be believed.
    pub damaged_before: u64,
}

impl Seen<'_> {
    /// The file holds less than there was.
    pub fn is_cut(&self) -> bool {
        self.octets.len() < self.wire_size
    }

    /// No CRC speaks against what the link sent.
    pub fn is_sound_on_link(&self) -> bool {
        let Checks { vcrc, fcs, lpcrc, .. } = self.checks;
        ![vcrc, fcs, lpcrc].iter().any(|check| matches!(check, Some(Err(_))))
    }

    /// No CRC speaks against what the headers say.
    pub fn is_sound(&self) -> bool {
        self.is_sound_on_link() && !matches!(self.checks.icrc, Some(Err(_)))
    }

    /// The headers, if they may be believed.
    pub fn believed(&self) -> Option<&Anatomy> {
        self.anatomy.as_ref().filter(|_| self.is_sound())
    }
}

#[cfg(test)]
mod tests;
