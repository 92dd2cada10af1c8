//! Messages of congestion points inside the network: whose limiter they are about, and what counts as
//! none.
//!
//! ```text
//! CNM   flow id of its CN-TAG, encapsulated destination and priority ─┐
//!                                                                    ├─▶ queue pair ─▶ reaction point
//! BCN   destination and tags of the sampled frame it holds ──────────┘
//! ```
//!
//! Source: IEEE 802.1Q, 32.16 (CNM demultiplexer: messages of unknown version or about frames that
//! nobody here sent are discarded); this project's profile (BCN).

use crate::counters::Total;
use crate::transport::adapter::ChannelAdapter;
use crate::wire::roce::RoceFormat;
use proto::congestion::{BcnBody, BcnFlags, CnmBody, Heard, Notification};
use proto::counters::DropReason;
use proto::events::NoteKind;
use proto::ids::{CongestionPointId, Priority};
use proto::units::Instant;
use proto::wire::error::ParseError;
use proto::wire::ethernet::{Cnm, MacAddress, Preface, plan};
use proto::wire::project::{Bcn, ProjectTypes};

/// A kind of message: how it is logged and counted.
struct MessageTotals {
    note: NoteKind,
    handled: Total,
    malformed: Total,
    unknown_flow: Total,
    unknown_cpid: Total,
    ignored: Total,
    refused: Total,
}

const CNM: MessageTotals = MessageTotals {
    note: NoteKind::Cnm,
    handled: Total::CnmHandled,
    malformed: Total::CnmMalformed,
    unknown_flow: Total::CnmUnknownFlow,
    unknown_cpid: Total::CnmUnknownCpid,
    ignored: Total::CnmIgnored,
    refused: Total::CnmRefused,
};

const BCN: MessageTotals = MessageTotals {
    note: NoteKind::Bcn,
    handled: Total::BcnHandled,
    malformed: Total::BcnMalformed,
    unknown_flow: Total::BcnUnknownFlow,
    unknown_cpid: Total::BcnUnknownCpid,
    ignored: Total::BcnIgnored,
    refused: Total::BcnRefused,
};

/// Of which frame a message speaks.
struct SampledFrame {
    destination: MacAddress,
    priority: Priority,
    /// Zero if it had no CN-TAG.
    flow_id: u16,
}

/// What a message says.
struct CongestionMessage {
    about: SampledFrame,
    /// To the reaction point; `None` if it names no congestion point.
    notification: Option<Notification>,
}

impl CongestionMessage {
    /// By a CNM behind a preface with this flow id.
    fn cnm(octets: &[u8], flow_id: u16) -> Result<CongestionMessage, ParseError> {
        let (cnm, _) = Cnm::parse_message(octets)?;
        let about = SampledFrame {
            destination: cnm.encapsulated_destination,
            priority: cnm.encapsulated_priority,
            flow_id,
        };
        let Cnm { quantized_feedback, q_offset, q_delta, .. } = cnm;
        let notification = CongestionPointId::new(cnm.cpid)
            .map(|cpid| Notification::Cnm(CnmBody { quantized_feedback, cpid, q_offset, q_delta }));
        Ok(CongestionMessage { about, notification })
    }

    /// By a message of BCN behind its subtype, where tags go under these `types`.
    fn bcn(octets: &[u8], types: &ProjectTypes) -> Result<CongestionMessage, ParseError> {
        let (bcn, sample) = Bcn::parse_message(octets)?;
        let preface = Preface::parse(sample, types)?;
        let about = SampledFrame {
            destination: preface.envelope.header.destination,
            priority: preface.envelope.tag.map_or(Priority::truncate(0), |tag| tag.priority),
            flow_id: preface.flow_id(),
        };
        let Bcn { q_offset, q_delta, timestamp, mild, severe, stop, .. } = bcn;
        let flags = BcnFlags { mild, severe, stop };
        let notification = CongestionPointId::new(bcn.cpid)
            .map(|cpid| Notification::Bcn(BcnBody { cpid, q_offset, q_delta, flags, timestamp }));
        Ok(CongestionMessage { about, notification })
    }
}

impl ChannelAdapter {
    /// A CNM came in, behind a preface with this flow id.
    ///
    /// # Errors
    /// If it does not parse, or is about no flow of ours.
    pub(super) fn on_cnm(
        &mut self,
        octets: &[u8],
        flow_id: u16,
        now: Instant,
    ) -> Result<(), DropReason> {
        self.handle_message(&CNM, CongestionMessage::cnm(octets, flow_id), now)
    }

    /// A message of BCN came in, behind its subtype.
    ///
    /// # Errors
    /// If it does not parse, or is about no flow of ours.
    pub(super) fn on_bcn(&mut self, octets: &[u8], now: Instant) -> Result<(), DropReason> {
        let types = self.wire.roce().map_or(&ProjectTypes::DEFAULT, RoceFormat::project_types);
        self.handle_message(&BCN, CongestionMessage::bcn(octets, types), now)
    }

    /// Tells the reaction point of the sampled frame's flow, and counts what came of it.
    fn handle_message(
        &mut self,
        kind: &MessageTotals,
        said: Result<CongestionMessage, ParseError>,
        now: Instant,
    ) -> Result<(), DropReason> {
        let CongestionMessage { about, notification } = said.map_err(|error| {
            self.totals.count(kind.malformed);
            error.drop_reason()
        })?;
        let Some(notification) = notification else {
            self.totals.count(kind.unknown_cpid);
            return Ok(());
        };
        let Some(index) = self.find_sender(&about) else {
            self.totals.count(kind.unknown_flow);
            return Err(DropReason::NotificationFlow);
        };
        let outcome = self.notify_reaction_point(index, &notification, kind.note, now);
        self.totals.count(match outcome {
            Heard::Taken | Heard::Crossed => kind.handled,
            Heard::Ignored => kind.ignored,
            Heard::Refused => kind.refused,
        });
        Ok(())
    }

    /// The queue pair that has sent such a frame: one to that destination, on that priority if there
    /// are several, whose limiter has that flow id if the frame named one.
    fn find_sender(&self, sampled: &SampledFrame) -> Option<u32> {
        let format = self.wire.roce()?;
        let peer = plan::adapter_of_mac(sampled.destination)?;
        self.connections.with(peer).find(|index| {
            let pair = &self.queue_pairs[*index as usize];
            let is_limiter = |group| sampled.flow_id == 0 || flow_id(group) == sampled.flow_id;
            pair.sent.offer.messages > 0
                && pair.group.is_some_and(is_limiter)
                && format.carries(pair.lane, sampled.priority)
        })
    }
}

/// What a group is called in CN-TAGs: its number, counted from 1, since 0 is a frame without a tag.
pub(super) fn flow_id(group: u32) -> u16 {
    (group as u16).wrapping_add(1)
}
