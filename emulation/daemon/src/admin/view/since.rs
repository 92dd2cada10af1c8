//! The increase of counters since a reading: what `clear` subtracts.

use super::{Counters, FlowCounters, LaneCounters, PortCounters};
use std::collections::BTreeMap;

impl Counters {
    /// The increase since `base`. Levels stay as they are.
    pub fn since(mut self, base: &Counters) -> Counters {
        self.cleared_ps = Some(base.at_ps);
        for (node, before) in self.nodes.iter_mut().zip(&base.nodes) {
            for (port, before) in node.ports.iter_mut().zip(&before.ports) {
                port.subtract(before);
            }
            let key = |flow: &FlowCounters| (flow.source, flow.destination, flow.class);
            let known: BTreeMap<_, _> = before.flows.iter().map(|flow| (key(flow), flow)).collect();
            for flow in &mut node.flows {
                if let Some(before) = known.get(&key(flow)) {
                    flow.subtract(before);
                }
            }
        }
        self
    }
}

impl PortCounters {
    fn subtract(&mut self, before: &PortCounters) {
        for lane in &mut self.lanes {
            if let Some(before) = before.lanes.iter().find(|other| other.lane == lane.lane) {
                lane.subtract(before);
            }
        }
        self.watchdogs -= before.watchdogs;
        self.injected.lost -= before.injected.lost;
        self.injected.corrupted -= before.injected.corrupted;
        self.injected.duplicated -= before.injected.duplicated;
        self.injected.delayed -= before.injected.delayed;
        for (totals, before) in [(&mut self.drops, &before.drops), (&mut self.named, &before.named)]
        {
            for (name, total) in totals.iter_mut() {
                *total = total.saturating_sub(before.get(name).copied().unwrap_or(0));
            }
            totals.retain(|_, total| *total > 0);
        }
    }
}

impl LaneCounters {
    fn subtract(&mut self, before: &LaneCounters) {
        self.tx_frames -= before.tx_frames;
        self.tx_bytes -= before.tx_bytes;
        self.rx_frames -= before.rx_frames;
        self.rx_bytes -= before.rx_bytes;
        self.tx_control -= before.tx_control;
        self.rx_control -= before.rx_control;
        self.wait_ps -= before.wait_ps;
        self.pause_ps -= before.pause_ps;
        self.no_room -= before.no_room;
        self.marks -= before.marks;
        self.notes_tx -= before.notes_tx;
        self.notes_rx -= before.notes_rx;
    }
}

impl FlowCounters {
    fn subtract(&mut self, before: &FlowCounters) {
        self.tx_bytes -= before.tx_bytes;
        self.messages -= before.messages;
        self.completed -= before.completed;
        self.notes -= before.notes;
    }
}
