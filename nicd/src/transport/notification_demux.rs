//! Demultiplexing of CNM and BCN messages: which reaction point a message is for, and which are discarded.
//!
//! ```text
//! CNM   flow identifier of its CN-TAG, encapsulated destination and priority ─┐
//!                                                                             ├─▶ queue pair ─▶ reaction point
//! BCN   destination and tags of the sampled frame in the message ─────────────┘
//! ```
//!
//! Source: IEEE 802.1Q, 32.16 (CNM demultiplexer: it discards messages of unknown version, and messages about
//! frames that this station did not send); docs/spec/algorithms.md, 4 (BCN).

use crate::counters::Total;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::receive::{Disposition, Outcome};
use proto::congestion::{BcnBody, BcnFlags, CnmBody, Effect, Notification};
use proto::counters::DropReason;
use proto::events::NoteKind;
use proto::ids::{CongestionPointId, Priority};
use proto::units::Instant;
use proto::wire::error::ParseError;
use proto::wire::ethernet::{Cnm, MacAddress, Preface, plan};
use proto::wire::project::{Bcn, ProjectTypes};

/// A parsed message about a sampled frame.
struct CongestionMessage {
    /// The receiver of the sampled frame.
    destination: MacAddress,
    /// Its priority.
    priority: Priority,
    /// The flow identifier of its CN-TAG; 0 without one.
    flow_id: u16,
    /// For the reaction point; `None` if the CPID is 0.
    notification: Option<Notification>,
}

impl CongestionMessage {
    /// Parses a CNM; `flow_id` is the flow identifier of its CN-TAG.
    fn cnm(octets: &[u8], flow_id: u16) -> Result<CongestionMessage, ParseError> {
        let (cnm, _) = Cnm::parse_message(octets)?;
        let Cnm { quantized_feedback, q_offset, q_delta, .. } = cnm;
        let cpid = CongestionPointId::new(cnm.cpid);
        Ok(CongestionMessage {
            destination: cnm.encapsulated_destination,
            priority: cnm.encapsulated_priority,
            flow_id,
            notification: cpid.map(|cpid| {
                Notification::Cnm(CnmBody { quantized_feedback, cpid, q_offset, q_delta })
            }),
        })
    }

    /// Parses a BCN message behind its subtype, with the beginning of the sampled frame.
    fn bcn(octets: &[u8], types: &ProjectTypes) -> Result<CongestionMessage, ParseError> {
        let (bcn, sample) = Bcn::parse_message(octets)?;
        let preface = Preface::parse(sample, types)?;
        let Bcn { q_offset, q_delta, timestamp, mild, severe, stop, .. } = bcn;
        let (flags, cpid) = (BcnFlags { mild, severe, stop }, CongestionPointId::new(bcn.cpid));
        Ok(CongestionMessage {
            destination: preface.envelope.header.destination,
            priority: preface.envelope.tag.map_or(Priority::truncate(0), |tag| tag.priority),
            flow_id: preface.flow_id(),
            notification: cpid.map(|cpid| {
                Notification::Bcn(BcnBody { cpid, q_offset, q_delta, flags, timestamp })
            }),
        })
    }
}

impl ChannelAdapter {
    /// Handles a CNM; `flow_id` is the flow identifier of its CN-TAG.
    ///
    /// # Errors
    /// The drop reason if the message does not parse or is for no flow of this adapter.
    pub(super) fn on_cnm(&mut self, octets: &[u8], flow_id: u16, now: Instant) -> Outcome {
        self.handle_message(NoteKind::Cnm, CongestionMessage::cnm(octets, flow_id), now)
    }

    /// Handles a BCN message behind its subtype.
    ///
    /// # Errors
    /// The drop reason if the message does not parse or is for no flow of this adapter.
    pub(super) fn on_bcn(&mut self, octets: &[u8], now: Instant) -> Outcome {
        let types = self.wire.roce().map_or(&ProjectTypes::DEFAULT, |format| &format.types);
        self.handle_message(NoteKind::Bcn, CongestionMessage::bcn(octets, types), now)
    }

    /// Notifies the reaction point of the sampled frame's flow, and counts the result.
    fn handle_message(
        &mut self,
        kind: NoteKind,
        message: Result<CongestionMessage, ParseError>,
        now: Instant,
    ) -> Outcome {
        let of_kind = |cnm, bcn| if kind == NoteKind::Cnm { cnm } else { bcn };
        let message = message.map_err(|error| {
            self.totals.count(of_kind(Total::CnmMalformed, Total::BcnMalformed));
            error.drop_reason()
        })?;
        let Some(notification) = &message.notification else {
            self.totals.count(of_kind(Total::CnmUnknownCpid, Total::BcnUnknownCpid));
            return Ok(Disposition::Delivered);
        };
        let Some(index) = self.find_sender(&message) else {
            self.totals.count(of_kind(Total::CnmUnknownFlow, Total::BcnUnknownFlow));
            return Err(DropReason::NotificationFlow);
        };
        let outcome = self.notify_reaction_point(index, notification, kind, now);
        self.totals.count(match outcome {
            Effect::Valid | Effect::Crossed => of_kind(Total::CnmHandled, Total::BcnHandled),
            Effect::Ignored => of_kind(Total::CnmIgnored, Total::BcnIgnored),
            Effect::Refused => of_kind(Total::CnmRefused, Total::BcnRefused),
        });
        Ok(Disposition::Delivered)
    }

    /// The queue pair that sent the sampled frame: it has the same destination and priority, and the limiter
    /// that the flow identifier names, if there is one.
    fn find_sender(&self, sampled: &CongestionMessage) -> Option<u32> {
        let format = self.wire.roce()?;
        let peer = plan::adapter_of_mac(sampled.destination)?;
        self.connections.with(peer).find(|index| {
            let pair = &self.queue_pairs[*index as usize];
            let is_limiter = |group| sampled.flow_id == 0 || flow_id(group) == sampled.flow_id;
            pair.sent.offered.messages > 0
                && pair.group.is_some_and(is_limiter)
                && format.carries(pair.lane, sampled.priority)
        })
    }
}

/// The flow identifier of a pacing group in CN-TAGs. It counts from 1, because 0 means no tag.
pub(super) fn flow_id(group: u32) -> u16 {
    (group as u16).wrapping_add(1)
}
