//! From a congestion point's word to a frame for the source of what it has sampled: a CNM of 802.1Q, or
//! a message of BCN.
//!
//! ```text
//! | sampled SA | port's MAC | VLAN tag, CNM priority | [its CN-TAG] | CNM … | first octets of its MSDU |
//! | sampled SA | port's MAC | VLAN tag, CNM priority | BCN …                 | first octets of it all  |
//! ```
//!
//! Source: IEEE 802.1Q, 33.2 to 33.4 (CNM); this project's profile (BCN).

use crate::config::{Defence, DomainConfig};
use proto::congestion::{BcnBody, CnmBody, Notification};
use proto::events::NoteKind;
use proto::frame::{Frame, FrameClass, FrameHeaders, FrameKind, FramePool};
use proto::ids::{Priority, VirtualLane, VlanId};
use proto::link::{LinkConfig, LinkControl};
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{
    Cnm, CongestionTag, Envelope, MacAddress, Preface, VlanTag, ethertype,
};
use proto::wire::project::{Bcn, ProjectTypes};

/// What a port needs to know to speak for its congestion points.
#[derive(Clone, Copy, Debug)]
pub struct Herald {
    address: MacAddress,
    types: ProjectTypes,
    /// Priorities of which nobody is notified, bit n for priority n.
    silent: u8,
    cnm_priority: Priority,
    header_octets: usize,
    /// The lane of messages on ports that go by tags as this one does.
    pub lane: VirtualLane,
}

impl Herald {
    /// The voice of a port in its domain; none on InfiniBand.
    pub fn new(link: &LinkConfig, domain: &DomainConfig) -> Option<Herald> {
        let LinkControl::Pause(pause) = &link.control else { return None };
        let lane = pause.priorities.priority(Some(domain.cnm_priority), None).get();
        Some(Herald {
            address: pause.address,
            types: pause.project,
            silent: domain.priorities_in(&[Defence::Disabled]),
            cnm_priority: domain.cnm_priority,
            header_octets: usize::from(domain.header_octets).min(Cnm::MSDU_MAX),
            lane: VirtualLane::truncate(lane),
        })
    }

    /// The message that tells the source of a sampled frame, which waits for `lane`, and its kind.
    /// Nobody is told who sent no data on a priority of the domain, or from an address of a group.
    pub fn message(
        &self,
        notification: &Notification,
        sampled: &[u8],
        headers: &FrameHeaders,
        lane: VirtualLane,
        pool: &mut FramePool,
    ) -> Option<(Frame, NoteKind)> {
        let source = MacAddress::from_number(headers.source);
        let is_silent = self.silent >> lane.get() & 1 == 1;
        if headers.class != FrameClass::Data || is_silent || source.is_group() {
            return None;
        }
        let preface = Preface::parse(sampled, &self.types).ok()?;
        let mut octets = pool.take();
        let kind = match notification {
            Notification::Cnm(body) => {
                let mut told = self.told(source, &preface, ethertype::CNM);
                if let Some(tag @ CongestionTag::Cn(_)) = preface.tag {
                    told = told.tagged(tag, &self.types);
                }
                // The MSDU begins with the EtherType behind all tags.
                let msdu = &sampled[preface.octets_len() - 2..];
                let msdu = &msdu[..msdu.len().min(self.header_octets)];
                let cnm = cnm(body, &preface, lane, msdu.len());
                octets.resize(told.octets_len(), 0);
                told.emit(&mut octets);
                octets.extend_from_slice(&cnm.to_octets());
                octets.extend_from_slice(msdu);
                NoteKind::Cnm
            }
            Notification::Bcn(body) => {
                let told = self.told(source, &preface, self.types.bcn());
                let sample = &sampled[..sampled.len().min(Bcn::SAMPLE_MAX)];
                octets.resize(told.octets_len(), 0);
                told.emit(&mut octets);
                octets.extend_from_slice(&[Bcn::SUBTYPE]);
                octets.extend_from_slice(&bcn(body, &preface, sample.len()).to_octets());
                octets.extend_from_slice(sample);
                NoteKind::Bcn
            }
            Notification::Transport(_) => return None,
        };
        octets.resize(octets.len().max(LEAST), 0);
        Some((Frame::intact(FrameKind::Ethernet, octets), kind))
    }

    /// The envelope of a message, in the VLAN of the sampled frame.
    fn told(&self, source: MacAddress, sampled: &Preface, ethertype: u16) -> Preface {
        let id = sampled.envelope.tag.map_or(VlanId::truncate(0), |tag| tag.id);
        let tag = VlanTag { priority: self.cnm_priority, drop_eligible: false, id, ethertype };
        Preface::untagged(Envelope::untagged(source, self.address, ethertype).tagged(tag))
    }
}

fn cnm(body: &CnmBody, sampled: &Preface, lane: VirtualLane, msdu: usize) -> Cnm {
    Cnm {
        version: Cnm::VERSION,
        reserved: 0,
        quantized_feedback: body.quantized_feedback,
        cpid: body.cpid.get(),
        q_offset: body.q_offset,
        q_delta: body.q_delta,
        encapsulated_priority: Priority::truncate(lane.get()),
        encapsulated_reserved: 0,
        encapsulated_destination: sampled.envelope.header.destination,
        msdu_length: msdu as u16,
    }
}

fn bcn(body: &BcnBody, sampled: &Preface, sample: usize) -> Bcn {
    Bcn {
        version: Bcn::VERSION,
        cpid: body.cpid.get(),
        q_offset: body.q_offset,
        q_delta: body.q_delta,
        timestamp: match sampled.tag {
            Some(CongestionTag::RateRegulated(tag)) => tag.timestamp,
            _ => 0,
        },
        mild: body.flags.mild,
        severe: body.flags.severe,
        stop: body.flags.stop,
        reserved: 0,
        length: sample as u8,
    }
}
