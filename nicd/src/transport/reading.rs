//! Readings of the channel adapter: lanes, flows, receptions, latencies, balance.

use crate::transport::adapter::ChannelAdapter;
use crate::transport::connections::Connection;
use crate::transport::queue_pair::QueuePair;
use proto::counters::{
    Balance, BinReading, DeviceReading, FlowReading, LaneReading, MovedFlow, ReceptionReading,
};
use proto::device::Depth;
use proto::units::Instant;

impl ChannelAdapter {
    /// Fills in the source queue and the notifications sent of each lane, with integrals closed at `now`.
    pub fn read_lanes(&mut self, now: Instant, readings: &mut [LaneReading]) {
        for (lane, reading) in self.lanes.iter_mut().zip(readings) {
            lane.source_queue.close(now);
            reading.counters.source_queue = lane.source_queue;
            reading.counters.notes_tx = lane.notes_tx;
        }
    }

    /// Frames that began and ended at this adapter.
    pub fn balance(&self) -> Balance {
        Balance { buffered: self.held, ..self.balance }
    }

    /// Appends the totals with their names, and the multicast LIDs of groups: 0 until the port belongs to the group.
    pub fn read_named(&self, named: &mut Vec<(String, u64)>) {
        self.totals.read(&self.config.wire, named);
        let joined = |lid| self.wire.membership(lid).filter(|membership| membership.is_joined);
        named.extend(self.config.groups.iter().map(|group| {
            let mlid = joined(group.lid).map_or(0, |membership| membership.path.lid.get());
            (format!("multicast_lid_{}", group.name), mlid.into())
        }));
    }

    /// Fills in receptions and latencies.
    pub fn read_received(&self, reading: &mut DeviceReading) {
        let begun = self.connections.in_flow_order().filter_map(Connection::queue_pair);
        let queues =
            begun.filter_map(|index| self.queue_pairs[index as usize].receive_queue.as_ref());
        reading.receptions.clear();
        reading.receptions.extend(queues.filter(|queue| queue.has_received).map(|queue| {
            let periods = queue.notification_point.periods();
            ReceptionReading { periods, ..queue.received.clone() }
        }));
        reading.receptions.extend(self.multicast.values().cloned());
        reading.latencies.clear();
        reading.latencies.extend(self.latencies.values().cloned());
    }

    /// Fills in the flows that `depth` asks for, with integrals closed at `now`.
    pub fn read_flows(&mut self, depth: Depth, now: Instant, reading: &mut DeviceReading) {
        reading.flows.clear();
        if depth < Depth::Begun {
            return;
        }
        let pending = if depth == Depth::All { self.pending.count() } else { 0 };
        let sends = |pair: &&QueuePair| pair.sent.offered.messages > 0;
        let sending = self.queue_pairs.iter().filter(sends).count();
        reading.flows.reserve_exact(sending + pending);
        for connection in self.connections.in_flow_order() {
            match connection {
                Connection::QueuePair(index) => {
                    let pair = &self.queue_pairs[index as usize];
                    if pair.sent.offered.messages > 0 {
                        let mut flow = FlowReading::new(pair.tx_flow);
                        pair.sent.read(&mut flow);
                        self.pacer.read(pair.pacing_group(), now, &mut flow);
                        reading.flows.push(flow);
                    }
                }
                Connection::Pending(_) if depth < Depth::All => {}
                Connection::Pending(index) => {
                    let pending = self.pending.get(index);
                    let mut flow = FlowReading::new(self.tx_flow(pending.class, pending.peer));
                    pending.offered.read(&mut flow);
                    self.pacer.read_pending(pending.since, now, &mut flow);
                    reading.flows.push(flow);
                }
            }
        }
    }

    /// Fills in the flows of the bin that ends at `now`.
    pub fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        self.collect_moved_flows();
        reading.moved.clear();
        for (pair, tx_bytes) in self.flow_report.moved(&self.queue_pairs) {
            let pacing = self.pacer.read_bin(pair.pacing_group(), now);
            reading.moved.push(MovedFlow { flow: pair.tx_flow, tx_bytes, ..pacing });
        }
        reading.unmoved.clear();
        reading.unmoved.extend_from_slice(self.flow_report.unmoved());
    }

    /// Moves flows whose reaction point has moved in the current bin to the individual report.
    fn collect_moved_flows(&mut self) {
        while let Some(group) = self.pacer.poll_moved() {
            for index in self.scheduler.members_of(group) {
                self.flow_report.on_move(index, &mut self.queue_pairs[index as usize]);
            }
        }
    }

    /// A bin begins at `now`.
    pub fn begin_bin(&mut self, now: Instant) {
        self.flow_report.begin_bin();
        self.pacer.begin_bin(now);
        for lane in &mut self.lanes {
            lane.source_queue.restart_watermarks();
        }
    }
}
