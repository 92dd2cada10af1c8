//! A conversation begins: its queue pair, its reaction point's group, its notification point.

use crate::config::{ClassConfig, NicConfig, Transport as Service};
use crate::counters::{SentFlow, empty_reception};
use crate::pacer::place;
use crate::timers::Alarm;
use crate::transport::ChannelAdapter;
use crate::transport::queue_pair::QueuePair;
use crate::transport::receiver_not_ready;
use crate::transport::requester::Requester;
use crate::transport::resequencer::Resequencer;
use crate::transport::responder::{Responder, ResponderConfig};
use crate::wire::Wire;
use proto::counters::FlowId;
use proto::ids::{Lid, QueuePairNumber};
use proto::units::{Bytes, Instant};

/// What a full data frame takes of the line: what the link is told, or a packet with one MTU of
/// payload.
pub(super) fn full_frame(wire: &Wire, config: &NicConfig) -> Bytes {
    let packet = || wire.size(0, config.link.mtu.get() as usize);
    config.link.told_frame().unwrap_or_else(packet)
}

/// Into what a message is cut: test frames are never.
fn packet_max(class: &ClassConfig, mtu: u32) -> u32 {
    if class.transport == Service::Test { u32::MAX } else { mtu }
}

impl ChannelAdapter {
    /// The queue pair for `class` and `peer`, made if need be.
    pub(super) fn queue_pair(&mut self, class: u8, peer: Lid, now: Instant) -> u32 {
        if let Some(index) = self.peers.find(class, peer) {
            return index;
        }
        let index = self.queue_pairs.len() as u32;
        let config = self.config.classes[usize::from(class)];
        let level = config.service_level;
        let (lane, notification_lane) = (self.wire.lane(level), self.wire.notification_lane(level));
        let own = u64::from(self.config.lid.get());
        let sending = FlowId { source: own, destination: u64::from(peer.get()), class };
        let (group, is_new) = self.pacer.group_of(&self.config, sending, lane, level.get(), now);
        if is_new {
            self.schedule.add_group(lane);
        }
        self.schedule.add_queue_pair(group);
        let purpose = format_args!("notification/{class}/{peer}");
        let full_frame = full_frame(&self.wire, &self.config);
        let place = place(&self.config, full_frame, purpose);
        let responder = ResponderConfig {
            service: config.transport,
            mtu: self.config.link.mtu.get() as u32,
            ack_every: self.config.ack_every.max(1),
            receive_depth: self.config.receive_depth,
            receive_refill: self.config.receive_refill,
            rnr_code: receiver_not_ready::code(self.config.rnr_timer),
        };
        let window = self.config.wire.resequence().map(|config| config.window as usize);
        let receiving = FlowId { source: sending.destination, destination: own, class };
        self.queue_pairs.push(QueuePair {
            class,
            config,
            peer,
            number: QueuePairNumber::planned(class, peer),
            remote: QueuePairNumber::planned(class, self.config.lid),
            lane,
            notification_lane,
            group,
            requester: Requester::new(config.transport, packet_max(&config, responder.mtu)),
            responder: Responder::new(responder),
            notification_point: (self.scheme.notification_point)(place),
            becn_owed: false,
            ready_since: now,
            retransmit: Alarm::default(),
            receiver_ready: Alarm::default(),
            acknowledge: Alarm::default(),
            notify: Alarm::default(),
            is_told: false,
            sending,
            sent: SentFlow::default(),
            received: empty_reception(receiving),
            has_received: false,
            test_sequence: 0,
            tests_ahead: window
                .filter(|_| config.transport == Service::Test)
                .map(Resequencer::new)
                .map(Box::new),
            requests_ahead: window
                .filter(|_| matches!(config.transport, Service::Rc | Service::Uc))
                .map(Resequencer::new)
                .map(Box::new),
            missing: Alarm::default(),
        });
        self.peers.insert(class, peer, index);
        index
    }
}
