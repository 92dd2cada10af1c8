//! What the channel adapter shows of itself: flows, receptions, latencies, balance.

use crate::transport::ChannelAdapter;
use proto::counters::{DeviceReading, FlowId, FlowReading, Gauge, ReceptionReading};
use proto::units::Instant;

impl ChannelAdapter {
    /// Fills the lanes' sending side and the balance, integrals closed at `now`.
    ///
    /// # Panics
    /// If `reading` has no port: the port's part comes first.
    pub fn read_lanes(&mut self, now: Instant, reading: &mut DeviceReading) {
        let port = &mut reading.ports[0];
        for (lane, shown) in self.lanes.iter_mut().zip(&mut port.lanes) {
            lane.source_queue.close(now);
            shown.counters.source_queue = lane.source_queue;
            shown.counters.notes_tx = lane.notes_tx;
        }
        reading.balance = self.balance;
    }

    /// Adds the totals that have names.
    pub fn read_named(&self, named: &mut Vec<(String, u64)>) {
        self.totals.read(&self.config.wire, named);
    }

    /// Fills receptions and latencies.
    pub fn read_received(&self, reading: &mut DeviceReading) {
        let pairs = self.by_flow.iter().map(|index| &self.queue_pairs[index as usize]);
        reading.receptions.clear();
        reading.receptions.extend(pairs.filter(|pair| pair.has_received).map(|pair| {
            let periods = pair.notification_point.periods();
            ReceptionReading { periods, ..pair.received.clone() }
        }));
        reading.latencies.clear();
        reading.latencies.extend_from_slice(self.latencies.readings());
    }

    /// Fills all there is to know of each flow, integrals closed at `now`.
    pub fn read_flows(&mut self, now: Instant, reading: &mut DeviceReading) {
        reading.flows.clear();
        self.renew_flows(now, reading);
    }

    /// Brings the flows in `reading` up to date; one never held back, which is the rule, shows what it
    /// showed before, but for its octets. A fabric has its adapters squared of them.
    pub fn renew_flows(&mut self, now: Instant, reading: &mut DeviceReading) {
        let mut flows = 0;
        for index in self.by_flow.iter() {
            let pair = &self.queue_pairs[index as usize];
            if pair.sent.messages > 0 {
                if reading.flows.len() == flows {
                    reading.flows.push(empty_flow(UNKNOWN));
                }
                let flow = &mut reading.flows[flows];
                flows += 1;
                if flow.flow == pair.sending && self.pacer.is_unmoved(pair.group) {
                    flow.tx_bytes = pair.sent.tx_bytes;
                    continue;
                }
                flow.flow = pair.sending;
                pair.sent.read(flow);
                self.pacer.read(pair.group, now, flow);
            }
        }
        reading.flows.truncate(flows);
    }

    /// Starts the extremes of every gauge anew.
    pub fn restart_watermarks(&mut self) {
        self.pacer.restart_watermarks();
        for lane in &mut self.lanes {
            lane.source_queue.restart_watermarks();
        }
    }
}

/// Nobody's flow.
const UNKNOWN: FlowId = FlowId { source: u64::MAX, destination: u64::MAX, class: u8::MAX };

fn empty_flow(flow: FlowId) -> FlowReading {
    FlowReading {
        flow,
        items: Vec::new(),
        tx_bytes: 0,
        rate: Gauge::default(),
        gap: Gauge::default(),
        scalar: 0,
        neutral_since: None,
        ever_reacted: false,
        first: None,
        last: None,
        offered_bytes: 0,
        messages: 0,
        completed: 0,
        withdrawn: 0,
        notes: 0,
    }
}
