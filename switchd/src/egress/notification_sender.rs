//! Messages of congestion points to the source of a sampled frame: the CNM of 802.1Q, and BCN messages.
//!
//! ```text
//! | sampled SA | port's MAC | VLAN tag, CNM priority | [its CN-TAG] | CNM … | first octets of its MSDU |
//! | sampled SA | port's MAC | VLAN tag, CNM priority | BCN …                 | first octets of it all  |
//! ```
//!
//! Source: IEEE 802.1Q, 33.2 to 33.4 (CNM); this project's profile (BCN).

use super::marking;
use crate::config::{Defence, DomainConfig};
use proto::congestion::{BcnBody, CnmBody, Notification};
use proto::counters::FlowId;
use proto::events::NoteKind;
use proto::frame::{Frame, FrameClass, FrameHeaders, FrameKind, FramePool};
use proto::ids::{Address, MacAddress, Priority, VirtualLane, VlanId};
use proto::link::LinkConfig;
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Cnm, CongestionTag, Envelope, Preface, VlanTag, ethertype};
use proto::wire::project::{Bcn, ProjectTypes};

/// A message of a congestion point of this switch.
#[derive(Debug)]
pub struct SwitchNotification {
    /// Its content.
    pub notification: Notification,
    /// The frame to send.
    pub frame: Frame,
    /// Its format.
    pub kind: NoteKind,
    /// The flow of the sampled frame.
    pub flow: FlowId,
    /// The destination of the sampled frame.
    pub destination: Address,
}

/// Builds the messages of one port's congestion points.
#[derive(Clone, Copy, Debug)]
pub struct NotificationSender {
    address: MacAddress,
    types: ProjectTypes,
    /// Priorities without notification, bit n for priority n.
    disabled: u8,
    cnm_priority: Priority,
    header_octets: usize,
    /// The lane of the messages on ports that classify by tag as this one does.
    pub lane: VirtualLane,
}

impl NotificationSender {
    /// The sender of a port in its CN domain; `None` on InfiniBand.
    pub fn new(link: &LinkConfig, domain: &DomainConfig) -> Option<NotificationSender> {
        let pause = link.pause()?;
        let lane = pause.priorities.priority(Some(domain.cnm_priority), None).get();
        Some(NotificationSender {
            address: pause.address,
            types: pause.project,
            disabled: domain.priorities_in(&[Defence::Disabled]),
            cnm_priority: domain.cnm_priority,
            header_octets: usize::from(domain.header_octets).min(Cnm::MSDU_MAX),
            lane: VirtualLane::truncate(lane),
        })
    }

    /// The message to the source of a sampled frame that waits for `lane`. `None` if the frame is not data,
    /// if the domain disables the priority, or if the source address is a group.
    pub fn message(
        &self,
        notification: &Notification,
        sampled: &[u8],
        headers: &FrameHeaders,
        lane: VirtualLane,
        pool: &mut FramePool,
    ) -> Option<SwitchNotification> {
        let Address::Mac(source) = headers.source else { return None };
        let is_disabled = self.disabled >> lane.get() & 1 == 1;
        if headers.class != FrameClass::Data || is_disabled || source.is_group() {
            return None;
        }
        let preface = Preface::parse(sampled, &self.types).ok()?;
        let mut octets = pool.take();
        let kind = match notification {
            Notification::Cnm(body) => {
                let mut preamble = self.preamble(source, &preface, ethertype::CNM);
                if let Some(tag @ CongestionTag::Cn(_)) = preface.tag {
                    preamble = preamble.tagged(tag, &self.types);
                }
                // The MSDU begins with the EtherType behind all tags.
                let msdu = &sampled[preface.octets_len() - 2..];
                let msdu = &msdu[..msdu.len().min(self.header_octets)];
                let cnm = cnm(body, &preface, lane, msdu.len());
                octets.resize(preamble.octets_len(), 0);
                preamble.emit(&mut octets);
                octets.extend_from_slice(&cnm.to_octets());
                octets.extend_from_slice(msdu);
                NoteKind::Cnm
            }
            Notification::Bcn(body) => {
                let preamble = self.preamble(source, &preface, self.types.bcn());
                let sample = &sampled[..sampled.len().min(Bcn::SAMPLE_MAX)];
                octets.resize(preamble.octets_len(), 0);
                preamble.emit(&mut octets);
                octets.extend_from_slice(&[Bcn::SUBTYPE]);
                octets.extend_from_slice(&bcn(body, &preface, sample.len()).to_octets());
                octets.extend_from_slice(sample);
                NoteKind::Bcn
            }
            Notification::Transport(_) => return None,
        };
        octets.resize(octets.len().max(LEAST), 0);
        Some(SwitchNotification {
            notification: *notification,
            frame: Frame::intact(FrameKind::Ethernet, octets),
            kind,
            flow: marking::flow(headers),
            destination: headers.destination,
        })
    }

    /// All of a message before its body, in the VLAN of the sampled frame.
    fn preamble(&self, source: MacAddress, sampled: &Preface, ethertype: u16) -> Preface {
        let id = sampled.envelope.tag.map_or(VlanId::truncate(0), |tag| tag.id);
        let tag = VlanTag { priority: self.cnm_priority, drop_eligible: false, id, ethertype };
        Preface::untagged(Envelope::untagged(source, self.address, ethertype).tagged(tag))
    }
}

fn cnm(body: &CnmBody, sampled: &Preface, lane: VirtualLane, msdu: usize) -> Cnm {
    Cnm {
        version: Cnm::VERSION,
        quantized_feedback: body.quantized_feedback,
        cpid: body.cpid.get(),
        q_offset: body.q_offset,
        q_delta: body.q_delta,
        encapsulated_priority: Priority::truncate(lane.get()),
        encapsulated_destination: sampled.envelope.header.destination,
        msdu_length: msdu as u16,
        ..Cnm::default()
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
        length: sample as u8,
        ..Bcn::default()
    }
}
