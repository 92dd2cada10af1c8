//! The border of a domain of congestion notification at one port: what comes in from outside may not
//! use its priorities, and what goes out has no tags that nobody there knows.
//!
//! ```text
//!   defence          on input                 on output
//!   disabled         as it is                 as it is
//!   edge             the alternate priority   without CN-TAG
//!   interior         as it is                 without CN-TAG
//!   interior-ready   as it is                 as it is
//! ```
//!
//! Source: IEEE 802.1Q, 32.1.1 (defence modes), 31.1.1 and 31.1.2 (what they do to priorities and
//! tags).

use crate::config::{Defence, DomainConfig, PortConfig};
use proto::frame::{Frame, FrameHeaders};
use proto::ids::VirtualLane;
use proto::link::LinkControl;
use proto::wire::ethernet::congestion_tag::{self, CongestionTag};
use proto::wire::ethernet::{Envelope, Preface};
use proto::wire::project::ProjectTypes;

/// What one port changes.
#[derive(Clone, Debug)]
pub struct Border {
    domain: DomainConfig,
    types: ProjectTypes,
    /// Priorities that come in as another, bit n for priority n.
    remapped: u8,
    /// Priorities that go out without CN-TAG.
    bared: u8,
}

impl Border {
    /// The border at a port of Ethernet.
    pub fn new(port: &PortConfig) -> Border {
        let domain = port.domain;
        Border {
            types: match &port.link.control {
                LinkControl::Pause(pause) => pause.project,
                LinkControl::Credits(_) => ProjectTypes::DEFAULT,
            },
            remapped: domain.priorities_in(&[Defence::Edge]),
            bared: domain.priorities_in(&[Defence::Edge, Defence::Interior]),
            domain,
        }
    }

    /// A frame comes in.
    #[inline]
    pub fn enter(&self, frame: &mut Frame, headers: &mut FrameHeaders) {
        if self.remapped >> headers.level & 1 == 1 {
            self.remap(frame, headers);
        }
    }

    /// The frame goes on with the alternate priority, in its tag too if it has one. Its sender's link
    /// goes on with the old one: that is whose pause silences it.
    fn remap(&self, frame: &mut Frame, headers: &mut FrameHeaders) {
        let alternate = self.domain.alternate[usize::from(headers.level)];
        headers.level = alternate.get();
        if let Ok(mut envelope) = Envelope::parse(&frame.octets)
            && let Some(tag) = &mut envelope.tag
        {
            tag.priority = alternate;
            envelope.emit(&mut frame.octets);
        }
    }

    /// A frame joins the queue of `lane` to go out.
    #[inline]
    pub fn leave(&self, frame: &mut Frame, lane: VirtualLane) {
        if self.bared >> lane.get() & 1 == 1 {
            self.bare(frame);
        }
    }

    fn bare(&self, frame: &mut Frame) {
        let preface = Preface::parse(&frame.octets, &self.types);
        if preface.is_ok_and(|preface| matches!(preface.tag, Some(CongestionTag::Cn(_)))) {
            // What was parsed has its tag.
            let _ = congestion_tag::remove(&mut frame.octets, &self.types);
        }
    }
}
