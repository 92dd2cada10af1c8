//! The edge of a congestion notification domain at one port: it keeps outside frames off the domain's
//! priorities, and removes CN-TAGs from frames that leave the domain.
//!
//! ```text
//!   defence          on input                 on output
//!   disabled         unchanged                unchanged
//!   edge             the alternate priority   without CN-TAG
//!   interior         unchanged                without CN-TAG
//!   interior-ready   unchanged                unchanged
//! ```
//!
//! Source: IEEE 802.1Q, 32.1.1 (defence modes), 31.1.1 and 31.1.2 (effects on priorities and tags).

use crate::config::{Defence, DomainConfig, PortConfig};
use proto::frame::{Frame, FrameHeaders};
use proto::ids::{ServiceLevel, VirtualLane};
use proto::wire::ethernet::preface::{Preface, remove_tag};
use proto::wire::ethernet::{CongestionTag, Envelope};
use proto::wire::project::ProjectTypes;

/// The changes that one port makes.
#[derive(Clone, Debug)]
pub struct CnDomainEdge {
    domain: DomainConfig,
    types: ProjectTypes,
    /// Priorities that get their alternate on input, bit n for priority n.
    remapped: u8,
    /// Priorities that lose their CN-TAG on output, bit n for priority n.
    untagged: u8,
}

impl CnDomainEdge {
    /// The edge at an Ethernet port.
    pub fn new(port: &PortConfig) -> CnDomainEdge {
        let domain = port.domain;
        CnDomainEdge {
            types: port.link.pause().map_or(ProjectTypes::DEFAULT, |pause| pause.project),
            remapped: domain.priorities_in(&[Defence::Edge]),
            untagged: domain.priorities_in(&[Defence::Edge, Defence::Interior]),
            domain,
        }
    }

    /// Applies the defence to a frame that arrived.
    #[inline]
    pub fn receive(&self, frame: &mut Frame, headers: &mut FrameHeaders) {
        if self.remapped >> headers.level.get() & 1 == 1 {
            self.remap(frame, headers);
        }
    }

    /// Gives a frame the alternate priority, in its tag too if it has one. `headers.lane` stays: pauses
    /// to the sender name the priority of its link.
    fn remap(&self, frame: &mut Frame, headers: &mut FrameHeaders) {
        let alternate = self.domain.alternate[headers.level.index()];
        headers.level = ServiceLevel::truncate(alternate.get());
        if let Ok(mut envelope) = Envelope::parse(&frame.octets)
            && let Some(tag) = &mut envelope.tag
        {
            tag.priority = alternate;
            envelope.emit(&mut frame.octets);
        }
    }

    /// Applies the defence to a frame that joins the queue of `lane`.
    #[inline]
    pub fn send(&self, frame: &mut Frame, lane: VirtualLane) {
        if self.untagged >> lane.get() & 1 == 1 {
            self.untag(frame);
        }
    }

    fn untag(&self, frame: &mut Frame) {
        let preface = Preface::parse(&frame.octets, &self.types);
        if preface.is_ok_and(|preface| matches!(preface.tag, Some(CongestionTag::Cn(_)))) {
            // The frame has just been parsed, so this cannot fail.
            let _ = remove_tag(&mut frame.octets, &self.types);
        }
    }
}
