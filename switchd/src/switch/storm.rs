//! The watchdog's actions on a pause storm: drop a queue's frames, or ignore its pauses.

use super::Switch;
use super::packet::Occupied;
use super::relay::note_queue;
use crate::config::StormAction;
use crate::memory::queues::QueueId;
use crate::watchdog::{Finding, Sample};
use proto::counters::DropReason;
use proto::events::{DeviceEvent, EventKind};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Instant;

/// The queues of one output and lane.
#[derive(Clone, Copy)]
pub(super) struct Flush {
    pub output: PortNumber,
    pub lane: VirtualLane,
}

impl Switch {
    /// Whether the watchdog drops a frame for this queue; if so, counts the drop.
    pub(super) fn drops_for_storm(&mut self, output: PortNumber, lane: VirtualLane) -> bool {
        let Some(watchdog) = &mut self.watchdog else { return false };
        let drops = watchdog.numbers.action == StormAction::Drop;
        if !drops || !watchdog.is_storm(output, lane) {
            return false;
        }
        watchdog.count_drop(output, lane);
        true
    }

    /// Polls the watchdog and applies its action to every finding.
    pub(super) fn watch(&mut self, now: Instant) {
        let Some(watchdog) = &mut self.watchdog else { return };
        let action = watchdog.numbers.action;
        let (ports, queues, egress) = (&self.ports, &self.queues, &self.egress);
        let findings = watchdog.poll(now, |port, lane| Sample {
            waiting: queues.is_waiting_on(port, lane),
            sent: egress[port.index()].last_departure(lane),
            paused: ports[port.index()].paused_for(lane, now),
        });
        for (port, lane, finding) in findings {
            let kind = match finding {
                Finding::Storm { stuck } => EventKind::Storm { stuck },
                Finding::Over { lasted } => EventKind::StormOver { lasted },
            };
            self.log.push(DeviceEvent { at: now, port, tc: lane.get(), kind });
            let storms = matches!(finding, Finding::Storm { .. });
            match action {
                StormAction::Drop if storms => {
                    self.flush(Flush { output: port, lane }, DropReason::PauseStorm, now);
                }
                StormAction::Forward => self.ports[port.index()].ignore_pauses(lane, storms, now),
                StormAction::Drop | StormAction::Alert => {}
            }
            self.dirty.insert(port);
        }
    }

    /// Drops all frames that wait for an output and lane.
    pub(super) fn flush(&mut self, queue: Flush, reason: DropReason, now: Instant) {
        let Flush { output, lane } = queue;
        while let Some(stored) = self.queues.withdraw(output, lane) {
            let (input, size) = (stored.input, stored.headers.size);
            let id = QueueId { input, output, lane };
            self.queues.finished(id, size);
            self.release(
                Occupied { input, lane: stored.input_lane, size, group: stored.group },
                now,
            );
            let port = &mut self.ports[output.index()];
            note_queue(self.queues.occupancy(id), lane, port, now);
            port.count_drop(reason, size, lane, now, &mut self.log);
            if let Some(watchdog) =
                self.watchdog.as_mut().filter(|_| reason == DropReason::PauseStorm)
            {
                watchdog.count_drop(output, lane);
            }
            self.pool.recycle(stored.frame);
        }
    }
}
